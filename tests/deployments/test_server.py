"""Checks before `yarus serve` starts anything: taken ports, wrong hosts, unfit servers and databases."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import prefect
import pytest
from sqlalchemy import Engine

from tests.support.command_line import ENGLISH, CommandLine, CommandResult
from tests.support.processes import find_free_port
from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.deployments.prefect.local_server import require_compatible
from yarus.deployments.prefect.server_process import ServerUnavailable
from yarus.deployments.server import prefect_database_url, require_free


@contextmanager
def listen() -> Iterator[int]:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.listen()
        yield bound.getsockname()[1]


@contextmanager
def run_server(version: str, received: list[dict[str, str]] | None = None) -> Iterator[str]:
    """Run a server that reports this Prefect version and records its headers; yield its API's address."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if received is not None:
                received.append(dict(self.headers))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(version).encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        # The poll interval limits the time to stop.
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/api"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("option", ["--port", "--report-port"])
def test_serve_names_taken_port(yarus: CommandLine, option: str) -> None:
    with listen() as port:
        refused = yarus("serve", "--port", str(find_free_port()), option, str(port), env=ENGLISH, ok=False)
    assert refused.code == 3
    assert f"port {port} on 127.0.0.1 is taken" in refused.err
    assert f"{option} PORT" in refused.err
    assert "Traceback" not in refused.err


@pytest.mark.parametrize("host", ["nowhere.invalid", "192.0.2.7"])
def test_require_free_names_unknown_host(host: str) -> None:
    with pytest.raises(InputError, match=host):
        require_free(host, find_free_port(), "--port")


def test_require_free_accepts_free_port() -> None:
    require_free("127.0.0.1", find_free_port(), "--port")


@pytest.mark.parametrize("version", ["2.20.1", "3.0.1", "4.0.0"])
def test_require_compatible_rejects_other_versions(version: str) -> None:
    with run_server(version) as api, pytest.raises(ServerUnavailable) as error:
        require_compatible(api)
    assert f"Prefect {version}" in str(error.value)
    assert prefect.__version__ in str(error.value)
    assert "PREFECT_API_URL" in str(error.value)


@pytest.mark.parametrize("version", [prefect.__version__, "3.99.0"])
def test_require_compatible_accepts_our_version(version: str) -> None:
    with run_server(version) as api:
        require_compatible(api)


@pytest.mark.parametrize("answer", ["hello", ""])
def test_require_compatible_rejects_other_servers(answer: str) -> None:
    with run_server(answer) as api, pytest.raises(ServerUnavailable, match="no Prefect server answers there"):
        require_compatible(api)


def test_serve_names_variable_of_missing_server(yarus: CommandLine) -> None:
    address = f"http://user:s3cret@127.0.0.1:{find_free_port()}/api"
    ports = ("--report-port", str(find_free_port()))
    refused = yarus("serve", *ports, env={"PREFECT_API_URL": address}, ok=False)
    assert refused.code == 3
    assert "PREFECT_API_URL=http://" in refused.err
    assert "s3cret" not in refused.err
    assert "Traceback" not in refused.err


@pytest.mark.parametrize(
    "words", [("run", "tier1", "--limit", "2"), ("dataset", "synthesize", "--into", "new", "--n", "1")]
)
def test_run_is_refused_without_server(yarus_alone: CommandLine, words: tuple[str, ...]) -> None:
    address = f"http://user:s3cret@127.0.0.1:{find_free_port()}/api"
    check_refusal(
        yarus_alone(*words, "--json", env=ENGLISH | {"PREFECT_API_URL": address}, ok=False), "no Prefect server"
    )


@pytest.mark.parametrize("version", ["4.0.0", "hello"])
def test_run_is_refused_on_incompatible_server(yarus_alone: CommandLine, version: str) -> None:
    with run_server(version) as api:
        refused = yarus_alone(
            "run", "tier1", "--limit", "2", "--json", env=ENGLISH | {"PREFECT_API_URL": api}, ok=False
        )
    check_refusal(refused, "no Prefect server" if version == "hello" else "is Prefect 4.0.0")


def check_refusal(refused: CommandResult, reason: str) -> None:
    """Check for exit code 3 and one line of explanation."""
    assert (refused.code, refused.out) == (3, ""), refused.err
    (line,) = [line for line in refused.err.splitlines() if line.startswith("yarus: ")]
    assert "PREFECT_API_URL=http://" in line
    assert reason in line
    assert "s3cret" not in refused.err
    assert "Traceback" not in refused.err


def test_require_compatible_sends_headers_of_prefect() -> None:
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_CLIENT_CUSTOM_HEADERS, temporary_settings

    received: list[dict[str, str]] = []
    prefect_settings = {PREFECT_API_AUTH_STRING: "user:s3cret", PREFECT_CLIENT_CUSTOM_HEADERS: {"X-Gate": "open"}}
    with run_server(prefect.__version__, received) as api, temporary_settings(prefect_settings):
        require_compatible(api)
    (headers,) = received  # one request
    assert (headers["Authorization"], headers["X-Gate"]) == ("Basic dXNlcjpzM2NyZXQ=", "open")


def test_prefect_database_url_defaults_to_file_in_home(tmp_path: Path) -> None:
    assert prefect_database_url(tmp_path, None) == f"sqlite+aiosqlite:///{tmp_path}/prefect/prefect.db"


def test_prefect_database_url_explains_missing_trigrams(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailable) as error:
        prefect_database_url(tmp_path, engine.url.render_as_string(hide_password=False))
    assert "pg_trgm" in str(error.value)
    assert "postgresql-contrib" in str(error.value)


def test_prefect_database_url_hides_password_of_missing_one(tmp_path: Path) -> None:
    url = f"postgresql+psycopg://prefect:s3cret@127.0.0.1:{find_free_port()}/prefect"
    with pytest.raises(DatabaseUnavailable, match="YARUS_PREFECT_DATABASE_URL") as error:
        prefect_database_url(tmp_path, url)
    assert "s3cret" not in str(error.value)

"""What `yarus serve` finds before it starts anything: taken ports, wrong hosts, unfit servers and databases."""

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

from tests.support.command_line import ENGLISH, CommandLine, Ran
from tests.support.processes import free_port
from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.deployments.prefect.local_server import require_compatible
from yarus.deployments.prefect.server_process import ServerUnavailable
from yarus.deployments.server import database_of, require_free


@contextmanager
def listening() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


@contextmanager
def answering(version: str, asked: list[dict[str, str]] | None = None) -> Iterator[str]:
    """A server that says that it is Prefect of that version, and notes the headers it got; its API's address."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if asked is not None:
                asked.append(dict(self.headers))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(version).encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))  # which it stops within
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/api"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("option", ["--port", "--report-port"])
def test_a_taken_port_is_named_before_anything_starts(yarus: CommandLine, option: str) -> None:
    with listening() as port:
        refused = yarus("serve", "--port", str(free_port()), option, str(port), env=ENGLISH, ok=False)
    assert refused.code == 3
    assert f"port {port} on 127.0.0.1 is taken" in refused.err
    assert f"{option} PORT" in refused.err
    assert "Traceback" not in refused.err


@pytest.mark.parametrize("host", ["nowhere.invalid", "192.0.2.7"])
def test_a_host_that_is_not_here_is_named(host: str) -> None:
    with pytest.raises(InputError, match=host):
        require_free(host, free_port(), "--port")


def test_a_free_port_may_be_used() -> None:
    require_free("127.0.0.1", free_port(), "--port")


@pytest.mark.parametrize("version", ["2.20.1", "3.0.1", "4.0.0"])
def test_a_server_of_another_time_is_named(version: str) -> None:
    with answering(version) as api, pytest.raises(ServerUnavailable) as error:
        require_compatible(api)
    assert f"Prefect {version}" in str(error.value)
    assert prefect.__version__ in str(error.value)
    assert "PREFECT_API_URL" in str(error.value)


@pytest.mark.parametrize("version", [prefect.__version__, "3.99.0"])
def test_a_server_of_our_time_will_do(version: str) -> None:
    with answering(version) as api:
        require_compatible(api)


@pytest.mark.parametrize("answer", ["hello", ""])
def test_something_else_that_answers_is_no_prefect_server(answer: str) -> None:
    with answering(answer) as api, pytest.raises(ServerUnavailable, match="no Prefect server answers there"):
        require_compatible(api)


def test_a_server_that_is_not_there_is_named_by_its_variable(yarus: CommandLine) -> None:
    address = f"http://user:s3cret@127.0.0.1:{free_port()}/api"
    ports = ("--report-port", str(free_port()))
    refused = yarus("serve", *ports, env={"PREFECT_API_URL": address}, ok=False)
    assert refused.code == 3
    assert "PREFECT_API_URL=http://" in refused.err
    assert "s3cret" not in refused.err
    assert "Traceback" not in refused.err


@pytest.mark.parametrize(
    "words", [("run", "tier1", "--limit", "2"), ("dataset", "synthesize", "--into", "new", "--n", "1")]
)
def test_nothing_is_run_on_a_server_that_is_not_there(yarus_alone: CommandLine, words: tuple[str, ...]) -> None:
    address = f"http://user:s3cret@127.0.0.1:{free_port()}/api"
    refused_in_words(
        yarus_alone(*words, "--json", env=ENGLISH | {"PREFECT_API_URL": address}, ok=False), "no Prefect server"
    )


@pytest.mark.parametrize("version", ["4.0.0", "hello"])
def test_nothing_is_run_on_a_server_that_does_not_go_with_ours(yarus_alone: CommandLine, version: str) -> None:
    with answering(version) as api:
        refused = yarus_alone(
            "run", "tier1", "--limit", "2", "--json", env=ENGLISH | {"PREFECT_API_URL": api}, ok=False
        )
    refused_in_words(refused, "no Prefect server" if version == "hello" else "is Prefect 4.0.0")


def refused_in_words(refused: Ran, reason: str) -> None:
    """Exit code 3 and one line, beside what was done before."""
    assert (refused.code, refused.out) == (3, ""), refused.err
    (line,) = [line for line in refused.err.splitlines() if line.startswith("yarus: ")]
    assert "PREFECT_API_URL=http://" in line
    assert reason in line
    assert "s3cret" not in refused.err
    assert "Traceback" not in refused.err


def test_the_server_is_asked_as_prefect_would_ask_it() -> None:
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_CLIENT_CUSTOM_HEADERS, temporary_settings

    asked: list[dict[str, str]] = []
    chosen = {PREFECT_API_AUTH_STRING: "user:s3cret", PREFECT_CLIENT_CUSTOM_HEADERS: {"X-Gate": "open"}}
    with answering(prefect.__version__, asked) as api, temporary_settings(chosen):
        require_compatible(api)
    (headers,) = asked  # one request
    assert (headers["Authorization"], headers["X-Gate"]) == ("Basic dXNlcjpzM2NyZXQ=", "open")


def test_prefects_own_database_is_a_file_at_home(tmp_path: Path) -> None:
    assert database_of(tmp_path, None) == f"sqlite+aiosqlite:///{tmp_path}/prefect/prefect.db"


def test_a_postgresql_without_trigrams_is_refused_with_the_way_out(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailable) as error:
        database_of(tmp_path, engine.url.render_as_string(hide_password=False))
    assert "pg_trgm" in str(error.value)
    assert "postgresql-contrib" in str(error.value)


def test_a_postgresql_that_is_not_there_is_refused_without_its_password(tmp_path: Path) -> None:
    url = f"postgresql+psycopg://prefect:s3cret@127.0.0.1:{free_port()}/prefect"
    with pytest.raises(DatabaseUnavailable, match="YARUS_PREFECT_DATABASE_URL") as error:
        database_of(tmp_path, url)
    assert "s3cret" not in str(error.value)

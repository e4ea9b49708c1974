"""The server of a home: how commands find it, and whom they trust."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from yarus.deployments.prefect import home_server
from yarus.deployments.prefect.home_server import HomeServer, announced, join, password_of, running, stop
from yarus.deployments.prefect.server_access import kept
from yarus.deployments.prefect.server_process import ServerUnavailable

API = "http://127.0.0.1:4200/api"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No `.env`, and no server that this process uses, before and after."""
    monkeypatch.chdir(tmp_path)
    using: dict[Path, int] = {}
    monkeypatch.setattr(home_server, "_using", using)
    yield
    for lock in using.values():
        os.close(lock)


@contextmanager
def left_behind(home: Path, **different: object) -> Iterator["subprocess.Popen[str]"]:
    """A process that is announced as the server of the home, as a command leaves it."""
    script = """
import json, os, sys, time
from pathlib import Path
from yarus.deployments.prefect import home_server
home, different = Path(sys.argv[1]), json.loads(sys.argv[2])
with home_server.announced(home, "http://127.0.0.1:4200/api"):
    path = home / "prefect" / "address"
    told = json.loads(path.read_text()) | {"serving": False} | different
    path.write_text(json.dumps(told))
    print("announced", flush=True)
    time.sleep(600)
"""
    command = [sys.executable, "-c", script, str(home), json.dumps(different)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout and process.stdout.readline() == "announced\n"
            yield process
        finally:
            process.kill()


@contextmanager
def user_of(home: Path) -> Iterator[None]:
    """A command that uses the server of the home."""
    script = "import sys, pathlib\nfrom yarus.deployments.prefect import home_server\n"
    script += "home_server._use(pathlib.Path(sys.argv[1]))\nprint('uses', flush=True)\nsys.stdin.read()"
    command = [sys.executable, "-c", script, str(home)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "uses\n"
        yield
        assert process.stdin
        process.stdin.close()


def test_a_home_without_a_server_has_none(tmp_path: Path) -> None:
    assert running(tmp_path) is None
    assert stop(tmp_path) == "not running"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ["", "{", "[]", '{"api": 1}', "null", "http://127.0.0.1:4200/api"])
def test_an_address_that_cannot_be_read_is_none(tmp_path: Path, content: str) -> None:
    with left_behind(tmp_path):
        (tmp_path / "prefect" / "address").write_text(content)
        assert running(tmp_path) is None


def test_a_server_that_was_left_behind_is_ended(tmp_path: Path) -> None:
    with left_behind(tmp_path) as process:
        found = running(tmp_path)
        assert found is not None
        assert (found.pid, found.api) == (process.pid, API)
        with user_of(tmp_path):
            assert stop(tmp_path) == "in use"
        assert stop(tmp_path) == "stopped"
        assert process.wait(10)
        assert stop(tmp_path) == "not running"


def test_the_server_of_serve_is_not_ended(tmp_path: Path) -> None:
    with announced(tmp_path, API):
        assert stop(tmp_path) == "serving"


def test_a_server_of_another_version_is_not_joined_while_it_is_in_use(tmp_path: Path) -> None:
    with left_behind(tmp_path, versions="Prefect 3.0.0, Yarus 0.0.1"), user_of(tmp_path):
        with pytest.raises(ServerUnavailable, match=r"Prefect 3\.0\.0, Yarus 0\.0\.1.* is in use"):
            join(tmp_path)
        assert running(tmp_path) is not None


def test_a_server_in_another_container_is_no_server_of_ours(tmp_path: Path) -> None:
    """Its loopback is not ours, and its pid may be somebody else's here."""
    with left_behind(tmp_path, network="net:[1]"):
        assert running(tmp_path) is None


def test_a_server_that_runs_is_joined(tmp_path: Path) -> None:
    with left_behind(tmp_path) as process:
        assert join(tmp_path).pid == process.pid
        assert home_server.in_use(tmp_path)


def test_a_server_of_serve_takes_over(tmp_path: Path) -> None:
    """What a command left behind ends; what is in use stays, and is found no more."""
    with left_behind(tmp_path) as process, announced(tmp_path, "http://127.0.0.1:4300/api"):
        assert process.wait(10)
    with left_behind(tmp_path) as process, user_of(tmp_path), announced(tmp_path, "http://127.0.0.1:4300/api"):
        assert process.poll() is None
        found = running(tmp_path)
        assert isinstance(found, HomeServer)
        assert (found.api, found.serving, found.pid) == ("http://127.0.0.1:4300/api", True, os.getpid())


@pytest.mark.parametrize(
    ("variables", "env", "wanted"),
    [
        ({}, "", True),
        ({"PREFECT_API_URL": API}, "", False),
        ({}, f"PREFECT_API_URL={API}", False),
        ({"PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false"}, "", False),
        ({"PREFECT_API_DATABASE_CONNECTION_URL": "sqlite+aiosqlite:////elsewhere.db"}, "", False),
    ],
)
def test_the_home_has_a_server_unless_another_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], env: str, wanted: bool
) -> None:
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        monkeypatch.delenv(name)
    for name, value in (variables | {"PREFECT_HOME": str(tmp_path)}).items():
        monkeypatch.setenv(name, value)
    Path(".env").write_text(env)
    assert home_server.is_wanted(tmp_path) is wanted


def test_a_profile_of_prefects_names_another_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    (tmp_path / "profiles.toml").write_text(
        f'active = "near"\n[profiles.near]\n[profiles.far]\nPREFECT_API_URL = "{API}"\n'
    )
    assert home_server.is_wanted(tmp_path)
    monkeypatch.setenv("PREFECT_PROFILE", "far")
    assert not home_server.is_wanted(tmp_path)


@pytest.mark.parametrize(
    ("api", "ours"),
    [
        (API, True),
        ("http://localhost:4200/api", True),
        ("http://127.0.0.1:4201/api", False),
        ("http://192.0.2.1:4200/api", False),
        ("https://127.0.0.1:4200/api", False),
        ("http://127.0.0.1.evil.example:4200/api", False),
    ],
)
def test_the_password_is_sent_to_the_server_that_it_is_for(tmp_path: Path, api: str, ours: bool) -> None:
    secret = kept(tmp_path)
    assert password_of(tmp_path, API) is None  # nothing is served
    with announced(tmp_path, API):
        assert password_of(tmp_path, api) == (secret if ours else None)
    assert password_of(tmp_path, API) is None


def test_a_server_that_was_killed_is_told_no_password(tmp_path: Path) -> None:
    """Whoever takes its port after it could be anybody."""
    kept(tmp_path)
    killed = f"""
import os
from pathlib import Path
from yarus.deployments.prefect.home_server import announced
with announced(Path({str(tmp_path)!r}), {API!r}):
    os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", killed], check=False).returncode == 9
    assert API in (tmp_path / "prefect" / "address").read_text()
    assert password_of(tmp_path, API) is None


def test_of_two_servers_of_a_home_the_newest_is_found_and_none_waits(tmp_path: Path) -> None:
    secret, other = kept(tmp_path), "http://127.0.0.1:4300/api"
    with announced(tmp_path, API):
        with announced(tmp_path, other):
            assert (password_of(tmp_path, API), password_of(tmp_path, other)) == (None, secret)
        assert password_of(tmp_path, other) is None

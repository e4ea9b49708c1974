"""The server of a home: how commands find it, and which servers they trust."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from yarus.deployments.prefect import home_server
from yarus.deployments.prefect.home_server import (
    HomeServer,
    announce_server,
    find_server,
    join_server,
    server_password,
    stop_server,
)
from yarus.deployments.prefect.server_access import stored_password
from yarus.deployments.prefect.server_process import ServerUnavailable

API = "http://127.0.0.1:4200/api"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use no `.env` and no server of this process, before and after."""
    monkeypatch.chdir(tmp_path)
    using: dict[Path, int] = {}
    monkeypatch.setattr(home_server, "_using", using)
    yield
    for lock in using.values():
        os.close(lock)


@contextmanager
def leave_server(home: Path, **different: object) -> Iterator["subprocess.Popen[str]"]:
    """Run a process that is announced as the server of the home, as a command leaves it."""
    script = """
import json, os, sys, time
from pathlib import Path
from yarus.deployments.prefect import home_server
home, different = Path(sys.argv[1]), json.loads(sys.argv[2])
with home_server.announce_server(home, "http://127.0.0.1:4200/api"):
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
def use_server(home: Path) -> Iterator[None]:
    """Run a command that uses the server of the home."""
    script = "import sys, pathlib\nfrom yarus.deployments.prefect import home_server\n"
    script += "home_server._hold_use_lock(pathlib.Path(sys.argv[1]))\nprint('uses', flush=True)\nsys.stdin.read()"
    command = [sys.executable, "-c", script, str(home)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "uses\n"
        yield
        assert process.stdin
        process.stdin.close()


def test_home_without_a_server(tmp_path: Path) -> None:
    assert find_server(tmp_path) is None
    assert stop_server(tmp_path) == "not running"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ["", "{", "[]", '{"api": 1}', "null", "http://127.0.0.1:4200/api"])
def test_find_server_ignores_unreadable_addresses(tmp_path: Path, content: str) -> None:
    with leave_server(tmp_path):
        (tmp_path / "prefect" / "address").write_text(content)
        assert find_server(tmp_path) is None


def test_stop_ends_a_left_server(tmp_path: Path) -> None:
    with leave_server(tmp_path) as process:
        server = find_server(tmp_path)
        assert server is not None
        assert (server.pid, server.api) == (process.pid, API)
        with use_server(tmp_path):
            assert stop_server(tmp_path) == "in use"
        assert stop_server(tmp_path) == "stopped"
        assert process.wait(10)
        assert stop_server(tmp_path) == "not running"


def test_stop_keeps_the_server_of_serve(tmp_path: Path) -> None:
    with announce_server(tmp_path, API):
        assert stop_server(tmp_path) == "serving"


def test_join_refuses_other_version_in_use(tmp_path: Path) -> None:
    with leave_server(tmp_path, versions="Prefect 3.0.0, Yarus 0.0.1"), use_server(tmp_path):
        with pytest.raises(ServerUnavailable, match=r"Prefect 3\.0\.0, Yarus 0\.0\.1.* is in use"):
            join_server(tmp_path)
        assert find_server(tmp_path) is not None


def test_find_server_ignores_other_containers(tmp_path: Path) -> None:
    """Ignore an address of another network namespace: its loopback and pids are different."""
    with leave_server(tmp_path, network="net:[1]"):
        assert find_server(tmp_path) is None


def test_join_uses_a_running_server(tmp_path: Path) -> None:
    with leave_server(tmp_path) as process:
        assert join_server(tmp_path).pid == process.pid
        assert home_server.is_in_use(tmp_path)


def test_announce_server_replaces_others(tmp_path: Path) -> None:
    """End an unused server; one in use stays, but is not found any more."""
    with leave_server(tmp_path) as process, announce_server(tmp_path, "http://127.0.0.1:4300/api"):
        assert process.wait(10)
    with leave_server(tmp_path) as child, use_server(tmp_path), announce_server(tmp_path, "http://127.0.0.1:4300/api"):
        assert child.poll() is None
        server = find_server(tmp_path)
        assert isinstance(server, HomeServer)
        assert (server.api, server.serving, server.pid) == ("http://127.0.0.1:4300/api", True, os.getpid())


@pytest.mark.parametrize(
    ("variables", "env", "expected"),
    [
        ({}, "", True),
        ({"PREFECT_API_URL": API}, "", False),
        ({}, f"PREFECT_API_URL={API}", False),
        ({"PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false"}, "", False),
        ({"PREFECT_API_DATABASE_CONNECTION_URL": "sqlite+aiosqlite:////elsewhere.db"}, "", False),
    ],
)
def test_is_wanted_unless_another_server_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], env: str, expected: bool
) -> None:
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        monkeypatch.delenv(name)
    for name, value in (variables | {"PREFECT_HOME": str(tmp_path)}).items():
        monkeypatch.setenv(name, value)
    Path(".env").write_text(env)
    assert home_server.is_wanted(tmp_path) is expected


def test_is_wanted_respects_prefect_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    ("api", "is_own"),
    [
        (API, True),
        ("http://localhost:4200/api", True),
        ("http://127.0.0.1:4201/api", False),
        ("http://192.0.2.1:4200/api", False),
        ("https://127.0.0.1:4200/api", False),
        ("http://127.0.0.1.evil.example:4200/api", False),
    ],
)
def test_server_password_is_only_for_the_own_server(tmp_path: Path, api: str, is_own: bool) -> None:
    secret = stored_password(tmp_path)
    assert server_password(tmp_path, API) is None  # nothing is served
    with announce_server(tmp_path, API):
        assert server_password(tmp_path, api) == (secret if is_own else None)
    assert server_password(tmp_path, API) is None


def test_server_password_is_none_for_a_killed_server(tmp_path: Path) -> None:
    """Kill a server: another process could take its port."""
    stored_password(tmp_path)
    script = f"""
import os
from pathlib import Path
from yarus.deployments.prefect.home_server import announce_server
with announce_server(Path({str(tmp_path)!r}), {API!r}):
    os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 9
    assert API in (tmp_path / "prefect" / "address").read_text()
    assert server_password(tmp_path, API) is None


def test_newest_of_two_servers_is_found(tmp_path: Path) -> None:
    secret, newer_api = stored_password(tmp_path), "http://127.0.0.1:4300/api"
    with announce_server(tmp_path, API):
        with announce_server(tmp_path, newer_api):
            assert (server_password(tmp_path, API), server_password(tmp_path, newer_api)) == (None, secret)
        assert server_password(tmp_path, newer_api) is None

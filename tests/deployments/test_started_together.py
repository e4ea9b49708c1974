"""Prefect servers that start at the same moment on a new database."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.command_line import make_environment
from tests.support.processes import wait_for
from yarus.deployments.prefect.server_process import SQLITE, start, stop

StartedServer = tuple["subprocess.Popen[bytes]", str, Path]


@contextmanager
def starting(home: Path, name: str) -> Iterator[StartedServer]:
    """Start a server that is not ready yet; yield its process, its API's address and its log."""
    log = home / f"{name}.log"
    database = {"PREFECT_API_DATABASE_CONNECTION_URL": f"{SQLITE}{home / 'prefect.db'}"}
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        api = f"http://127.0.0.1:{listener.getsockname()[1]}/api"
        process = start(listener, log, make_environment(home) | database | {"PREFECT_UI_ENABLED": "0"})
    try:
        yield process, api, log
    finally:
        stop(process)


@pytest.mark.slow("process: three servers at once")
def test_servers_start_together_although_one_is_killed(tmp_path: Path) -> None:
    """Start three servers that would all make the tables, and kill the first in the middle."""
    database = tmp_path / "prefect.db"
    with ExitStack() as stack:
        (killed, *_), *started = (stack.enter_context(starting(tmp_path, name)) for name in ("a", "b", "c"))
        wait_for("table", lambda: database.exists() and database.stat().st_size)
        killed.kill()
        for _, api, log in started:
            assert httpx.get(f"{api}/health", timeout=180).is_success, log.read_text()

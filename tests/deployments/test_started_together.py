"""Prefect's servers that start at the same moment on one database that is not there yet."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.command_line import environment
from tests.support.processes import until
from yarus.deployments.prefect.server_process import SQLITE, start, stop

Started = tuple["subprocess.Popen[bytes]", str, Path]


@contextmanager
def starting(home: Path, name: str) -> Iterator[Started]:
    """A server that is not ready yet: its process, its API's address, its log."""
    log = home / f"{name}.log"
    database = {"PREFECT_API_DATABASE_CONNECTION_URL": f"{SQLITE}{home / 'prefect.db'}"}
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        api = f"http://127.0.0.1:{listener.getsockname()[1]}/api"
        process = start(listener, log, environment(home) | database | {"PREFECT_UI_ENABLED": "0"})
    try:
        yield process, api, log
    finally:
        stop(process)


@pytest.mark.slow("process: three servers at once")
def test_each_gets_ready_and_one_that_is_killed_holds_up_none(tmp_path: Path) -> None:
    """Both would make the tables, and one fail; whoever comes first may be killed in the middle."""
    database = tmp_path / "prefect.db"
    with ExitStack() as stack:
        (killed, *_), *started = (stack.enter_context(starting(tmp_path, name)) for name in ("a", "b", "c"))
        until("table", lambda: database.exists() and database.stat().st_size)
        killed.kill()
        for _, api, log in started:
            assert httpx.get(f"{api}/health", timeout=180).is_success, log.read_text()

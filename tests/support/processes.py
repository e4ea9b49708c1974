"""Other processes: ports for them, whether they answer, what they hold in memory. Imported by full name."""

import re
import shutil
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest


def peak_kb() -> int:
    """The most that this process has held; unlike getrusage's figure, nothing of the process that started it."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))
    assert found
    return int(found[1])


def answers(port: int) -> bool:
    """Whether somebody listens there."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def until(what: str, found: Callable[[], Any], seconds: float = 90) -> Any:
    """What is found, as soon as it is."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := found():
            return value
        time.sleep(0.05)
    return pytest.fail(f"in {seconds} s there was no {what}")


def delete(folder: Path) -> None:
    """As rm -rf does: servers that run in it remove files and make new ones meanwhile."""
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port

"""Ports, polling and memory for tests with processes. Imported by full name."""

import re
import shutil
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest


def get_peak_kb() -> int:
    """Return this process's peak memory; unlike getrusage, it excludes the process that started it."""
    match = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))
    assert match
    return int(match[1])


def is_port_open(port: int) -> bool:
    """Return whether a process listens on the port."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def wait_for(description: str, probe: Callable[[], Any], seconds: float = 90) -> Any:
    """Return the first true value of `probe`, polled until the timeout."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := probe():
            return value
        time.sleep(0.05)
    return pytest.fail(f"in {seconds} s there was no {description}")


def delete_folder(folder: Path) -> None:
    """Delete a folder like rm -rf, although servers in it may still create files."""
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)


def find_free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port

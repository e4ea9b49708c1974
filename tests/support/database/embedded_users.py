"""Other processes that use an embedded PostgreSQL, and how to see what runs. Imported by full name."""

import fcntl
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

ROOT = Path(__file__).parents[3]
USE = "import sys, pathlib, yarus.db.embedded.server as s; print(s.running(pathlib.Path(sys.argv[1])), flush=True)"
HOLD = f"{USE}; sys.stdin.read()"

on_linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks for processes in /proc")


def query(url: str, statement: str) -> object:
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        result = connection.execute(text(statement))
        return result.scalar() if result.returns_rows else None


def postmasters(home: Path) -> list[int]:
    """The pids of the servers that run on a home; a zombie has no command line."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if os.fsencode(home / "postgres" / "data") in words:
                found[int(process.name)] = parent(int(process.name))
    return [pid for pid, above in found.items() if above not in found]  # a child of it has the same line at first


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_stopped(home: Path) -> bool:
    with (home / "postgres" / "server.lock").open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return not (home / "postgres" / "data" / "postmaster.pid").exists() and postmasters(home) == []


class User:
    """Another process that uses a home until it is told to end."""

    def __init__(
        self, home: Path, script: str = HOLD, *, command: tuple[str, ...] = (sys.executable,), **options: object
    ) -> None:
        self.process = subprocess.Popen(
            [*command, "-W", "error", "-c", script, str(home)],
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )

    def url(self) -> str:
        line = self.process.stdout.readline().strip()
        assert line, self.process.stderr.read()
        return line

    def end(self) -> tuple[int, str]:
        _, errors = self.process.communicate(timeout=30)
        return self.process.returncode, errors

    def kill(self) -> None:
        self.process.kill()
        self.end()

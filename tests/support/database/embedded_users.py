"""Processes that use an embedded PostgreSQL, and functions that show what runs. Imported by full name."""

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
PRINT_URL_SCRIPT = (
    "import sys, pathlib, yarus.db.embedded.server as s; print(s.acquire_server(pathlib.Path(sys.argv[1])), flush=True)"
)
KEEP_RUNNING_SCRIPT = f"{PRINT_URL_SCRIPT}; sys.stdin.read()"

on_linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks for processes in /proc")


def query_scalar(url: str, statement: str) -> object:
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        result = connection.execute(text(statement))
        return result.scalar() if result.returns_rows else None


def list_postmasters(home: Path) -> list[int]:
    """Return the process ids of the servers that run on a home; a zombie has no command line."""
    parents = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if os.fsencode(home / "postgres" / "data") in words:
                parents[int(process.name)] = get_parent_pid(int(process.name))
    return [pid for pid, parent in parents.items() if parent not in parents]  # a new child has the same command line


def get_parent_pid(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_stopped(home: Path) -> bool:
    with (home / "postgres" / "server.lock").open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return not (home / "postgres" / "data" / "postmaster.pid").exists() and list_postmasters(home) == []


class EmbeddedServerUser:
    """Another process that uses a home until it is ended."""

    def __init__(
        self,
        home: Path,
        script: str = KEEP_RUNNING_SCRIPT,
        *,
        command: tuple[str, ...] = (sys.executable,),
        **options: object,
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

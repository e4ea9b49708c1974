"""Prefect's server in a process of its own, which ends with the command that started it, even by `kill -9`."""

import http.client
import os
import re
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

from tasks.config.redaction import redact_urls

READY_S = 180.0
"""Longest wait for the first answer: it migrates its database after an upgrade, and a busy machine is slow."""
STOP_S = 15.0
SQLITE = "sqlite+aiosqlite:///"
HEADER = b"SQLite format 3\0"
WAY_OUT = "It holds the list of runs and their logs, but no evaluations: move or remove it, then start again"


class ServerUnavailable(OSError):
    """The Prefect server does not answer, or cannot serve us: the message says what to do. Exit code 3."""


def start(listener: socket.socket, log: Path, variables: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """Starts a server.

    The process has a session of its own: the terminal's Ctrl-C reaches us alone, and we stop it last.

    Args:
        listener: a bound socket, on which it will listen.
        log: the file that its words are added to.
        variables: put into its environment.

    Raises:
        ServerUnavailable: its database can be none.
    """
    environment = os.environ | variables
    require_sound(environment["PREFECT_API_DATABASE_CONNECTION_URL"])
    command = [sys.executable, "-P", "-m", "deployments.process", str(listener.fileno())]
    ends_with_us = subprocess.PIPE
    with log.open("ab") as words:
        return subprocess.Popen(
            command,
            env=environment,
            stdin=ends_with_us,
            stdout=words,
            stderr=words,
            pass_fds=(listener.fileno(),),
            start_new_session=True,
        )


def stop(process: "subprocess.Popen[bytes]", patience_s: float = STOP_S) -> None:
    """Ends a server, and waits until it has ended."""
    process.terminate()
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin:
        process.stdin.close()


def wait_until_ready(api: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Returns when the server answers.

    Args:
        api: its address.
        process: as it was started.
        log: where its words are.

    Raises:
        ServerUnavailable: it ended, or did not answer in time; its last words are repeated.
    """
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline and process.poll() is None:
        if _answers(api):
            return
        time.sleep(0.1)
    last = _last_words(log)
    way_out = ""
    if "sqlite3." in last and "locked" not in last:
        way_out = f". The file {file_of(os.environ['PREFECT_API_DATABASE_CONNECTION_URL'])} is damaged. {WAY_OUT}"
    raise ServerUnavailable(f"Prefect's server did not start: {last or 'no output'}{way_out}; see {log}")


def _last_words(log: Path) -> str:
    """The last error that the log names, or else its last line."""
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines()[-40:] if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Exit)\b", line)]
    return redact_urls((errors or lines or [""])[-1].strip())


def _answers(api: str) -> bool:
    """Whether the server says that it is well; asked without proxies, for it is on this machine."""
    address = urlsplit(api)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=5)
    with closing(connection):
        try:
            connection.request("GET", f"{address.path}/health")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False


def file_of(url: str) -> Path | None:
    """The file of an SQLite database's address; None for another database."""
    return Path(url.removeprefix(SQLITE)) if url.startswith(SQLITE) else None


def require_sound(url: str) -> None:
    """Finds a file that cannot be Prefect's database before a server is started on it.

    Args:
        url: of Prefect's database; only SQLite's files are looked at, and of them only what is read in a moment.

    Raises:
        ServerUnavailable: it is a folder, cannot be written, is no database, or a part of it is missing.
    """
    path = file_of(url)
    if path is None or not path.exists() or (path.is_file() and not path.stat().st_size):
        return
    if not path.is_file():
        trouble = "is no file"
    elif not os.access(path, os.R_OK | os.W_OK):
        trouble = "cannot be read and written by you"
    elif found := _damage(path):
        trouble = f"is damaged ({found})"
    else:
        return
    raise ServerUnavailable(f"Prefect's database {path} {trouble}. {WAY_OUT}")


def _damage(path: Path) -> str | None:
    with path.open("rb") as file:
        head = file.read(32)
    if not head.startswith(HEADER):
        return "it is no SQLite database"
    page = int.from_bytes(head[16:18]) or 1
    pages = int.from_bytes(head[28:32])
    log = path.with_name(f"{path.name}-wal")  # what it still holds is not in the file yet
    if path.stat().st_size < pages * (65_536 if page == 1 else page) and not (log.exists() and log.stat().st_size):
        return "it is truncated"
    try:
        with closing(
            sqlite3.connect(f"file:{path.as_posix().replace('?', '%3f').replace('#', '%23')}?mode=rw", 0, uri=True)
        ) as database:
            database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        return None  # another process has it locked
    except sqlite3.DatabaseError as error:
        return str(error)
    return None

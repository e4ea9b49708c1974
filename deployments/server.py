"""A Prefect server in a process of its own, or the one that PREFECT_API_URL names."""

import errno
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import httpx
import psycopg
from sqlalchemy.engine import make_url

from db.engine import shown
from db.errors import DatabaseUnavailable, InputError
from db.home import prefect_database
from flows.prefect_here import ServerUnavailable
from tasks.settings import masked

READY_S = 180.0
"""Longest wait for the first answer: it migrates its database after an upgrade, and a busy machine is slow."""
STOP_S = 15.0


def require_free(host: str, port: int, option: str) -> None:
    """Finds a taken port before anything is started.

    Args:
        host: where to listen.
        port: on what.
        option: of the command line that chooses another.

    Raises:
        InputError: there is no such host here.
        ServerUnavailable: something listens there already.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(address)
    except socket.gaierror:
        raise InputError(
            f"--host {host!r}: no such host; 127.0.0.1 is this machine, 0.0.0.0 all its networks"
        ) from None
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise InputError(f"--host {host!r} is no address of this machine") from None
        taken = error.errno == errno.EADDRINUSE
        why = "is taken, perhaps by another `yarus serve`" if taken else f"cannot be used ({error.strerror})"
        raise ServerUnavailable(f"port {port} on {host} {why}; choose another one: {option} PORT") from None


def database_of(home: Path, url: str | None) -> str:
    """The address of Prefect's own database, as Prefect wants it.

    Args:
        home: `YARUS_HOME`; without an address it is an SQLite file there.
        url: a PostgreSQL server to use instead.

    Raises:
        DatabaseUnavailable: no connection, or it has no extension `pg_trgm` and we may not create it.
    """
    if url is None:
        return f"sqlite+aiosqlite:///{prefect_database(home.absolute())}"
    address = make_url(url)
    _require_trigrams(address.set(drivername="postgresql").render_as_string(hide_password=False), shown(address))
    return address.set(drivername="postgresql+asyncpg").render_as_string(hide_password=False)


def _require_trigrams(url: str, named: str) -> None:
    try:
        with psycopg.connect(url, connect_timeout=10, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
    except psycopg.errors.InsufficientPrivilege:
        way_out = "have its administrator run there once: CREATE EXTENSION pg_trgm"
    except (psycopg.errors.UndefinedFile, psycopg.errors.FeatureNotSupported):
        way_out = "install it there (Debian: postgresql-contrib), or unset YARUS_PREFECT_DATABASE_URL to use SQLite"
    except psycopg.OperationalError as error:
        reason = masked(" ".join(str(error).split()))
        raise DatabaseUnavailable(f"database {named}: {reason}. Check YARUS_PREFECT_DATABASE_URL") from None
    else:
        return
    raise DatabaseUnavailable(f"database {named}: Prefect needs the extension pg_trgm; {way_out}")


@contextmanager
def running(host: str, port: int, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A Prefect server while the block lasts; its settings are those of the environment.

    Args:
        host: where it listens.
        port: on what.
        log: the file that its words are added to.
    """
    command = [sys.executable, "-m", "uvicorn", "--factory", "deployments.application:create_app"]
    command += ["--host", host, "--port", str(port), "--log-level", "warning", "--timeout-keep-alive", "60"]
    with log.open("ab") as words, _started(command, words) as process:
        yield process


@contextmanager
def _started(command: list[str], words: IO[bytes]) -> Iterator["subprocess.Popen[bytes]"]:
    """The process in a session of its own: the terminal's Ctrl-C reaches us alone, and we stop it last."""
    ends_with_us = subprocess.PIPE
    with subprocess.Popen(command, stdin=ends_with_us, stdout=words, stderr=words, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()


def wait_until_ready(api: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Returns when the server answers.

    Raises:
        ServerUnavailable: it ended, or did not answer in time; its last words are repeated.
    """
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline and process.poll() is None:
        if _answers(api):
            return
        time.sleep(0.1)
    last = masked(log.read_text(encoding="utf-8", errors="replace").strip().rpartition("\n")[2])
    raise ServerUnavailable(f"Prefect's server did not start: {last or 'it said nothing'}; see {log}")


def _answers(api: str) -> bool:
    try:
        return httpx.get(f"{api}/health", timeout=5).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False

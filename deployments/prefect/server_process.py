"""Run Prefect's server in its own process, which ends with the command that started it, even by `kill -9`."""

import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing, suppress
from importlib.metadata import version
from pathlib import Path

from yarus.db.errors import TemplatedError
from yarus.db.messages import Words

STOP_S = 15.0
SMALL_SERVER = {
    "PREFECT_UI_ENABLED": "0",
    "PREFECT__SERVER_EPHEMERAL": "1",
    "PREFECT_SERVER_API_HOST": "127.0.0.1",
    "PREFECT_SERVER_LOGGING_LEVEL": "ERROR",
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "ERROR",
    "PREFECT_API_BLOCKS_REGISTER_ON_START": "0",  # saves a second of CPU time; only the UI needs them
    "PREFECT_MEMOIZE_BLOCK_AUTO_REGISTRATION": "0",
}
"""Settings of a server without browsers and runs."""
SQLITE = "sqlite+aiosqlite:///"
SQLITE_HEADER = b"SQLite format 3\0"
BACKLOG = 128
MIN_FREE_BYTES = 1_000_000  # with less a server does not start
WAY_OUT = Words("It holds the list of runs and their logs, but no evaluations: move or remove it, then start again")


class ServerUnavailable(TemplatedError, OSError):
    """Error of a Prefect server that does not answer or cannot serve us; the message has the fix. Exit code 3."""


def start(
    listener: socket.socket, log: Path, variables: Mapping[str, str], *, address: int | None = None
) -> "subprocess.Popen[bytes]":
    """Start a server.

    The process has its own session: the terminal's Ctrl-C reaches only this process, and we stop the server last.

    Args:
        listener: a bound socket to listen on; clients that connect early wait until it is ready.
        log: the file for its output.
        variables: added to its environment.
        address: the open file with its address: see home_server. Without it, the server ends with this process.

    Raises:
        ServerUnavailable: its database is not valid.
    """
    environment = os.environ | variables
    require_intact(environment["PREFECT_API_DATABASE_CONNECTION_URL"])
    listener.listen(BACKLOG)
    file_descriptors = [listener.fileno(), *([] if address is None else [address])]
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "yarus.deployments.process", *map(str, file_descriptors)],
            env=environment,
            stdin=subprocess.PIPE if address is None else subprocess.DEVNULL,  # the pipe closes when this process ends
            stdout=output,
            stderr=output,
            pass_fds=file_descriptors,
            start_new_session=True,
            cwd=None if address is None else log.parent,
        )


def stop(process: "subprocess.Popen[bytes]", patience_s: float = STOP_S) -> None:
    """Stop a server, and wait until it has ended."""
    process.terminate()
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin:
        process.stdin.close()


FULL_DISK_ERRORS = ("No space left", "File too large", "quota exceeded", "disk is full", "disk I/O error")


def start_error(log: Path, database: str) -> ServerUnavailable:
    """Return the error of a server that did not start, with its last output.

    Args:
        log: the file with its output.
        database: the address of Prefect's database.
    """
    last_output = _read_last_error(log)
    way_out, path = "", database_file(database)
    no_room = shutil.disk_usage(log.parent).free < MIN_FREE_BYTES
    if no_room or any(phrase in last_output for phrase in FULL_DISK_ERRORS):
        way_out = Words(
            ". There is no room in {parent}, or its disk fails: make room there, or set YARUS_HOME elsewhere",
            parent=log.parent,
        )
    elif "sqlite3." in last_output and "locked" not in last_output:
        way_out = Words(". The file {path} is damaged. {way_out}", path=path, way_out=WAY_OUT)
    return ServerUnavailable(
        "Prefect's server did not start: {last}{way_out}; see {log}",
        last=last_output or Words("no output"),
        way_out=way_out,
        log=log,
    )


def _read_last_error(log: Path) -> str:
    """Return the last error in the log, or else its last line."""
    from yarus.tasks.config.redaction import redact_urls  # imported here: a server is started before heavy imports

    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines()[-40:] if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Exit)\b", line)]
    return redact_urls((errors or lines or [""])[-1].strip())


def database_file(url: str) -> Path | None:
    """Return the file of an SQLite database's address; None for one in memory or another database."""
    return Path(url.removeprefix(SQLITE)) if url.startswith(SQLITE) and url != f"{SQLITE}:memory:" else None


def require_intact(url: str) -> None:
    """Check that a file can be Prefect's database before a server is started on it.

    Args:
        url: the address of Prefect's database; only SQLite files are checked, and only parts that are read quickly.

    Raises:
        ServerUnavailable: it is a folder, cannot be written, is not a database, or a part of it is missing.
    """
    path = database_file(url)
    if path is None or not path.exists() or (path.is_file() and not path.stat().st_size):
        return
    if not path.is_file():
        trouble = Words("is no file")
    elif not os.access(path, os.R_OK | os.W_OK):
        trouble = Words("cannot be read and written by you")
    elif damage := _find_damage(path):
        trouble = Words("is damaged ({found})", found=damage)
    else:
        return
    raise ServerUnavailable(
        "Prefect's database {path} {trouble}. {way_out}", path=path, trouble=trouble, way_out=WAY_OUT
    )


def _find_damage(path: Path) -> str | None:
    with path.open("rb") as file:
        head = file.read(32)
    if not head.startswith(SQLITE_HEADER):
        return "it is no SQLite database"
    page = int.from_bytes(head[16:18]) or 1
    pages = int.from_bytes(head[28:32])
    log = path.with_name(f"{path.name}-wal")  # its content is not in the file yet
    if path.stat().st_size < pages * (65_536 if page == 1 else page) and not (log.exists() and log.stat().st_size):
        return "it is truncated"
    try:
        with closing(_open_database(path)) as database:
            database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        return None  # another process has it locked
    except sqlite3.DatabaseError as error:
        return str(error)
    return None


def find_template() -> Path:
    """Return the path of an empty database of our Prefect: copying it saves a new home migrations of 13 s."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache, "yarus", f"prefect-{version('prefect')}.db").expanduser()


def copy_template(url: str) -> None:
    """Make a new SQLite database from the template, if there is one.

    Args:
        url: the address of Prefect's database; one that exists, is in memory or on a server is not changed.

    Raises:
        OSError: the file cannot be written: no space or no permission.
    """
    path = database_file(url)
    if path is None or (path.exists() and path.stat().st_size):
        return
    try:
        tables = find_template().read_bytes()
    except (OSError, RuntimeError):  # it does not exist or cannot be read, or the user has no home
        return
    copy = path.with_name(f"{path.name}.new")  # atomic: half a database would be reported as damaged
    copy.unlink(missing_ok=True)  # left by a killed process
    try:
        copy.touch(mode=0o600)
        copy.write_bytes(tables)
        copy.replace(path)
    finally:
        copy.unlink(missing_ok=True)
    record_migrations(url)


def keep_template(url: str) -> None:
    """Store the tables of a database of Prefect's as the template, without rows, if there is no template."""
    path = database_file(url)
    with suppress(OSError, RuntimeError, sqlite3.Error):
        if path is None or (template_path := find_template()).exists():
            return
        template_path.parent.mkdir(parents=True, exist_ok=True)
        temporary = template_path.with_name(f"{template_path.name}.{os.getpid()}")
        with closing(_open_database(path)) as migrated, closing(sqlite3.connect(temporary)) as database:
            database.execute("BEGIN")
            statements = "SELECT sql FROM sqlite_master WHERE sql <> '' AND name NOT LIKE 'sqlite%' ORDER BY rowid"
            for (statement,) in migrated.execute(statements):
                database.execute(statement)
            database.execute("INSERT INTO alembic_version VALUES (?)", [_revision(path)])
            database.commit()
        temporary.replace(template_path)


def record_migrations(url: str) -> None:
    """Record that the tables of an SQLite database are those of our Prefect, so that starts skip the check."""
    if (path := database_file(url)) is not None and (revision := _revision(path)) is not None:
        _marker(path).write_text(f"{version('prefect')} {revision}", encoding="utf-8")


def migration_settings(url: str) -> dict[str, str]:
    """Return the setting that skips migrations, if the database has all of those of our Prefect."""
    path = database_file(url)
    with suppress(OSError):
        if path is not None and _marker(path).read_text(encoding="utf-8") == f"{version('prefect')} {_revision(path)}":
            return {"PREFECT_API_DATABASE_MIGRATE_ON_START": "0"}
    return {}


def _marker(path: Path) -> Path:
    return path.with_name(f"{path.name}.made")


def _revision(path: Path) -> str | None:
    """Return the last migration of an SQLite database; None if unknown."""
    with suppress(sqlite3.Error, TypeError), closing(_open_database(path)) as database:
        (revision,) = database.execute("SELECT version_num FROM alembic_version").fetchone()
        return str(revision)
    return None


def _open_database(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path.as_posix().replace('?', '%3f').replace('#', '%23')}?mode=rw", 0, uri=True)

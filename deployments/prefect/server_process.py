"""Prefect's server in a process of its own, which ends with the command that started it, even by `kill -9`."""

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

from yarus.db.errors import Told
from yarus.db.words import Words

STOP_S = 15.0
SMALL = {
    "PREFECT_UI_ENABLED": "0",
    "PREFECT__SERVER_EPHEMERAL": "1",
    "PREFECT_SERVER_API_HOST": "127.0.0.1",
    "PREFECT_SERVER_LOGGING_LEVEL": "ERROR",
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "ERROR",
    "PREFECT_API_BLOCKS_REGISTER_ON_START": "0",  # a second of a processor, for what browsers are offered
    "PREFECT_MEMOIZE_BLOCK_AUTO_REGISTRATION": "0",
}
"""Settings of a server that no browser asks and that starts no runs."""
SQLITE = "sqlite+aiosqlite:///"
HEADER = b"SQLite format 3\0"
BACKLOG = 128
ROOM_BYTES = 1_000_000  # with less a server does not start
WAY_OUT = Words("It holds the list of runs and their logs, but no evaluations: move or remove it, then start again")


class ServerUnavailable(Told, OSError):
    """The Prefect server does not answer, or cannot serve us: the message says what to do. Exit code 3."""


def start(
    listener: socket.socket, log: Path, variables: Mapping[str, str], *, address: int | None = None
) -> "subprocess.Popen[bytes]":
    """Starts a server.

    The process has a session of its own: the terminal's Ctrl-C reaches us alone, and we stop it last.

    Args:
        listener: a bound socket, on which it will listen; whoever connects before it is ready waits until it is.
        log: the file that its words are added to.
        variables: put into its environment.
        address: the open file by which it is found: see home_server. Without, it ends with us.

    Raises:
        ServerUnavailable: its database can be none.
    """
    environment = os.environ | variables
    require_sound(environment["PREFECT_API_DATABASE_CONNECTION_URL"])
    listener.listen(BACKLOG)
    passed = [listener.fileno(), *([] if address is None else [address])]
    with log.open("ab") as words:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "yarus.deployments.process", *map(str, passed)],
            env=environment,
            stdin=subprocess.PIPE if address is None else subprocess.DEVNULL,  # of the pipe it hears that we are gone
            stdout=words,
            stderr=words,
            pass_fds=passed,
            start_new_session=True,
            cwd=None if address is None else log.parent,
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


NO_ROOM = ("No space left", "File too large", "quota exceeded", "disk is full", "disk I/O error")


def not_started(log: Path, database: str) -> ServerUnavailable:
    """Why a server did not get ready: its last words.

    Args:
        log: where they are.
        database: the address of Prefect's database.
    """
    last = _last_words(log)
    way_out, path = "", file_of(database)
    no_room = shutil.disk_usage(log.parent).free < ROOM_BYTES
    if no_room or any(words in last for words in NO_ROOM):
        way_out = Words(
            ". There is no room in {parent}, or its disk fails: make room there, or set YARUS_HOME elsewhere",
            parent=log.parent,
        )
    elif "sqlite3." in last and "locked" not in last:
        way_out = Words(". The file {path} is damaged. {way_out}", path=path, way_out=WAY_OUT)
    return ServerUnavailable(
        "Prefect's server did not start: {last}{way_out}; see {log}",
        last=last or Words("no output"),
        way_out=way_out,
        log=log,
    )


def _last_words(log: Path) -> str:
    """The last error that the log names, or else its last line."""
    from yarus.tasks.config.redaction import redact_urls  # here: a server is started before anything heavy is imported

    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines()[-40:] if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Exit)\b", line)]
    return redact_urls((errors or lines or [""])[-1].strip())


def file_of(url: str) -> Path | None:
    """The file of an SQLite database's address; None for one in memory and for another database."""
    return Path(url.removeprefix(SQLITE)) if url.startswith(SQLITE) and url != f"{SQLITE}:memory:" else None


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
        trouble = Words("is no file")
    elif not os.access(path, os.R_OK | os.W_OK):
        trouble = Words("cannot be read and written by you")
    elif found := _damage(path):
        trouble = Words("is damaged ({found})", found=found)
    else:
        return
    raise ServerUnavailable(
        "Prefect's database {path} {trouble}. {way_out}", path=path, trouble=trouble, way_out=WAY_OUT
    )


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
        with closing(_opened(path)) as database:
            database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        return None  # another process has it locked
    except sqlite3.DatabaseError as error:
        return str(error)
    return None


def template() -> Path:
    """Return where an empty database of our Prefect is kept: a copy saves a new home Prefect's migrations, 13 s."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache, "yarus", f"prefect-{version('prefect')}.db").expanduser()


def copy_template(url: str) -> None:
    """Make a new SQLite database from the template, if there is one.

    Args:
        url: of Prefect's database; one that exists, is in memory or on a server stays as it is.

    Raises:
        OSError: the file cannot be written: no room, no right.
    """
    path = file_of(url)
    if path is None or (path.exists() and path.stat().st_size):
        return
    try:
        tables = template().read_bytes()
    except (OSError, RuntimeError):  # there is none, or it cannot be read, or the user has no home
        return
    copy = path.with_name(f"{path.name}.new")  # whole or not at all: half a database would be called damaged
    copy.unlink(missing_ok=True)  # of a process that was killed
    try:
        copy.touch(mode=0o600)
        copy.write_bytes(tables)
        copy.replace(path)
    finally:
        copy.unlink(missing_ok=True)
    remember_made(url)


def keep_template(url: str) -> None:
    """Keep the tables that Prefect has made in a database as the template, if there is none; no row of it."""
    path = file_of(url)
    with suppress(OSError, RuntimeError, sqlite3.Error):
        if path is None or (kept := template()).exists():
            return
        kept.parent.mkdir(parents=True, exist_ok=True)
        new = kept.with_name(f"{kept.name}.{os.getpid()}")
        with closing(_opened(path)) as made, closing(sqlite3.connect(new)) as database:
            database.execute("BEGIN")
            statements = "SELECT sql FROM sqlite_master WHERE sql <> '' AND name NOT LIKE 'sqlite%' ORDER BY rowid"
            for (statement,) in made.execute(statements):
                database.execute(statement)
            database.execute("INSERT INTO alembic_version VALUES (?)", [_revision(path)])
            database.commit()
        new.replace(kept)


def remember_made(url: str) -> None:
    """Notes that the tables of an SQLite database are those of our Prefect, so that no start looks again."""
    if (path := file_of(url)) is not None and (found := _revision(path)) is not None:
        _note(path).write_text(f"{version('prefect')} {found}", encoding="utf-8")


def as_made(url: str) -> dict[str, str]:
    """A setting that saves a start the migrations, where the database has all of them, by our Prefect."""
    path = file_of(url)
    with suppress(OSError):
        if path is not None and _note(path).read_text(encoding="utf-8") == f"{version('prefect')} {_revision(path)}":
            return {"PREFECT_API_DATABASE_MIGRATE_ON_START": "0"}
    return {}


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.made")


def _revision(path: Path) -> str | None:
    """The migration that an SQLite database has reached; None where that cannot be said."""
    with suppress(sqlite3.Error, TypeError), closing(_opened(path)) as database:
        (found,) = database.execute("SELECT version_num FROM alembic_version").fetchone()
        return str(found)
    return None


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path.as_posix().replace('?', '%3f').replace('#', '%23')}?mode=rw", 0, uri=True)

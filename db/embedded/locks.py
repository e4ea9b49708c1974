"""Locks of files: closed on exec, and in forked children."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from yarus.db.embedded import account

open_locks: set[int] = set()


@contextmanager
def mutex(folder: Path) -> Iterator[None]:
    """One process at a time."""
    lock = open_lock(folder.with_suffix(".lock"), folder.parent)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        close(lock)


def take_if_free(folder: Path) -> int | None:
    """server.lock, taken, if no process of PostgreSQL holds it."""
    lock = open_lock(folder / "server.lock", folder)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        close(lock)
        return None
    return lock


def open_lock(path: Path, folder: Path) -> int:
    """The descriptor of a lock's file, of the account that the folder is of."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    open_locks.add(lock)
    account.hand_over(lock, folder)
    return lock


def close(lock: int) -> None:
    """Gives it up."""
    open_locks.discard(lock)
    os.close(lock)

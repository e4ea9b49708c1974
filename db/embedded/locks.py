"""File locks, which are closed on exec and in forked children."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from yarus.db.embedded import account

open_descriptors: set[int] = set()


@contextmanager
def hold_mutex(folder: Path) -> Iterator[None]:
    """Hold a lock that admits one process at a time."""
    lock = open_lock(folder.with_suffix(".lock"), folder.parent)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        release_lock(lock)


def try_lock(folder: Path) -> int | None:
    """Take server.lock and return its descriptor; None if a PostgreSQL process holds it."""
    lock = open_lock(folder / "server.lock", folder)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        release_lock(lock)
        return None
    return lock


def open_lock(path: Path, folder: Path) -> int:
    """Open the file of a lock, owned by the account of the folder, and return its descriptor."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    open_descriptors.add(lock)
    account.give_to_folder_owner(lock, folder)
    return lock


def release_lock(lock: int) -> None:
    """Release a lock."""
    open_descriptors.discard(lock)
    os.close(lock)

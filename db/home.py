"""The folder YARUS_HOME: created in one place, and closed to every other account of the machine.

The folders are private, so the modes of the files below them do not matter, whoever writes them (PostgreSQL, Prefect's
server, its workers). Outside the home the user's umask decides, because teams share results.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from yarus.db.errors import InputError

PREFECT_DATABASE = "prefect/prefect.db"
"""Prefect's SQLite file. It holds Secret blocks beside the key that they are encrypted with."""
HOME_PARTS = ("postgres", "postgres.lock", "prefect", "reports", "results", "work", "pseudonyms.key")
"""Files and folders that Yarus creates in the home."""
SECRET_FILES = (PREFECT_DATABASE, f"{PREFECT_DATABASE}-wal", f"{PREFECT_DATABASE}-shm")
"""Files within a part that are also made private themselves."""
OTHERS_PERMISSIONS = 0o077
MAX_BYTES = 480
"""Largest number of bytes of a home's path: SQLite takes about 512 for the name of a file and of its log."""


def make_private_folder(folder: Path, home: Path) -> Path:
    """Create a folder: private, with the home, if it is in the home; otherwise by the user's umask.

    Args:
        folder: the folder to create.
        home: YARUS_HOME.

    Returns:
        The folder.

    Raises:
        OSError: it cannot be created.
    """
    resolved, home = folder.resolve(), home.resolve()
    if resolved.is_relative_to(home):
        if not home.is_dir():
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            home.chmod(_allowed_mode(home, home))
        restrict_permissions(home)
        for part in resolved.relative_to(home).parts[:1]:
            (home / part).mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def make_prefect_database(home: Path) -> Path:
    """Return the path of Prefect's SQLite file, created as private before Prefect uses it; its log inherits the mode.

    Raises:
        InputError: Prefect cannot have an SQLite file in that home.
    """
    if "?" in str(home):
        raise InputError(
            "YARUS_HOME={home}: Prefect takes what follows the ? for options; choose a folder without one", home=home
        )
    if len(os.fsencode(home)) > MAX_BYTES:
        raise InputError(
            "YARUS_HOME={home}: the path is too long for SQLite; use {most} bytes at most", home=home, most=MAX_BYTES
        )
    path = make_private_folder(home / "prefect", home) / "prefect.db"
    with suppress(OSError):  # a folder, for example: the server's start reports the problem
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    return path


def restrict_permissions(home: Path) -> None:
    """Remove other accounts' permissions in an existing home; `yarus doctor` reports those that cannot be removed."""
    for path in find_accessible_paths(home):
        if path != home or _is_only_home(home):
            with suppress(OSError):
                path.chmod(stat.S_IMODE(path.stat().st_mode) & _allowed_mode(path, home))


def find_accessible_paths(home: Path) -> Iterator[Path]:
    """Yield the parts of a home, and the home itself, that other accounts may enter, read or write.

    A part that is a symbolic link was chosen by a person and is left out.
    """
    for path in (home, *(home / part for part in (*HOME_PARTS, *SECRET_FILES))):
        with suppress(OSError):
            status = path.stat() if path == home else path.lstat()
            if not stat.S_ISLNK(status.st_mode) and status.st_mode & OTHERS_PERMISSIONS & ~_allowed_mode(path, home):
                yield path


def _allowed_mode(path: Path, home: Path) -> int:
    """Return the permission bits to keep.

    As root PostgreSQL runs as another account, which must be able to enter the home.
    """
    return 0o711 if path == home and os.geteuid() == 0 else 0o700


def _is_only_home(home: Path) -> bool:
    """Return whether a folder is a home and nothing else: not a project folder, and never one like /tmp."""
    return not home.stat().st_mode & stat.S_ISVTX and {entry.name for entry in home.iterdir()} <= set(HOME_PARTS)

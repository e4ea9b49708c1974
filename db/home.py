"""YARUS_HOME on the disk: made in one place, and closed to every other account of the machine.

What is private are folders: where nobody else may enter, the modes of the files below do not matter, whoever writes
them (PostgreSQL, Prefect's server, its workers). Outside of the home the user's umask decides, for teams share results.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from yarus.db.errors import InputError

DATABASE = "prefect/prefect.db"
"""Prefect's SQLite file. It holds Secret blocks beside the key that they are encrypted with."""
PARTS = ("postgres", "postgres.lock", "prefect", "reports", "results", "work", "pseudonyms.key")
"""What we make at home."""
SECRET = (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm")
"""What within a part is closed by itself too."""
OTHERS = 0o077
LONGEST = 480
"""Bytes of a home's path: SQLite takes about 512 for the name of a file and of its log."""


def make(folder: Path, home: Path) -> Path:
    """Makes a folder: with the home, private, where it lies there; by the user's umask elsewhere.

    Args:
        folder: what is to be there.
        home: YARUS_HOME.

    Returns:
        The folder.

    Raises:
        OSError: it cannot be made.
    """
    resolved, home = folder.resolve(), home.resolve()
    if resolved.is_relative_to(home):
        if not home.is_dir():
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            home.chmod(_allowed(home, home))
        close(home)
        for part in resolved.relative_to(home).parts[:1]:
            (home / part).mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def prefect_database(home: Path) -> Path:
    """Where Prefect's SQLite file is; made private before Prefect makes it, and its log takes over the mode.

    Raises:
        InputError: no SQLite file of Prefect's can be there.
    """
    if "?" in str(home):
        raise InputError(
            "YARUS_HOME={home}: Prefect takes what follows the ? for options; choose a folder without one", home=home
        )
    if len(os.fsencode(home)) > LONGEST:
        raise InputError(
            "YARUS_HOME={home}: the path is too long for SQLite; use {most} bytes at most", home=home, most=LONGEST
        )
    path = make(home / "prefect", home) / "prefect.db"
    with suppress(OSError):  # a folder, for example: who starts the server on it says what is the matter
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    return path


def close(home: Path) -> None:
    """Takes from other accounts what they may do in a home of before; where that is refused, the doctor tells."""
    for path in open_parts(home):
        if path != home or _only_ours(home):
            with suppress(OSError):
                path.chmod(stat.S_IMODE(path.stat().st_mode) & _allowed(path, home))


def open_parts(home: Path) -> Iterator[Path]:
    """What of a home other accounts may enter, read or write: itself and its parts.

    A part that is a link to elsewhere is what somebody chose: it is left as it is.
    """
    for path in (home, *(home / part for part in (*PARTS, *SECRET))):
        with suppress(OSError):
            status = path.stat() if path == home else path.lstat()
            if not stat.S_ISLNK(status.st_mode) and status.st_mode & OTHERS & ~_allowed(path, home):
                yield path


def _allowed(path: Path, home: Path) -> int:
    """The bits that stay. As root PostgreSQL runs as another account, which has to pass the home, and no more."""
    return 0o711 if path == home and os.geteuid() == 0 else 0o700


def _only_ours(home: Path) -> bool:
    """Whether a folder is a home and nothing else: not the folder of a project, and never one like /tmp."""
    return not home.stat().st_mode & stat.S_ISVTX and {entry.name for entry in home.iterdir()} <= set(PARTS)

"""Who else on this machine may read what Yarus keeps: the home, results elsewhere, the file of settings."""

import os
import pwd
import re
import shlex
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from dotenv import dotenv_values

from yarus.db.home import open_parts
from yarus.db.words import Words
from yarus.tasks.config.settings import settings
from yarus.tasks.operations.doctor_sources import Check

SECRETS = re.compile(r"KEY|HEADERS|PASSWORD|TOKEN|SECRET|WEBHOOK|AUTH|_URL", re.IGNORECASE)
"""Variables of a file `.env` that are likely to hold a secret."""


def examine_home() -> Iterator[Check]:
    """Looks at modes and owners; what is wrong is named with the command that mends it, and hinders nothing."""
    home = settings().home.absolute()
    if not home.is_dir():
        yield Check(Words("home"), Words("{home} is not there yet; it is made when it is first needed", home=home))
        return
    found = [*_open(home), *_owner(home), *_links(home)]
    yield from found or [Check(Words("home"), Words("{home} is closed to other accounts", home=home))]
    yield from _result_files(home)
    yield from _env(Path(".env").absolute())


def _open(home: Path) -> Iterator[Check]:
    for path in open_parts(home):
        mode = f"{stat.S_IMODE(path.stat().st_mode):04o}"
        way_out = Words("chmod go-rwx {path}", path=shlex.quote(str(path)))
        if path == home and os.geteuid() == 0:
            way_out = Words("chmod go-rw {path}", path=shlex.quote(str(path)))  # PostgreSQL's account has to pass
        way_out = Words(
            "{command}; if it stays open, the file system has no modes: set YARUS_HOME to a folder on another",
            command=way_out,
        )
        yield Check(
            Words("home"),
            Words("{path} is open to other accounts of this machine ({mode})", path=path, mode=mode),
            way_out,
        )


def _owner(home: Path) -> Iterator[Check]:
    """The owner of a home reads all of it and may open it."""
    owner, us = home.stat().st_uid, os.geteuid()
    if owner != us:
        yield Check(
            Words("home"),
            Words("{home} belongs to {name}, and you are {us}", home=home, name=_name(owner), us=_name(us)),
            Words("use a home of your own"),
        )


def _links(home: Path) -> Iterator[Check]:
    """Parts that lie elsewhere, where what is private is the user's business."""
    for part in sorted(home.iterdir()):
        if part.is_symlink() and part.exists() and part.stat().st_mode & stat.S_IROTH:
            way_out = Words(
                "chmod go-rwx {path}, unless it is meant to be shared", path=shlex.quote(str(part.resolve()))
            )
            yield Check(
                Words("home"),
                Words("{part} is a link to {target}, which every account can read", part=part, target=part.resolve()),
                way_out,
            )


def _result_files(home: Path) -> Iterator[Check]:
    root = settings().results_root
    path = Path(root)
    if "://" in root or path.resolve().is_relative_to(home.resolve()) or not path.is_dir():
        return
    if path.stat().st_mode & stat.S_IROTH and all(way.stat().st_mode & stat.S_IXOTH for way in path.resolve().parents):
        way_out = Words(
            "chmod o-rwx {path}, unless everybody is meant to see people's questions", path=shlex.quote(root)
        )
        yield Check(Words("results"), Words("{root} can be read by every account of this machine", root=root), way_out)


def _env(path: Path) -> Iterator[Check]:
    """Whether others may read a file `.env` that holds keys."""
    with suppress(OSError):
        if path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
            named = [name for name, value in dotenv_values(path).items() if value and SECRETS.search(name)]
            if named:
                found = Words(
                    "{path} can be read by other accounts, and holds {named}", path=path, named=", ".join(sorted(named))
                )
                yield Check(Words("settings"), found, Words("chmod go-rwx {path}", path=shlex.quote(str(path))))


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return Words("user {uid}", uid=uid)

"""The account that PostgreSQL runs as, the folder that is its own, and programs run as it.

PostgreSQL refuses to run as root. As root the server therefore runs as another account, which owns `home/postgres` and
may lack the right to pass the folders above it (a home below /root) or to read the wheel. No folder that we did not
make is opened for that. Instead, and only where a folder is in fact closed, the server gets one Linux capability
through util-linux's setpriv: to search and read any file or, where that one may not be handed on (Docker), to override
file permissions. The price: a superuser of that database can reach any file of the machine. But only root and the
account itself can enter the socket's folder, and the server is root's own, so root loses nothing by it.
"""

import os
import pwd
import shutil
from pathlib import Path
from typing import NamedTuple, TypedDict

from yarus.db.embedded import ELSEWHERE
from yarus.db.errors import DatabaseUnavailable
from yarus.db.words import Words

CAPABILITIES = {"dac_read_search": 2, "dac_override": 1}  # bits; the first that we may hand on. Docker has the second


class Account(NamedTuple):
    """The user and group that the server runs as, where we are root."""

    uid: int
    gid: int


def make_folder(folder: Path) -> None:
    """Make home/postgres, private to the server's account: as root the owner of the home, or nobody for a root's home.

    So `sudo yarus` in a user's home leaves a database that the user can go on with.
    """
    if folder.exists():
        return
    if not _has_name(uid := os.geteuid()):
        raise DatabaseUnavailable(
            "user {uid} has no name on this machine, which initdb needs: name it, {elsewhere}",
            uid=uid,
            elsewhere=ELSEWHERE,
        )
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


def account_of(folder: Path) -> Account | None:
    """Whom the server runs as: us (None), or as root the owner of home/postgres."""
    if os.geteuid() != 0:
        return None
    owner = folder.stat()
    if owner.st_uid == 0:
        raise DatabaseUnavailable(
            "{folder} belongs to root, and PostgreSQL refuses to run as root: chown -R nobody it, {elsewhere}",
            folder=folder,
            elsewhere=ELSEWHERE,
        )
    return Account(owner.st_uid, owner.st_gid)


def hand_over(file: int, folder: Path) -> None:
    """Give a file that we made as root to the owner of its folder; links to other people's files are left alone."""
    made, owner = os.fstat(file), folder.stat()
    if os.geteuid() == 0 and made.st_uid == 0 and made.st_nlink == 1:
        os.fchown(file, owner.st_uid, owner.st_gid)


class AccountOptions(TypedDict, total=False):
    """Popen's options for a program that runs as another account."""

    user: int
    group: int
    extra_groups: list[int]


def lowered(command: list[str], account: Account | None, *needs: tuple[Path, int]) -> tuple[list[str], AccountOptions]:
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
        missing = (
            Words("setpriv (util-linux) is missing")
            if setpriv is None
            else Words("no capability for that can be handed on")
        )
        raise DatabaseUnavailable(
            "as root the database runs as user {uid}, who may not enter or read {closed}, and {missing}: run as an "
            "ordinary user, set YARUS_HOME and the environment where all may enter, {elsewhere}",
            uid=account.uid,
            closed=closed,
            missing=missing,
            elsewhere=ELSEWHERE,
        )
    only = f"-all,+{capability}"
    # Without the secure bit access(2), by which initdb looks for its postgres, ignores the capability.
    return [
        setpriv, f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups", "--securebits=+no_setuid_fixup",
        f"--inh-caps={only}", f"--ambient-caps={only}", "--no-new-privs", "--",
    ]  # fmt: skip

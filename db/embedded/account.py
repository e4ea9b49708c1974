"""The account that PostgreSQL runs as, its folder, and programs run as that account.

PostgreSQL refuses to run as root. If Yarus runs as root, the server runs as another account, which owns
`home/postgres`. That account may be unable to enter the folders above it (a home below /root) or to read the wheel.
Yarus never opens folders that it did not create. If a folder is closed, the server gets one Linux capability through
util-linux's setpriv instead: to search and read any file or, if that capability is not available (Docker), to override
file permissions. The price: a superuser of that database can read any file of the machine. But only root and the
account itself can enter the socket's folder, and the server belongs to root, so root loses nothing.
"""

import os
import pwd
import shutil
from pathlib import Path
from typing import NamedTuple, TypedDict

from yarus.db.embedded import OTHER_SERVER_HINT
from yarus.db.errors import DatabaseUnavailable
from yarus.db.messages import Words

CAPABILITIES = {"dac_read_search": 2, "dac_override": 1}  # bits; the first available one is used. Docker has the second


class Account(NamedTuple):
    """User and group that the server runs as, if Yarus runs as root."""

    uid: int
    gid: int


def make_folder(folder: Path) -> None:
    """Create home/postgres, private to the server's account: as root, the home's owner, or `nobody` for a root's home.

    So after `sudo yarus` in a user's home, the user can continue to use the database.
    """
    if folder.exists():
        return
    if not _has_name(uid := os.geteuid()):
        raise DatabaseUnavailable(
            "user {uid} has no name on this machine, which initdb needs: name it, {elsewhere}",
            uid=uid,
            elsewhere=OTHER_SERVER_HINT,
        )
    # Renamed once it has its owner, so that a kill leaves no folder of a wrong owner.
    unfinished = folder.with_suffix(".new")
    unfinished.mkdir(mode=0o700, exist_ok=True)
    if os.geteuid() == 0:
        owner = folder.parent.stat()
        is_user = owner.st_uid != 0 and _has_name(owner.st_uid)
        account = Account(owner.st_uid, owner.st_gid) if is_user else find_unprivileged_user()
        os.chown(unfinished, *account, follow_symlinks=False)
    unfinished.rename(folder)


def find_unprivileged_user() -> Account:
    """Return the account `nobody`, which has no rights and exists on every system."""
    entry = pwd.getpwnam("nobody")
    return Account(entry.pw_uid, entry.pw_gid)


def _has_name(uid: int) -> bool:
    """Return whether a user is in /etc/passwd or its like; otherwise initdb refuses (containers with any user id)."""
    try:
        return bool(pwd.getpwuid(uid).pw_name)
    except KeyError:
        return False


def folder_account(folder: Path) -> Account | None:
    """Return the account that the server runs as: None for the current one, or as root the owner of home/postgres."""
    if os.geteuid() != 0:
        return None
    owner = folder.stat()
    if owner.st_uid == 0:
        raise DatabaseUnavailable(
            "{folder} belongs to root, and PostgreSQL refuses to run as root: chown -R nobody it, {elsewhere}",
            folder=folder,
            elsewhere=OTHER_SERVER_HINT,
        )
    return Account(owner.st_uid, owner.st_gid)


def give_to_folder_owner(file: int, folder: Path) -> None:
    """Give a file created as root to the owner of its folder; links to other people's files are left alone."""
    file_status, folder_status = os.fstat(file), folder.stat()
    if os.geteuid() == 0 and file_status.st_uid == 0 and file_status.st_nlink == 1:
        os.fchown(file, folder_status.st_uid, folder_status.st_gid)


class AccountOptions(TypedDict, total=False):
    """Options of Popen for a program that runs as another account."""

    user: int
    group: int
    extra_groups: list[int]


def drop_privileges(
    command: list[str], account: Account | None, *needs: tuple[Path, int]
) -> tuple[list[str], AccountOptions]:
    """Return how to run a program as an account without rights, if Yarus runs as root.

    Args:
        command: the program's path and its arguments.
        account: None to run it as the current account.
        needs: paths that it must reach, each with the permission bits needed there.

    Returns:
        The command, and Popen's options for it; the command gets one capability if a path is closed to the account.

    Raises:
        DatabaseUnavailable: a path is closed, and no capability is available.
    """
    if account is None:
        return command, {}
    requirements = ((Path(command[0]), 0o5), *needs)
    parents = [(parent, 0o1) for path, _ in requirements for parent in path.parents]
    closed = next((path for path, bits in (*parents, *requirements) if not _allows(path.stat(), account, bits)), None)
    if closed is not None:
        return [*_with_capability(account, closed), *command], {}
    return command, {"user": account.uid, "group": account.gid, "extra_groups": []}


def _allows(status: os.stat_result, account: Account, bits: int) -> bool:
    shift = 6 if status.st_uid == account.uid else 3 if status.st_gid == account.gid else 0
    return status.st_mode >> shift & bits == bits


def _with_capability(account: Account, closed: Path) -> list[str]:
    """Return a command prefix that runs the rest as `account`, with the one capability needed to pass `closed`."""
    setpriv, status = shutil.which("setpriv"), Path("/proc/self/status")
    masks = (
        [line.split()[1] for line in status.read_text().splitlines() if line.startswith("CapBnd")] if setpriv else []
    )
    capability = next((name for name, bit in CAPABILITIES.items() for mask in masks if int(mask, 16) >> bit & 1), None)
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
            elsewhere=OTHER_SERVER_HINT,
        )
    capabilities = f"-all,+{capability}"
    # initdb finds its postgres by access(2), which ignores the capability unless this secure bit is set.
    return [
        setpriv, f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups", "--securebits=+no_setuid_fixup",
        f"--inh-caps={capabilities}", f"--ambient-caps={capabilities}", "--no-new-privs", "--",
    ]  # fmt: skip

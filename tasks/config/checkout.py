"""The git checkout that Yarus runs from, if it does not run from an installed package."""

import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Commit(NamedTuple):
    """The commit of a checkout."""

    sha: str
    is_dirty: bool
    """Whether tracked files differ from it."""


@cache
def commit() -> Commit | None:
    """Return the commit of the code; None for a package, also one that is installed inside somebody's repository."""
    if not (ROOT / ".git").exists():
        return None
    try:
        return Commit(_git("rev-parse", "HEAD"), bool(_git("status", "--porcelain", "--untracked-files=no")))
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()

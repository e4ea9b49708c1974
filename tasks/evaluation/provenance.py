"""The versions and the commit that an evaluation was made with."""

import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

RECORDED_PACKAGES = ("numpy", "scipy", "scikit-learn", "rapidfuzz", "sentence-transformers", "prefect", "pyarrow")


@cache
def versions() -> dict[str, str]:
    """Of Yarus, Python and the packages that move numbers."""
    return {"yarus": version("yarus"), "python": python_version()} | {name: version(name) for name in RECORDED_PACKAGES}


@cache
def commit() -> dict[str, Any]:
    """The commit of the code that runs, if it is a git checkout."""
    try:
        commit = _git("rev-parse", "HEAD")
        return {"git_commit": commit, "git_dirty": bool(_git("status", "--porcelain", "--untracked-files=no"))}
    except (OSError, subprocess.CalledProcessError):
        return {}


def _git(*arguments: str) -> str:
    folder = Path(__file__).parents[2]
    done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()

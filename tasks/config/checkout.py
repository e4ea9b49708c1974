"""The git commit of the running code."""

import json
import subprocess
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Commit(NamedTuple):
    """A commit, and whether the checkout differs from it."""

    sha: str
    is_dirty: bool
    """Whether tracked files differ from the commit."""


@cache
def find_commit() -> Commit | None:
    """Return the commit of a checkout or of what pip installed from git; None for a wheel."""
    if not (ROOT / ".git").exists():  # the environment may lie inside another repository
        origin = json.loads(distribution("yarus").read_text("direct_url.json") or "{}")  # PEP 610
        sha = origin.get("vcs_info", {}).get("commit_id")
        return Commit(sha, is_dirty=False) if sha else None
    try:
        return Commit(_run_git("rev-parse", "HEAD"), bool(_run_git("status", "--porcelain", "--untracked-files=no")))
    except (OSError, subprocess.CalledProcessError):
        return None


def _run_git(*arguments: str) -> str:
    process = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=True)
    return process.stdout.strip()

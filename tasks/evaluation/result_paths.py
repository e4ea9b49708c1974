"""Paths of result files."""

import os
from datetime import UTC, datetime

from yarus.tasks.config.settings import get_settings


def result_path(root: str, tier: str, evaluation_id: str, started_at: datetime) -> str:
    """Return the path or URL of an evaluation's result file."""
    date = f"{started_at.astimezone(UTC):%Y-%m-%d}"
    return f"{root.rstrip('/')}/tier={tier}/date={date}/{evaluation_id}.parquet"


def existing_path(path: str, root: str | None = None) -> str:
    """Return the path of a result file: as in the journal, or in YARUS_RESULTS if its folder was moved.

    Files on an object store do not move with the home folder.

    Args:
        path: as in the journal.
        root: YARUS_RESULTS; callers with many paths pass it, because reading the settings is slower than the check.
    """
    root = root or get_settings().results_root
    moved = "/".join((root.rstrip("/"), *path.split("/")[-3:]))  # tier=…/date=…/ID.parquet, as `result_path` makes it
    is_gone = not os.path.exists(path)  # noqa: PTH110 - False also if a folder may not be read
    has_moved = "://" not in path + root and is_gone and os.path.exists(moved)  # noqa: PTH110
    return moved if has_moved else path

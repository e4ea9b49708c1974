"""Where the files of evaluations are."""

import os
from datetime import UTC, datetime

from yarus.tasks.config.settings import settings


def result_path(root: str, tier: str, evaluation_id: str, started_at: datetime) -> str:
    """Where the file of an evaluation belongs: a path, or a URL."""
    date = f"{started_at.astimezone(UTC):%Y-%m-%d}"
    return f"{root.rstrip('/')}/tier={tier}/date={date}/{evaluation_id}.parquet"


def existing_path(path: str, root: str | None = None) -> str:
    """Where a file of the results is: as the journal says, or in the same place in YARUS_RESULTS if its folder moved.

    What is on an object store does not move with the home.

    Args:
        path: as the journal has it.
        root: YARUS_RESULTS, from who asks for many: to read the settings takes longer than to look.
    """
    root = root or settings().results_root
    here = "/".join((root.rstrip("/"), *path.split("/")[-3:]))  # tier=…/date=…/ID.parquet, as `result_path` makes it
    gone = not os.path.exists(path)  # noqa: PTH110 - False also where a folder may not be read
    moved = "://" not in path + root and gone and os.path.exists(here)  # noqa: PTH110
    return here if moved else path

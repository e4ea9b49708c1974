"""Evaluations whose process has died."""

import logging
from datetime import datetime

from sqlalchemy import Engine

from yarus.db import journal
from yarus.tasks.config.settings import settings
from yarus.tasks.results.places import result_path

log = logging.getLogger("yarus")


def fail_orphaned(engine: Engine) -> None:
    """Marks evaluations whose process died as failed, and removes files that they left without metrics."""

    def clear(tier: str, evaluation_id: str, started_at: datetime) -> None:
        from yarus.tasks.results.parquet_files import remove  # Arrow, which no list of evaluations needs

        remove(result_path(settings().results_root, tier, evaluation_id, started_at))

    for dead in journal.fail_orphaned(engine, clear):
        log.warning("evaluation %s had died; it can be resumed", dead)

"""Evaluations as they are listed, and those whose process has died."""

import logging
from datetime import datetime
from typing import cast

from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation.config import Called, State
from yarus.tasks.evaluation.result_paths import existing_path, result_path


class ListedEvaluation(Called):
    """One evaluation in a list."""

    evaluation_id: str
    tier: str
    state: State
    source: str
    n_cases: int | None
    coverage: float | None
    started_at: str
    finished_at: str | None
    comparability_key: str | None
    parquet: str | None
    error: str | None


def listed(row: RowMapping, root: str) -> ListedEvaluation:
    """The evaluation as `yarus runs --json` prints it.

    Args:
        row: of the journal.
        root: where results are kept.
    """
    found: ListedEvaluation = {
        "evaluation_id": row["id"],
        "name": row["name"],
        "tags": row["tags"],
        "tier": row["tier"],
        "state": row["state"],
        "source": row["source"],
        "n_cases": row["n_cases"],
        "coverage": row["coverage"],
        "started_at": str(row["started_at"]),
        "finished_at": row["finished_at"] and str(row["finished_at"]),
        "comparability_key": row["comparability_key"],
        "parquet": row["parquet"] and existing_path(row["parquet"], root),
        "error": row["error"],
    }
    return cast(ListedEvaluation, pseudonyms.document(found, row["source"]))


log = logging.getLogger("yarus")


def fail_orphaned(engine: Engine) -> None:
    """Marks evaluations whose process died as failed, and removes files that they left without metrics."""

    def clear(tier: str, evaluation_id: str, started_at: datetime) -> None:
        from yarus.tasks.evaluation.result_files import remove  # Arrow, which no list of evaluations needs

        remove(result_path(settings().results_root, tier, evaluation_id, started_at))

    for dead in journal.fail_orphaned(engine, clear):
        log.warning("evaluation %s had died; it can be resumed", dead)

"""Listing of evaluations, and detection of those whose process has died."""

import logging
from datetime import datetime
from typing import cast

from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.config.settings import get_settings
from yarus.tasks.evaluation.config import EvaluationLabel, EvaluationState
from yarus.tasks.evaluation.result_paths import existing_path, result_path


class ListedEvaluation(EvaluationLabel):
    """Summary of one evaluation."""

    evaluation_id: str
    tier: str
    state: EvaluationState
    source: str
    n_cases: int | None
    coverage: float | None
    started_at: str
    finished_at: str | None
    comparability_key: str | None
    parquet: str | None
    error: str | None


def to_listed(row: RowMapping, root: str) -> ListedEvaluation:
    """Return the evaluation as `yarus runs --json` prints it.

    Args:
        row: of the journal.
        root: the folder of results.
    """
    document: ListedEvaluation = {
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
    return cast(ListedEvaluation, pseudonyms.mask_document(document, row["source"]))


log = logging.getLogger("yarus")


def fail_orphaned(engine: Engine) -> None:
    """Mark evaluations whose process died as failed, and remove files that they left without metrics."""

    def remove_file(tier: str, evaluation_id: str, started_at: datetime) -> None:
        from yarus.tasks.evaluation.result_files import remove_result  # Arrow, which no list of evaluations needs

        remove_result(result_path(get_settings().results_root, tier, evaluation_id, started_at))

    for orphan_id in journal.fail_orphaned(engine, remove_file):
        log.warning("evaluation %s had died; it can be resumed", orphan_id)

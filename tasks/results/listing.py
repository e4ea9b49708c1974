"""Evaluations as they are listed."""

from typing import cast

from sqlalchemy.engine import RowMapping

from yarus.tasks.cases import pseudonyms
from yarus.tasks.results.places import existing_path
from yarus.tasks.results.summary import State
from yarus.tasks.results.system import Called


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

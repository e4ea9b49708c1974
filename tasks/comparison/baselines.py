"""An evaluation beside its baseline: every metric case by case, what it says, or why nothing can be said."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from yarus.tasks.comparison.comparison_schema import Compared, EvaluationComparison, MetricComparison
from yarus.tasks.comparison.since import since_accepted
from yarus.tasks.config.texts import LANGUAGES, Text, translations


class Beside(NamedTuple):
    """What a comparison with the baseline comes to."""

    before: str | None
    """The evaluation that it is compared with, or held against; None where there is nothing before."""
    since: Text | None
    """The day of what it is compared with; None where there is nothing before."""
    metrics: Mapping[str, MetricComparison]
    """None where the two cannot be compared."""
    found: Compared | None
    """The comparison, or what differs where there is none."""
    problem: Text | None
    """Why it is inconclusive; None where it is not, or where there is nothing to compare."""


def beside_baseline(engine: Engine, row: RowMapping) -> Beside:
    """Compares an evaluation with what it is judged against.

    It is inconclusive where nothing is accepted (unless it is itself the first of its key), where the two cannot be
    compared, and where they have too few cases in common for any headline metric: neither a difference is shown, nor
    one that matters ruled out.

    Args:
        engine: of our own database.
        row: of an evaluation that is completed, or invalid.
    """
    found = since_accepted(engine, row)
    missing = None if row["accepted_at"] or row["state"] != "completed" else remark("not accepted", row, None)
    if found is None:
        return Beside(None, None, {}, None, missing)
    before = found["a"]["evaluation_id"]
    since = dict.fromkeys(LANGUAGES, datetime.fromisoformat(found["a"]["started_at"]).strftime("%Y-%m-%d"))
    if "metrics" not in found:
        why = found["reason"]
        return Beside(before, since, {}, found, remark("not comparable", row, before, error=why) if why else missing)
    return Beside(before, since, found["metrics"], found, _too_few(found, row))


def _too_few(found: EvaluationComparison, row: RowMapping) -> Text | None:
    metrics = [one for one in found["metrics"].values() if one["p_holm"] is not None]
    if any(one["verdict"] != "inconclusive" for one in metrics):
        return None
    n = max((one["n"] for one in metrics), default=0)
    return remark("too few", row, found["a"]["evaluation_id"], n=n)


def remark(why: str, row: RowMapping, baseline: str | None, **known: object) -> Text:
    """Return one of the texts on what a night says of an evaluation.

    Args:
        why: which.
        row: of the evaluation.
        baseline: what it is judged against.
        known: what else the text names.
    """
    return translations("nightly_remarks", why, id=row["id"], baseline=baseline, **known)

"""An evaluation beside its baseline: its headline metrics case by case, or why nothing can be said of them."""

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from db import journal
from db.errors import InputError, ResultsUnavailable
from tasks.comparison.compare import compare
from tasks.comparison.documents import MetricComparison
from tasks.config.redaction import redact_urls
from tasks.config.tiers import TIERS
from tasks.texts import LANGUAGES, Text, texts


class Beside(NamedTuple):
    """What a comparison with the baseline comes to."""

    baseline: str | None
    """The accepted evaluation; None where none is, as for the first of a key."""
    metrics: Mapping[str, MetricComparison]
    """The headline metrics; none where the two cannot be compared."""
    problem: Text | None
    """Why it is inconclusive; None where it is not, or where there is nothing to compare."""


def beside_baseline(engine: Engine, row: RowMapping) -> Beside:
    """Compares an evaluation with what it is judged against.

    It is inconclusive where nothing is accepted (unless it is itself the first of its key), where the two cannot be
    compared, and where they have too few cases in common for any headline metric: neither a difference is shown, nor
    one that matters ruled out.

    Args:
        engine: of our own database.
        row: of a completed evaluation.
    """
    baseline = journal.baseline(engine, row["id"])
    if baseline is None:
        return Beside(None, {}, None if row["accepted_at"] else _problem("not accepted", row, baseline))
    try:
        found = compare(engine, baseline, row["id"], only=TIERS[row["tier"]].headlines)["metrics"]
    except (InputError, ResultsUnavailable) as error:
        return Beside(baseline, {}, _problem("not comparable", row, baseline, error=redact_urls(str(error))))
    if all(metric["verdict"] == "inconclusive" for metric in found.values()):
        n = max(metric["n"] for metric in found.values())
        return Beside(baseline, found, _problem("too few", row, baseline, n=n))
    return Beside(baseline, found, None)


def _problem(why: str, row: RowMapping, baseline: str | None, **known: object) -> Text:
    known |= {"id": row["id"], "baseline": baseline}
    return {language: texts("inconclusive", language)[why].format(**known) for language in LANGUAGES}

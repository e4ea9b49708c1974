"""What changed since the evaluation that one is judged against, or why that cannot be said."""

from sqlalchemy import Engine, select
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.errors import InputError, ResultsUnavailable
from yarus.db.tables import evaluation
from yarus.tasks.comparison.changes import changed_settings
from yarus.tasks.comparison.common_cases import differences
from yarus.tasks.comparison.compare import compare, side
from yarus.tasks.comparison.comparison_schema import Compared, NotCompared
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.texts import Text, translations


def since_accepted(engine: Engine, row: RowMapping) -> Compared | None:
    """Compares an evaluation with the accepted one of its key.

    The first of a key has none, and is held against the newest of another key: its unit, labels, judge or questions
    were changed, which is no first evaluation.

    Args:
        engine: of our own database.
        row: of the evaluation.

    Returns:
        None where there is nothing before it.
    """
    baseline = journal.baseline(engine, row["id"])
    if baseline is not None:
        return compared_with(engine, baseline, row)
    before = _newest_of_another_key(engine, row)
    return None if before is None else not_compared(before, row, None)


def compared_with(engine: Engine, before: str, row: RowMapping, *, force: bool = False) -> Compared:
    """The comparison with an evaluation, or why there is none."""
    try:
        return compare(engine, before, row["id"], force=force)
    except (InputError, ResultsUnavailable) as error:
        return not_compared(journal.find(engine, before), row, redact_urls(str(error)))


def not_compared(before: RowMapping, after: RowMapping, reason: str | None) -> NotCompared:
    """Two evaluations that cannot be compared, with what differs."""
    return {
        "a": side(before),
        "b": side(after),
        "differs": differences(before, after),
        "changed_settings": changed_settings(before, after),
        "reason": reason,
    }


def why_inconclusive(found: Compared | None, row: RowMapping) -> Text | None:
    """Why a comparison with what an evaluation is judged against is inconclusive; None where it is not.

    It is where nothing is accepted (unless the evaluation is itself the first of its key), where the two cannot be
    compared, and where they have too few cases in common for any headline metric: neither a difference is shown, nor
    one that matters ruled out.

    Args:
        found: as `since_accepted` gives it.
        row: of the evaluation, which is completed, or invalid.
    """
    if found is None or ("metrics" not in found and not found["reason"]):
        return None if row["accepted_at"] or row["state"] != "completed" else remark("not accepted", row, None)
    before = found["a"]["evaluation_id"]
    if "metrics" not in found:
        return remark("not comparable", row, before, error=found["reason"])
    headlines = [one for one in found["metrics"].values() if one["p_holm"] is not None]
    if any(one["verdict"] != "inconclusive" for one in headlines):
        return None
    return remark("too few", row, before, n=max((one["n"] for one in headlines), default=0))


def remark(why: str, row: RowMapping, baseline: str | None, **known: object) -> Text:
    """Return one of the texts on what a night says of an evaluation.

    Args:
        why: which.
        row: of the evaluation.
        baseline: what it is judged against.
        known: what else the text names.
    """
    return translations("nightly_remarks", why, id=row["id"], baseline=baseline, **known)


def _newest_of_another_key(engine: Engine, row: RowMapping) -> RowMapping | None:
    of, key = evaluation.c, row["comparability_key"]
    if key is None or journal.marks(row):
        return None
    earlier = (
        select(evaluation)
        .where(of.tier == row["tier"], of.source == row["source"], of.state == "completed", journal.LIVE)
        .where(of.started_at < row["started_at"], of.comparability_key != key)
        .order_by(of.started_at.desc())
        .limit(1)
    )
    with engine.connect() as connection:
        return connection.execute(earlier).mappings().first()

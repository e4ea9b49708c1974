"""Compare an evaluation with its baseline, or explain why that is not possible."""

from sqlalchemy import Engine, select
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.errors import InputError, ResultsUnavailable
from yarus.db.tables import evaluation
from yarus.tasks.comparison.changes import changed_settings, judged_metrics
from yarus.tasks.comparison.common_cases import find_key_differences
from yarus.tasks.comparison.compare import compare, describe_evaluation
from yarus.tasks.comparison.comparison_schema import Compared, NotCompared
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.texts import TranslatedText, translations


def compare_with_accepted(engine: Engine, row: RowMapping) -> Compared | None:
    """Compare an evaluation with the accepted one of its key.

    The first evaluation of a key has no accepted one. It is described next to the newest one of another key, because
    its unit, labels, judge or questions were changed since.

    Args:
        engine: the engine of Yarus's database.
        row: the row of the evaluation.

    Returns:
        None if there is no evaluation before it.
    """
    baseline = journal.find_baseline(engine, row["id"])
    if baseline is not None:
        return compare_or_explain(engine, baseline, row)
    before = _find_newest_of_another_key(engine, row)
    return None if before is None else describe_incomparable(before, row, None)


def compare_or_explain(engine: Engine, before: str, row: RowMapping, *, force: bool = False) -> Compared:
    """Return the comparison with an evaluation, or the reason why there is none."""
    try:
        return compare(engine, before, row["id"], force=force)
    except (InputError, ResultsUnavailable) as error:
        return describe_incomparable(journal.find_evaluation(engine, before), row, redact_urls(str(error)))


def describe_incomparable(before: RowMapping, after: RowMapping, reason: str | None) -> NotCompared:
    """Describe two evaluations that cannot be compared, and their differences."""
    return {
        "a": describe_evaluation(before),
        "b": describe_evaluation(after),
        "key_differences": find_key_differences(before, after),
        "changed_settings": changed_settings(before, after),
        "reason": reason,
    }


def inconclusive_reason(comparison: Compared | None, row: RowMapping) -> TranslatedText | None:
    """Return why the comparison with an evaluation's baseline is inconclusive; None if it is conclusive.

    It is inconclusive if nothing is accepted (unless the evaluation is the first of its key) or the two cannot be
    compared. It is also inconclusive if they have too few common cases for any metric in Holm's adjustment: then
    neither is a difference shown nor one that matters ruled out. Metrics of a stand-in do not count.

    Args:
        comparison: the comparison, as `compare_with_accepted` returns it.
        row: the row of the evaluation, which is completed or invalid.
    """
    if comparison is None or ("metrics" not in comparison and not comparison["reason"]):
        return None if row["accepted_at"] or row["state"] != "completed" else nightly_remark("not accepted", row, None)
    before = comparison["a"]["evaluation_id"]
    if "metrics" not in comparison:
        return nightly_remark("not comparable", row, before, error=comparison["reason"])
    adjusted = {name: document for name, document in comparison["metrics"].items() if document["p_holm"] is not None}
    judged = judged_metrics(comparison)
    if any(document["verdict"] != "inconclusive" for name, document in adjusted.items() if name in judged):
        return None
    return nightly_remark("too few", row, before, n=max((document["n"] for document in adjusted.values()), default=0))


def nightly_remark(why: str, row: RowMapping, baseline: str | None, **fields: object) -> TranslatedText:
    """Return one of the texts on an evaluation for a nightly report.

    Args:
        why: the key of the text.
        row: the row of the evaluation.
        baseline: the id of the evaluation that it is compared with.
        fields: other values that the text contains.
    """
    return translations("nightly_remarks", why, id=row["id"], baseline=baseline, **fields)


def _find_newest_of_another_key(engine: Engine, row: RowMapping) -> RowMapping | None:
    columns, key = evaluation.c, row["comparability_key"]
    if key is None or journal.non_live_marks(row):
        return None
    earlier = (
        select(evaluation)
        .where(
            columns.tier == row["tier"], columns.source == row["source"], columns.state == "completed", journal.IS_LIVE
        )
        .where(columns.started_at < row["started_at"], columns.comparability_key != key)
        .order_by(columns.started_at.desc())
        .limit(1)
    )
    with engine.connect() as connection:
        return connection.execute(earlier).mappings().first()

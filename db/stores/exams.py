"""Read the exams that judges have taken, by the key of judge and prompt."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Engine, String, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY

from yarus.db.engine import reporting_unreachable

_NEWEST = text(
    """
    SELECT DISTINCT ON (key) key, e.resolved -> 'examined' ->> key AS outcome, e.started_at
    FROM yarus.evaluation AS e CROSS JOIN unnest(:keys) AS key
    WHERE e.tier = 'judge' AND e.state = 'completed' AND e.resolved -> 'examined' ? key
      AND e.resolved -> 'examined' ->> key = ANY (:outcomes)
    ORDER BY key, e.started_at DESC
    """
).bindparams(bindparam("keys", type_=ARRAY(String)), bindparam("outcomes", type_=ARRAY(String)))


class ExamRecord(NamedTuple):
    """Outcome and time of an exam."""

    outcome: str
    at: datetime


def find_newest_exams(engine: Engine, keys: Collection[str], outcomes: Collection[str]) -> dict[str, ExamRecord]:
    """Return the newest exam for each key that has one.

    Args:
        engine: the engine of Yarus's own database.
        keys: keys of judge and prompt.
        outcomes: the outcomes to include.
    """
    with reporting_unreachable(engine), engine.connect() as connection:
        rows = connection.execute(_NEWEST, {"keys": sorted(keys), "outcomes": sorted(outcomes)})
        return {row.key: ExamRecord(row.outcome, row.started_at) for row in rows}


_RATES = text(
    """
    SELECT max(m.value) FILTER (WHERE m.metric = 'exam_sensitivity_' || :prompt) AS sensitivity,
           max(m.value) FILTER (WHERE m.metric = 'exam_specificity_' || :prompt) AS specificity
    FROM yarus.evaluation AS e JOIN yarus.evaluation_metric AS m ON m.evaluation_id = e.id
    WHERE e.tier = 'judge' AND e.state = 'completed' AND e.resolved -> 'examined' ? :key
    GROUP BY e.id, e.started_at
    ORDER BY e.started_at DESC
    LIMIT 1
    """
)


def exam_sensitivity_specificity(engine: Engine, key: str, prompt: str) -> tuple[float, float] | None:
    """Return sensitivity and specificity for a prompt from the newest exam of a key; None if they are missing."""
    with reporting_unreachable(engine), engine.connect() as connection:
        row = connection.execute(_RATES, {"key": key, "prompt": prompt}).first()
    return (row.sensitivity, row.specificity) if row and None not in row else None

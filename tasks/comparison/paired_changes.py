"""What changed in every metric since the nights before, on common cases; trends are made of it (`resolved.paired`)."""

from collections.abc import Iterable
from math import isfinite
from typing import NamedTuple

import pyarrow as pa
from sqlalchemy import Engine, select
from sqlalchemy.engine import RowMapping
from typing_extensions import TypedDict

from db.errors import InputError, ResultsUnavailable
from db.journal import ASIDE, LIVE
from db.tables import evaluation
from metrics.metric import Metric
from metrics.statistics.differences.changes import Change, change
from metrics.statistics.groups import group_codes
from metrics.statistics.paired_chart import LAG
from metrics.table import metric
from tasks.comparison.common_cases import common, headline, read_cases
from tasks.comparison.totals import needs, numbers


class PairedChange(TypedDict):
    """Of one metric, since the night before; `metrics.statistics.paired_chart.NightChange` has the meanings."""

    difference: float
    variance: float
    far_variance: float
    lag: int
    step: float


class PairedChanges(TypedDict):
    """Of one evaluation, by metric."""

    since: str
    """The evaluation of the night before."""
    share: float
    """Of the night's cases, those that were also asked the night before, 0..1."""
    changes: dict[str, PairedChange]


def paired_changes(
    engine: Engine, row: RowMapping, key: str, cases: pa.Table, declared: Iterable[Metric]
) -> PairedChanges | None:
    """What changed since the night before, and since LAG nights before (or as many as there are).

    Args:
        engine: of our own database.
        row: of the evaluation, which has not ended yet.
        key: its comparability key.
        cases: its own.
        declared: its metrics.

    Returns:
        None where it is no night of a history, or the first, or where the file of the one before cannot be read.
    """
    # Counting the words of all texts three times more would cost more than all the rest.
    metrics, tonight = [one for one in declared if "reference" not in needs(one)], headline(cases)
    before = _nights_before(engine, row, key)
    near = _since(before[0], tonight, metrics) if before else None
    if near is None:
        return None
    far = _since(before[-1], tonight, metrics) if len(before) > 1 else None
    then = far.changes if far else {}
    changes: dict[str, PairedChange] = {}
    for name, found in near.changes.items():
        earlier, lag = (then[name], len(before)) if name in then else (found, 1)
        changes[name] = {
            "difference": found.difference,
            "variance": found.variance,
            "far_variance": earlier.variance,
            "lag": lag,
            "step": found.step or _widest(metric(name)) / found.n,
        }
    share = near.n_common / len(tonight) if len(tonight) else 0.0
    return {"since": before[0]["id"], "share": share, "changes": changes}


def _widest(one: Metric) -> float:
    """How far two values can lie apart, where none yet do; 0 where they can any far."""
    return one.high - one.low if isfinite(one.high - one.low) else 0.0


def _nights_before(engine: Engine, row: RowMapping, key: str) -> list[RowMapping]:
    """The newest evaluations that the trend joins with this one; none with what is no night."""
    of, marks = evaluation.c, {name for name in ASIDE if row["resolved"].get(name)}
    line = LIVE
    if "anchor" in marks:
        line = of.resolved["anchor"].astext == row["resolved"]["anchor"]
    elif marks:
        return []
    nights = (
        select(of.id, of.parquet)
        .where(of.comparability_key == key, of.state == "completed", of.started_at < row["started_at"], line)
        .where(of.tier == row["tier"], of.source == row["source"])
        .order_by(of.started_at.desc(), of.id.desc())
        .limit(LAG)
    )
    with engine.connect() as connection:
        return list(connection.execute(nights).mappings())


class _Since(NamedTuple):
    n_common: int
    changes: dict[str, Change]


def _since(before: RowMapping, tonight: pa.Table, declared: list[Metric]) -> _Since | None:
    """What changed on the common cases; None where the file of the one before cannot be read: the chart begins anew."""
    try:
        pairs = common(headline(read_cases(before, declared)), tonight)
    except (ResultsUnavailable, InputError):
        return None
    if not len(pairs.b):
        return _Since(0, {})
    codes = group_codes(pairs.b["group"].to_pylist(), len(pairs.b))
    found = {name: change(number, codes) for name, number in numbers(declared, *pairs)[0].items()}
    return _Since(len(pairs.b), {name: one for name, one in found.items() if one is not None})

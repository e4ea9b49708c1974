"""What changed in every metric since the nights before, on common cases; trends are made of it (`resolved.paired`)."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from math import isfinite
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import ColumnElement, Engine, and_, false, select
from sqlalchemy.engine import RowMapping
from typing_extensions import TypedDict

from yarus.db import journal
from yarus.db.errors import InputError, ResultsUnavailable
from yarus.db.journal import LIVE
from yarus.db.tables import config_at, evaluation
from yarus.metrics.metric import Metric
from yarus.metrics.statistics.alarms.noise import Cells
from yarus.metrics.statistics.differences.changes import Change, change
from yarus.metrics.statistics.differences.numbers import prepare
from yarus.metrics.statistics.groups import group_codes
from yarus.metrics.statistics.paired_chart import LAG
from yarus.metrics.table import metric
from yarus.tasks.cases.table import floats, values_of
from yarus.tasks.comparison.common_cases import common, headline, read_cases
from yarus.tasks.comparison.totals import case_values, needs, number_of, numbers
from yarus.tasks.config.tiers import TIERS

SHARED = 0.5
"""The share of cases in common from which on one night is a better reference than a newer one with fewer."""
FEWEST_FOLLOWED = 20
"""Common cases whose change tells something of the level; of a smaller night, SHARED of its cases."""

KIND = "kind"
"""The column that says of which kind a question is, while an evaluation ends."""


class PairedChange(TypedDict):
    """Of one metric, since a night before; `yarus.metrics.statistics.paired_chart.NightChange` has the meanings."""

    since: str
    """The evaluation of that night: the newest that has the metric, and most of the cases."""
    n: int
    """Cases that were measured both times."""
    difference: float
    variance: float
    far_variance: float
    """For as many cases as `n`."""
    lag: int
    step: float
    n_new: int
    """Cases that were measured, and not asked then; 0 of a metric that is no headline of its tier."""
    new_value: float | None
    """Of these cases."""
    new_cells: Cells
    """By kind of question, where kinds are known and the metric is a mean over cases."""


class PairedChanges(TypedDict):
    """Of one evaluation, by metric."""

    since: str
    """The evaluation of the night that it is compared with."""
    share: float
    """Of the night's cases, those that were also asked then, 0..1."""
    changes: dict[str, PairedChange]


def paired_changes(
    engine: Engine, row: RowMapping, key: str, cases: pa.Table, declared: Iterable[Metric]
) -> PairedChanges | None:
    """What changed since the night before, and since LAG nights before (or as many as there are).

    A night that shares few cases with the one before it (that was a small one, or its file is lost) is compared with
    the newest of which it shares most, and a headline metric that was not measured then with the newest that has it.

    Args:
        engine: of our own database.
        row: of the evaluation, which has not ended yet.
        key: its comparability key.
        cases: its own, with KIND where kinds of questions are known.
        declared: its metrics.

    Returns:
        None where it is no night of a history, or the first, or where no file of those before can be read.
    """
    # Counting the words of all texts three times more would cost more than all the rest.
    metrics, tonight = [one for one in declared if "reference" not in needs(one)], headline(cases)
    nights = _Nights(_nights_before(engine, row, key), tonight, metrics)
    near = nights.newest(lambda one: one.n_common >= SHARED * len(tonight)) or nights.newest(lambda one: True)
    if near is None:
        return None
    headlines, nearest = TIERS[row["tier"]].headlines, dict.fromkeys(near.changes, near)
    for name in headlines:
        if name not in nearest and not np.isnan(floats(tonight, metric(name).column)).all():
            nearest |= {name: then} if (then := nights.newest_with(name)) else {}
    changes: dict[str, PairedChange] = {}
    for name, since in nearest.items():
        found = since.changes[name]
        far = nights.oldest_with(name, SHARED * found.n) or since
        earlier, one = far.changes[name], metric(name)
        n_new, new_value = since.new_value(one) if name in headlines else (0, None)
        changes[name] = {
            "since": since.id,
            "n": found.n,
            "difference": found.difference,
            "variance": found.variance,
            "far_variance": earlier.variance * earlier.n / found.n,
            "lag": 1 + far.ago - since.ago,
            "step": found.step or _widest(one) / found.n,
            "n_new": n_new,
            "new_value": new_value,
            "new_cells": cells_of(one, since.new) if n_new else {},
        }
    share = near.n_common / len(tonight) if len(tonight) else 0.0
    return {"since": near.id, "share": share, "changes": changes}


def cells_of(one: Metric, cases: pa.Table) -> Cells:
    """By kind of question, how many cases have a value of a metric, and the sum of these.

    Args:
        one: the metric.
        cases: with the kind of each in the column KIND; none is counted where that is missing.
    """
    if not {KIND, *needs(one)} <= {*cases.column_names} or isinstance(values := case_values(one, cases), str):
        return {}
    kinds, codes = np.unique(values_of(cases, KIND), return_inverse=True)
    there = ~np.isnan(values)
    counts = np.bincount(codes[there], minlength=len(kinds))
    sums = np.bincount(codes[there], values[there], minlength=len(kinds))
    found = zip(kinds.tolist(), counts.tolist(), sums.tolist(), strict=True)
    return {kind: (n, total) for kind, n, total in found if n}


def _widest(one: Metric) -> float:
    """How far two values can lie apart, where none yet do; 0 where they can any far."""
    return one.high - one.low if isfinite(one.high - one.low) else 0.0


def nights_like(row: RowMapping, key: str | None) -> ColumnElement[bool]:
    """Which evaluations are of one history with this one, before it and after it; none with what is no night."""
    of, marks = evaluation.c, journal.marks(row)
    line = LIVE
    if marks:
        stored = next((mark for mark in ("anchor", "answers_of") if mark in marks and "part_of" not in marks), None)
        whole = config_at("part_of").astext.is_(None)
        line = and_(config_at(stored).astext == marks[stored], whole) if stored else false()
    alike = of.comparability_key == key, of.tier == row["tier"], of.source == row["source"]
    return and_(*alike, of.state == "completed", line)


def _nights_before(engine: Engine, row: RowMapping, key: str) -> list[RowMapping]:
    """The newest of them that are before it."""
    of = evaluation.c
    nights = (
        select(of.id, of.parquet)
        .where(nights_like(row, key), of.started_at < row["started_at"])
        .order_by(of.started_at.desc(), of.id.desc())
        .limit(LAG)
    )
    with engine.connect() as connection:
        return list(connection.execute(nights).mappings())


class _Since(NamedTuple):
    id: str
    ago: int
    """Nights."""
    n_common: int
    changes: dict[str, Change]
    new: pa.Table
    """The cases of tonight that were not asked then."""

    def new_value(self, metric: Metric) -> tuple[int, float | None]:
        """How many of the new cases have been measured, and their value."""
        if not len(self.new):
            return 0, None
        pair = prepare(number_of(metric, self.new, self.new, None), np.arange(len(self.new)))
        value = pair.values()[0]
        return (pair.units, value) if isfinite(value) else (0, None)


class _Nights:
    """The nights before, each read when it is asked for.

    Args:
        rows: newest first.
        tonight: the cases that they are compared with.
        declared: the metrics.
    """

    def __init__(self, rows: Sequence[RowMapping], tonight: pa.Table, declared: list[Metric]) -> None:
        self._since = [cache(partial(_since, row, ago, tonight, declared)) for ago, row in enumerate(rows, 1)]

    def newest(self, fits: Callable[[_Since], bool]) -> _Since | None:
        """The newest that can be read and fits."""
        found = (since() for since in self._since)
        return next((one for one in found if one and fits(one)), None)

    def newest_with(self, metric: str) -> _Since | None:
        """The newest that has measured it."""
        return self.newest(lambda one: metric in one.changes)

    def oldest_with(self, metric: str, n: float) -> _Since | None:
        """The oldest that has measured it on so many common cases."""
        found = (since() for since in reversed(self._since))
        return next((one for one in found if one and metric in one.changes and one.changes[metric].n >= n), None)


def _since(before: RowMapping, ago: int, tonight: pa.Table, declared: list[Metric]) -> _Since | None:
    """What changed on the common cases; None where the file of the one before cannot be read: the chart begins anew."""
    try:
        then = headline(read_cases(before, declared))
    except (ResultsUnavailable, InputError):
        return None
    pairs = common(then, tonight)
    new = tonight.filter(pc.invert(pc.is_in(tonight["case_id"], value_set=then["case_id"].combine_chunks())))
    if not len(pairs.b):
        return _Since(before["id"], ago, 0, {}, new)
    codes = group_codes(values_of(pairs.b, "group"), len(pairs.b))
    measured, _ = numbers(declared, *pairs, failures_are_losses=False)  # nights are held against their means
    found = {name: change(number, codes) for name, number in measured.items()}
    return _Since(before["id"], ago, len(pairs.b), {name: one for name, one in found.items() if one is not None}, new)

"""Compute the change of every metric since earlier nights, on common cases; trends use it (`resolved.paired`)."""

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
from yarus.db.journal import IS_LIVE
from yarus.db.tables import config_value, evaluation
from yarus.metrics.metric import Metric
from yarus.metrics.statistics.change_detection.noise import QuestionCells
from yarus.metrics.statistics.differences.changes import StatisticChange, estimate_change
from yarus.metrics.statistics.differences.compared_statistics import prepare_statistic
from yarus.metrics.statistics.groups import group_codes
from yarus.metrics.statistics.paired_chart import COMPARISON_LAG
from yarus.metrics.table import get_metric
from yarus.tasks.cases.table import column_values, float_column
from yarus.tasks.comparison.common_cases import match_cases, read_cases, select_headline_cases
from yarus.tasks.comparison.metric_values import case_values, comparable_numbers, metric_number, required_columns
from yarus.tasks.config.tiers import TIERS

MIN_SHARED = 0.5
"""Share of common cases above which a night is a better reference than a newer one with fewer."""
MIN_FOLLOWED_CASES = 20
"""Fewest common cases whose change is used for the level; for a smaller night, MIN_SHARED of its cases."""

KIND_COLUMN = "kind"
"""The column with the kind of each question, while an evaluation ends."""


class PairedChange(TypedDict):
    """The change of one metric since an earlier night; see `yarus.metrics.statistics.paired_chart.NightChange`."""

    since: str
    """The evaluation of that night: the newest that has the metric and most of the cases."""
    n: int
    """Cases measured both times."""
    difference: float
    variance: float
    far_variance: float
    """The variance for as many cases as `n`."""
    lag: int
    step: float
    n_new: int
    """Measured cases that were not asked then; 0 for a metric that is not a headline of its tier."""
    new_value: float | None
    """The value of these cases."""
    new_cells: QuestionCells
    """By kind of question, if kinds are known and the metric is a mean over cases."""


class PairedChanges(TypedDict):
    """The changes of one evaluation, by metric."""

    since: str
    """The evaluation of the night that it is compared with."""
    share: float
    """Share of the night's cases that were also asked then, 0..1."""
    changes: dict[str, PairedChange]


def paired_changes(
    engine: Engine, row: RowMapping, key: str, cases: pa.Table, declared: Iterable[Metric]
) -> PairedChanges | None:
    """Return the changes since the night before, and since COMPARISON_LAG nights before (or as many as there are).

    The reference is the newest night with at least MIN_SHARED of the cases, else the newest night. It is not always the
    night before, which may be small or have lost its file. A headline metric that was not measured then is compared
    with the newest night that has it.

    Args:
        engine: the engine of Yarus's database.
        row: the row of the evaluation, which has not ended yet.
        key: its comparability key.
        cases: its cases, with KIND_COLUMN if the kinds of questions are known.
        declared: its metrics.

    Returns:
        None if it is not a night of a history, or the first one, or if no file of earlier nights can be read.
    """
    # Counting the words of all texts three more times would cost more than everything else.
    metrics, tonight = (
        [metric for metric in declared if "reference" not in required_columns(metric)],
        select_headline_cases(cases),
    )
    nights = _EarlierNights(_read_nights_before(engine, row, key), tonight, metrics)
    near = nights.newest(lambda night: night.n_common >= MIN_SHARED * len(tonight)) or nights.newest(lambda night: True)
    if near is None:
        return None
    headlines, nearest = TIERS[row["tier"]].headlines, dict.fromkeys(near.changes, near)
    for name in headlines:
        if name not in nearest and not np.isnan(float_column(tonight, get_metric(name).column)).all():
            nearest |= {name: night} if (night := nights.newest_with(name)) else {}
    changes: dict[str, PairedChange] = {}
    for name, since in nearest.items():
        near_change = since.changes[name]
        far_night = nights.oldest_with(name, MIN_SHARED * near_change.n) or since
        far_change, metric = far_night.changes[name], get_metric(name)
        n_new, new_value = since.new_value(metric) if name in headlines else (0, None)
        changes[name] = {
            "since": since.id,
            "n": near_change.n,
            "difference": near_change.difference,
            "variance": near_change.variance,
            "far_variance": far_change.variance * far_change.n / near_change.n,
            "lag": 1 + far_night.nights_ago - since.nights_ago,
            "step": near_change.step or _value_range(metric) / near_change.n,
            "n_new": n_new,
            "new_value": new_value,
            "new_cells": count_cells(metric, since.new) if n_new else {},
        }
    share = near.n_common / len(tonight) if len(tonight) else 0.0
    return {"since": near.id, "share": share, "changes": changes}


def count_cells(metric: Metric, cases: pa.Table) -> QuestionCells:
    """Return the number of cases with a value of a metric and their sum, per kind of question.

    Args:
        metric: the metric.
        cases: the cases, with the kind of each in KIND_COLUMN; without it nothing is counted.
    """
    if not {KIND_COLUMN, *required_columns(metric)} <= {*cases.column_names} or isinstance(
        values := case_values(metric, cases), str
    ):
        return {}
    kinds, codes = np.unique(column_values(cases, KIND_COLUMN), return_inverse=True)
    is_measured = ~np.isnan(values)
    counts = np.bincount(codes[is_measured], minlength=len(kinds))
    sums = np.bincount(codes[is_measured], values[is_measured], minlength=len(kinds))
    rows = zip(kinds.tolist(), counts.tolist(), sums.tolist(), strict=True)
    return {kind: (n, total) for kind, n, total in rows if n}


def _value_range(metric: Metric) -> float:
    """Return the largest possible difference of two values of the metric; 0 if it is unbounded."""
    return metric.high - metric.low if isfinite(metric.high - metric.low) else 0.0


def history_condition(row: RowMapping, key: str | None) -> ColumnElement[bool]:
    """Return the condition for evaluations of the same history, before and after this one; false for no history."""
    columns, marks = evaluation.c, journal.non_live_marks(row)
    selection = IS_LIVE
    if marks:
        mark = next((name for name in ("anchor", "answers_of") if name in marks and "part_of" not in marks), None)
        is_whole = config_value("part_of").astext.is_(None)
        selection = and_(config_value(mark).astext == marks[mark], is_whole) if mark else false()
    same_history = columns.comparability_key == key, columns.tier == row["tier"], columns.source == row["source"]
    return and_(*same_history, columns.state == "completed", selection)


def _read_nights_before(engine: Engine, row: RowMapping, key: str) -> list[RowMapping]:
    """Read the newest nights of the history before this one."""
    columns = evaluation.c
    nights = (
        select(columns.id, columns.parquet)
        .where(history_condition(row, key), columns.started_at < row["started_at"])
        .order_by(columns.started_at.desc(), columns.id.desc())
        .limit(COMPARISON_LAG)
    )
    with engine.connect() as connection:
        return list(connection.execute(nights).mappings())


class _EarlierNight(NamedTuple):
    id: str
    nights_ago: int
    n_common: int
    changes: dict[str, StatisticChange]
    new: pa.Table
    """The cases of tonight that were not asked that night."""

    def new_value(self, metric: Metric) -> tuple[int, float | None]:
        """Return how many of the new cases have been measured, and their value."""
        if not len(self.new):
            return 0, None
        pair = prepare_statistic(metric_number(metric, self.new, self.new, None), np.arange(len(self.new)))
        value = pair.values()[0]
        return (pair.units, value) if isfinite(value) else (0, None)


class _EarlierNights:
    """The earlier nights of a history; each is read when it is first needed.

    Args:
        rows: the rows of the nights, newest first.
        tonight: the cases to compare them with.
        declared: the metrics.
    """

    def __init__(self, rows: Sequence[RowMapping], tonight: pa.Table, declared: list[Metric]) -> None:
        self._loaders = [
            cache(partial(_compare_night, row, nights_ago, tonight, declared)) for nights_ago, row in enumerate(rows, 1)
        ]

    def newest(self, is_match: Callable[[_EarlierNight], bool]) -> _EarlierNight | None:
        """Return the newest night that can be read and matches."""
        nights = (load() for load in self._loaders)
        return next((night for night in nights if night and is_match(night)), None)

    def newest_with(self, name: str) -> _EarlierNight | None:
        """Return the newest night that has measured the metric."""
        return self.newest(lambda night: name in night.changes)

    def oldest_with(self, name: str, n: float) -> _EarlierNight | None:
        """Return the oldest night that has measured the metric on at least `n` common cases."""
        nights = (load() for load in reversed(self._loaders))
        return next((night for night in nights if night and name in night.changes and night.changes[name].n >= n), None)


def _compare_night(row: RowMapping, nights_ago: int, tonight: pa.Table, declared: list[Metric]) -> _EarlierNight | None:
    """Compare tonight with an earlier night on the common cases; None if its file cannot be read."""
    try:
        earlier = select_headline_cases(read_cases(row, declared))
    except (ResultsUnavailable, InputError):
        return None
    pairs = match_cases(earlier, tonight)
    new = tonight.filter(pc.invert(pc.is_in(tonight["case_id"], value_set=earlier["case_id"].combine_chunks())))
    if not len(pairs.b):
        return _EarlierNight(row["id"], nights_ago, 0, {}, new)
    codes = group_codes(column_values(pairs.b, "group"), len(pairs.b))
    numbers, _ = comparable_numbers(declared, *pairs, failures_are_losses=False)  # nights are compared with their means
    changes = {name: estimate_change(number, codes) for name, number in numbers.items()}
    measured = {name: change for name, change in changes.items() if change is not None}
    return _EarlierNight(row["id"], nights_ago, len(pairs.b), measured, new)

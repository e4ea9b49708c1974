"""Read the nights of a tier since the accepted one, for `yarus.metrics.statistics.change_detection`."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from sqlalchemy import Engine, case, or_, select
from sqlalchemy.engine import RowMapping

from yarus.db.tables import config_value, evaluation, evaluation_metric, nightly_verdict
from yarus.deployments.alarms.alarms_schema import MetricChange
from yarus.metrics.metric import Metric
from yarus.metrics.statistics.change_detection.mix import remove_mix, remove_weekdays
from yarus.metrics.statistics.change_detection.noise import NightlyValue, QuestionCells, variance_around_zero
from yarus.metrics.statistics.ewma import MAX_HISTORY
from yarus.metrics.statistics.intervals import normal_quantile
from yarus.metrics.table import get_metric
from yarus.tasks.cases.vocabulary import HEADLINE_STRATUM
from yarus.tasks.comparison.metric_values import ERROR_RATE
from yarus.tasks.comparison.paired_changes import MIN_FOLLOWED_CASES, MIN_SHARED, history_condition

HALF_DAY = timedelta(hours=12)
"""Added to the time of a night, so that nights that begin shortly before and after midnight belong to one day."""


class WatchedNight(NamedTuple):
    """An evaluation in the form that a watch needs."""

    id: str
    verdict: str | None
    """The verdict of its night since the level was accepted; None if it has no verdict."""
    changes: Sequence[MetricChange]
    """The losses that were reported that night."""
    values: Mapping[str, float]
    """By metric; unmeasured metrics are left out."""
    nights: Mapping[str, NightlyValue]


def read_nights_since(engine: Engine, row: RowMapping, baseline: str, metrics: Sequence[str]) -> list[WatchedNight]:
    """Return the evaluations of a key from the accepted one to this one, oldest first; at most MAX_HISTORY.

    Args:
        engine: the engine of Yarus's database.
        row: the row of the last evaluation.
        baseline: the accepted evaluation.
        metrics: the metrics to watch.
    """
    columns = evaluation.c
    accepted = select(columns.started_at).where(columns.id == baseline).scalar_subquery()
    chosen = (
        select(columns.id, columns.started_at)
        .where(history_condition(row, row["comparability_key"]), columns.started_at >= accepted)
        .where(or_(columns.started_at < row["started_at"], columns.id == row["id"]))
        .order_by(columns.started_at.desc(), columns.id.desc())
        .limit(MAX_HISTORY)
        .subquery()
    )
    accepted_at = select(columns.accepted_at).where(columns.id == baseline).scalar_subquery()
    valid_verdict = case((nightly_verdict.c.judged_at >= accepted_at, nightly_verdict.c.verdict))
    verdicts = (
        select(columns.id, valid_verdict.label("verdict"), nightly_verdict.c.changes)
        .add_columns(columns.started_at, config_value("mix", "cells").label("cells"))
        .add_columns(*(config_value("paired", "changes", name).label(name) for name in metrics))
        .join(chosen, chosen.c.id == columns.id)
        .outerjoin(nightly_verdict)
        .order_by(columns.started_at, columns.id)
    )
    measurements = (
        select(evaluation_metric)
        .join(chosen, chosen.c.id == evaluation_metric.c.evaluation_id)
        .where(evaluation_metric.c.metric.in_(metrics), evaluation_metric.c.stratum.in_(["", HEADLINE_STRATUM]))
        .where(evaluation_metric.c.value.is_not(None))
    )
    with engine.connect() as connection:
        rows = connection.execute(verdicts).mappings().all()
        values: dict[str, dict[str, RowMapping]] = {}
        for night in connection.execute(measurements).mappings():
            values.setdefault(night["evaluation_id"], {})[night["metric"]] = night
    chains = {name: _NightChain(get_metric(name)) for name in metrics}
    for night in rows:
        for name, record in values.get(night["id"], {}).items():
            cells, day = (night["cells"] or {}).get(name, {}), (night["started_at"] + HALF_DAY).toordinal()
            chains[name].add(
                night["id"], record, night[name], cells=cells, day=day, is_alarm=night["verdict"] == "regressed"
            )
    nights = {name: chain.comparable() for name, chain in chains.items()}
    return [
        WatchedNight(
            night["id"],
            night["verdict"],
            night["changes"] or [],
            {name: record["value"] for name, record in values.get(night["id"], {}).items()},
            {name: columns[night["id"]] for name, columns in nights.items() if night["id"] in columns},
        )
        for night in rows
    ]


class _NightChain:
    """The nights of one metric, each compared with an earlier night.

    A night with other cases is left out if the next night asks the earlier cases again. It was judged in its own night
    and is not a reference for other nights.
    """

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self.nights: dict[str, NightlyValue] = {}
        self._levels: dict[str, float] = {}
        self._left_out: set[str] = set()

    def add(
        self,
        name: str,
        row: RowMapping,
        change: Mapping[str, Any] | None,
        *,
        cells: QuestionCells,
        day: int,
        is_alarm: bool,
    ) -> None:
        """Add a night, and whether it raised an alarm; a night without an interval is left out."""
        if row["ci_low"] is None or row["ci_high"] is None:
            return
        deviation = (row["ci_high"] - row["ci_low"]) / 2 / normal_quantile(0.95)
        one_case = self._metric.high / row["n_scored"]  # even if all other cases are equal
        spread = max(deviation, one_case) ** 2
        night = NightlyValue(row["value"], spread, row["n_scored"], day=day, cells=cells)
        since = change and change.get("since")  # missing in changes that were stored by old versions
        if (
            change is None
            or since not in self._levels
            or change["n"] < min(MIN_FOLLOWED_CASES, MIN_SHARED * night.total)
        ):
            before = self._last
            difference = night.value - self.nights[before].value if before else 0.0
            self._levels[name] = self._levels[before] + difference if before else 0.0
            self._left_out |= set() if is_alarm else {name}
        else:
            while self._last != since and self._last in self._left_out:
                del self.nights[self._last]
            self._levels[name] = self._levels[since] + change["difference"]
            night = self._add_change(night, change, self._levels[name] - self._levels[self._last])
        self.nights[name] = night

    def comparable(self) -> dict[str, NightlyValue]:
        """Return the nights adjusted to equal kinds of questions and weekdays; failures are only counted."""
        if self._metric.name == ERROR_RATE:
            return self.nights
        nights = remove_weekdays(remove_mix([*self.nights.values()]), self._metric.high)
        return dict(zip(self.nights, nights, strict=True))

    @property
    def _last(self) -> str:
        return next(reversed(self.nights), "")

    def _add_change(self, night: NightlyValue, change: Mapping[str, Any], difference: float) -> NightlyValue:
        variance, far_variance = (
            variance_around_zero(change[name], change["difference"], change["n"])
            for name in ("variance", "far_variance")
        )
        return night._replace(
            change=difference,
            n=change["n"],
            variance=variance,
            far_variance=far_variance,
            lag=change["lag"],
            step=change["step"],
            skips=change["since"] != self._last,
            n_new=change.get("n_new", 0),  # unknown in changes that were stored by old versions
            new_value=change.get("new_value"),
            new_cells=change.get("new_cells", {}),
        )

"""The nights of a tier since the accepted one, as `yarus.metrics.statistics.alarms` watches them."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from sqlalchemy import Engine, case, or_, select
from sqlalchemy.engine import RowMapping

from yarus.db.tables import config_at, evaluation, evaluation_metric, nightly_verdict
from yarus.deployments.alarms.alarms_schema import MetricChange
from yarus.metrics.metric import Metric
from yarus.metrics.statistics.alarms.mix import remove_mix, remove_weekdays
from yarus.metrics.statistics.alarms.noise import Cells, Night, of_cases
from yarus.metrics.statistics.ewma import HISTORY
from yarus.metrics.statistics.intervals import normal_quantile
from yarus.metrics.table import metric
from yarus.tasks.cases.vocabulary import HEADLINE_STRATUM
from yarus.tasks.comparison.paired_changes import FEWEST_FOLLOWED, SHARED, nights_like
from yarus.tasks.comparison.totals import ERRORS

MIDDAY = timedelta(hours=12)
"""What is added to the time of a night: those that begin shortly before and after midnight are of one day."""


class WatchedNight(NamedTuple):
    """An evaluation as a watch sees it."""

    id: str
    verdict: str | None
    """What a night has said of it since the level was accepted; None where none has, or where it is of no night."""
    changes: Sequence[MetricChange]
    """What was lost, as that night said."""
    values: Mapping[str, float]
    """By metric; what was not measured is left out."""
    nights: Mapping[str, Night]


def nights_since(engine: Engine, row: RowMapping, baseline: str, metrics: Sequence[str]) -> list[WatchedNight]:
    """The evaluations of a comparability key from the accepted one to this one, oldest first; the newest HISTORY.

    Args:
        engine: of our own database.
        row: of the evaluation that comes last.
        baseline: the accepted evaluation.
        metrics: to watch.
    """
    of = evaluation.c
    accepted = select(of.started_at).where(of.id == baseline).scalar_subquery()
    chosen = (
        select(of.id, of.started_at)
        .where(nights_like(row, row["comparability_key"]), of.started_at >= accepted)
        .where(or_(of.started_at < row["started_at"], of.id == row["id"]))
        .order_by(of.started_at.desc(), of.id.desc())
        .limit(HISTORY)
        .subquery()
    )
    of_baseline = select(of.accepted_at).where(of.id == baseline).scalar_subquery()
    valid = case((nightly_verdict.c.judged_at >= of_baseline, nightly_verdict.c.verdict))
    told = (
        select(of.id, valid.label("verdict"), nightly_verdict.c.changes)
        .add_columns(of.started_at, config_at("mix", "cells").label("cells"))
        .add_columns(*(config_at("paired", "changes", name).label(name) for name in metrics))
        .join(chosen, chosen.c.id == of.id)
        .outerjoin(nightly_verdict)
        .order_by(of.started_at, of.id)
    )
    measured = (
        select(evaluation_metric)
        .join(chosen, chosen.c.id == evaluation_metric.c.evaluation_id)
        .where(evaluation_metric.c.metric.in_(metrics), evaluation_metric.c.stratum.in_(["", HEADLINE_STRATUM]))
        .where(evaluation_metric.c.value.is_not(None))
    )
    with engine.connect() as connection:
        rows = connection.execute(told).mappings().all()
        values: dict[str, dict[str, RowMapping]] = {}
        for one in connection.execute(measured).mappings():
            values.setdefault(one["evaluation_id"], {})[one["metric"]] = one
    lines = {name: _Chain(metric(name)) for name in metrics}
    for one in rows:
        for name, found in values.get(one["id"], {}).items():
            cells, day = (one["cells"] or {}).get(name, {}), (one["started_at"] + MIDDAY).toordinal()
            lines[name].add(one["id"], found, one[name], cells=cells, day=day, told=one["verdict"] == "regressed")
    nights = {name: line.comparable() for name, line in lines.items()}
    return [
        WatchedNight(
            one["id"],
            one["verdict"],
            one["changes"] or [],
            {name: found["value"] for name, found in values.get(one["id"], {}).items()},
            {name: of[one["id"]] for name, of in nights.items() if one["id"] in of},
        )
        for one in rows
    ]


class _Chain:
    """The nights of one metric, each by what it is compared with.

    One that asked other cases, after which the same are asked again as before it, is left out: it was judged in its own
    night, and is no yesterday of any.
    """

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self.nights: dict[str, Night] = {}
        self._levels: dict[str, float] = {}
        self._aside: set[str] = set()

    def add(
        self, name: str, measured: RowMapping, change: Mapping[str, Any] | None, *, cells: Cells, day: int, told: bool
    ) -> None:
        """One more night; whether an alarm was raised in it. Without an interval it tells nothing, and is left out."""
        if measured["ci_low"] is None or measured["ci_high"] is None:
            return
        deviation = (measured["ci_high"] - measured["ci_low"]) / 2 / normal_quantile(0.95)
        one_case = self._metric.high / measured["n_scored"]  # however alike the others are
        spread = max(deviation, one_case) ** 2
        night = Night(measured["value"], spread, measured["n_scored"], day=day, cells=cells)
        since = change and change.get("since")  # no change that was stored before these had it
        if change is None or since not in self._levels or change["n"] < min(FEWEST_FOLLOWED, SHARED * night.total):
            before = self._last
            moved = night.value - self.nights[before].value if before else 0.0
            self._levels[name] = self._levels[before] + moved if before else 0.0
            self._aside |= set() if told else {name}
        else:
            while self._last != since and self._last in self._aside:
                del self.nights[self._last]
            self._levels[name] = self._levels[since] + change["difference"]
            night = self._paired(night, change, self._levels[name] - self._levels[self._last])
        self.nights[name] = night

    def comparable(self) -> dict[str, Night]:
        """The nights as if all had asked the same kinds of questions on the same weekday; failures are only counted."""
        if self._metric.name == ERRORS:
            return self.nights
        nights = remove_weekdays(remove_mix([*self.nights.values()]), self._metric.high)
        return dict(zip(self.nights, nights, strict=True))

    @property
    def _last(self) -> str:
        return next(reversed(self.nights), "")

    def _paired(self, night: Night, change: Mapping[str, Any], moved: float) -> Night:
        variance, far_variance = (
            of_cases(change[name], change["difference"], change["n"]) for name in ("variance", "far_variance")
        )
        return night._replace(
            change=moved,
            n=change["n"],
            variance=variance,
            far_variance=far_variance,
            lag=change["lag"],
            step=change["step"],
            skips=change["since"] != self._last,
            n_new=change.get("n_new", 0),  # of a change that was stored before these were: none is known
            new_value=change.get("new_value"),
            new_cells=change.get("new_cells", {}),
        )

"""What a night says of the level of a tier: whether it has fallen for good, goes on being down, or is back."""

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.deployments.alarms.alarms_schema import GOOD, MetricChange, NightlyVerdict
from yarus.deployments.alarms.budget import least_change, looks_for_one
from yarus.deployments.alarms.nights import WatchedNight, nights_since
from yarus.metrics.statistics.alarms.failures import FailureLevel
from yarus.metrics.statistics.alarms.level import Level, Loss
from yarus.metrics.statistics.alarms.watch import Watch
from yarus.metrics.statistics.intervals import normal_quantile
from yarus.metrics.table import metric
from yarus.tasks.comparison.compare import headlines_of
from yarus.tasks.comparison.noise_floor import floors
from yarus.tasks.comparison.since import remark
from yarus.tasks.comparison.totals import ERRORS
from yarus.tasks.config.texts import Text


class LevelVerdict(NamedTuple):
    """What a night says of an evaluation."""

    verdict: NightlyVerdict
    baseline: str | None
    """The accepted evaluation, since which its level is watched."""
    changes: list[MetricChange]
    """Headline metrics whose level has fallen."""
    remark: Text | None = None
    """Why it is inconclusive; or that only the questions are harder."""


def level_verdict(engine: Engine, row: RowMapping) -> LevelVerdict:
    """Watches the headline metrics from the accepted evaluation to this one.

    An incident begins with the night in which the evidence of a loss, averaged over the tier's metrics, is enough for
    the budget of false alarms, and ends with the night in which each of its metrics is shown to be back.

    Args:
        engine: of our own database.
        row: of a completed evaluation.
    """
    baseline = journal.baseline(engine, row["id"])
    if baseline is None:
        good = row["accepted_at"] is not None  # the first of its key
        said = None if good else remark("not accepted", row, baseline)
        return LevelVerdict("good" if good else "inconclusive", baseline, [], said)
    line = _Line(levels_of(engine, row))
    *before, tonight = nights_since(engine, row, baseline, list(line.levels))
    for night in before:
        line.add(night)
        line.follow(night)
    line.add(tonight)
    if line.older:
        return LevelVerdict("regressed", baseline, line.older)
    if line.watch.over:
        return LevelVerdict("good", baseline, [])
    rings = line.watch.rings(looks_for_one(engine, row))
    watched = line.watch.lost or [name for name in line.levels if name != ERRORS]
    if not rings and all(name not in tonight.nights or line.levels[name].vague for name in watched):
        return LevelVerdict("inconclusive", baseline, [], remark("vague", row, baseline))
    lost = rings or line.watch.lost
    changes = [line.change(name, loss, tonight) for name, loss in lost.items()]
    if changes:
        return LevelVerdict("regressed", baseline, changes)
    return LevelVerdict("good", baseline, [], _harder(row, baseline, tonight))


def levels_of(engine: Engine, row: RowMapping) -> dict[str, Level]:
    """What is watched: the headline metrics."""
    measured, reach = floors(engine, row["comparability_key"]), normal_quantile(0.95)
    levels: dict[str, Level] = {}
    for one in headlines_of(row["tier"]):
        known = measured.get(one.name)
        noise = ((known.band / reach) ** 2 * known.n / known.pairs, known.n) if known else (0.0, 0)
        least = least_change(one)
        if one.name == ERRORS:
            levels[one.name] = FailureLevel(least, known=noise)
        else:
            levels[one.name] = Level(least, better=1 if one.better == "higher" else -1, known=noise)
    return levels


class _Line:
    """A tier's nights as they are watched, with what was said of them."""

    def __init__(self, levels: Mapping[str, Level]) -> None:
        self.levels, self.watch = levels, Watch(levels)
        self.older: list[MetricChange] = []
        """What was lost before the oldest night that is still read: it goes on until somebody accepts a new level."""
        self._names: dict[str, list[str]] = {name: [] for name in levels}

    def add(self, night: WatchedNight) -> None:
        """One more night."""
        for name in night.nights:
            self._names[name].append(night.id)
        self.watch.add(night.nights)

    def follow(self, night: WatchedNight) -> None:
        """Takes over what was said in that night: what was told of goes on until it was said to be over."""
        if night.verdict in GOOD:
            self.older = []
            if self.watch.lost:
                self.watch.close()
        elif night.verdict == "regressed" and not self.watch.lost:
            of = [change for change in night.changes if change["metric"] in self.levels]
            lost = {change["metric"]: self._loss(change, night.id) for change in of}
            if None in lost.values():
                self.older = [*of]
            else:
                self.watch.open({name: loss for name, loss in lost.items() if loss})

    def change(self, name: str, loss: Loss, tonight: WatchedNight) -> MetricChange:
        """What a night tells of a loss."""
        of, value = metric(name), tonight.values.get(name)
        lost = loss.size if of.better == "higher" else -loss.size
        return {
            "metric": name,
            "a": None if value is None else min(max(value + lost, of.low), of.high),
            "b": value,
            "difference": -lost,
            "low": loss.low,
            "high": loss.high,
            "since": self._names[name][loss.since],
        }

    def _loss(self, change: MetricChange, night: str) -> Loss | None:
        """As it was told, or where a version before this one told it, of that night; None where that is not read."""
        names, since = self._names[change["metric"]], change.get("since", night)
        if since not in names[1:]:
            return None
        size = abs(change["difference"] or 0.0)
        return Loss(names.index(since), size, change.get("low", size), change.get("high", size))


def _harder(row: RowMapping, baseline: str, tonight: WatchedNight) -> Text | None:
    """Say by how much the kinds of questions lower a metric, if by more than a draw of questions does."""
    mixes = {
        name: night.mix
        for name, night in tonight.nights.items()
        if abs(night.mix) > normal_quantile(0.95) * night.sampling**0.5
        and (night.mix < 0) == (metric(name).better == "higher")
    }
    if not mixes:
        return None
    said = ", ".join(f"{name} {mix:+.3f}" for name, mix in mixes.items())
    return remark("harder", row, baseline, mixes=said)

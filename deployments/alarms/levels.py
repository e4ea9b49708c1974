"""Judge the level of a tier on a night: whether it has fallen, is still down, or is back."""

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.deployments.alarms.alarms_schema import GOOD_VERDICTS, MetricChange, NightlyVerdict
from yarus.deployments.alarms.budget import least_change, looks_per_false_alarm
from yarus.deployments.alarms.nights import WatchedNight, read_nights_since
from yarus.metrics.statistics.change_detection.failures import FailureDetector
from yarus.metrics.statistics.change_detection.level import LevelDetector, LevelLoss
from yarus.metrics.statistics.change_detection.watch import ChangeMonitor
from yarus.metrics.statistics.intervals import normal_quantile
from yarus.metrics.table import get_metric
from yarus.tasks.comparison.baseline_comparison import nightly_remark
from yarus.tasks.comparison.compare import directed_headlines
from yarus.tasks.comparison.metric_values import ERROR_RATE
from yarus.tasks.comparison.noise_floor import estimate_noise_floors
from yarus.tasks.config.texts import TranslatedText


class LevelVerdict(NamedTuple):
    """The verdict of a night on an evaluation."""

    verdict: NightlyVerdict
    baseline: str | None
    """The accepted evaluation, from which on its level is watched."""
    changes: list[MetricChange]
    """Headline metrics whose level has fallen."""
    remark: TranslatedText | None = None
    """Why it is inconclusive, or that only the questions are harder."""


def judge_level(engine: Engine, row: RowMapping) -> LevelVerdict:
    """Judge the headline metrics from the accepted evaluation to this one.

    An incident begins with the night in which the evidence of a loss, averaged over the tier's metrics, is enough for
    the budget of false alarms. It ends with the night in which each of its metrics is shown to be back.

    Args:
        engine: the engine of Yarus's database.
        row: the row of a completed evaluation.
    """
    baseline = journal.find_baseline(engine, row["id"])
    if baseline is None:
        is_good = row["accepted_at"] is not None  # the first of its key
        reason = None if is_good else nightly_remark("not accepted", row, baseline)
        return LevelVerdict("good" if is_good else "inconclusive", baseline, [], reason)
    nights = _WatchedNights(create_detectors(engine, row))
    *before, tonight = read_nights_since(engine, row, baseline, list(nights.levels))
    for night in before:
        nights.add(night)
        nights.follow(night)
    nights.add(tonight)
    if nights.older:
        return LevelVerdict("regressed", baseline, nights.older)
    if nights.watch.over:
        return LevelVerdict("good", baseline, [])
    alarms = nights.watch.rings(looks_per_false_alarm(engine, row))
    names = nights.watch.lost or [name for name in nights.levels if name != ERROR_RATE]
    if not alarms and all(name not in tonight.nights or nights.levels[name].vague for name in names):
        return LevelVerdict("inconclusive", baseline, [], nightly_remark("vague", row, baseline))
    lost = alarms or nights.watch.lost
    changes = [nights.change(name, loss, tonight) for name, loss in lost.items()]
    if changes:
        return LevelVerdict("regressed", baseline, changes)
    return LevelVerdict("good", baseline, [], _explain_harder_questions(row, baseline, tonight))


def create_detectors(engine: Engine, row: RowMapping) -> dict[str, LevelDetector]:
    """Return the watched levels: those of the headline metrics."""
    floors, quantile = estimate_noise_floors(engine, row["comparability_key"]), normal_quantile(0.95)
    levels: dict[str, LevelDetector] = {}
    for headline in directed_headlines(row["tier"]):
        floor = floors.get(headline.name)
        noise = ((floor.band / quantile) ** 2 * floor.n / floor.pairs, floor.n) if floor else (0.0, 0)
        least = least_change(headline)
        if headline.name == ERROR_RATE:
            levels[headline.name] = FailureDetector(least, known=noise)
        else:
            levels[headline.name] = LevelDetector(least, better=1 if headline.better == "higher" else -1, known=noise)
    return levels


class _WatchedNights:
    """The watched nights of a tier, with their verdicts."""

    def __init__(self, levels: Mapping[str, LevelDetector]) -> None:
        self.levels, self.watch = levels, ChangeMonitor(levels)
        self.older: list[MetricChange] = []
        """Losses from before the oldest night that is read: they last until a new level is accepted."""
        self._names: dict[str, list[str]] = {name: [] for name in levels}

    def add(self, night: WatchedNight) -> None:
        for name in night.nights:
            self._names[name].append(night.id)
        self.watch.add(night.nights)

    def follow(self, night: WatchedNight) -> None:
        """Apply that night's verdict: a reported loss lasts until its end was reported."""
        if night.verdict in GOOD_VERDICTS:
            self.older = []
            if self.watch.lost:
                self.watch.close()
        elif night.verdict == "regressed" and not self.watch.lost:
            changes = [change for change in night.changes if change["metric"] in self.levels]
            lost = {change["metric"]: self._loss(change, night.id) for change in changes}
            if None in lost.values():
                self.older = [*changes]
            else:
                self.watch.open({name: loss for name, loss in lost.items() if loss})

    def change(self, name: str, loss: LevelLoss, tonight: WatchedNight) -> MetricChange:
        """Return the change of a metric for a loss."""
        metric, value = get_metric(name), tonight.values.get(name)
        signed = loss.size if metric.better == "higher" else -loss.size
        return {
            "metric": name,
            "a": None if value is None else min(max(value + signed, metric.low), metric.high),
            "b": value,
            "difference": -signed,
            "low": loss.low,
            "high": loss.high,
            "since": self._names[name][loss.since],
        }

    def _loss(self, change: MetricChange, night: str) -> LevelLoss | None:
        """Return the loss as reported that night, perhaps by an older version; None if that night is not read."""
        names, since = self._names[change["metric"]], change.get("since", night)
        if since not in names[1:]:
            return None
        size = abs(change["difference"] or 0.0)
        return LevelLoss(names.index(since), size, change.get("low", size), change.get("high", size))


def _explain_harder_questions(row: RowMapping, baseline: str, tonight: WatchedNight) -> TranslatedText | None:
    """Return by how much the kinds of questions lower a metric, if by more than sampling does."""
    mixes = {
        name: night.mix
        for name, night in tonight.nights.items()
        if abs(night.mix) > normal_quantile(0.95) * night.sampling**0.5
        and (night.mix < 0) == (get_metric(name).better == "higher")
    }
    if not mixes:
        return None
    mixes_text = ", ".join(f"{name} {mix:+.3f}" for name, mix in mixes.items())
    return nightly_remark("harder", row, baseline, mixes=mixes_text)

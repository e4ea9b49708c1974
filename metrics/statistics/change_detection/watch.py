"""The watch over the headline metrics of a tier: when it raises an alarm, and when that incident is over."""

from collections.abc import Mapping
from typing import Literal

from yarus.metrics.statistics.change_detection.level import LevelDetector, LevelLoss
from yarus.metrics.statistics.change_detection.noise import NightlyValue

RECOVERY_EVIDENCE = 50.0
"""Evidence at which an incident is over: at most one in this many lasting losses ever seems to be over."""


class ChangeMonitor:
    """Metrics of one system that are monitored together: their evidence is averaged, which keeps its meaning.

    Args:
        levels: by metric.

    Example:
        >>> from yarus.metrics.statistics.change_detection.level import LevelDetector
        >>> from yarus.metrics.statistics.change_detection.noise import NightlyValue
        >>> from yarus.metrics.statistics.change_detection.watch import ChangeMonitor
        >>> watch = ChangeMonitor({"mrr": LevelDetector(0.005)})
        >>> for change in [None, *[0.0] * 10, -0.05]:
        ...     watch.add({"mrr": NightlyValue(0.8, 0.0004, 400, change, 400 if change is not None else 0, 0.0001)})
        >>> {name: (loss.since, round(loss.size, 3)) for name, loss in watch.rings(1000).items()}
        {'mrr': (11, 0.05)}
    """

    def __init__(self, levels: Mapping[str, LevelDetector]) -> None:
        self._levels = levels
        self.lost: Mapping[str, LevelLoss] = {}
        """The open incident: losses by metric, while they last."""

    def add(self, nights: Mapping[str, NightlyValue]) -> None:
        """Add one more night: of each metric that was measured."""
        for name, night in nights.items():
            self._levels[name].add(night)

    def rings(self, looks: float) -> dict[str, LevelLoss]:
        """Return the losses that are worth an alarm: at most once in so many looks if nothing is lost."""
        if self.lost:
            return {}
        sudden = {name: level.find_sudden_loss(looks) for name, level in self._levels.items()}
        if any(sudden.values()):
            return {name: loss for name, loss in sudden.items() if loss}
        evidences = {name: level.evidence for name, level in self._levels.items()}
        if sum(evidences.values()) / len(evidences) < looks:
            return {}
        losses = {name: self._levels[name].loss for name, evidence in evidences.items() if evidence >= looks}
        return {name: loss for name, loss in losses.items() if loss and loss.low >= self._levels[name].least}

    def open(self, lost: Mapping[str, LevelLoss]) -> None:
        """Open an incident for these losses."""
        self.lost = dict(lost)
        for name, loss in lost.items():
            self._levels[name].open(loss.since, loss.size)

    def look(self, nights: Mapping[str, NightlyValue], looks: float) -> Literal["rings", "over"] | None:
        """Add one more night and return what happened: an alarm, the end of an incident, or None."""
        self.add(nights)
        if self.over:
            self.close()
            return "over"
        if lost := self.rings(looks):
            self.open(lost)
            return "rings"
        return None

    @property
    def over(self) -> bool:
        """Return whether all metrics of the open incident have recovered."""
        return bool(self.lost) and all(self._levels[name].back >= RECOVERY_EVIDENCE for name in self.lost)

    def close(self) -> None:
        """Close the incident."""
        self.lost = {}
        for level in self._levels.values():
            level.close()

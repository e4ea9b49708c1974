"""The watch over the headline metrics of a tier: when it rings, and when what it rang for is over."""

from collections.abc import Mapping
from typing import Literal

from yarus.metrics.statistics.alarms.level import Level, Loss
from yarus.metrics.statistics.alarms.noise import Night

OVER = 50.0
"""Evidence by which a loss is over: of those that last, at most one in so many ever seems to be."""


class Watch:
    """Metrics of one system that are looked at together: their evidence is averaged, which keeps its meaning.

    Args:
        levels: by metric.

    Example:
        >>> from yarus.metrics.statistics.alarms.level import Level
        >>> from yarus.metrics.statistics.alarms.noise import Night
        >>> from yarus.metrics.statistics.alarms.watch import Watch
        >>> watch = Watch({"mrr": Level(0.005)})
        >>> for change in [None, *[0.0] * 10, -0.05]:
        ...     watch.add({"mrr": Night(0.8, 0.0004, 400, change, 400 if change is not None else 0, 0.0001)})
        >>> {name: (loss.since, round(loss.size, 3)) for name, loss in watch.rings(1000).items()}
        {'mrr': (11, 0.05)}
    """

    def __init__(self, levels: Mapping[str, Level]) -> None:
        self._levels = levels
        self.lost: Mapping[str, Loss] = {}
        """What it has rung for, while that goes on."""

    def add(self, nights: Mapping[str, Night]) -> None:
        """One more night: of each metric that has been measured."""
        for name, night in nights.items():
            self._levels[name].add(night)

    def rings(self, looks: float) -> dict[str, Loss]:
        """What was lost, where that is worth an alarm: at most once in so many looks where nothing is."""
        if self.lost:
            return {}
        sudden = {name: level.find_sudden_loss(looks) for name, level in self._levels.items()}
        if any(sudden.values()):
            return {name: loss for name, loss in sudden.items() if loss}
        found = {name: level.evidence for name, level in self._levels.items()}
        if sum(found.values()) / len(found) < looks:
            return {}
        losses = {name: self._levels[name].loss for name, evidence in found.items() if evidence >= looks}
        return {name: loss for name, loss in losses.items() if loss and loss.low >= self._levels[name].least}

    def open(self, lost: Mapping[str, Loss]) -> None:
        """It has rung, for that."""
        self.lost = dict(lost)
        for name, loss in lost.items():
            self._levels[name].open(loss.since, loss.size)

    def look(self, nights: Mapping[str, Night], looks: float) -> Literal["rings", "over"] | None:
        """One more night, and what is to be told after it."""
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
        """Whether the level is back, of all metrics for which it has rung."""
        return bool(self.lost) and all(self._levels[name].back >= OVER for name in self.lost)

    def close(self) -> None:
        """What it has rung for is over."""
        self.lost = {}
        for level in self._levels.values():
            level.close()

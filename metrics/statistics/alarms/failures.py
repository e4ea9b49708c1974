"""The failures of a system night by night: whether they are more than before."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from yarus.metrics.statistics.alarms.level import Level, Loss
from yarus.metrics.statistics.alarms.noise import Night
from yarus.metrics.statistics.intervals import Interval, normal_quantile


class Failures(NamedTuple):
    """Failed cases of one night, or of several."""

    failed: int = 0
    asked: int = 0

    @property
    def rate(self) -> float:
        """Share of the cases, 0..1."""
        return self.failed / self.asked

    def shrunk(self, times: float) -> "Failures":
        """Return the failures of so many times fewer cases."""
        return Failures(round(self.failed / times), max(1, round(self.asked / times)))


class FailureLevel(Level):
    """The share of failures: it may also be lost in a single night.

    Failures are few, so that their variance tells little, and the first nights tell no noise; but how many there are
    by chance is known exactly. The night is compared with all nights since the accepted one in which nothing was lost.
    Failures come together, by night or by user: if earlier nights differ by more than chance, so many failures count as
    one, and a night with no more of them than an earlier one is nothing new.

    Reference: McCullagh and Nelder 1989, Generalized linear models, 4.5 (over-dispersion).
    """

    def __init__(self, least: float, *, known: tuple[float, float] = (0.0, 0.0)) -> None:
        super().__init__(least, better=-1, known=known)
        self._before: list[Failures] = []
        self._tonight = Failures()
        self._is_lost = False

    def add(self, night: Night) -> None:
        """One more night."""
        if self._tonight.asked and not self._is_lost:
            self._before.append(self._tonight)
        self._tonight = Failures(round(night.value * night.total), night.total)
        super().add(night)

    def open(self, since: int, size: float) -> None:
        """An incident."""
        self._is_lost = True
        super().open(since, size)

    def close(self) -> None:
        """What begins from now on is a new loss."""
        self._is_lost = False
        super().close()

    def find_sudden_loss(self, looks: float) -> Loss | None:
        """Return what was lost tonight, if so many failures come by chance less than once in so many looks."""
        if not self._before or self._tonight.rate <= max(night.rate for night in self._before):
            return None
        from scipy.stats import fisher_exact  # here, because it costs half a second to import

        together, earlier = dispersion(self._before), Failures(*np.array(self._before).sum(axis=0).tolist())
        before, tonight = earlier.shrunk(together), self._tonight.shrunk(together)
        table = [[one.failed, one.asked - one.failed] for one in (tonight, before)]
        size = self._tonight.rate - earlier.rate
        if size < self.least or fisher_exact(table, alternative="greater").pvalue * looks >= 1:
            return None
        return Loss(self.nights - 1, size, *interval_of_rise(before, tonight))


def dispersion(nights: Sequence[Failures]) -> float:
    """Return how much more the failures of nights may vary than if each case failed by itself: an upper 95 % bound.

    Returns:
        At least 1.

    Example:
        >>> from yarus.metrics.statistics.alarms.failures import Failures, dispersion
        >>> round(dispersion([Failures(failed, 300) for failed in (0, 9, 0, 1, 8, 0)]), 1)
        27.0
    """
    failed, asked = (np.array(column, dtype=float) for column in zip(*nights, strict=True))
    rate = failed.sum() / asked.sum()
    if len(nights) < 2 or not 0 < rate < 1:
        return 1.0
    squares = (failed - asked * rate) ** 2 / (asked * rate * (1 - rate))
    from scipy.special import chdtri  # here, because it costs 0.1 s to import

    return max(1.0, float(squares.sum() / chdtri(len(nights) - 1, 0.95)))


def interval_of_rise(before: Failures, after: Failures) -> Interval:
    """Return the 95 % interval of the rise of the rate, with a failure and a success added to each.

    Reference: Agresti and Caffo 2000, Simple and effective confidence intervals for proportions.

    Example:
        >>> from yarus.metrics.statistics.alarms.failures import Failures, interval_of_rise
        >>> low, high = interval_of_rise(Failures(0, 300), Failures(12, 300))
        >>> round(low, 3), round(high, 3)
        (0.016, 0.064)
    """
    rates = [(one.failed + 1) / (one.asked + 2) for one in (before, after)]
    spread = sum(rate * (1 - rate) / (one.asked + 2) for rate, one in zip(rates, (before, after), strict=True))
    middle, half = rates[1] - rates[0], normal_quantile(0.95) * spread**0.5
    return Interval(middle - half, middle + half)

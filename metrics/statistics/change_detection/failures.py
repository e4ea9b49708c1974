"""The failures of a system night by night, and whether they have increased."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from yarus.metrics.statistics.change_detection.level import LevelDetector, LevelLoss
from yarus.metrics.statistics.change_detection.noise import NightlyValue
from yarus.metrics.statistics.intervals import Interval, normal_quantile


class FailureCounts(NamedTuple):
    """Failed cases of one night or of several."""

    failed: int = 0
    total: int = 0

    @property
    def rate(self) -> float:
        """Return the share of failed cases, 0..1."""
        return self.failed / self.total

    def shrunk(self, times: float) -> "FailureCounts":
        """Return the failures of that many times fewer cases."""
        return FailureCounts(round(self.failed / times), max(1, round(self.total / times)))


class FailureDetector(LevelDetector):
    """The share of failures; a loss of it may also be found in a single night.

    Failures are few, so their variance says little, and the first nights give no estimate of the noise. But how many
    failures occur by chance is known exactly. The night is compared with all nights since the accepted one in which
    nothing was lost. Failures cluster by night or by user. If earlier nights differ by more than chance, several
    failures count as one, and a night with no more failures than an earlier one is not a loss.

    Reference: McCullagh and Nelder 1989, Generalized linear models, 4.5 (over-dispersion).
    """

    def __init__(self, least: float, *, known: tuple[float, float] = (0.0, 0.0)) -> None:
        super().__init__(least, better=-1, known=known)
        self._before: list[FailureCounts] = []
        self._tonight = FailureCounts()
        self._is_lost = False

    def add(self, night: NightlyValue) -> None:
        """Add one more night."""
        if self._tonight.total and not self._is_lost:
            self._before.append(self._tonight)
        self._tonight = FailureCounts(round(night.value * night.total), night.total)
        super().add(night)

    def open(self, since: int, size: float) -> None:
        """Open an incident."""
        self._is_lost = True
        super().open(since, size)

    def close(self) -> None:
        """Close the incident: whatever begins from now on is a new loss."""
        self._is_lost = False
        super().close()

    def find_sudden_loss(self, looks: float) -> LevelLoss | None:
        """Return the loss of tonight, if that many failures come by chance less than once in so many looks."""
        if not self._before or self._tonight.rate <= max(night.rate for night in self._before):
            return None
        from scipy.stats import fisher_exact  # here, because it costs half a second to import

        times, past = overdispersion_bound(self._before), FailureCounts(*np.array(self._before).sum(axis=0).tolist())
        before, tonight = past.shrunk(times), self._tonight.shrunk(times)
        table = [[failures.failed, failures.total - failures.failed] for failures in (tonight, before)]
        size = self._tonight.rate - past.rate
        if size < self.least or fisher_exact(table, alternative="greater").pvalue * looks >= 1:
            return None
        return LevelLoss(self.nights - 1, size, *rise_interval(before, tonight))


def overdispersion_bound(nights: Sequence[FailureCounts]) -> float:
    """Return an upper 95 % bound of how much more failures vary than if each case failed independently.

    Returns:
        At least 1.

    Example:
        >>> from yarus.metrics.statistics.change_detection.failures import FailureCounts, overdispersion_bound
        >>> round(overdispersion_bound([FailureCounts(failed, 300) for failed in (0, 9, 0, 1, 8, 0)]), 1)
        27.0
    """
    failed, total = (np.array(column, dtype=float) for column in zip(*nights, strict=True))
    rate = failed.sum() / total.sum()
    if len(nights) < 2 or not 0 < rate < 1:
        return 1.0
    squares = (failed - total * rate) ** 2 / (total * rate * (1 - rate))
    from scipy.special import chdtri  # here, because it costs 0.1 s to import

    return max(1.0, float(squares.sum() / chdtri(len(nights) - 1, 0.95)))


def rise_interval(before: FailureCounts, after: FailureCounts) -> Interval:
    """Return the 95 % interval of the rise of the rate, with a failure and a success added to each.

    Reference: Agresti and Caffo 2000, Simple and effective confidence intervals for proportions.

    Example:
        >>> from yarus.metrics.statistics.change_detection.failures import FailureCounts, rise_interval
        >>> low, high = rise_interval(FailureCounts(0, 300), FailureCounts(12, 300))
        >>> round(low, 3), round(high, 3)
        (0.016, 0.064)
    """
    rates = [(counts.failed + 1) / (counts.total + 2) for counts in (before, after)]
    spread = sum(rate * (1 - rate) / (counts.total + 2) for rate, counts in zip(rates, (before, after), strict=True))
    middle, half = rates[1] - rates[0], normal_quantile(0.95) * spread**0.5
    return Interval(middle - half, middle + half)

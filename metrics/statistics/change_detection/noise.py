"""The noise of a level: how far it moves from night to night, which changes are taken back and which last."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from yarus.metrics.statistics.ewma import WARM_UP, biweight_deviation

MIN_NIGHTS = 4
"""Nights after which the variance common to all cases is estimated."""
DRIFT_DELAY = 25
"""Nights before a drift is estimated: a loss that was not found yet would count as one."""
CHANCE_ERRORS = 1.0
"""Standard errors by which an excess may be chance."""


QuestionCells = Mapping[str, tuple[int, float]]
"""Kind of question -> how many questions of a night were measured, and the sum of their values."""


class NightlyValue(NamedTuple):
    """One metric in one night, relative to the night that it is compared with."""

    value: float
    sampling: float
    """Variance of the value due to the sampling of questions."""
    total: int
    """Measured cases."""
    change: float | None = None
    """Change since the compared night on common cases; None if they have too few common cases."""
    n: int = 0
    """Common cases, measured both times."""
    variance: float = 0.0
    """Variance of the change, from the changes of single cases (or groups)."""
    far_variance: float = 0.0
    """The same for the night `lag` nights before."""
    lag: int = 1
    step: float = 0.0
    """The most that one case can change."""
    skips: bool = False
    """Whether it is compared with a night before the last, which shares more cases with it."""
    n_new: int = 0
    """Cases that the compared night did not measure."""
    new_value: float | None = None
    """Value of the new cases; None if there are none."""
    day: int = 0
    """Day of the calendar, as in `date.toordinal`."""
    unknown: float = 0.0
    """Variance of the effect of its weekday while that is unknown."""
    cells: QuestionCells = MappingProxyType({})
    """Cells of all questions; empty if their kinds are not known."""
    new_cells: QuestionCells = MappingProxyType({})
    """Cells of the questions that the compared night did not measure."""
    mix: float = 0.0
    """Effect of the kinds of questions on the value; `remove_mix` of `mix.py` subtracts it."""

    def moved_since(self, last: "NightlyValue") -> float:
        """Return how far the level has moved since the last night."""
        return self.value - last.value if self.change is None else self.change


class NoiseVariances(NamedTuple):
    """The noise of nights, as variances."""

    case: float
    """Noise of one case in one night; it reverts in the next night."""
    lasting: float
    """Lasting change of one case per night."""
    night: float
    """Noise common to all cases of a night, in addition to the noise of single cases."""
    drift: float
    """Lasting change of all cases together per night."""


class _Sums(NamedTuple):
    """Sums over the nights so far."""

    near: float = 0.0
    """Variances of changes since the night before, per case, times the cases."""
    cases: float = 0.0
    nights: int = 0
    """Nights compared on common cases."""
    more: float = 0.0
    """By how much the variances since an earlier night were larger."""
    squares: float = 0.0
    lags: float = 0.0
    """Nights in between, times the cases."""
    reach: float = 0.0
    """The largest change of one case, as a variance of one case."""
    expected: float = 0.0
    """Variances of changes, as expected from cases."""
    replaced: float = 0.0
    """The part of these that lasts."""
    sampling: float = 0.0
    """Sampling variances of values."""
    new: float = 0.0
    """Shares of new cases."""
    own: float = 0.0
    """Variances of values due to the noise of their cases."""


class NoiseEstimator:
    """The noise of a level, estimated from the nights so far.

    Changes that are taken back leave as many cases changed after many nights as after one; those that last leave more.
    If levels move by more than their cases explain, whole nights move together.

    Args:
        known: from repeated evaluations, if there are any: the variance of a change of one case, and how many cases
            have been repeated. So the noise is known before the first night.
    """

    def __init__(self, known: tuple[float, float] = (0.0, 0.0)) -> None:
        self._sums = [_Sums(near=known[0] * known[1], cases=known[1])]
        self._levels, self._values = [0.0], [0.0]
        self._night, self._drifts = 0.0, [0.0]

    @property
    def nights(self) -> int:
        """Return the number of nights that were added."""
        return len(self._levels) - 1

    @property
    def has_estimate(self) -> bool:
        """Return whether the noise of cases has been estimated."""
        return self._sums[-1].cases > 0

    def add(self, night: NightlyValue, last: NightlyValue) -> NoiseVariances:
        """Add one more night and the last before it; return the noise with it."""
        drift = 0.0
        if len(self._levels) > MIN_NIGHTS:  # from the nights before: this one may be the first of a loss
            self._night, drift = self._common_noise()
        self._drifts.append(drift)
        expected, replaced, new, own = night.sampling + last.sampling, 0.0, 1.0, 0.0
        self._sums.append(self._sums[-1])
        self._levels.append(self._levels[-1] + night.moved_since(last))
        self._values.append(self._values[-1] + night.value - last.value)
        if night.change is not None:
            self.add_cases(night)
            more, sums = (night.far_variance - night.variance) * night.n**2, self._sums[-1]
            self._sums[-1] = sums._replace(
                more=sums.more + more, squares=sums.squares + more**2, lags=sums.lags + (night.lag - 1) * night.n
            )
            noise = self.current
            expected = (2 * noise.case + noise.lasting) / night.n
            replaced = noise.lasting / night.n + noise.case * lasting_share(night)
            new, own = night.n_new / night.total, noise.case / night.total
        sums = self._sums[-1]
        self._sums[-1] = sums._replace(
            expected=sums.expected + expected,
            replaced=sums.replaced + replaced,
            sampling=sums.sampling + night.sampling,
            new=sums.new + new,
            own=sums.own + own,
        )
        return self.current

    def add_cases(self, night: NightlyValue) -> None:
        """Add only the changes of the cases of one more night since the night before."""
        sums = self._sums[-1]
        self._sums[-1] = sums._replace(
            near=sums.near + night.variance * night.n**2,
            cases=sums.cases + night.n,
            nights=sums.nights + 1,
            reach=max(sums.reach, night.step**2 * night.n),
        )

    def forget(self, nights: int) -> None:
        """Restore the state after this many nights."""
        del self._sums[nights + 1 :]
        del self._levels[nights + 1 :]
        del self._values[nights + 1 :]
        del self._drifts[nights + 1 :]

    @property
    def current(self) -> NoiseVariances:
        """Return the noise to use: as if one more case had changed for good than did."""
        estimate, sums = self.estimate, self._sums[-1]
        lasting = estimate.lasting + sums.reach / (sums.nights + 1)
        return estimate._replace(case=max(0.0, estimate.case + (estimate.lasting - lasting) / 2), lasting=lasting)

    @property
    def estimate(self) -> NoiseVariances:
        """Return the noise estimated from the nights so far."""
        sums = self._sums[-1]
        near = sums.near / max(1, sums.cases)
        chance = max(0.0, sums.squares - sums.more**2 / max(1, sums.nights)) ** 0.5  # standard error of the sum
        lasting = min(max(0.0, (sums.more - CHANCE_ERRORS * chance) / max(1, sums.lags)), near)
        return NoiseVariances(max(0.0, near - lasting) / 2, lasting, self._night, self._drifts[-DRIFT_DELAY:][0])

    def _common_noise(self) -> tuple[float, float]:
        """Return the variance that whole nights add: per night, and for good."""
        near, chance = self._excess(1)
        far, far_chance = (near, 0.0)
        if len(self._levels) > 2 * WARM_UP:
            far, far_chance = self._excess(WARM_UP)
        drift = max(0.0, far - near - CHANCE_ERRORS * (far_chance**2 + chance**2) ** 0.5) / (WARM_UP - 1)
        return max(0.0, near - drift - CHANCE_ERRORS * chance) / 2, drift

    def _excess(self, lag: int) -> tuple[float, float]:
        """Return the variance of the level over this many nights beyond that of its cases, and its standard error.

        If cases are replaced, their changes add up to a walk, and their values do not.
        """
        sums, nights = self._sums[-1], self.nights
        walk = lag * sums.replaced
        chained = _lag_excess(self._levels, lag, sums.expected - sums.replaced + walk, walk, lag)
        if not sums.new:
            return chained
        draws = 2 * min(1.0, lag * sums.new / nights) * sums.sampling
        valued = _lag_excess(self._values, lag, draws + 2 * sums.own, draws, min(lag, nights / sums.new))
        return min(chained, valued, key=lambda estimate: estimate[1])


def variance_around_zero(variance: float, difference: float, n: int) -> float:
    """Return the variance of a change around 0 from that around its mean: all cases may have changed alike.

    Args:
        variance: the sum of what each of n cases changed beyond the mean, squared, over n squared.
        difference: the mean of what they changed.

    Example:
        >>> from yarus.metrics.statistics.change_detection.noise import variance_around_zero
        >>> variance_around_zero(0.0, -1.0, 4)  # each of four was lost: four times (1 / 4) squared
        0.25
    """
    return variance + difference**2 / n


def reverted_share(night: NightlyValue) -> float:
    """Return the share of the noise of common cases that is taken back, in variances of a case.

    A case that is in three nights takes back in the third what it did in the second; one that leaves does not, so that
    the sum of changes goes on without it. The cases that leave are the oldest, unless a night states otherwise.

    Example:
        >>> from yarus.metrics.statistics.change_detection.noise import NightlyValue, reverted_share
        >>> [reverted_share(NightlyValue(0.8, 0.0004, 400, 0.0, shared)) for shared in (400, 300, 200)]
        [0.0025, 0.0022222222222222222, 0.0]
    """
    return max(0, 2 * night.n - night.total) / night.n**2


def lasting_share(night: NightlyValue) -> float:
    """Return the share of the noise of common cases that lasts, if nights are alike.

    Example:
        >>> from yarus.metrics.statistics.change_detection.noise import NightlyValue, lasting_share
        >>> [lasting_share(NightlyValue(0.8, 0.0004, 400, 0.0, shared)) for shared in (400, 200)]
        [0.0, 0.01]
    """
    return 2 / night.n - 2 * reverted_share(night)


def _lag_excess(levels: list[float], lag: int, expected: float, lasting: float, nights: float) -> tuple[float, float]:
    """Return the variance of the moves over a lag beyond that of their cases, and its standard error.

    Args:
        levels: of each night.
        lag: nights.
        expected: the variance that the cases of all nights explain.
        lasting: the part of it that goes on from night to night.
        nights: the nights over which it goes on.

    Reference: the variance of an estimate from differences that overlap, Lo and MacKinlay 1988.
    """
    moves = np.subtract(levels[lag:], levels[:-lag])
    variance = biweight_deviation(moves) ** 2
    overlap = max(0.0, 4 / 3 * nights - 3) * lasting / max(expected, 1e-12)
    return variance - expected / (len(levels) - 1), variance * ((3 + overlap) / len(moves)) ** 0.5

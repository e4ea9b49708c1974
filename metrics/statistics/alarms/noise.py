"""What a level does by itself: how far it moves from night to night, what is taken back and what lasts."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from yarus.metrics.statistics.ewma import WARM_UP, deviation

FEWEST = 4
"""Nights that tell whether whole nights move together."""
LATE = 25
"""Nights that must pass before they tell of a drift: a loss that was not yet told of would count as one."""
CHANCE = 1.0
"""Standard errors by which more than was expected may be chance."""


Cells = Mapping[str, tuple[int, float]]
"""Kind of question -> how many of a night's questions were measured, and the sum of their values."""


class Night(NamedTuple):
    """One metric in one night, as it stands to the night that it is compared with."""

    value: float
    sampling: float
    """Variance of the value as that of a draw of questions."""
    total: int
    """Cases that were measured."""
    change: float | None = None
    """Since the night before on common cases; None where the two have too few to be compared on these alone."""
    n: int = 0
    """Common cases, measured both times."""
    variance: float = 0.0
    """Of the change, from what single cases (or groups) changed."""
    far_variance: float = 0.0
    """The same since `lag` nights before."""
    lag: int = 1
    step: float = 0.0
    """What one case can change at most."""
    skips: bool = False
    """Whether it is compared with a night before the last, which shares more with it."""
    n_new: int = 0
    """Cases that the night that it is compared with did not measure."""
    new_value: float | None = None
    """Their value; None where there are none."""
    day: int = 0
    """Of the calendar, as `date.toordinal` counts."""
    unknown: float = 0.0
    """Variance of what its weekday adds of which nothing is known yet."""
    cells: Cells = MappingProxyType({})
    """Of all cases; empty where kinds of questions are not known."""
    new_cells: Cells = MappingProxyType({})
    """Of those that the night that it is compared with did not measure."""
    mix: float = 0.0
    """What the kinds of questions add to the value; `yarus.metrics.statistics.alarms.mix.remove_mix` subtracts it."""

    def moved_since(self, last: "Night") -> float:
        """What the level has moved by since the last night."""
        return self.value - last.value if self.change is None else self.change


class Noise(NamedTuple):
    """What nights do by themselves, as variances."""

    case: float
    """Of one case in a night; it is taken back the night after."""
    lasting: float
    """Of one case, what is added a night and stays."""
    night: float
    """Of all cases together in a night, beyond what they tell as cases."""
    drift: float
    """Of all cases together, what is added a night and stays."""


class _Sums(NamedTuple):
    """Over the nights so far."""

    near: float = 0.0
    """Variances of changes since the night before, of a case, times the cases."""
    cases: float = 0.0
    nights: int = 0
    """Compared on common cases."""
    more: float = 0.0
    """By how much those since an earlier night were larger."""
    squares: float = 0.0
    lags: float = 0.0
    """Nights in between, times the cases."""
    reach: float = 0.0
    """The most that one case did, as a variance of one case."""
    expected: float = 0.0
    """Variances of changes as cases tell them."""
    replaced: float = 0.0
    """What of that stays."""
    sampling: float = 0.0
    """Variances of values as draws."""
    new: float = 0.0
    """Shares of new cases."""
    own: float = 0.0
    """Variances of values by what their cases do."""


class Noises:
    """The noise of a level, told by the nights so far.

    Changes that are taken back leave as many cases changed after many nights as after one; those that last leave more.
    Where levels move by more than their cases tell, whole nights move together.

    Args:
        known: of repeated evaluations, where there are any: the variance of a change of one case, and how many cases
            have been repeated. So the noise is known before a night has passed.
    """

    def __init__(self, known: tuple[float, float] = (0.0, 0.0)) -> None:
        self._sums = [_Sums(near=known[0] * known[1], cases=known[1])]
        self._levels, self._values = [0.0], [0.0]
        self._night, self._drifts = 0.0, [0.0]

    @property
    def nights(self) -> int:
        """How many were added."""
        return len(self._levels) - 1

    @property
    def is_told(self) -> bool:
        """Whether anything is known of what cases do."""
        return self._sums[-1].cases > 0

    def add(self, night: Night, last: Night) -> Noise:
        """One more night, and the last before it; the noise with it."""
        drift = 0.0
        if len(self._levels) > FEWEST:  # by the nights before: this one may be the first of a loss
            self._night, drift = self._together()
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
            now = self.now
            expected = (2 * now.case + now.lasting) / night.n
            replaced = now.lasting / night.n + now.case * replaced_share(night)
            new, own = night.n_new / night.total, now.case / night.total
        sums = self._sums[-1]
        self._sums[-1] = sums._replace(
            expected=sums.expected + expected,
            replaced=sums.replaced + replaced,
            sampling=sums.sampling + night.sampling,
            new=sums.new + new,
            own=sums.own + own,
        )
        return self.now

    def add_cases(self, night: Night) -> None:
        """Of one more night only what its cases did since the night before."""
        sums = self._sums[-1]
        self._sums[-1] = sums._replace(
            near=sums.near + night.variance * night.n**2,
            cases=sums.cases + night.n,
            nights=sums.nights + 1,
            reach=max(sums.reach, night.step**2 * night.n),
        )

    def forget(self, nights: int) -> None:
        """As it was when so many nights had been added."""
        del self._sums[nights + 1 :]
        del self._levels[nights + 1 :]
        del self._values[nights + 1 :]
        del self._drifts[nights + 1 :]

    @property
    def now(self) -> Noise:
        """As it is reckoned with: as if one more case had changed for good than did."""
        told, sums = self.told, self._sums[-1]
        lasting = told.lasting + sums.reach / (sums.nights + 1)
        return told._replace(case=max(0.0, told.case + (told.lasting - lasting) / 2), lasting=lasting)

    @property
    def told(self) -> Noise:
        """As the nights so far tell it."""
        sums = self._sums[-1]
        near = sums.near / max(1, sums.cases)
        chance = max(0.0, sums.squares - sums.more**2 / max(1, sums.nights)) ** 0.5  # of the sum
        lasting = min(max(0.0, (sums.more - CHANCE * chance) / max(1, sums.lags)), near)
        return Noise(max(0.0, near - lasting) / 2, lasting, self._night, self._drifts[-LATE:][0])

    def _together(self) -> tuple[float, float]:
        """What whole nights add, of a night and for good."""
        near, chance = self._moved(1)
        far, far_chance = (near, 0.0)
        if len(self._levels) > 2 * WARM_UP:
            far, far_chance = self._moved(WARM_UP)
        drift = max(0.0, far - near - CHANCE * (far_chance**2 + chance**2) ** 0.5) / (WARM_UP - 1)
        return max(0.0, near - drift - CHANCE * chance) / 2, drift

    def _moved(self, lag: int) -> tuple[float, float]:
        """By how much more than cases tell the level moves in so many nights, as a variance, and its standard error.

        Where cases are replaced, their changes add up to a walk, and their values do not.
        """
        sums, nights = self._sums[-1], self.nights
        walk = lag * sums.replaced
        chained = _moved(self._levels, lag, sums.expected - sums.replaced + walk, walk, lag)
        if not sums.new:
            return chained
        draws = 2 * min(1.0, lag * sums.new / nights) * sums.sampling
        valued = _moved(self._values, lag, draws + 2 * sums.own, draws, min(lag, nights / sums.new))
        return min(chained, valued, key=lambda found: found[1])


def of_cases(variance: float, difference: float, n: int) -> float:
    """The variance of a change around none, from that around the mean: all cases may have changed alike.

    Args:
        variance: the sum of what each of n cases changed beyond the mean, squared, over n squared.
        difference: the mean of what they changed.

    Example:
        >>> from yarus.metrics.statistics.alarms.noise import of_cases
        >>> of_cases(0.0, -1.0, 4)  # each of four was lost: four times (1 / 4) squared
        0.25
    """
    return variance + difference**2 / n


def kept_share(night: Night) -> float:
    """What is taken back of the noise of the cases that a night shares with its neighbours, in variances of a case.

    A case that is in three nights takes back in the third what it did in the second; one that leaves does not, so that
    the sum of changes goes on without it. The cases that leave are the oldest, if no night says otherwise.

    Example:
        >>> from yarus.metrics.statistics.alarms.noise import Night, kept_share
        >>> [kept_share(Night(0.8, 0.0004, 400, 0.0, shared)) for shared in (400, 300, 200)]
        [0.0025, 0.0022222222222222222, 0.0]
    """
    return max(0, 2 * night.n - night.total) / night.n**2


def replaced_share(night: Night) -> float:
    """What stays of the noise of those cases, where nights are alike.

    Example:
        >>> from yarus.metrics.statistics.alarms.noise import Night, replaced_share
        >>> [replaced_share(Night(0.8, 0.0004, 400, 0.0, shared)) for shared in (400, 200)]
        [0.0, 0.01]
    """
    return 2 / night.n - 2 * kept_share(night)


def _moved(levels: list[float], lag: int, expected: float, lasts: float, nights: float) -> tuple[float, float]:
    """By how much more than cases tell levels move in so many nights, as a variance, and its standard error.

    Args:
        levels: of each night.
        lag: nights.
        expected: what the cases of all nights tell.
        lasts: the part of it that goes on from night to night.
        nights: for so many.

    Reference: the variance of an estimate from differences that overlap, Lo and MacKinlay 1988.
    """
    moved = np.subtract(levels[lag:], levels[:-lag])
    variance = deviation(moved) ** 2
    overlap = max(0.0, 4 / 3 * nights - 3) * lasts / max(expected, 1e-12)
    return variance - expected / (len(levels) - 1), variance * ((3 + overlap) / len(moved)) ** 0.5

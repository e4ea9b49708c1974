"""What a level does by itself: how far it moves from night to night, what is taken back and what lasts."""

from typing import NamedTuple

import numpy as np

from metrics.statistics.ewma import WARM_UP, deviation
from metrics.statistics.groups import Floats

FEWEST = 4
"""Nights that tell whether whole nights move together."""
CHANCE = 1.0
"""Standard errors by which more than was expected may be chance."""


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


class Noises:
    """The noise of a level, told by the nights so far.

    Changes that are taken back leave as many cases changed after many nights as after one; those that last leave more.
    Where levels move by more than their cases tell, whole nights move together.

    Args:
        known: of repeated evaluations, where there are any: the variance of a change of one case, and how many cases
            have been repeated. So the noise is known before a night has passed.
    """

    def __init__(self, known: tuple[float, float] = (0.0, 0.0)) -> None:
        self._near, self._cases = known[0] * known[1], known[1]
        self._pairs = 0
        self._more = np.zeros(3)
        self._lags, self._reach = 0, 0.0
        self._levels, self._expected = [0.0], np.zeros(3)
        self._night, self._drift = 0.0, 0.0

    def add(self, night: Night, last: Night, change: float) -> Noise:
        """One more night, the last before it, and the change of the level from that to this; the noise with it."""
        if len(self._levels) > FEWEST:  # by the nights before: this one may be the first of a loss
            self._night, self._drift = self._together()
        cases, replaced = night.sampling + last.sampling, 0.0
        if night.change is not None:
            self._near += night.variance * night.n**2
            self._cases += night.n
            self._pairs += 1
            more = (night.far_variance - night.variance) * night.n**2
            self._more += 1, more, more**2
            self._lags += (night.lag - 1) * night.n
            self._reach = max(self._reach, night.step**2 * night.n)
            now = self.now
            cases = (2 * now.case + now.lasting) / night.n
            replaced = now.lasting / night.n + now.case * replaced_share(night, last)
        self._levels.append(self._levels[-1] + change)
        self._expected += 1, cases, replaced
        return self.now

    @property
    def now(self) -> Noise:
        """As it is reckoned with: as if one more case had changed for good than did."""
        told = self.told
        lasting = told.lasting + self._reach / (self._pairs + 1)
        return told._replace(case=max(0.0, told.case + (told.lasting - lasting) / 2), lasting=lasting)

    @property
    def told(self) -> Noise:
        """As the nights so far tell it."""
        near = self._near / max(1, self._cases)
        count, more, squares = self._more
        chance = max(0.0, squares - more**2 / max(1, count)) ** 0.5  # of the sum
        lasting = min(max(0.0, (more - CHANCE * chance) / max(1, self._lags)), near)
        return Noise(max(0.0, near - lasting) / 2, lasting, self._night, self._drift)

    def _together(self) -> tuple[float, float]:
        """What whole nights add, of a night and for good."""
        levels, (_, cases, more) = np.array(self._levels), self._expected / self._expected[0]
        near, chance = _moved(levels, 1, cases)
        far, far_chance = (near, 0.0)
        if len(levels) > 2 * WARM_UP:
            far, far_chance = _moved(levels, WARM_UP, cases + (WARM_UP - 1) * more)
        drift = max(0.0, far - near - CHANCE * (far_chance**2 + chance**2) ** 0.5) / (WARM_UP - 1)
        return max(0.0, near - drift - CHANCE * chance) / 2, drift


def replaced_share(night: Night, last: Night) -> float:
    """What the cases that only one of two nights has add to the variance of the change, in variances of a case.

    Example:
        >>> from metrics.statistics.alarms.noise import Night, replaced_share
        >>> replaced_share(Night(0.8, 0.0004, 400, 0.0, 400), Night(0.8, 0.0004, 400))
        0.0
    """
    return max(0.0, 2 / night.n - 1 / night.total - 1 / last.total)


def _moved(levels: Floats, lag: int, cases: float) -> tuple[float, float]:
    """By how much more than cases tell levels move in so many nights, as a variance, and its standard error."""
    moved = levels[lag:] - levels[:-lag]
    variance = deviation(moved) ** 2
    return variance - cases, variance * (3 / len(moved)) ** 0.5

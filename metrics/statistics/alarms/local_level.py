"""A level that wanders a little, seen through noise, and what would be seen of it if it had moved in some night."""

from copy import copy
from typing import NamedTuple

import numpy as np

from yarus.metrics.statistics.groups import Floats

LEAST_SPREAD = 1e-12
"""Variance that a night has at least: equal nights differ by rounding."""
LEVEL, FOLLOWED = (1.0, 0.0), (1.0, 1.0)
"""What a value is the sum of: the level alone, or the level and the offset of the cases that are followed."""


class Start(NamedTuple):
    """How a night differs from the night before in which cases it has."""

    follows: bool
    """Whether cases are followed from the night before on; else none is."""
    value: float
    """Of the night before."""
    chained: float
    """The same as the sum of its changes, where cases were followed up to it."""
    noise: float
    """Variance of that value as one of its own cases."""
    sampling: float
    """Variance of that value as a draw of cases."""


class Observation(NamedTuple):
    """What one night says."""

    values: Floats
    """(m,)"""
    parts: Floats
    """(m, 2) LEVEL or FOLLOWED, of each."""
    spread: Floats
    """(m, m) variances of the values around the sum of their parts."""
    wander: Floats
    """(2,) variances of what the level and the offset may have moved by since the night before."""
    start: Start | None = None


class LocalLevel:
    """The Kalman filter of a local level, with the sums from which any step or slope since any night follows.

    Two things are known of the level: what new cases score, which is a draw of cases each time, and how the cases that
    are followed from night to night have changed, which is a level and an offset: how far these cases differ from all.

    Args:
        value: of the first night; how far its cases differ from all is unknown.
        spread: variance of that value as one of its own cases.
        unknown: variance of what nothing is known of.

    Reference: Muth 1960, Optimal properties of exponentially weighted forecasts; Willsky and Jones 1976, A generalized
    likelihood ratio approach to the detection and estimation of jumps in linear systems.
    """

    def __init__(self, value: float, spread: float, unknown: float) -> None:
        self.mean = np.array([value, 0.0])
        self.spread = np.array([[unknown, -unknown], [-unknown, unknown + spread]])
        """(2,) and (2, 2), of the level and the offset."""
        self.forget()

    def forget(self) -> None:
        """Look for steps and slopes from the next night on."""
        self._seen = np.zeros((2, 0, 2))
        """What a step by 1, and a slope of 1 a night, that began in each night has moved beyond what is known."""
        self.sums, self.weights = np.zeros((2, 2, 0))
        """(2, nights) sums of what is unexpected, as far as a step or slope since then would be seen in it."""

    @property
    def nights(self) -> int:
        """How many there were."""
        return len(self.sums[0])

    def copy(self, level: float = 0.0) -> "LocalLevel":
        """Return one that knows the same, but for so much more variance of the level, and looks for steps anew."""
        other = copy(self)
        other.spread = self.spread + np.diag([level, 0.0])
        other.forget()
        return other

    def add(self, night: Observation) -> None:
        """Add one more night."""
        self.move(night)
        self._seen = np.append(self._seen, [[[1.0, 0.0]], [[1.0, 0.0]]], axis=1)
        self.sums, self.weights = (np.append(one, np.zeros((2, 1)), axis=1) for one in (self.sums, self.weights))
        parts, covered = night.parts, self.spread @ night.parts.T
        inverse = np.linalg.inv(parts @ covered + night.spread)
        unexpected, expected = night.values - parts @ self.mean, self._seen @ parts.T
        scaled = expected @ inverse
        self.sums += scaled @ unexpected
        self.weights += (scaled * expected).sum(axis=2)
        gain = covered @ inverse
        self.mean = self.mean + gain @ unexpected
        self.spread = self.spread - gain @ covered.T
        self._seen -= expected @ gain.T
        self._seen[1, :, 0] += 1

    def move(self, night: Observation) -> None:
        """Pass to the next night without looking at it."""
        if night.start:
            (self._follow if night.start.follows else self._leave)(night.start)
        self.spread = self.spread + np.diag(night.wander)

    def _follow(self, start: Start) -> None:
        """Follow cases of which nothing is known but what they scored last night."""
        own = self.spread[0, 0]
        self.mean = np.array([self.mean[0], start.value - self.mean[0]])
        self.spread = np.array([[own, -own], [-own, own + start.noise]])
        self._seen[..., 1] = -self._seen[..., 0]

    def draw(self, start: Start) -> None:
        """Take the cases that are followed from now on for a draw."""
        self.mean = np.array([self.mean[0], 0.0])
        self.spread = np.diag([self.spread[0, 0], start.sampling])

    def _leave(self, start: Start) -> None:
        """Follow no case: those that were followed tell of the level as a draw, where nothing tells more of it."""
        level, spread, seen = self.mean[0], self.spread[0, 0], self._seen[..., 0]
        if (followed := float(self.spread.sum()) + start.sampling) < spread:
            level = start.value + float(self.mean.sum()) - start.chained
            spread, seen = followed, self._seen.sum(axis=2)
        self.mean, self.spread = np.array([level, 0.0]), np.diag([spread, 0.0])
        self._seen = np.stack([seen, np.zeros_like(seen)], axis=2)


def evidence(sums: Floats, weights: Floats, size: float, least: float) -> Floats:
    """Logarithm of the e-value that a step or slope has this size rather than the least, or less.

    Args:
        sums, weights: of `LocalLevel`, towards the side that the step is on.
        size, least: of it; size > least >= 0.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.alarms.local_level import evidence
        >>> evidence(np.array([4.0]), np.array([2.0]), 2.0, 0.0)
        array([4.])
    """
    return (size - least) * sums - (size**2 - least**2) * weights / 2


def mixed_evidence(sums: Floats, weights: Floats, scale: Floats) -> Floats:
    """Logarithm of the e-value of a step or slope above 0 against none, mixed over a half-normal distribution of sizes.

    Args:
        sums, weights: of `LocalLevel`, towards the side that the step is on.
        scale: of the sizes.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.alarms.local_level import mixed_evidence
        >>> mixed_evidence(np.array([0.0, 30.0]), np.array([100.0, 100.0]), np.array([0.1])).round(2)
        array([-0.35,  2.58])
    """
    from scipy.special import log_ndtr  # here, because it costs 0.1 s to import

    spread = 1 + scale**2 * weights
    towards = sums * scale / np.sqrt(spread)
    return np.asarray(towards**2 / 2 - np.log(spread) / 2 + np.log(2) + log_ndtr(towards))

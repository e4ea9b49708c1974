"""A level with a slow drift, seen through noise, and the evidence of steps or slopes that began in any night."""

from copy import copy
from typing import NamedTuple

import numpy as np

from yarus.metrics.statistics.groups import Floats

MIN_VARIANCE = 1e-12
"""Least variance of a night: equal nights differ by rounding."""
LEVEL, FOLLOWED = (1.0, 0.0), (1.0, 1.0)
"""Components of a value: the level alone, or the level and the offset of the followed cases."""


class CaseChange(NamedTuple):
    """How the cases of a night differ from those of the night before."""

    follows: bool
    """Whether cases are followed from the night before on; otherwise none are."""
    value: float
    """Value of the night before."""
    chained: float
    """The same as the sum of its changes, if cases were followed up to it."""
    noise: float
    """Variance of that value due to the noise of its cases."""
    sampling: float
    """Variance of that value due to the sampling of its cases."""


class Observation(NamedTuple):
    """The values of one night."""

    values: Floats
    """(m,)"""
    parts: Floats
    """(m, 2) LEVEL or FOLLOWED, one per value."""
    spread: Floats
    """(m, m) covariance of the values around the sum of their components."""
    wander: Floats
    """(2,) variances of the drift of the level and of the offset since the night before."""
    start: CaseChange | None = None


class LocalLevel:
    """The Kalman filter of a local level, with the sums that give the evidence of any step or slope since any night.

    Two things are estimated: the level, which new cases score and which is a new sample of cases each time; and the
    offset by which the cases that are followed from night to night differ from all cases.

    Args:
        value: of the first night; the offset of its cases is unknown.
        spread: variance of that value due to the noise of its cases.
        unknown: variance of unknown quantities.

    Reference: Muth 1960, Optimal properties of exponentially weighted forecasts; Willsky and Jones 1976, A generalized
    likelihood ratio approach to the detection and estimation of jumps in linear systems.
    """

    def __init__(self, value: float, spread: float, unknown: float) -> None:
        self.mean = np.array([value, 0.0])
        self.spread = np.array([[unknown, -unknown], [-unknown, unknown + spread]])
        """(2,) means and (2, 2) covariance of the level and the offset."""
        self.forget()

    def forget(self) -> None:
        """Look for steps and slopes from the next night on."""
        self._seen = np.zeros((2, 0, 2))
        """Effects of a step by 1 and a slope of 1 per night since each night that the estimate does not include yet."""
        self.sums, self.weights = np.zeros((2, 2, 0))
        """(2, nights) sums of the unexpected, weighted by how far a step or slope since then would show in it."""

    @property
    def nights(self) -> int:
        """Return the number of nights."""
        return len(self.sums[0])

    def copy(self, variance: float = 0.0) -> "LocalLevel":
        """Return a copy with this much more variance of the level, which looks for steps from now on."""
        level_filter = copy(self)
        level_filter.spread = self.spread + np.diag([variance, 0.0])
        level_filter.forget()
        return level_filter

    def add(self, night: Observation) -> None:
        """Add one more night."""
        self.move(night)
        self._seen = np.append(self._seen, [[[1.0, 0.0]], [[1.0, 0.0]]], axis=1)
        self.sums, self.weights = (np.append(sums, np.zeros((2, 1)), axis=1) for sums in (self.sums, self.weights))
        components, covered = night.parts, self.spread @ night.parts.T
        inverse = np.linalg.inv(components @ covered + night.spread)
        unexpected, expected = night.values - components @ self.mean, self._seen @ components.T
        scaled = expected @ inverse
        self.sums += scaled @ unexpected
        self.weights += (scaled * expected).sum(axis=2)
        gain = covered @ inverse
        self.mean = self.mean + gain @ unexpected
        self.spread = self.spread - gain @ covered.T
        self._seen -= expected @ gain.T
        self._seen[1, :, 0] += 1

    def move(self, night: Observation) -> None:
        """Move on to the next night without looking at its values."""
        if night.start:
            (self._follow if night.start.follows else self._leave)(night.start)
        self.spread = self.spread + np.diag(night.wander)

    def _follow(self, start: CaseChange) -> None:
        """Follow cases of which only their scores of last night are known."""
        own = self.spread[0, 0]
        self.mean = np.array([self.mean[0], start.value - self.mean[0]])
        self.spread = np.array([[own, -own], [-own, own + start.noise]])
        self._seen[..., 1] = -self._seen[..., 0]

    def draw(self, start: CaseChange) -> None:
        """Treat the cases that are followed from now on as a random sample."""
        self.mean = np.array([self.mean[0], 0.0])
        self.spread = np.diag([self.spread[0, 0], start.sampling])

    def _leave(self, start: CaseChange) -> None:
        """Stop following cases: they inform the level as a random sample, if nothing else is more precise."""
        level, spread, seen = self.mean[0], self.spread[0, 0], self._seen[..., 0]
        if (followed := float(self.spread.sum()) + start.sampling) < spread:
            level = start.value + float(self.mean.sum()) - start.chained
            spread, seen = followed, self._seen.sum(axis=2)
        self.mean, self.spread = np.array([level, 0.0]), np.diag([spread, 0.0])
        self._seen = np.stack([seen, np.zeros_like(seen)], axis=2)


def log_evidence(sums: Floats, weights: Floats, size: float, least: float) -> Floats:
    """Return the logarithm of the e-value that a step or slope has this size rather than the least, or less.

    Args:
        sums, weights: of `LocalLevel`, in the direction of the step.
        size, least: of it; size > least >= 0.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.change_detection.local_level import log_evidence
        >>> log_evidence(np.array([4.0]), np.array([2.0]), 2.0, 0.0)
        array([4.])
    """
    return (size - least) * sums - (size**2 - least**2) * weights / 2


def mixed_log_evidence(sums: Floats, weights: Floats, scale: Floats) -> Floats:
    """Return the log e-value of a step or slope above 0 against none, mixed over half-normal sizes.

    Args:
        sums, weights: of `LocalLevel`, in the direction of the step.
        scale: of the sizes.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.change_detection.local_level import mixed_log_evidence
        >>> mixed_log_evidence(np.array([0.0, 30.0]), np.array([100.0, 100.0]), np.array([0.1])).round(2)
        array([-0.35,  2.58])
    """
    from scipy.special import log_ndtr  # here, because it costs 0.1 s to import

    spread = 1 + scale**2 * weights
    scores = sums * scale / np.sqrt(spread)
    return np.asarray(scores**2 / 2 - np.log(spread) / 2 + np.log(2) + log_ndtr(scores))

"""A level that wanders a little, seen through noise, and what would be seen of it if it had moved in some night."""

import numpy as np

from metrics.statistics.groups import Floats

LEAST_SPREAD = 1e-12
"""Variance that a night has at least: equal nights differ by rounding."""


class LocalLevel:
    """The Kalman filter of a local level, with the sums from which any step or slope since any night follows.

    Args:
        mean, spread: of the level before the first night, and the variance of that.

    Reference: Muth 1960, Optimal properties of exponentially weighted forecasts; Willsky and Jones 1976, A generalized
    likelihood ratio approach to the detection and estimation of jumps in linear systems.
    """

    def __init__(self, mean: float, spread: float) -> None:
        self.mean, self.spread = mean, spread
        self._seen = np.zeros((2, 0))
        """What a step by 1, and a slope of 1 a night, that began in each night would be seen of in the next."""
        self.sums, self.weights = np.zeros((2, 2, 0))
        """(2, nights) sums of what is unexpected, as far as a step or slope since then would be seen in it."""

    @property
    def nights(self) -> int:
        """How many there were."""
        return len(self.sums[0])

    def add(self, value: float, spread: float, wander: float) -> None:
        """One more night: its value, the variance of what it says of the level, and by what that may have moved."""
        self.spread += wander
        self._seen, self.sums, self.weights = (
            np.append(one, [[new], [new]], axis=1)
            for one, new in ((self._seen, 1.0), (self.sums, 0.0), (self.weights, 0.0))
        )
        total, unexpected = max(LEAST_SPREAD, self.spread + spread), value - self.mean
        self.sums += self._seen * (unexpected / total)
        self.weights += self._seen**2 / total
        gain = self.spread / total
        self.mean += gain * unexpected
        self.spread *= 1 - gain
        self._seen *= 1 - gain
        self._seen[1] += 1

    def begin(self, mean: float, spread: float) -> None:
        """What was known of the level is no reference any more; what has been seen of steps and slopes stays."""
        self.mean, self.spread = mean, spread
        self._seen[:] = 0

    def forget(self) -> None:
        """Steps and slopes are looked for from the next night on."""
        self._seen, self.sums, self.weights = np.zeros((3, 2, 0))


def evidence(sums: Floats, weights: Floats, size: float, least: float) -> Floats:
    """Logarithm of the e-value that a step or slope has this size rather than the least, or less.

    Args:
        sums, weights: of `LocalLevel`, towards the side that the step is on.
        size, least: of it; size > least >= 0.

    Example:
        >>> import numpy as np
        >>> from metrics.statistics.alarms.local_level import evidence
        >>> evidence(np.array([4.0]), np.array([2.0]), 2.0, 0.0)
        array([4.])
    """
    return (size - least) * sums - (size**2 - least**2) * weights / 2

"""Intervals of a paired mean difference, dense or sparse, in groups or not; and a p and an interval that agree."""

from collections.abc import Callable
from math import exp, log
from typing import NamedTuple, TypeAlias

import numpy as np

from yarus.metrics.statistics.groups import Floats, Ints, group_totals, jackknife
from yarus.metrics.statistics.intervals import NO_INTERVAL, SMALLEST, Interval, level_of, student_quantile

IntervalAt: TypeAlias = Callable[[float], Interval]
"""Confidence, 0..1, exclusive -> the interval of that level."""
UNSEEN = 0.03
"""Weight, in units, of one that is wholly lost: what the jump of a change is where few changes have been seen."""


class Mean(NamedTuple):
    """A mean whose cases may come in groups."""

    value: float
    error: float
    """Its standard error, by leaving out each group in turn."""
    degrees: float
    """Of freedom: as many equal groups as these are worth (Kish), less one."""


def mean_of(values: Floats, codes: Ints) -> Mean:
    """The mean of (n,) values of at least two groups, which `codes` (n,) numbers from 0, and how well it is known.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.intervals import mean_of
        >>> found = mean_of(np.array([1.0, 2.0, 3.0, 6.0]), np.arange(4))
        >>> found.value, round(found.error, 3), found.degrees
        (3.0, 1.08, 3.0)
    """
    error, groups = jackknife(values, codes)
    return Mean(float(values.mean()), error, max(1.0, groups - 1))


def interval_of_differences(differences: Floats, codes: Ints, span: float) -> IntervalAt:
    """The interval of the mean of paired differences, at any level.

    Where at least half of the cases (or groups) changed: Student's t. Where most did not, the mean hangs on few
    changes, and their number is what is uncertain: gains and losses have each a score interval like Wilson's, of a mean
    whose variance is its size times the jump that one change makes, and are put together by Newcombe's square-and-add,
    with their correlation. Whole groups are its units, and Student's quantile knows their effective number.

    Args:
        differences: (n,) finite, of at least two groups.
        codes: (n,) the group of each, from 0; as many groups as cases where they stand alone.
        span: the widest that two values lie apart: what a change that has not been seen may be.

    Returns:
        Level -> bounds; both equal where all differences are and are not 0, or where all values are equal.

    Reference: Newcombe 1998, Interval estimation for the difference between independent proportions; Zou and Donner
    2008, Construction of confidence limits about effect measures (MOVER).

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.intervals import interval_of_differences
        >>> one_of_fifty = np.array([-0.5] + [0.0] * 49)
        >>> low, high = interval_of_differences(one_of_fifty, np.arange(50), 1.0)(0.95)
        >>> round(low, 3), round(high, 3)
        (-0.056, 0.03)
    """
    if np.ptp(differences) == 0 and (differences[0] or not span):  # without the rounding of a sum
        same = Interval(float(differences[0]), float(differences[0]))
        return lambda confidence: same
    found = mean_of(differences, codes)
    if is_sparse(differences, codes):
        return _sparse(differences, codes, span, found.degrees)
    return lambda confidence: student_interval(found, confidence)


def is_sparse(differences: Floats, codes: Ints) -> bool:
    """Whether fewer than half of the cases changed: of those that stand alone, or of the groups that `codes` numbers.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.intervals import is_sparse
        >>> one_each = np.array([0.5, 0.0, 0.0, 0.0, -0.5, 0.0])
        >>> is_sparse(one_each, np.arange(6)), is_sparse(one_each, np.array([0, 0, 0, 1, 1, 1]))
        (True, False)
    """
    changed = np.bincount(codes, weights=differences != 0)
    return 2 * int(np.count_nonzero(changed)) < len(changed)


def student_interval(mean: Mean, confidence: float) -> Interval:
    """Student's interval of a mean.

    Example:
        >>> from yarus.metrics.statistics.differences.intervals import Mean, student_interval
        >>> low, high = student_interval(Mean(3.0, 1.0, 3.0), 0.95)
        >>> round(low, 3), round(high, 3)
        (-0.182, 6.182)
    """
    reach = student_quantile(confidence, mean.degrees) * mean.error
    return Interval(mean.value - reach, mean.value + reach)


def _sparse(differences: Floats, codes: Ints, span: float, degrees: float) -> IntervalAt:
    table = np.column_stack([np.maximum(differences, 0), np.maximum(-differences, 0)])
    gains, losses = group_totals(table, codes).T
    units = len(gains)
    size = len(differences) / units
    either, unseen = gains + losses, span * size
    jump = (float((either**2).sum()) + UNSEEN * unseen**2) / (float(either.sum()) + UNSEEN * unseen)
    spread = float(gains.std() * losses.std())
    together = float(((gains - gains.mean()) * (losses - losses.mean())).mean()) / spread if spread else 0.0
    gain, loss = float(gains.mean()), float(losses.mean())

    def at(confidence: float) -> Interval:
        z = student_quantile(confidence, degrees)
        least_gain, most_gain = _score_bounds(gain, jump, units, z)
        least_loss, most_loss = _score_bounds(loss, jump, units, z)
        down = _added(gain - least_gain, most_loss - loss, together)
        up = _added(most_gain - gain, loss - least_loss, together)
        return Interval(max(-span, (gain - loss - down) / size), min(span, (gain - loss + up) / size))

    return at


def _score_bounds(mean: float, jump: float, n: int, z: float) -> Interval:
    """Wilson's bounds for the mean of n values of at least 0 whose variance is mean * (jump - mean)."""
    share, shrink = mean / jump, 1 + z * z / n
    centre = (share + z * z / (2 * n)) / shrink
    half = z / shrink * (max(0.0, share * (1 - share)) / n + z * z / (4 * n * n)) ** 0.5
    return Interval(max(0.0, centre - half) * jump if mean else 0.0, min(1.0, centre + half) * jump)


def _added(one: float, other: float, together: float) -> float:
    return float(max(0.0, one**2 + other**2 - 2 * together * one * other) ** 0.5)


def agreed(p: float, interval_at: IntervalAt, confidence: float) -> tuple[float, Interval]:
    """A p and an interval of one difference, neither of which says more than the other.

    A test and an interval of different making may disagree where the evidence is just enough. The more careful one is
    believed: the interval is drawn to 0, or p is the level at which the interval reaches it.

    Example:
        >>> from yarus.metrics.statistics import Interval
        >>> from yarus.metrics.statistics.differences.intervals import agreed
        >>> agreed(0.06, lambda confidence: Interval(0.01, 0.3), 0.95)
        (0.06, Interval(low=0.0, high=0.3))
    """
    interval, alpha = interval_at(confidence), level_of(confidence)
    if np.isnan(p) or np.isnan(interval.low):
        return p, NO_INTERVAL if np.isnan(p) else interval
    if p >= alpha:
        return p, Interval(min(interval.low, 0.0), max(interval.high, 0.0))
    return (p if interval.low > 0 or interval.high < 0 else max(alpha, level_at(interval_at, 0.0))), interval


def level_at(interval_at: IntervalAt, value: float) -> float:
    """The two-sided p of a value: the level below which the interval no longer holds it.

    Returns:
        Above 0, at most 1; 1 where even the narrowest interval holds it.

    Example:
        >>> from yarus.metrics.statistics.differences.intervals import Mean, level_at, student_interval
        >>> round(level_at(lambda confidence: student_interval(Mean(2.228, 1.0, 10), confidence), 0.0), 3)
        0.05
    """
    low, high = log(1e-15), 0.0
    for _ in range(50):
        middle = (low + high) / 2
        bounds = interval_at(1 - exp(middle))
        low, high = (middle, high) if bounds.low <= value <= bounds.high else (low, middle)
    return max(SMALLEST, exp(high))

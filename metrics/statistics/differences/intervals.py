"""Intervals of a paired mean difference, and a p that is consistent with an interval."""

from collections.abc import Callable
from math import exp, log
from typing import NamedTuple, TypeAlias

import numpy as np

from yarus.metrics.statistics.groups import Floats, Ints, group_totals, jackknife_error
from yarus.metrics.statistics.intervals import NO_INTERVAL, SMALLEST_P, Interval, alpha_of, student_quantile

IntervalAt: TypeAlias = Callable[[float], Interval]
"""Confidence, 0..1, exclusive -> the interval of that level."""
UNSEEN_WEIGHT = 0.03
"""Weight of a pseudo-unit that is entirely lost: it sets the jump of a change if few changes have been seen."""


class ClusteredMean(NamedTuple):
    """A mean of cases that may come in groups."""

    value: float
    error: float
    """Standard error, by leaving out each group in turn."""
    degrees: float
    """Degrees of freedom: the effective number of groups (Kish), less one."""


def clustered_mean(values: Floats, codes: Ints) -> ClusteredMean:
    """Return the mean of (n,) values of at least two groups, which `codes` (n,) numbers from 0, and its error.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.intervals import clustered_mean
        >>> result = clustered_mean(np.array([1.0, 2.0, 3.0, 6.0]), np.arange(4))
        >>> result.value, round(result.error, 3), result.degrees
        (3.0, 1.08, 3.0)
    """
    error, groups = jackknife_error(values, codes)
    return ClusteredMean(float(values.mean()), error, max(1.0, groups - 1))


def difference_interval(differences: Floats, codes: Ints, span: float) -> IntervalAt:
    """Return the interval of the mean of paired differences, as a function of the confidence.

    If at least half of the cases (or groups) changed: Student's t. If most did not, the mean depends on few changes,
    and their number is uncertain. Then gains and losses have a score interval each, like Wilson's, of a mean whose
    variance is its size times the jump of one change. Both are combined by Newcombe's square-and-add, with their
    correlation. The units are whole groups, and Student's quantile uses their effective number.

    Args:
        differences: (n,) finite, of at least two groups.
        codes: (n,) the group of each, from 0; as many groups as cases if there are no groups.
        span: the largest possible difference of two values: the size of an unseen change.

    Returns:
        Level -> bounds; both equal if all differences are equal and not 0, or if all values are equal.

    Reference: Newcombe 1998, Interval estimation for the difference between independent proportions; Zou and Donner
    2008, Construction of confidence limits about effect measures (MOVER).

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.intervals import difference_interval
        >>> one_of_fifty = np.array([-0.5] + [0.0] * 49)
        >>> low, high = difference_interval(one_of_fifty, np.arange(50), 1.0)(0.95)
        >>> round(low, 3), round(high, 3)
        (-0.056, 0.03)
    """
    if np.ptp(differences) == 0 and (differences[0] or not span):  # without the rounding of a sum
        same = Interval(float(differences[0]), float(differences[0]))
        return lambda confidence: same
    mean = clustered_mean(differences, codes)
    if is_sparse(differences, codes):
        return _sparse_interval(differences, codes, span, mean.degrees)
    return lambda confidence: student_interval(mean, confidence)


def is_sparse(differences: Floats, codes: Ints) -> bool:
    """Return whether fewer than half of the cases changed, or of the groups that `codes` numbers.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.intervals import is_sparse
        >>> one_each = np.array([0.5, 0.0, 0.0, 0.0, -0.5, 0.0])
        >>> is_sparse(one_each, np.arange(6)), is_sparse(one_each, np.array([0, 0, 0, 1, 1, 1]))
        (True, False)
    """
    changed = np.bincount(codes, weights=differences != 0)
    return 2 * int(np.count_nonzero(changed)) < len(changed)


def student_interval(mean: ClusteredMean, confidence: float) -> Interval:
    """Return Student's interval of a mean.

    Example:
        >>> from yarus.metrics.statistics.differences.intervals import ClusteredMean, student_interval
        >>> low, high = student_interval(ClusteredMean(3.0, 1.0, 3.0), 0.95)
        >>> round(low, 3), round(high, 3)
        (-0.182, 6.182)
    """
    half_width = student_quantile(confidence, mean.degrees) * mean.error
    return Interval(mean.value - half_width, mean.value + half_width)


def _sparse_interval(differences: Floats, codes: Ints, span: float, degrees: float) -> IntervalAt:
    table = np.column_stack([np.maximum(differences, 0), np.maximum(-differences, 0)])
    gains, losses = group_totals(table, codes).T
    units = len(gains)
    size = len(differences) / units
    either, unseen = gains + losses, span * size
    jump = (float((either**2).sum()) + UNSEEN_WEIGHT * unseen**2) / (float(either.sum()) + UNSEEN_WEIGHT * unseen)
    spread = float(gains.std() * losses.std())
    correlation = float(((gains - gains.mean()) * (losses - losses.mean())).mean()) / spread if spread else 0.0
    gain, loss = float(gains.mean()), float(losses.mean())

    def interval_at(confidence: float) -> Interval:
        z = student_quantile(confidence, degrees)
        least_gain, most_gain = _score_bounds(gain, jump, units, z)
        least_loss, most_loss = _score_bounds(loss, jump, units, z)
        below = _add_half_widths(gain - least_gain, most_loss - loss, correlation)
        above = _add_half_widths(most_gain - gain, loss - least_loss, correlation)
        return Interval(max(-span, (gain - loss - below) / size), min(span, (gain - loss + above) / size))

    return interval_at


def _score_bounds(mean: float, jump: float, n: int, z: float) -> Interval:
    """Return Wilson's bounds of the mean of n values of at least 0 whose variance is mean * (jump - mean)."""
    share, shrink = mean / jump, 1 + z * z / n
    center = (share + z * z / (2 * n)) / shrink
    half = z / shrink * (max(0.0, share * (1 - share)) / n + z * z / (4 * n * n)) ** 0.5
    return Interval(max(0.0, center - half) * jump if mean else 0.0, min(1.0, center + half) * jump)


def _add_half_widths(first: float, second: float, correlation: float) -> float:
    return float(max(0.0, first**2 + second**2 - 2 * correlation * first * second) ** 0.5)


def reconcile_p_and_interval(p: float, interval_at: IntervalAt, confidence: float) -> tuple[float, Interval]:
    """Return a p and an interval of one difference that are consistent.

    A test and an interval of different methods may disagree if the evidence is just enough. The more conservative one
    is used: the interval is extended to 0, or p is the level at which the interval reaches 0.

    Example:
        >>> from yarus.metrics.statistics import Interval
        >>> from yarus.metrics.statistics.differences.intervals import reconcile_p_and_interval
        >>> reconcile_p_and_interval(0.06, lambda confidence: Interval(0.01, 0.3), 0.95)
        (0.06, Interval(low=0.0, high=0.3))
    """
    interval, alpha = interval_at(confidence), alpha_of(confidence)
    if np.isnan(p) or np.isnan(interval.low):
        return p, NO_INTERVAL if np.isnan(p) else interval
    if p >= alpha:
        return p, Interval(min(interval.low, 0.0), max(interval.high, 0.0))
    return (p if interval.low > 0 or interval.high < 0 else max(alpha, p_value_at(interval_at, 0.0))), interval


def p_value_at(interval_at: IntervalAt, value: float) -> float:
    """Return the two-sided p of a value: the level below which the interval no longer contains it.

    Returns:
        Above 0, at most 1; 1 if even the narrowest interval contains it.

    Example:
        >>> from yarus.metrics.statistics.differences.intervals import ClusteredMean, p_value_at, student_interval
        >>> round(p_value_at(lambda confidence: student_interval(ClusteredMean(2.228, 1.0, 10), confidence), 0.0), 3)
        0.05
    """
    low, high = log(1e-15), 0.0
    for _ in range(50):
        middle = (low + high) / 2
        bounds = interval_at(1 - exp(middle))
        low, high = (middle, high) if bounds.low <= value <= bounds.high else (low, middle)
    return max(SMALLEST_P, exp(high))

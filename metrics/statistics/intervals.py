"""Intervals in closed form: Wilson's for shares, and the bounds that missing cases leave."""

from collections.abc import Hashable, Sequence
from decimal import Decimal
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from metrics.statistics.groups import group_codes, group_totals, measured_values

NORMAL = NormalDist()
UNDEFINED = float("nan")
SMALLEST = float(np.finfo(np.float64).tiny)
"""The smallest number above 0; what a p is that no float is small enough for: no p is 0."""


class Interval(NamedTuple):
    """The bounds of a confidence interval, in the unit of the value; both NaN where there is none."""

    low: float
    high: float


NO_INTERVAL = Interval(UNDEFINED, UNDEFINED)


def wilson_interval(successes: float, n: float, *, confidence: float = 0.95) -> Interval:
    """Wilson's score interval for a share: honest for few cases and near 0 and 1, where the textbook interval is not.

    Args:
        successes: how many of the n cases were a success, 0..n.
        n: number of measured cases.
        confidence: the interval's level, 0..1.

    Returns:
        Bounds within 0..1; (nan, nan) for n = 0.

    Raises:
        ValueError: successes outside 0..n, or a level outside 0..1.

    Reference: Wilson 1927, Probable inference, the law of succession, and statistical inference.

    Example:
        >>> from metrics.statistics import wilson_interval
        >>> low, high = wilson_interval(40, 50)
        >>> round(low, 3), round(high, 3)
        (0.67, 0.888)
        >>> low, high = wilson_interval(5, 5)
        >>> round(low, 3), high
        (0.566, 1.0)
    """
    if not 0 <= successes <= n:
        raise ValueError(f"successes must lie between 0 and n = {n}, got {successes}")
    z = normal_quantile(confidence)
    if n == 0:
        return NO_INTERVAL
    share, shrink = successes / n, 1 + z * z / n
    centre = (share + z * z / (2 * n)) / shrink
    half = z / shrink * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    # Exactly 0 and 1 at the ends, where rounding would leave 1e-17.
    return Interval(max(0.0, centre - half) if successes else 0.0, min(1.0, centre + half) if successes < n else 1.0)


def share_interval(
    values: ArrayLike, *, groups: Sequence[Hashable] | None = None, confidence: float = 0.95
) -> Interval:
    """Wilson's interval for a share whose cases may come in groups: with as many cases as the groups are worth.

    Fifty questions about one page tell less than fifty about fifty. The variance of the share between groups, over that
    of independent cases, is the design effect; Wilson's interval is taken of the number of cases divided by it (never
    of more cases than there are). Where the share is 0 or 1 nothing varies, and the groups count as the cases.

    Args:
        values: (n,) 0 or 1 a case (or between); NaN (not measured) is left out.
        groups: n labels of users, dialogs or pages; None marks a case that stands alone.
        confidence: the interval's level, 0..1.

    Returns:
        Bounds within 0..1; (nan, nan) without a measured case. Without groups equal to `wilson_interval`.

    Raises:
        ValueError: groups of another length than values, a value outside 0..1, a level outside 0..1.

    Reference: Wilson 1927; Kish 1965, Survey sampling; Korn and Graubard 1998, Confidence intervals for proportions
    with small expected number of positive counts.

    Example:
        >>> from metrics.statistics import share_interval
        >>> low, high = share_interval([1, 1, 0, 0, 1, 1], groups=["a", "a", "b", "b", "c", "c"])
        >>> round(low, 3), round(high, 3)  # six cases that are worth three
        (0.159, 0.955)
    """
    measured, labels = measured_values(values, groups)
    n = len(measured)
    if n and not 0 <= measured.min() <= measured.max() <= 1:
        raise ValueError(f"values of a share lie between 0 and 1, got {measured.min():g} to {measured.max():g}")
    worth = float(n)
    if labels is not None and n:
        units = group_totals(np.column_stack([measured, np.ones(n)]), group_codes(labels, n))
        m, share = len(units), float(measured.mean())
        alone = share * (1 - share) / n
        if alone == 0 or m < 2:
            worth = m
        elif m < n:
            between = m / (m - 1) * float(((units[:, 0] - share * units[:, 1]) ** 2).sum()) / n**2
            worth = n / max(1.0, between / alone)
    return wilson_interval(float(measured.mean()) * worth if n else 0.0, worth, confidence=confidence)


def missingness_bounds(values: ArrayLike, *, low: float = 0.0, high: float = 1.0) -> Interval:
    """The mean if every unmeasured case had had the worst value, and if it had had the best.

    Args:
        values: (n,) one value a case, NaN where it was not measured.
        low, high: the metric's range.

    Returns:
        The two means, low..high; (nan, nan) for no cases. Equal where everything was measured.

    Raises:
        ValueError: low above high.

    Reference: Manski 1989, Anatomy of the selection problem.

    Example:
        >>> from math import nan
        >>> from metrics.statistics import missingness_bounds
        >>> missingness_bounds([1.0, 0.5, nan, 1.0])
        Interval(low=0.625, high=0.875)
    """
    if low > high:
        raise ValueError(f"low must not be above high, got {low} and {high}")
    cases = np.asarray(values, dtype=np.float64)
    if not cases.size:
        return NO_INTERVAL
    return Interval(*(float(np.where(np.isnan(cases), bound, cases).mean()) for bound in (low, high)))


def normal_quantile(confidence: float) -> float:
    """How many standard deviations a two-sided interval of this level (0..1, exclusive) reaches: 1.96 for 0.95.

    Example:
        >>> from metrics.statistics.intervals import normal_quantile
        >>> round(normal_quantile(0.95), 2)
        1.96
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    return NORMAL.inv_cdf((1 + confidence) / 2)


def level_of(confidence: float) -> float:
    """The level of the test that belongs to an interval: 0.05 for 0.95, without the rounding of 1 - 0.95.

    Example:
        >>> from metrics.statistics.intervals import level_of
        >>> level_of(0.95)
        0.05
    """
    return float(1 - Decimal(str(confidence)))

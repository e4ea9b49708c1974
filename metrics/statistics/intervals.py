"""Intervals in closed form: Wilson's of shares, and Student's of means in groups."""

import math
from collections.abc import Hashable, Sequence
from decimal import Decimal
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from yarus.metrics.statistics.groups import Floats, group_codes, jackknife, measured_values

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
        >>> from yarus.metrics.statistics import wilson_interval
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
    """Wilson's interval for a share, or for the mean of scores on few levels; the cases may come in groups.

    It is taken of as many cases as these are worth: fewer where they come in groups (`independent_cases`), more where
    scores vary less than a yes and no of the same mean does. How much they vary is read of the cases and of one more
    at either end of the scale (Agresti-Coull), for a failure that is rare may be one that no case has had yet.

    Args:
        values: (n,) 0 or 1 a case, or a score between; NaN (not measured) is left out.
        groups: n labels of users, dialogs or pages; None marks a case that stands alone.
        confidence: the interval's level, 0..1.

    Returns:
        Bounds within 0..1; (nan, nan) without a measured case. Of yes and no without groups equal to `wilson_interval`.

    Raises:
        ValueError: groups of another length than values, a value outside 0..1, a level outside 0..1.

    Reference: Wilson 1927; Agresti and Coull 1998, Approximate is better than "exact" for interval estimation of
    binomial proportions; Korn and Graubard 1998, Confidence intervals for proportions with small expected number of
    positive counts.

    Example:
        >>> from yarus.metrics.statistics import share_interval
        >>> low, high = share_interval([1, 1, 0, 0, 1, 1] * 4, groups=["a", "a", "b", "b", "c", "c"] * 4)
        >>> round(low, 3), round(high, 3)  # 24 cases of three users, who tell almost nothing of others
        (0.044, 0.989)
    """
    measured, labels = measured_values(values, groups)
    if not len(measured):
        return wilson_interval(0, 0, confidence=confidence)
    if not 0 <= measured.min() <= measured.max() <= 1:
        raise ValueError(f"values of a share lie between 0 and 1, got {measured.min():g} to {measured.max():g}")
    worth = independent_cases(measured, labels, confidence)
    mean = min(float(measured.mean()), 1.0)  # of ones, rounding may lead beyond
    and_both_ends = (worth * mean + 1) / (worth + 2)
    spread = (worth * float((measured**2).mean()) + 1) / (worth + 2) - and_both_ends**2
    worth /= min(1.0, spread / (and_both_ends * (1 - and_both_ends)) * (worth + 2) / (worth + 1))
    return wilson_interval(mean * worth, worth, confidence=confidence)


def grouped_mean_interval(values: ArrayLike, groups: Sequence[Hashable], *, confidence: float = 0.95) -> Interval:
    """Student's t interval for a mean over cases that come in groups, by leaving out each group in turn.

    Args:
        values: (n,) one value a case; NaN (not measured) is left out.
        groups: n labels of users, dialogs or pages; None marks a case that stands alone.
        confidence: the interval's level, 0..1.

    Returns:
        Bounds in the unit of the values; (nan, nan) below two measured groups.

    Raises:
        ValueError: groups of another length than values, a level outside 0..1.

    Reference: Bell and McCaffrey 2002, Bias reduction in standard errors for linear regression with multi-stage
    samples; MacKinnon and White 1985 (the jackknife, CR3).

    Example:
        >>> from yarus.metrics.statistics.intervals import grouped_mean_interval
        >>> low, high = grouped_mean_interval([0.1, 0.3, 0.6, 0.6, 0.9, 0.5], ["a", "a", "b", "b", "c", "c"])
        >>> round(low, 3), round(high, 3)
        (-0.157, 1.157)
    """
    measured, labels = measured_values(values, groups)
    codes = group_codes(labels or [], len(measured))
    error, effective = jackknife(measured, codes)
    if math.isnan(error):
        return NO_INTERVAL
    mean, reach = float(measured.mean()), student_quantile(confidence, effective - 1) * error
    return Interval(mean - reach, mean + reach)


def independent_cases(values: Floats, groups: Sequence[Hashable] | None, confidence: float) -> float:
    """As many independent cases as tell as much about the mean of these as they do, where they come in groups.

    Fifty questions of one user tell less than fifty of fifty. The variance of the mean by groups, over that of
    independent cases, is the design effect. That few groups do not tell their own variance well makes it larger by
    the square of Student's t (of as many equal groups) over the normal quantile. Where that is above 1, the number of
    cases is divided by it.

    Args:
        values: (n,) of the cases, n at least 1.
        groups: n labels; None marks a case that stands alone.
        confidence: the level of the interval that it is for.

    Returns:
        Above 0, at most n: n without groups, 1 for one group, and the number of equal groups that these are worth
        where nothing varies.

    Reference: Kish 1965, Survey sampling; Korn and Graubard 1998.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.intervals import independent_cases
        >>> round(independent_cases(np.array([1.0, 0.0] * 10).repeat(50), np.arange(20).repeat(50).tolist(), 0.95), 1)
        16.7
    """
    n = len(values)
    codes = np.arange(n) if groups is None else group_codes(groups, n)
    m = int(codes.max()) + 1
    if m in (1, n):
        return float(m)
    error, effective = jackknife(values, codes)
    alone = float(values.var()) / n
    if np.ptp(values) == 0:
        return effective
    reach = student_quantile(confidence, effective - 1) / normal_quantile(confidence)
    return n / max(1.0, (error * reach) ** 2 / alone)


def normal_quantile(confidence: float) -> float:
    """How many standard deviations a two-sided interval of this level (0..1, exclusive) reaches: 1.96 for 0.95.

    Example:
        >>> from yarus.metrics.statistics.intervals import normal_quantile
        >>> round(normal_quantile(0.95), 2)
        1.96
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    return NORMAL.inv_cdf((1 + confidence) / 2)


def level_of(confidence: float) -> float:
    """The level of the test that belongs to an interval: 0.05 for 0.95, without the rounding of 1 - 0.95.

    Example:
        >>> from yarus.metrics.statistics.intervals import level_of
        >>> level_of(0.95)
        0.05
    """
    return float(1 - Decimal(str(confidence)))


def student_quantile(confidence: float, freedom: float) -> float:
    """As `normal_quantile`, for a standard deviation that is estimated with these degrees of freedom (at least 1).

    Example:
        >>> from yarus.metrics.statistics.intervals import student_quantile
        >>> round(student_quantile(0.95, 4), 2)
        2.78
    """
    from scipy.special import stdtrit  # here, because it costs 0.1 s to import

    normal_quantile(confidence)
    return float(stdtrit(max(1.0, freedom), (1 + confidence) / 2))

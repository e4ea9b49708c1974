"""Intervals in closed form: Wilson's of shares, and Student's of means in groups."""

import math
from collections.abc import Hashable, Sequence
from decimal import Decimal
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from yarus.metrics.statistics.groups import Floats, group_codes, jackknife_error, measured_values

STANDARD_NORMAL = NormalDist()
UNDEFINED = float("nan")
SMALLEST_P = float(np.finfo(np.float64).tiny)
"""The smallest number above 0; replaces a p that is too small for a float, because no p is 0."""


class Interval(NamedTuple):
    """The bounds of a confidence interval, in the unit of the value; both NaN if undefined."""

    low: float
    high: float


NO_INTERVAL = Interval(UNDEFINED, UNDEFINED)


def wilson_interval(successes: float, n: float, *, confidence: float = 0.95) -> Interval:
    """Return Wilson's score interval of a share, which also holds for few cases and near 0 and 1.

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
    center = (share + z * z / (2 * n)) / shrink
    half = z / shrink * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    # Exactly 0 and 1 at the ends, where rounding would leave 1e-17.
    return Interval(max(0.0, center - half) if successes else 0.0, min(1.0, center + half) if successes < n else 1.0)


def share_interval(
    values: ArrayLike, *, groups: Sequence[Hashable] | None = None, confidence: float = 0.95
) -> Interval:
    """Return Wilson's interval of a share, or of the mean of scores on few levels; the cases may come in groups.

    It is computed for the effective number of cases: fewer if they come in groups (`effective_sample_size`), more if
    scores vary less than yes and no with the same mean. The variance is estimated from the cases and one more at either
    end of the scale (Agresti-Coull), because a rare failure may not have occurred yet.

    Args:
        values: (n,) 0 or 1 per case, or a score between; NaN (not measured) is left out.
        groups: n labels of users, dialogs or pages; None marks a case without a group.
        confidence: the interval's level, 0..1.

    Returns:
        Bounds within 0..1; (nan, nan) without a measured case. Equal to `wilson_interval` for yes/no without groups.

    Raises:
        ValueError: groups of another length than values, a value outside 0..1, a level outside 0..1.

    Reference: Wilson 1927; Agresti and Coull 1998, Approximate is better than "exact" for interval estimation of
    binomial proportions; Korn and Graubard 1998, Confidence intervals for proportions with small expected number of
    positive counts.

    Example:
        >>> from yarus.metrics.statistics import share_interval
        >>> low, high = share_interval([1, 1, 0, 0, 1, 1] * 4, groups=["a", "a", "b", "b", "c", "c"] * 4)
        >>> round(low, 3), round(high, 3)  # 24 cases of three users, which say almost nothing about other users
        (0.044, 0.989)
    """
    measured, labels = measured_values(values, groups)
    if not len(measured):
        return wilson_interval(0, 0, confidence=confidence)
    if not 0 <= measured.min() <= measured.max() <= 1:
        raise ValueError(f"values of a share lie between 0 and 1, got {measured.min():g} to {measured.max():g}")
    n_effective = effective_sample_size(measured, labels, confidence)
    mean = min(float(measured.mean()), 1.0)  # the mean of ones may exceed 1 by rounding
    center = (n_effective * mean + 1) / (n_effective + 2)
    spread = (n_effective * float((measured**2).mean()) + 1) / (n_effective + 2) - center**2
    n_effective /= min(1.0, spread / (center * (1 - center)) * (n_effective + 2) / (n_effective + 1))
    return wilson_interval(mean * n_effective, n_effective, confidence=confidence)


def grouped_mean_interval(values: ArrayLike, groups: Sequence[Hashable], *, confidence: float = 0.95) -> Interval:
    """Return Student's t interval of a mean over cases that come in groups, by leaving out each group in turn.

    Args:
        values: (n,) one value per case; NaN (not measured) is left out.
        groups: n labels of users, dialogs or pages; None marks a case without a group.
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
    error, effective = jackknife_error(measured, codes)
    if math.isnan(error):
        return NO_INTERVAL
    mean, half_width = float(measured.mean()), student_quantile(confidence, effective - 1) * error
    return Interval(mean - half_width, mean + half_width)


def effective_sample_size(values: Floats, groups: Sequence[Hashable] | None, confidence: float) -> float:
    """Return the number of independent cases that would estimate the mean as precisely as these cases in groups.

    Fifty questions of one user are less informative than fifty of fifty. The variance of the mean by groups, over that
    of independent cases, is the design effect. The variance of few groups is uncertain, which multiplies the effect by
    the squared ratio of Student's t (for the effective number of groups) to the normal quantile. If the result is above
    1, the number of cases is divided by it.

    Args:
        values: (n,) of the cases, n at least 1.
        groups: n labels; None marks a case without a group.
        confidence: the level of the interval in which it is used.

    Returns:
        Above 0, at most n: n without groups, 1 for one group, and the effective number of groups if all values are
        equal.

    Reference: Kish 1965, Survey sampling; Korn and Graubard 1998.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.intervals import effective_sample_size
        >>> values, groups = np.array([1.0, 0.0] * 10).repeat(50), np.arange(20).repeat(50).tolist()
        >>> round(effective_sample_size(values, groups, 0.95), 1)
        16.7
    """
    n = len(values)
    codes = np.arange(n) if groups is None else group_codes(groups, n)
    m = int(codes.max()) + 1
    if m in (1, n):
        return float(m)
    error, effective = jackknife_error(values, codes)
    independent_variance = float(values.var()) / n
    if np.ptp(values) == 0:
        return effective
    ratio = student_quantile(confidence, effective - 1) / normal_quantile(confidence)
    return n / max(1.0, (error * ratio) ** 2 / independent_variance)


def normal_quantile(confidence: float) -> float:
    """Return the half-width of a two-sided interval (level 0..1, exclusive) in standard deviations: 1.96 for 0.95.

    Example:
        >>> from yarus.metrics.statistics.intervals import normal_quantile
        >>> round(normal_quantile(0.95), 2)
        1.96
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    return STANDARD_NORMAL.inv_cdf((1 + confidence) / 2)


def alpha_of(confidence: float) -> float:
    """Return the level of the test that corresponds to an interval: 0.05 for 0.95, without the rounding of 1 - 0.95.

    Example:
        >>> from yarus.metrics.statistics.intervals import alpha_of
        >>> alpha_of(0.95)
        0.05
    """
    return float(1 - Decimal(str(confidence)))


def student_quantile(confidence: float, freedom: float) -> float:
    """Return `normal_quantile` for a standard deviation that is estimated with these degrees of freedom (at least 1).

    Example:
        >>> from yarus.metrics.statistics.intervals import student_quantile
        >>> round(student_quantile(0.95, 4), 2)
        2.78
    """
    from scipy.special import stdtrit  # here, because it costs 0.1 s to import

    normal_quantile(confidence)
    return float(stdtrit(max(1.0, freedom), (1 + confidence) / 2))

"""The interval of a quantile: a median, or a 95th percentile of latencies."""

import math
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from yarus.metrics.statistics.groups import measured_values
from yarus.metrics.statistics.intervals import NO_INTERVAL, Interval, effective_sample_size, normal_quantile


def quantile_interval(
    values: ArrayLike, quantile: float, *, groups: Sequence[Hashable] | None = None, confidence: float = 0.95
) -> Interval:
    """Return the interval of a quantile between two of the ordered values, without assumptions on their distribution.

    The probability that the r-th smallest of n values lies above the quantile is binomial; r need not be whole, as the
    quantile itself is interpolated. With few values none is surely above their 95th percentile (n < 72): the interval
    is then open, and the other bound uses the whole level.

    Args:
        values: (n,) one value per case; NaN is left out.
        quantile: 0..1, interpolated as in `numpy.quantile`.
        groups: n labels of users, dialogs or pages; None marks a case without a group. The effective number of cases is
            that of the share of values up to the quantile.
        confidence: the interval's level, 0..1.

    Returns:
        Bounds in the unit of the values, -inf or inf if the interval is open; (nan, nan) if the effective number of
        cases is below two, or if it would be open at both ends (a median of fewer than 6).

    Raises:
        ValueError: a quantile or level outside 0..1, an infinite value, groups of another length than values.

    Reference: Hutson 1999, Calculating nonparametric confidence intervals for quantiles using fractional order
    statistics; Woodruff 1952, Confidence intervals for medians and other position measures.

    Example:
        >>> from yarus.metrics.statistics import quantile_interval
        >>> low, high = quantile_interval([110, 120, 130, 150, 170, 200, 900], 0.5)
        >>> round(low), round(high)
        (115, 553)
        >>> quantile_interval([110, 120, 130, 150, 170, 200, 900], 0.95).high
        inf
    """
    from scipy.special import bdtrik  # here, because it costs 0.1 s to import

    measured, labels = measured_values(values, groups)
    normal_quantile(confidence)
    if not 0 <= quantile <= 1:
        raise ValueError(f"quantile must lie between 0 and 1, got {quantile}")
    if not len(measured):
        return NO_INTERVAL
    ordered, ranks = np.sort(measured), np.arange(1, len(measured) + 1)
    size = effective_sample_size((measured <= np.quantile(measured, quantile)).astype(np.float64), labels, confidence)

    def bound_at(probability: float) -> float:
        """Return the value that lies above the quantile with this probability; NaN if there is none."""
        rank = 1 + float(bdtrik(probability, size, quantile))
        return float(np.interp(rank * (len(ranks) + 1) / (size + 1), ranks, ordered)) if 1 < rank <= size else math.nan

    tail = (1 - confidence) / 2
    low, high = bound_at(tail), bound_at(1 - tail)
    if size < 2 or (math.isnan(low) and math.isnan(high)):
        return NO_INTERVAL
    if math.isnan(high):
        return Interval(bound_at(2 * tail), math.inf)
    return Interval(-math.inf, bound_at(1 - 2 * tail)) if math.isnan(low) else Interval(low, high)

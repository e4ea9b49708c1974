"""The interval of a quantile: a median, or a 95th percentile of latencies."""

import math
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from yarus.metrics.statistics.groups import measured_values
from yarus.metrics.statistics.intervals import NO_INTERVAL, Interval, independent_cases, normal_quantile


def quantile_interval(
    values: ArrayLike, quantile: float, *, groups: Sequence[Hashable] | None = None, confidence: float = 0.95
) -> Interval:
    """Interval for a quantile between two of the ordered values: nothing is assumed of how the values are spread.

    The chance that the r-th smallest of n values lies above the quantile is binomial; r need not be whole, as the
    quantile itself is interpolated. Few values have none that is surely above their 95th percentile (n < 72): the
    interval is then open, and the other bound has the whole level.

    Args:
        values: (n,) one value a case; NaN is left out.
        quantile: 0..1, interpolated as in `numpy.quantile`.
        groups: n labels of users, dialogs or pages; None marks a case that stands alone. The cases count for as many
            as the share of values up to the quantile is worth.
        confidence: the interval's level, 0..1.

    Returns:
        Bounds in the unit of the values, -inf or inf where the interval is open; (nan, nan) where the cases are
        worth fewer than two, or where it would be open at both ends (a median of fewer than 6).

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
    ordered, places = np.sort(measured), np.arange(1, len(measured) + 1)
    worth = independent_cases((measured <= np.quantile(measured, quantile)).astype(np.float64), labels, confidence)

    def bound(chance: float) -> float:
        """What lies above the quantile with this chance; NaN where no value does."""
        rank = 1 + float(bdtrik(chance, worth, quantile))
        return (
            float(np.interp(rank * (len(places) + 1) / (worth + 1), places, ordered)) if 1 < rank <= worth else math.nan
        )

    tail = (1 - confidence) / 2
    low, high = bound(tail), bound(1 - tail)
    if worth < 2 or (math.isnan(low) and math.isnan(high)):
        return NO_INTERVAL
    if math.isnan(high):
        return Interval(bound(2 * tail), math.inf)
    return Interval(-math.inf, bound(1 - 2 * tail)) if math.isnan(low) else Interval(low, high)

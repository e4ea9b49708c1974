"""The interval of a mean: which of the others the values ask for."""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from yarus.metrics.statistics.bootstrap import bootstrap_interval
from yarus.metrics.statistics.groups import group_codes, measured_values
from yarus.metrics.statistics.intervals import NORMAL, Interval, share_interval, student_quantile


def mean_interval(
    values: ArrayLike,
    *,
    seed: int,
    low: float = -np.inf,
    high: float = np.inf,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> Interval:
    """Interval for a mean of a metric whose range is known.

    Shares, and scores on few levels (at most half as many as there are cases), are `share_interval`'s, in which a rare
    failure has its place before one is seen; other means are `bootstrap_interval`'s, its percentiles moved outward as
    Student's t is from the normal quantile.

    Args:
        values: (n,) one value a case; NaN (not measured) is left out.
        seed: of the bootstrap.
        low, high: the metric's range; infinite where it has no end.
        groups: n labels of users, dialogs or pages; None marks a case that stands alone.
        confidence: the interval's level, 0..1.

    Returns:
        Bounds within low..high. As the function that it is of has it, where there is little to measure.

    Raises:
        ValueError: groups of another length than values, a level outside 0..1, an infinite value.

    Reference: Hesterberg 2015, What teachers should know about the bootstrap (expanded percentiles).

    Example:
        >>> from yarus.metrics.statistics import mean_interval
        >>> bounds = mean_interval([0.9, 1.0, 1.0, 0.9, 1.0, 0.9, 1.0, 1.0], low=0, high=1, seed=0)
        >>> [round(bound, 2) for bound in bounds]  # none has failed, which of eight says little
        [0.66, 1.0]
    """
    measured, labels = measured_values(values, groups)
    if np.isfinite(low) and np.isfinite(high):
        scaled = np.clip((measured - low) / (high - low), 0, 1)
        levels = len(np.unique(scaled))
        if 2 * levels <= len(scaled) or np.isin(scaled, (0, 1)).all():
            found = share_interval(scaled, groups=labels, confidence=confidence)
            return Interval(*(low + (high - low) * bound for bound in found))
    if (n := len(measured)) > 2 and (labels is None or len(set(group_codes(labels, n).tolist())) == n):
        # Resamples vary by (n - 1) / n of what samples do, and the percentiles of few know of no Student's t.
        reach = student_quantile(confidence, n - 1) * (n / (n - 1)) ** 0.5
        labels, confidence = None, 2 * NORMAL.cdf(reach) - 1
    found = bootstrap_interval(measured, seed=seed, groups=labels, confidence=confidence)
    return Interval(*(float(np.clip(bound, low, high)) for bound in found))

"""The interval of a mean, by the method that suits its values."""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from yarus.metrics.statistics.bootstrap import bootstrap_interval
from yarus.metrics.statistics.groups import group_codes, measured_values
from yarus.metrics.statistics.intervals import STANDARD_NORMAL, Interval, share_interval, student_quantile


def mean_interval(
    values: ArrayLike,
    *,
    seed: int,
    low: float = -np.inf,
    high: float = np.inf,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> Interval:
    """Return the interval of a mean of a metric with known range.

    Shares, and scores on few levels (at most half as many as there are cases), get the interval of `share_interval`,
    which allows for a rare failure before one is seen. Other means get that of `bootstrap_interval`, with its
    percentiles moved outward by the ratio of Student's t to the normal quantile.

    Args:
        values: (n,) one value per case; NaN (not measured) is left out.
        seed: of the bootstrap.
        low, high: the metric's range; infinite if unbounded.
        groups: n labels of users, dialogs or pages; None marks a case without a group.
        confidence: the interval's level, 0..1.

    Returns:
        Bounds within low..high. With few measured cases, as in the function that is used.

    Raises:
        ValueError: groups of another length than values, a level outside 0..1, an infinite value.

    Reference: Hesterberg 2015, What teachers should know about the bootstrap (expanded percentiles).

    Example:
        >>> from yarus.metrics.statistics import mean_interval
        >>> bounds = mean_interval([0.9, 1.0, 1.0, 0.9, 1.0, 0.9, 1.0, 1.0], low=0, high=1, seed=0)
        >>> [round(bound, 2) for bound in bounds]  # no failure in eight cases says little
        [0.66, 1.0]
    """
    measured, labels = measured_values(values, groups)
    if np.isfinite(low) and np.isfinite(high):
        scaled = np.clip((measured - low) / (high - low), 0, 1)
        levels = len(np.unique(scaled))
        if 2 * levels <= len(scaled) or np.isin(scaled, (0, 1)).all():
            interval = share_interval(scaled, groups=labels, confidence=confidence)
            return Interval(*(low + (high - low) * bound for bound in interval))
    if (n := len(measured)) > 2 and (labels is None or len(set(group_codes(labels, n).tolist())) == n):
        # Resamples vary by (n - 1) / n of what samples do, and the percentiles of few do not allow for Student's t.
        z = student_quantile(confidence, n - 1) * (n / (n - 1)) ** 0.5
        labels, confidence = None, 2 * STANDARD_NORMAL.cdf(z) - 1
    interval = bootstrap_interval(measured, seed=seed, groups=labels, confidence=confidence)
    return Interval(*(float(np.clip(bound, low, high)) for bound in interval))

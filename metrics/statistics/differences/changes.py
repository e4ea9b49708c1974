"""The change of a statistic on common cases, with the variance estimated from these cases."""

from typing import NamedTuple

import numpy as np

from yarus.metrics.statistics.differences.compared_statistics import (
    PreparedStatistic,
    SampleStatistic,
    prepare_statistic,
)
from yarus.metrics.statistics.groups import Floats, Ints

DERIVATIVE_STEP = 1e-5
"""Relative step of a total, for the slope of a statistic."""


class StatisticChange(NamedTuple):
    """The change of a statistic between two evaluations."""

    difference: float
    """After minus before, over the cases that were measured both times."""
    variance: float
    """Variance of the difference, if cases (or groups) change independently: the sum of squared contributions."""
    step: float
    """The most that one case can change, given the values seen; above 0 if any two cases differ."""
    n: int
    """Cases that were measured both times."""


def estimate_change(number: SampleStatistic, codes: Ints) -> StatisticChange | None:
    """Return the change of a statistic of totals over cases: a mean, F1, kappa.

    Args:
        number: of both evaluations, over the same n cases.
        codes: (n,) the number of each case's group, from 0.

    Returns:
        None for a quantile, and if a side has no value or no slope.

    Reference: Hampel 1974, The influence curve and its role in robust estimation; the variance is that of the
    infinitesimal jackknife, Efron 1982.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.changes import estimate_change
        >>> from yarus.metrics.statistics.differences.compared_statistics import SampleStatistic
        >>> before, after = np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 1.0, 1.0, np.nan])
        >>> result = estimate_change(SampleStatistic(before, after), np.arange(4))
        >>> round(result.difference, 3), round(result.variance, 3), round(result.step, 3), result.n
        (0.333, 0.074, 0.333, 3)
    """
    if number.quantile is not None:
        return None
    pair = prepare_statistic(number, np.arange(len(codes)))
    if not pair.units:
        return None
    totals = np.array([part.sum(axis=0) for part in pair.parts])
    (a, b), slopes = _values_and_slopes(pair, totals)
    rows = np.flatnonzero(pair.kept)
    before, after = (part.take(rows, axis=0) @ slope for part, slope in zip(pair.parts, slopes, strict=True))
    difference = float(b - a)
    variance = float((np.bincount(codes[rows], weights=after - before) ** 2).sum())
    if not np.isfinite([difference, variance]).all():
        return None
    return StatisticChange(difference, variance, float(np.ptp(np.concatenate([before, after]))), pair.units)


def _values_and_slopes(pair: PreparedStatistic, totals: Floats) -> tuple[Floats, Floats]:
    """Return (2,) the statistic of both sides' totals (2, p), and (2, p) its derivatives by each total."""
    p = totals.shape[1]
    steps = DERIVATIVE_STEP * np.maximum(np.abs(totals), 1)
    offsets = np.concatenate([np.zeros((1, p)), np.eye(p), -np.eye(p)])
    values = pair.statistic(totals[:, None] + offsets * steps[:, None])
    return values[:, 0], (values[:, 1 : p + 1] - values[:, p + 1 :]) / (2 * steps)

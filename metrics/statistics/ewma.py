"""The control chart of a history: is tonight's value still in line with the values before it?"""

from math import pi
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from yarus.metrics.statistics.intervals import STANDARD_NORMAL

Floats = NDArray[np.float64]
SMOOTHING = 0.2
"""Weight of the newest night."""
BAND_SIGMAS = 3.0
"""Half the width of the band in standard deviations: 3 leaves 0.27 % of the nights without a change outside."""
WARM_UP = 8
"""Nights before the first night that has a band."""

MAX_HISTORY = 365
"""Nights that a band is computed from at most: a longer history describes an earlier state of the system."""


class ControlChart(NamedTuple):
    """A history and the band of each night; NaN if undefined."""

    smoothed: Floats
    """(n,) the exponentially weighted mean up to and including each night."""
    low: Floats
    """(n,) the band for `smoothed`, from the earlier nights alone."""
    high: Floats
    side: NDArray[np.int64]
    """(n,) -1 below the band, 1 above it, 0 within it or without a band."""


def ewma_chart(values: ArrayLike, *, step: ArrayLike = 0.0, shared: ArrayLike = 0.0) -> ControlChart:
    """Return the EWMA control chart of a history of nights with mostly other questions than the night before.

    The monitored value is the exponentially weighted mean, z = SMOOTHING * value + (1 - SMOOTHING) * z before, starting
    at the first value: it finds a small lasting shift within days, and a large one at once. The band of a night is
    centered at the median of the nights before, of the newest MAX_HISTORY at most. Its width follows from their
    between-night deviation (robust: a single bad night does not widen it) and the variation of z. The newest
    1 / SMOOTHING - 1 nights, which make up most of z, are left out as soon as the warm-up is over: otherwise a shift
    would widen its own band. The deviation is estimated from few nights, so the normal quantile of BAND_SIGMAS becomes
    Student's.

    Args:
        values: (n,) one per night, oldest first; NaN if a night has none: it is skipped.
        step: (n,) or one for all: the most that one case can change; no band is narrower.
        shared: (n,) or one for all: the share of the night's cases that it has in common with the night before, 0..1.
            Shared cases correlate the nights, and z varies more.

    Returns:
        The chart, of n nights.

    Raises:
        ValueError: an infinite value.

    Reference: Roberts 1959, Control chart tests based on geometric moving averages; Jones, Champ and Rigdon 2001, The
    performance of exponentially weighted moving average charts with estimated parameters.

    Example:
        >>> from yarus.metrics.statistics.ewma import ewma_chart
        >>> nights = [0.80, 0.82, 0.81, 0.79, 0.80, 0.81, 0.80, 0.82, 0.81, 0.60]
        >>> ewma_chart(nights).side
        array([ 0,  0,  0,  0,  0,  0,  0,  0,  0, -1])
    """
    series = np.asarray(values, dtype=np.float64)
    if series.ndim != 1 or np.isinf(series).any():
        raise ValueError("values must be one finite number a night, or NaN")
    measured = np.flatnonzero(~np.isnan(series))
    nights = series[measured]
    steps, share = (np.broadcast_to(np.asarray(setting, dtype=np.float64), series.shape) for setting in (step, shared))
    smoothed, low, high = (np.full(len(series), np.nan) for _ in range(3))
    side = np.zeros(len(series), dtype=np.int64)
    mean = nights[0] if len(nights) else np.nan
    for age, (index, value) in enumerate(zip(measured, nights, strict=True)):
        mean = SMOOTHING * value + (1 - SMOOTHING) * mean
        smoothed[index] = mean
        if age < WARM_UP:
            continue
        end = max(WARM_UP, age - round(1 / SMOOTHING) + 1)
        before = nights[max(0, end - MAX_HISTORY) : end]
        correlation = (1 - SMOOTHING) * share[index]
        wider = ((1 + correlation) / (1 - correlation)) ** 0.5  # the EWMA of a process with that autocorrelation
        middle = float(np.median(before))
        width = max(float(steps[index]), wider * _half_width(before, end, age + 1))
        low[index], high[index] = middle - width, middle + width
        beyond = abs(mean - middle) > width + 1e-9 * abs(middle)  # equal nights differ by rounding only
        side[index] = int(np.sign(mean - middle)) if beyond else 0
    return ControlChart(smoothed, low, high, side)


def biweight_deviation(values: ArrayLike) -> float:
    """Return the square root of the biweight midvariance, a standard deviation that is robust against outliers.

    If more than half of the values are equal, it is the ordinary one.

    Args:
        values: (n,) finite numbers, at least 2.

    Returns:
        At least 0; for normal values about 15 % less efficient than the ordinary one.

    Raises:
        ValueError: fewer than 2 values.

    Reference: Mosteller and Tukey 1977, Data analysis and regression; equal to astropy's biweight_scale.

    Example:
        >>> from yarus.metrics.statistics.ewma import biweight_deviation
        >>> round(biweight_deviation([1, 2, 3, 4, 100]), 2)  # the last hardly counts
        1.42
    """
    series = np.asarray(values, dtype=np.float64)
    if series.size < 2:
        raise ValueError(f"a deviation needs at least 2 values, got {series.size}")
    deviations = series - np.median(series)
    typical = float(np.median(np.abs(deviations)))
    if typical <= 1e-12 * np.abs(series).max():
        return float(series.std(ddof=1))
    squares = np.minimum((deviations / (9 * typical)) ** 2, 1)  # values beyond get weight 0
    numerator = (deviations**2 * (1 - squares) ** 4).sum()
    denominator = ((1 - squares) * (1 - 5 * squares)).sum()
    return float(np.sqrt(series.size * numerator) / abs(denominator))


def _half_width(before: Floats, end: int, night: int) -> float:
    """Return half the width of a night's band: the spread of the difference of z and the median of the nights before.

    Args:
        before: (n,) the nights that the band is computed from.
        end: number of the newest of them, from 1.
        night: number of the night, from 1; the nights between are in z alone.
    """
    from scipy.special import stdtrit  # here, because it costs 0.1 s to import

    n = len(before)
    oldest = (1 - SMOOTHING) ** (2 * (night - 1))
    # The variance of z, that of the median, and twice their covariance, as both contain the nights before.
    share = oldest + SMOOTHING / (2 - SMOOTHING) * (1 - oldest) + (pi / 2 - 2 * (1 - SMOOTHING) ** (night - end)) / n
    quantile = float(stdtrit(n - 1, STANDARD_NORMAL.cdf(BAND_SIGMAS)))
    return quantile * biweight_deviation(before) * float(np.sqrt(share))

"""The control chart of a history: is tonight's figure still one of those that came before it?"""

from math import pi
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from yarus.metrics.statistics.intervals import NORMAL

Floats = NDArray[np.float64]
LAMBDA = 0.2
"""Weight of the newest night."""
SIGMAS = 3.0
"""Half the band's width in standard deviations: 3 leaves 0.27 % of calm nights outside."""
WARM_UP = 8
"""Nights that must have come before a night that has a band."""

HISTORY = 365
"""Nights that a band is made of, at most: a longer history tells more of what the system was than of what it is."""


class Chart(NamedTuple):
    """A history and the band that each night is held against; NaN where there is none."""

    smoothed: Floats
    """(n,) the exponentially weighted mean up to and with each night."""
    low: Floats
    """(n,) the band for `smoothed`, from the nights before alone."""
    high: Floats
    side: NDArray[np.int64]
    """(n,) -1 below the band, 1 above it, 0 within it or without one."""


def chart(values: ArrayLike, *, step: ArrayLike = 0.0, shared: ArrayLike = 0.0) -> Chart:
    """The EWMA control chart of a history of nights that ask mostly other questions than the night before.

    What is watched is the exponentially weighted mean, z = LAMBDA * value + (1 - LAMBDA) * z before, begun at the first
    value: it finds a small shift that lasts within days, and a large one at once. A night's band lies around the median
    of the nights before, of the newest HISTORY at most, as wide as their between-night deviation (robust: a single bad
    night does not widen it) lets z wander. The newest 1 / LAMBDA - 1 of them, of which z is mostly made, are left out
    as soon as there are more than it takes to warm up: otherwise a shift would hide itself. The deviation is estimated
    from few nights, so the normal quantile of SIGMAS becomes Student's.

    Args:
        values: (n,) one a night, oldest first; NaN where a night has none: it is passed over.
        step: (n,) or one for all: what one case can change; no band is narrower.
        shared: (n,) or one for all: the share of the night's cases that it has in common with the night before, 0..1.
            So far nights are correlated, and z wanders further.

    Returns:
        The chart, of n nights.

    Raises:
        ValueError: an infinite value.

    Reference: Roberts 1959, Control chart tests based on geometric moving averages; Jones, Champ and Rigdon 2001, The
    performance of exponentially weighted moving average charts with estimated parameters.

    Example:
        >>> from yarus.metrics.statistics.ewma import chart
        >>> nights = [0.80, 0.82, 0.81, 0.79, 0.80, 0.81, 0.80, 0.82, 0.81, 0.60]
        >>> chart(nights).side
        array([ 0,  0,  0,  0,  0,  0,  0,  0,  0, -1])
    """
    given = np.asarray(values, dtype=np.float64)
    if given.ndim != 1 or np.isinf(given).any():
        raise ValueError("values must be one finite number a night, or NaN")
    there = np.flatnonzero(~np.isnan(given))
    nights = given[there]
    steps, share = (np.broadcast_to(np.asarray(one, dtype=np.float64), given.shape) for one in (step, shared))
    smoothed, low, high = (np.full(len(given), np.nan) for _ in range(3))
    side = np.zeros(len(given), dtype=np.int64)
    mean = nights[0] if len(nights) else np.nan
    for number, (place, value) in enumerate(zip(there, nights, strict=True)):
        mean = LAMBDA * value + (1 - LAMBDA) * mean
        smoothed[place] = mean
        if number < WARM_UP:
            continue
        end = max(WARM_UP, number - round(1 / LAMBDA) + 1)
        before = nights[max(0, end - HISTORY) : end]
        kept = (1 - LAMBDA) * share[place]
        wider = ((1 + kept) / (1 - kept)) ** 0.5  # the EWMA of a process with that autocorrelation
        middle = float(np.median(before))
        width = max(float(steps[place]), wider * _width(before, end, number + 1))
        low[place], high[place] = middle - width, middle + width
        beyond = abs(mean - middle) > width + 1e-9 * abs(middle)  # equal nights differ by rounding only
        side[place] = int(np.sign(mean - middle)) if beyond else 0
    return Chart(smoothed, low, high, side)


def deviation(values: ArrayLike) -> float:
    """Standard deviation that a few outliers do not move: the square root of the biweight midvariance.

    Where more than half of the values are equal it is the ordinary one.

    Args:
        values: (n,) finite numbers, at least 2.

    Returns:
        At least 0; for normal values about 15 % less efficient than the ordinary one.

    Raises:
        ValueError: fewer than 2 values.

    Reference: Mosteller and Tukey 1977, Data analysis and regression; equal to astropy's biweight_scale.

    Example:
        >>> from yarus.metrics.statistics.ewma import deviation
        >>> round(deviation([1, 2, 3, 4, 100]), 2)  # the last hardly counts
        1.42
    """
    given = np.asarray(values, dtype=np.float64)
    if given.size < 2:
        raise ValueError(f"a deviation needs at least 2 values, got {given.size}")
    apart = given - np.median(given)
    typical = float(np.median(np.abs(apart)))
    if typical <= 1e-12 * np.abs(given).max():
        return float(given.std(ddof=1))
    squares = np.minimum((apart / (9 * typical)) ** 2, 1)  # beyond, a value counts for nothing
    above = (apart**2 * (1 - squares) ** 4).sum()
    below = ((1 - squares) * (1 - 5 * squares)).sum()
    return float(np.sqrt(given.size * above) / abs(below))


def _width(before: Floats, end: int, night: int) -> float:
    """Half of a night's band: how far z and the median of the nights before lie apart where nothing happens.

    Args:
        before: (n,) the nights that the band is made of.
        end: number of the newest of them, from 1.
        night: number of the night, from 1; the nights between are in z alone.
    """
    from scipy.special import stdtrit  # here, because it costs 0.1 s to import

    n = len(before)
    oldest = (1 - LAMBDA) ** (2 * (night - 1))
    # The variance of z, that of the median, and twice what they share because both are made of the nights before.
    share = oldest + LAMBDA / (2 - LAMBDA) * (1 - oldest) + (pi / 2 - 2 * (1 - LAMBDA) ** (night - end)) / n
    quantile = float(stdtrit(n - 1, NORMAL.cdf(SIGMAS)))
    return quantile * deviation(before) * float(np.sqrt(share))

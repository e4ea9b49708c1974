"""The control chart of nights with common cases: has the system changed, whatever the questions were?"""

from collections.abc import Sequence
from functools import lru_cache
from math import pi
from typing import NamedTuple

import numpy as np

from yarus.metrics.statistics.ewma import BAND_SIGMAS, MAX_HISTORY, SMOOTHING, WARM_UP, ControlChart, biweight_deviation
from yarus.metrics.statistics.groups import Floats
from yarus.metrics.statistics.intervals import STANDARD_NORMAL, student_quantile

COMPARISON_LAG = WARM_UP
"""Lag of the second comparison: by then lasting changes affect more cases, and noise as many as after one night."""
MIN_WINDOW = 12
"""Least number of nights for the middle of a band, as soon as there are so many."""
SKEW_STEPS = (BAND_SIGMAS**2 - 1) / 12
"""Widening of a band in steps of one case: a few changes of a whole case have longer tails than normal ones."""
_GAP = round(1 / SMOOTHING) - 1
_AGES = MAX_HISTORY + 80


class NightChange(NamedTuple):
    """The change since the night before, on common cases."""

    difference: float
    variance: float
    """Variance of the difference, from the changes of single cases (or groups)."""
    far_variance: float
    """The same for the night `lag` nights before."""
    lag: int
    """At least 1, at most COMPARISON_LAG."""
    step: float
    """The most that one case can change."""


def paired_chart(changes: Sequence[NightChange]) -> ControlChart:
    """Return the EWMA control chart of nights that are compared with the night before on common cases.

    A log that grows or rolls has nearly the same questions every night, so that its means are not independent, and
    change even if the system does not. The chart therefore monitors the level: the sum of the changes on common cases.
    The changes of single cases give the noise of the level: changes that are taken back (noise) leave as many cases
    changed after COMPARISON_LAG nights as after one; lasting changes (a chunk was rewritten) leave more, and let the
    level drift. As in `yarus.metrics.statistics.ewma.ewma_chart`, the exponentially weighted mean is compared with the
    median of nights before, without the newest 1 / SMOOTHING - 1. The number of nights is the most precise one: many
    without drift, few with it. If whole nights move together by more than their cases explain, the noise is that of the
    nights.

    Args:
        changes: one per night except the first, oldest first.

    Returns:
        The chart, of len(changes) + 1 nights, in each of which the level is 0: to plot it, add the night's value. No
        band is narrower than one case's step.

    Reference: Roberts 1959; Muth 1960, Optimal properties of exponentially weighted forecasts (a level with a drift,
    seen through noise); Cornish and Fisher 1938.

    Example:
        >>> from yarus.metrics.statistics.paired_chart import NightChange, paired_chart
        >>> calm, worse = NightChange(0.0, 0.0, 0.0, 8, 0.004), NightChange(-0.05, 0.0002, 0.0002, 8, 0.004)
        >>> chart = paired_chart([calm] * 20 + [worse] + [calm])
        >>> chart.side[-3:]
        array([ 0, -1, -1])
    """
    levels = np.concatenate([[0.0], np.cumsum([change.difference for change in changes])])
    table = np.array(changes, dtype=np.float64).reshape(-1, len(NightChange._fields))
    smoothed, low, high = (np.full(len(levels), np.nan) for _ in range(3))
    side = np.zeros(len(levels), dtype=np.int64)
    mean = 0.0
    for index, level in enumerate(levels):
        mean = SMOOTHING * level + (1 - SMOOTHING) * mean
        smoothed[index] = mean - level
        if index < WARM_UP:
            continue
        end = max(WARM_UP, index - _GAP)
        before = table[max(0, end - 1 - MAX_HISTORY) : end - 1]
        nights, width = _choose_window(before, table[index - 1, -1], min(end, MAX_HISTORY))
        middle = float(np.median(levels[end - nights : end]))
        low[index], high[index] = middle - width - level, middle + width - level
        beyond = abs(mean - middle) > width + 1e-9 * (1 + abs(middle))  # equal nights differ by rounding only
        side[index] = int(np.sign(mean - middle)) if beyond else 0
    return ControlChart(smoothed, low, high, side)


def _choose_window(before: Floats, step: float, most: int) -> tuple[int, float]:
    """Return how many nights the middle of the band is computed from, and half of the band's width.

    Args:
        before: (n, fields of NightChange) the changes that the band is computed from.
        step: of the night.
        most: number of nights that there are.
    """
    difference, variance, far_variance, lag, _ = before.T
    lags = (lag - 1).sum()
    lasting = max(0.0, (far_variance - variance).sum() / lags) if lags else float(variance.mean())
    lasting += step**2 / (len(before) + 1)  # as if one more case had changed for good
    noise = (max(float(variance.mean()), biweight_deviation(difference) ** 2) - lasting) / 2
    nights = np.arange(min(MIN_WINDOW, most), most + 1)
    spread = max(0.0, noise) * (SMOOTHING / (2 - SMOOTHING) + pi / 2 / nights) + lasting * _drift_variances()[nights]
    best = int(spread.argmin())
    quantile = student_quantile(2 * STANDARD_NORMAL.cdf(BAND_SIGMAS) - 1, len(before))
    return int(nights[best]), max(step, quantile * float(spread[best]) ** 0.5 + SKEW_STEPS * step)


@lru_cache(maxsize=1)
def _drift_variances() -> Floats:
    """Return (MAX_HISTORY + 1,) variance of smoothed level minus mean of n nights, for steps of variance 1."""
    age = np.arange(_AGES)
    smoothed = 1 - (1 - SMOOTHING) ** (age + 1)  # the share of a step of this age that has arrived
    nights = np.maximum(1, np.arange(MAX_HISTORY + 1))[:, None]
    arrived = np.clip((age - _GAP + 1) / nights, 0, 1)
    return np.asarray(((smoothed - arrived) ** 2).sum(axis=1))

"""The control chart of nights that share their cases: is the system still what it was, whatever was asked?"""

from collections.abc import Sequence
from functools import lru_cache
from math import pi
from typing import NamedTuple

import numpy as np

from yarus.metrics.statistics.ewma import HISTORY, LAMBDA, SIGMAS, WARM_UP, Chart, deviation
from yarus.metrics.statistics.groups import Floats
from yarus.metrics.statistics.intervals import NORMAL, student_quantile

LAG = WARM_UP
"""Nights back that a night is also compared with: by then, what lasts has changed more cases, and noise as many."""
SHORTEST = 12
"""Nights that the middle of a band is made of, at least, as soon as there are so many."""
SKEW = (SIGMAS**2 - 1) / 12
"""How much of one case's step a band is wider: few changes of a whole case each have longer tails than normal ones."""
_GAP = round(1 / LAMBDA) - 1
_AGES = HISTORY + 80


class NightChange(NamedTuple):
    """What changed since the night before, on the cases that both have."""

    difference: float
    variance: float
    """Of the difference, from what single cases (or groups) changed."""
    far_variance: float
    """The same since `lag` nights before."""
    lag: int
    """At least 1, at most LAG."""
    step: float
    """What one case can change at most."""


def paired_chart(changes: Sequence[NightChange]) -> Chart:
    """The EWMA control chart of nights that are compared with the night before on common cases.

    A log that grows or rolls asks nearly the same every night, so that its means are not independent, and changes also
    when the system does not. Watched is therefore the level: the sum of the changes on common cases. What cases
    themselves changed tells how far it moves by itself: changes that are taken back (noise) leave as many cases changed
    after LAG nights as after one; changes that last (a chunk was rewritten) leave more, and let the level wander. As
    in `yarus.metrics.statistics.ewma.chart`, the exponentially weighted mean is compared with the median of nights
    before, the newest 1 / LAMBDA - 1 left out: of so many as tell most of the level, many where nothing wanders, few
    where it does. If whole nights move together by more than their cases tell, the noise is what the nights tell.

    Args:
        changes: one a night but the first, oldest first.

    Returns:
        The chart, of len(changes) + 1 nights, in each of which the level is 0: to draw it, add the night's value. No
        band is narrower than one case's step.

    Reference: Roberts 1959; Muth 1960, Optimal properties of exponentially weighted forecasts (a level that wanders,
    seen through noise); Cornish and Fisher 1938.

    Example:
        >>> from yarus.metrics.statistics.paired_chart import NightChange, paired_chart
        >>> calm, worse = NightChange(0.0, 0.0, 0.0, 8, 0.004), NightChange(-0.05, 0.0002, 0.0002, 8, 0.004)
        >>> chart = paired_chart([calm] * 20 + [worse] + [calm])
        >>> chart.side[-3:]
        array([ 0, -1, -1])
    """
    level = np.concatenate([[0.0], np.cumsum([change.difference for change in changes])])
    table = np.array(changes, dtype=np.float64).reshape(-1, len(NightChange._fields))
    smoothed, low, high = (np.full(len(level), np.nan) for _ in range(3))
    side = np.zeros(len(level), dtype=np.int64)
    mean = 0.0
    for number, now in enumerate(level):
        mean = LAMBDA * now + (1 - LAMBDA) * mean
        smoothed[number] = mean - now
        if number < WARM_UP:
            continue
        end = max(WARM_UP, number - _GAP)
        before = table[max(0, end - 1 - HISTORY) : end - 1]
        nights, width = _window(before, table[number - 1, -1], min(end, HISTORY))
        middle = float(np.median(level[end - nights : end]))
        low[number], high[number] = middle - width - now, middle + width - now
        beyond = abs(mean - middle) > width + 1e-9 * (1 + abs(middle))  # equal nights differ by rounding only
        side[number] = int(np.sign(mean - middle)) if beyond else 0
    return Chart(smoothed, low, high, side)


def _window(before: Floats, step: float, most: int) -> tuple[int, float]:
    """How many nights the middle of the band is made of, and half of the band's width.

    Args:
        before: (n, fields of NightChange) the changes that the band is made of.
        step: of the night.
        most: nights there are.
    """
    difference, variance, far_variance, lag, _ = before.T
    apart = (lag - 1).sum()
    lasting = max(0.0, (far_variance - variance).sum() / apart) if apart else float(variance.mean())
    lasting += step**2 / (len(before) + 1)  # as if one case more had changed for good
    noise = (max(float(variance.mean()), deviation(difference) ** 2) - lasting) / 2
    nights = np.arange(min(SHORTEST, most), most + 1)
    spread = max(0.0, noise) * (LAMBDA / (2 - LAMBDA) + pi / 2 / nights) + lasting * _wandered()[nights]
    best = int(spread.argmin())
    reach = student_quantile(2 * NORMAL.cdf(SIGMAS) - 1, len(before))
    return int(nights[best]), max(step, reach * float(spread[best]) ** 0.5 + SKEW * step)


@lru_cache(maxsize=1)
def _wandered() -> Floats:
    """(HISTORY + 1,) variance between the smoothed level and the mean of n nights, of steps of variance 1 a night."""
    age = np.arange(_AGES)
    smoothed = 1 - (1 - LAMBDA) ** (age + 1)  # how much of a step so long ago has arrived
    nights = np.maximum(1, np.arange(HISTORY + 1))[:, None]
    arrived = np.clip((age - _GAP + 1) / nights, 0, 1)
    return np.asarray(((smoothed - arrived) ** 2).sum(axis=1))

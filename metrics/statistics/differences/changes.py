"""How a number changed on common cases, with the variance that these cases themselves tell."""

from typing import NamedTuple

import numpy as np

from yarus.metrics.statistics.differences.numbers import Number, Pair, prepare
from yarus.metrics.statistics.groups import Floats, Ints

STEP = 1e-5
"""Of a total, for the slope of a statistic."""


class Change(NamedTuple):
    """What happened to a number between two evaluations."""

    difference: float
    """After minus before, over the cases that were measured both times."""
    variance: float
    """Of the difference, if each case (or group) had changed by itself: the sum of the squares of what each adds."""
    step: float
    """What one case can change at most, going by the values seen; above 0 where any two cases differ."""
    n: int
    """Cases that were measured both times."""


def change(number: Number, codes: Ints) -> Change | None:
    """The change of a number that follows from totals over cases: a mean, F1, kappa.

    Args:
        number: of both evaluations, over the same n cases.
        codes: (n,) the number of each case's group, from 0.

    Returns:
        None for a quantile, and where a side has no value or no slope.

    Reference: Hampel 1974, The influence curve and its role in robust estimation; the variance is that of the
    infinitesimal jackknife, Efron 1982.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.statistics.differences.changes import change
        >>> from yarus.metrics.statistics.differences.numbers import Number
        >>> before, after = np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 1.0, 1.0, np.nan])
        >>> found = change(Number(before, after), np.arange(4))
        >>> round(found.difference, 3), round(found.variance, 3), round(found.step, 3), found.n
        (0.333, 0.074, 0.333, 3)
    """
    if number.quantile is not None:
        return None
    pair = prepare(number, np.arange(len(codes)))
    if not pair.units:
        return None
    totals = np.array([part.sum(axis=0) for part in pair.parts])
    (a, b), slopes = _values_and_slopes(pair, totals)
    kept = np.flatnonzero(pair.kept)
    before, after = (part.take(kept, axis=0) @ slope for part, slope in zip(pair.parts, slopes, strict=True))
    difference = float(b - a)
    variance = float((np.bincount(codes[kept], weights=after - before) ** 2).sum())
    if not np.isfinite([difference, variance]).all():
        return None
    return Change(difference, variance, float(np.ptp(np.concatenate([before, after]))), pair.units)


def _values_and_slopes(pair: Pair, totals: Floats) -> tuple[Floats, Floats]:
    """(2,) the statistic of both sides' totals (2, p), and (2, p) how much it rises by one more of each total."""
    p = totals.shape[1]
    reach = STEP * np.maximum(np.abs(totals), 1)
    aside = np.concatenate([np.zeros((1, p)), np.eye(p), -np.eye(p)])
    found = pair.statistic(totals[:, None] + aside * reach[:, None])
    return found[:, 0], (found[:, 1 : p + 1] - found[:, p + 1 :]) / (2 * reach)

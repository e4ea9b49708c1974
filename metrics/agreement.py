"""Agreement of two series of scores of the same cases: a judge with itself, or with people.

A pair with NaN on either side is left out; what is left are the complete pairs. Without any, every measure is NaN.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]

# In binary 0.4 - 0.3 is 0.10000000000000003 and 1.1 - 0.6 is 0.5000000000000001: a hair above the limit is within it.
TOLERANCE = 1e-9


def complete_pairs(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    """Both scores of the cases that have two.

    Args:
        first: n scores, NaN where there is none.
        second: n scores of the same cases.

    Returns:
        Two float64 arrays of the same length, without NaN.

    Raises:
        ValueError: different lengths, an infinite score.

    Example:
        >>> from math import nan
        >>> from yarus.metrics.agreement import complete_pairs
        >>> complete_pairs([0.5, nan, 1.0], [1.0, 0.5, 0.0])
        (array([0.5, 1. ]), array([1., 0.]))
    """
    one, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.ndim != 1 or one.shape != two.shape:
        raise ValueError(f"{one.shape} first but {two.shape} second scores; give two flat series of the same length")
    for name, scores in (("first", one), ("second", two)):
        if (infinite := np.isinf(scores)).any():
            raise ValueError(f"{name} score {np.argmax(infinite)} is infinite")
    complete = ~(np.isnan(one) | np.isnan(two))
    return one[complete], two[complete]


def differences(first: ArrayLike, second: ArrayLike) -> Floats:
    """|first - second| of every case, NaN where one is missing: the values that intervals are made from.

    Raises:
        ValueError: different lengths, an infinite score.

    Example:
        >>> from math import nan
        >>> from yarus.metrics.agreement import differences
        >>> differences([0.5, nan, 1.0], [1.0, 0.5, 0.0])
        array([0.5, nan, 1. ])
    """
    complete_pairs(first, second)
    return np.abs(np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64))


def consistency(first: ArrayLike, second: ArrayLike, *, delta: float = 0.5) -> float:
    """Share of complete pairs that differ by no more than delta (and 1e-9, for what is exactly delta in decimals).

    Args:
        first: n scores, NaN where there is none.
        second: n scores of the same cases.
        delta: largest difference that counts as agreement, 0 or more. Uniformly random scores from 0 to 1 agree to 0.75
            at 0.5: read it beside `chance_consistency`.

    Returns:
        0 to 1, higher is better; NaN without complete pairs.

    Raises:
        ValueError: different lengths, an infinite score, delta below 0.

    Stored as: `consistency_score`, `consistency_score@0.125` (metrics/table/judge.py).

    Example:
        >>> from yarus.metrics.agreement import consistency
        >>> consistency([1.0, 0.0, 0.5, 0.9], [1.0, 1.0, 0.0, 0.6])
        0.75
        >>> consistency([1.0, 0.0, 0.5, 0.9], [1.0, 1.0, 0.0, 0.6], delta=0.125)
        0.25
    """
    _check_delta(delta)
    one, two = complete_pairs(first, second)
    return float(np.mean(within(np.abs(one - two), delta=delta))) if len(one) else np.nan


def within(apart: ArrayLike, *, delta: float) -> Floats:
    """Which differences count as agreement.

    Args:
        apart: differences without sign, NaN where there is none.
        delta: as in `consistency`.

    Returns:
        float64 of the same shape: 1 up to delta, 0 beyond, NaN where the difference is NaN.

    Example:
        >>> from yarus.metrics.agreement import within
        >>> within([0.0, 0.5, 0.75], delta=0.5)
        array([1., 1., 0.])
    """
    distances = np.asarray(apart, dtype=np.float64)
    return np.where(np.isnan(distances), np.nan, distances <= delta + TOLERANCE)


def chance_consistency(first: ArrayLike, second: ArrayLike, *, delta: float = 0.5) -> float:
    """The consistency expected if the two had nothing to do with each other: the share over all n x n combinations.

    Args:
        first: n scores, NaN where there is none.
        second: n scores of the same cases.
        delta: as in `consistency`.

    Returns:
        0 to 1; NaN without complete pairs.

    Raises:
        ValueError: different lengths, an infinite score, delta below 0.

    Stored as: `consistency_score_expected` (metrics/table/judge.py).

    Example:
        >>> from yarus.metrics.agreement import chance_consistency
        >>> chance_consistency([0.0, 0.5, 1.0], [0.0, 0.5, 1.0])  # of nine pairs (0, 1) and (1, 0) differ more
        0.7777777777777778
    """
    _check_delta(delta)
    one, two = complete_pairs(first, second)
    ordered = np.sort(two)
    reach = delta + TOLERANCE
    within = np.searchsorted(ordered, one + reach, side="right") - np.searchsorted(ordered, one - reach, side="left")
    return float(within.sum() / len(one) ** 2) if len(one) else np.nan


def mean_abs_difference(first: ArrayLike, second: ArrayLike) -> float:
    """Mean of |first - second| over complete pairs.

    Args:
        first: n scores, NaN where there is none.
        second: n scores of the same cases.

    Returns:
        0 or more, on the scores' scale, lower is better; NaN without complete pairs.

    Raises:
        ValueError: different lengths, an infinite score.

    Stored as: `mean_abs_difference` (metrics/table/judge.py).

    Example:
        >>> from yarus.metrics.agreement import mean_abs_difference
        >>> mean_abs_difference([1.0, 0.0, 0.5], [1.0, 0.5, 0.25])
        0.25
    """
    one, two = complete_pairs(first, second)
    return float(np.mean(np.abs(one - two))) if len(one) else np.nan


def weighted_kappa(first: ArrayLike, second: ArrayLike) -> float:
    """Agreement beyond chance, squared differences weighing: 1 - mean (a_i - b_i)^2 / mean over i, j of (a_i - b_j)^2.

    No bins: the scores are taken as they are. On a scale of equal steps it is Cohen's kappa with quadratic weights.

    Args:
        first: n scores, NaN where there is none.
        second: n scores of the same cases.

    Returns:
        -1 to 1, higher is better, 0 is chance; NaN without complete pairs, or where all scores of both are one value.

    Raises:
        ValueError: different lengths, an infinite score.

    Reference: Cohen 1968, Weighted kappa; equal to scikit-learn's cohen_kappa_score(weights="quadratic").

    Stored as: `weighted_kappa`, `user_votes_weighted_kappa` (metrics/table/judge.py).

    Example:
        >>> from yarus.metrics.agreement import weighted_kappa
        >>> weighted_kappa([0, 0.5, 1, 1], [0, 0.5, 1, 0.5])
        0.8
        >>> weighted_kappa([0, 0, 1, 1], [0, 1, 0, 1])  # as a coin agrees
        0.0
    """
    one, two = complete_pairs(first, second)
    if len(one) == 0 or min(one.min(), two.min()) == max(one.max(), two.max()):
        return np.nan
    # The mean over all n x n combinations, in closed form: both variances and the squared distance of the means.
    by_chance = one.var() + two.var() + (one.mean() - two.mean()) ** 2
    return float(_beyond_chance(np.mean((one - two) ** 2), by_chance))


def kappa_parts(first: ArrayLike, second: ArrayLike) -> Floats:
    """What each pair adds to the totals that weighted kappa follows from: a bootstrap of it resamples these rows.

    Args:
        first: n scores, NaN where there is none.
        second: n scores of the same cases.

    Returns:
        float64 (n, 6): 1, a, b, a^2, b^2, a b; a row of NaN where a score is missing.

    Raises:
        ValueError: different lengths, an infinite score.

    Example:
        >>> from yarus.metrics.agreement import kappa_parts
        >>> kappa_parts([0.5, 1.0], [1.0, 1.0])
        array([[1.  , 0.5 , 1.  , 0.25, 1.  , 0.5 ],
               [1.  , 1.  , 1.  , 1.  , 1.  , 1.  ]])
    """
    complete_pairs(first, second)
    one, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    table = np.column_stack([np.ones(len(one)), one, two, one * one, two * two, one * two])
    return np.where(np.isnan(one + two)[:, None], np.nan, table)


def kappa_of(totals: Floats) -> Floats:
    """`weighted_kappa` from totals (..., 6) of `kappa_parts`: of a set, or of its resamples, all at once.

    Returns:
        float64 (...), equal to `weighted_kappa` up to the rounding of sums.

    Example:
        >>> from yarus.metrics.agreement import kappa_of, kappa_parts
        >>> parts = kappa_parts([0, 0.5, 1, 1], [0, 0.5, 1, 0.5])
        >>> float(kappa_of(parts.sum(axis=0)))
        0.8
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        x, y, xx, yy, xy = (totals[..., place] / totals[..., 0] for place in range(1, 6))
        by_chance = xx - x * x + yy - y * y + (x - y) ** 2  # both variances and the squared distance of the means
        kappa = _beyond_chance(xx + yy - 2 * xy, by_chance)
    return np.asarray(np.where(by_chance > 1e-12, kappa, np.nan))


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Rank correlation over complete pairs; ties get their mean rank.

    Args:
        first: n scores, NaN where there is none.
        second: n scores of the same cases.

    Returns:
        -1 to 1, higher is better; NaN below 2 complete pairs, or where one side is one value throughout.

    Raises:
        ValueError: different lengths, an infinite score.

    Reference: Spearman 1904, The proof and measurement of association between two things; equal to scipy's spearmanr.

    Stored as: `user_votes_spearman` (metrics/table/judge.py).

    Example:
        >>> from yarus.metrics.agreement import spearman
        >>> spearman([0.1, 0.4, 0.9], [0.2, 0.3, 1.0])  # other scores, the same order
        1.0
    """
    one, two = complete_pairs(first, second)
    if len(one) == 0 or one.min() == one.max() or two.min() == two.max():
        return np.nan
    from scipy.stats import spearmanr  # here, because it costs 0.8 s and 60 MB to import

    return float(spearmanr(one, two).statistic)


def _beyond_chance(apart: Floats | np.floating, by_chance: Floats | np.floating) -> Floats:
    """1 - the mean squared difference over the one expected by chance; rounding may lead below -1."""
    return np.maximum(1 - apart / by_chance, -1.0)


def _check_delta(delta: float) -> None:
    if not delta >= 0:
        raise ValueError(f"delta = {delta} is below 0")

"""Agreement of two series of scores of the same cases: of a judge with itself, or with people.

A pair with NaN on either side is left out; the others are the complete pairs. Without any, every measure is NaN.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]

# In binary 0.4 - 0.3 is 0.10000000000000003 and 1.1 - 0.6 is 0.5000000000000001: rounding beyond the limit is allowed.
TOLERANCE = 1e-9


def complete_pairs(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    """Return both scores of the cases that have two.

    Args:
        first: n scores, NaN if missing.
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
    left, right = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if left.ndim != 1 or left.shape != right.shape:
        raise ValueError(f"{left.shape} first but {right.shape} second scores; give two flat series of the same length")
    for name, scores in (("first", left), ("second", right)):
        if (infinite := np.isinf(scores)).any():
            raise ValueError(f"{name} score {np.argmax(infinite)} is infinite")
    complete = ~(np.isnan(left) | np.isnan(right))
    return left[complete], right[complete]


def score_differences(first: ArrayLike, second: ArrayLike) -> Floats:
    """Return |first - second| of every case, NaN if one is missing: the values from which intervals are computed.

    Raises:
        ValueError: different lengths, an infinite score.

    Example:
        >>> from math import nan
        >>> from yarus.metrics.agreement import score_differences
        >>> score_differences([0.5, nan, 1.0], [1.0, 0.5, 0.0])
        array([0.5, nan, 1. ])
    """
    complete_pairs(first, second)
    return np.abs(np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64))


def consistency(first: ArrayLike, second: ArrayLike, *, delta: float = 0.5) -> float:
    """Return the share of complete pairs that differ by at most delta (plus 1e-9 for the rounding of decimals).

    Args:
        first: n scores, NaN if missing.
        second: n scores of the same cases.
        delta: largest difference that counts as agreement, 0 or more. Uniformly random scores from 0 to 1 agree to 0.75
            at 0.5: compare the value with `chance_consistency`.

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
    _require_nonnegative(delta)
    left, right = complete_pairs(first, second)
    return float(np.mean(is_within_delta(np.abs(left - right), delta=delta))) if len(left) else np.nan


def is_within_delta(absolute_differences: ArrayLike, *, delta: float) -> Floats:
    """Return which differences count as agreement.

    Args:
        absolute_differences: without sign, NaN if missing.
        delta: as in `consistency`.

    Returns:
        float64 of the same shape: 1 up to delta, 0 beyond, NaN if the difference is NaN.

    Example:
        >>> from yarus.metrics.agreement import is_within_delta
        >>> is_within_delta([0.0, 0.5, 0.75], delta=0.5)
        array([1., 1., 0.])
    """
    distances = np.asarray(absolute_differences, dtype=np.float64)
    return np.where(np.isnan(distances), np.nan, distances <= delta + TOLERANCE)


def chance_consistency(first: ArrayLike, second: ArrayLike, *, delta: float = 0.5) -> float:
    """Return the consistency expected of independent series: the share over all n x n combinations.

    Args:
        first: n scores, NaN if missing.
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
    _require_nonnegative(delta)
    left, right = complete_pairs(first, second)
    ordered = np.sort(right)
    limit = delta + TOLERANCE
    counts = np.searchsorted(ordered, left + limit, side="right") - np.searchsorted(ordered, left - limit, side="left")
    return float(counts.sum() / len(left) ** 2) if len(left) else np.nan


def mean_abs_difference(first: ArrayLike, second: ArrayLike) -> float:
    """Return the mean of |first - second| over complete pairs.

    Args:
        first: n scores, NaN if missing.
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
    left, right = complete_pairs(first, second)
    return float(np.mean(np.abs(left - right))) if len(left) else np.nan


def weighted_kappa(first: ArrayLike, second: ArrayLike) -> float:
    """Return agreement beyond chance: 1 - mean (a_i - b_i)^2 / mean over i, j of (a_i - b_j)^2.

    There are no bins. On a scale of equal steps it is Cohen's kappa with quadratic weights.

    Args:
        first: n scores, NaN if missing.
        second: n scores of the same cases.

    Returns:
        -1 to 1, higher is better, 0 is chance; NaN without complete pairs, or if all scores of both are one value.

    Raises:
        ValueError: different lengths, an infinite score.

    Reference: Cohen 1968, Weighted kappa; equal to scikit-learn's cohen_kappa_score(weights="quadratic").

    Stored as: `weighted_kappa`, `user_votes_weighted_kappa` (metrics/table/judge.py).

    Example:
        >>> from yarus.metrics.agreement import weighted_kappa
        >>> weighted_kappa([0, 0.5, 1, 1], [0, 0.5, 1, 0.5])
        0.8
        >>> weighted_kappa([0, 0, 1, 1], [0, 1, 0, 1])  # as much as a coin
        0.0
    """
    left, right = complete_pairs(first, second)
    if len(left) == 0 or min(left.min(), right.min()) == max(left.max(), right.max()):
        return np.nan
    # The mean over all n x n combinations, in closed form: both variances and the squared distance of the means.
    expected = left.var() + right.var() + (left.mean() - right.mean()) ** 2
    return float(_beyond_chance(np.mean((left - right) ** 2), expected))


def kappa_parts(first: ArrayLike, second: ArrayLike) -> Floats:
    """Return the contribution of each pair to the totals of weighted kappa: a bootstrap of it resamples these rows.

    Args:
        first: n scores, NaN if missing.
        second: n scores of the same cases.

    Returns:
        float64 (n, 6): 1, a, b, a^2, b^2, a b; a row of NaN if a score is missing.

    Raises:
        ValueError: different lengths, an infinite score.

    Example:
        >>> from yarus.metrics.agreement import kappa_parts
        >>> kappa_parts([0.5, 1.0], [1.0, 1.0])
        array([[1.  , 0.5 , 1.  , 0.25, 1.  , 0.5 ],
               [1.  , 1.  , 1.  , 1.  , 1.  , 1.  ]])
    """
    complete_pairs(first, second)
    left, right = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    table = np.column_stack([np.ones(len(left)), left, right, left * left, right * right, left * right])
    return np.where(np.isnan(left + right)[:, None], np.nan, table)


def kappa_from_totals(totals: Floats) -> Floats:
    """Return `weighted_kappa` from totals (..., 6) of `kappa_parts`: of a set, or of its resamples, all at once.

    Returns:
        float64 (...), equal to `weighted_kappa` up to the rounding of sums.

    Example:
        >>> from yarus.metrics.agreement import kappa_from_totals, kappa_parts
        >>> parts = kappa_parts([0, 0.5, 1, 1], [0, 0.5, 1, 0.5])
        >>> float(kappa_from_totals(parts.sum(axis=0)))
        0.8
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        x, y, xx, yy, xy = (totals[..., column] / totals[..., 0] for column in range(1, 6))
        expected = xx - x * x + yy - y * y + (x - y) ** 2  # both variances and the squared distance of the means
        kappa = _beyond_chance(xx + yy - 2 * xy, expected)
    return np.asarray(np.where(expected > 1e-12, kappa, np.nan))


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Return the rank correlation over complete pairs; ties get their mean rank.

    Args:
        first: n scores, NaN if missing.
        second: n scores of the same cases.

    Returns:
        -1 to 1, higher is better; NaN below 2 complete pairs, or if one series is constant.

    Raises:
        ValueError: different lengths, an infinite score.

    Reference: Spearman 1904, The proof and measurement of association between two things; equal to scipy's spearmanr.

    Stored as: `user_votes_spearman` (metrics/table/judge.py).

    Example:
        >>> from yarus.metrics.agreement import spearman
        >>> spearman([0.1, 0.4, 0.9], [0.2, 0.3, 1.0])  # different scores, the same order
        1.0
    """
    left, right = complete_pairs(first, second)
    if len(left) == 0 or left.min() == left.max() or right.min() == right.max():
        return np.nan
    from scipy.stats import spearmanr  # here, because it costs 0.8 s and 60 MB to import

    return float(spearmanr(left, right).statistic)


def _beyond_chance(observed: Floats | np.floating, expected: Floats | np.floating) -> Floats:
    """Return 1 - observed / expected mean squared difference; rounding below -1 is removed."""
    return np.maximum(1 - observed / expected, -1.0)


def _require_nonnegative(delta: float) -> None:
    if not delta >= 0:
        raise ValueError(f"delta = {delta} is below 0")

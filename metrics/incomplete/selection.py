"""Are the questions that have a label like those that have none, and what would a mean be over all of them?"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from yarus.metrics.statistics.groups import Floats, group_codes, group_totals
from yarus.metrics.statistics.intervals import NO_INTERVAL, UNDEFINED, Interval, student_quantile

Bools = NDArray[np.bool_]
FEWEST = 20
"""Questions of either kind below which nothing is said."""
LEAST_CHANCE = 0.05
"""Below this, a chance of having been labelled counts as this: few questions would weigh more than all others."""
RIDGE = 1.0
"""How much every coefficient is drawn towards 0, in squared standard deviations of its feature."""
ROUNDS = 50


class Feature(NamedTuple):
    """How far labelled questions differ from the others in something that is known of all."""

    labelled: Floats
    """(p,) means over the questions that have a label."""
    others: Floats
    """(p,) over those without."""
    p: float
    """Of as large a difference where labels are given without regard to it; NaN where it cannot differ."""


class Reweighted(NamedTuple):
    """A mean over labelled questions as it would be over all; NaN where there are too few."""

    value: float
    interval: Interval


def compare_feature(feature: ArrayLike, labelled: ArrayLike, groups: Sequence[Hashable]) -> Feature:
    """Do labelled questions differ from the others in a feature?

    Args:
        feature: (n,) numbers, or (n, p) indicators of kinds of which a question has one or none; not NaN.
        labelled: (n,) whether a question has a label.
        groups: n users; None marks a question that stands alone. Labels of one user's questions are one chance.

    Returns:
        The means, and the p of a score test whose variance is that between groups: Hotelling's F.

    Raises:
        ValueError: series of different lengths.

    Reference: Liang and Zeger 1986, Longitudinal data analysis using generalized linear models (score test with a
    robust variance).

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.incomplete.selection import compare_feature
        >>> words = np.arange(100)
        >>> compare_feature(words, words < 50, [None] * 100).p < 1e-6
        True
    """
    x = _columns(feature)
    has = np.asarray(labelled, dtype=bool)
    if len(x) != len(has):
        raise ValueError(f"{len(x)} questions, but of {len(has)} it is said whether they have a label")
    codes = group_codes(groups, len(has))
    with_label, without = (
        x[rows].mean(axis=0) if rows.any() else np.full(x.shape[1], UNDEFINED) for rows in (has, ~has)
    )
    return Feature(with_label, without, _score_test(x - x.mean(axis=0), has - has.mean(), codes))


def _score_test(x: Floats, surprise: Floats, codes: NDArray[np.intp]) -> float:
    from scipy.special import fdtrc  # here, because it costs 0.1 s to import

    moved = group_totals(x * surprise[:, None], codes)
    m = len(moved)
    spread = moved - moved.mean(axis=0)
    variance = spread.T @ spread * (m / max(m - 1, 1))
    rank = int(np.linalg.matrix_rank(variance)) if m > 1 else 0
    if not rank or m <= rank + 1:
        return UNDEFINED
    total = moved.sum(axis=0)
    statistic = float(total @ np.linalg.pinv(variance) @ total)
    return float(fdtrc(rank, m - rank, statistic * (m - rank) / (rank * (m - 1))))


def chances(features: ArrayLike, labelled: ArrayLike) -> Floats:
    """The chance of each question to have been labelled, by its features: logistic regression with a small ridge.

    Args:
        features: (n, p), not NaN.
        labelled: (n,) whether a question has a label.

    Returns:
        (n,) between 0.05 and 1.

    Reference: Rosenbaum and Rubin 1983, The central role of the propensity score.

    Example:
        >>> from yarus.metrics.incomplete.selection import chances
        >>> found = chances([[0.0], [0.0], [1.0], [1.0]] * 50, [True, False, True, True] * 50)
        >>> found[[0, 2]].round(2)
        array([0.51, 0.99])
    """
    x, has = _columns(features), np.asarray(labelled, dtype=np.float64)
    scale = x.std(axis=0)
    x = (x - x.mean(axis=0)) / np.where(scale > 0, scale, 1)
    x = np.column_stack([np.ones(len(x)), x])
    penalty = np.diag([0.0, *[RIDGE] * (x.shape[1] - 1)])
    coefficients: Floats = np.zeros(x.shape[1])
    for _ in range(ROUNDS):
        chance = 1 / (1 + np.exp(-np.clip(x @ coefficients, -30, 30)))
        gradient = x.T @ (has - chance) - penalty @ coefficients
        curvature = (x * (chance * (1 - chance))[:, None]).T @ x + penalty
        step = np.linalg.lstsq(curvature, gradient, rcond=None)[0]
        coefficients = coefficients + step
        if np.abs(step).max() < 1e-8:
            break
    return np.clip(1 / (1 + np.exp(-np.clip(x @ coefficients, -30, 30))), LEAST_CHANCE, 1)


def reweighted_mean(values: ArrayLike, chance: ArrayLike, groups: Sequence[Hashable]) -> Reweighted:
    """The mean over labelled questions, each as often as there are questions like it.

    Right as far as the features tell who was labelled; what they do not see, it does not mend.

    Args:
        values: (n,) of the metric; NaN where there is no label, or nothing was measured.
        chance: (n,) from `chances`.
        groups: n users or pages; None marks a question that stands alone.

    Returns:
        The mean with weights inverse to the chances (Hájek's), and Student's 95 % interval over groups.

    Reference: Hájek 1971, comment on Basu's essay on the logical foundations of survey sampling.

    Example:
        >>> from math import nan
        >>> from yarus.metrics.incomplete.selection import reweighted_mean
        >>> round(reweighted_mean([1.0, 1.0, 0.0, nan], [0.8, 0.8, 0.4, 0.4], [None] * 4).value, 3)
        0.5
    """
    y = np.asarray(values, dtype=np.float64)
    measured = ~np.isnan(y)
    if measured.sum() < 2:
        return Reweighted(UNDEFINED, NO_INTERVAL)
    weights = np.where(measured, 1 / np.asarray(chance, dtype=np.float64), 0)
    weights /= weights.sum()
    value = float(weights @ np.where(measured, y, 0))
    codes = group_codes(groups, len(y))
    moved = np.bincount(codes, weights * np.where(measured, y - value, 0))
    shares = np.bincount(codes, weights)
    worth = 1 / float((shares**2).sum())
    if worth <= 1:
        return Reweighted(value, NO_INTERVAL)
    m = int(np.count_nonzero(shares))
    error = float(np.sqrt((moved**2).sum() * m / (m - 1)))
    reach = student_quantile(0.95, worth - 1) * error
    return Reweighted(value, Interval(max(value - reach, 0.0), min(value + reach, 1.0)))


def _columns(features: ArrayLike) -> Floats:
    x = np.asarray(features, dtype=np.float64)
    return x[:, None] if x.ndim == 1 else x

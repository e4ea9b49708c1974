"""Selection bias of labels: whether labelled questions are like the others, and a mean reweighted to all questions."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from yarus.metrics.statistics.groups import Floats, group_codes, group_totals
from yarus.metrics.statistics.intervals import NO_INTERVAL, UNDEFINED, Interval, student_quantile

MIN_QUESTIONS = 20
"""Least number of questions of either kind for a statement."""
MIN_PROPENSITY = 0.05
"""Lower bound of a labelling probability: below it few questions would outweigh all others."""
RIDGE = 1.0
"""Ridge penalty of every coefficient, in squared standard deviations of its feature."""
MAX_ITERATIONS = 50


class Feature(NamedTuple):
    """The difference of labelled questions from the others in a feature that is known for all."""

    labelled: Floats
    """(p,) means over the questions with a label."""
    others: Floats
    """(p,) means over those without."""
    p: float
    """P value of as large a difference under random labelling; NaN if the feature does not vary."""


class ReweightedMean(NamedTuple):
    """A mean over labelled questions, reweighted to all questions; NaN if there are too few."""

    value: float
    interval: Interval


def compare_feature(feature: ArrayLike, labelled: ArrayLike, groups: Sequence[Hashable]) -> Feature:
    """Compare labelled questions with the others in a feature.

    Args:
        feature: (n,) numbers, or (n, p) indicators of kinds of which a question has one or none; not NaN.
        labelled: (n,) whether a question has a label.
        groups: n users; None marks a question without a user. Labels of one user's questions are not independent.

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
    x = _as_columns(feature)
    is_labelled = np.asarray(labelled, dtype=bool)
    if len(x) != len(is_labelled):
        raise ValueError(f"{len(x)} questions, but of {len(is_labelled)} it is said whether they have a label")
    codes = group_codes(groups, len(is_labelled))
    with_label, without_label = (
        x[rows].mean(axis=0) if rows.any() else np.full(x.shape[1], UNDEFINED) for rows in (is_labelled, ~is_labelled)
    )
    return Feature(with_label, without_label, _score_test(x - x.mean(axis=0), is_labelled - is_labelled.mean(), codes))


def _score_test(x: Floats, residuals: Floats, codes: NDArray[np.intp]) -> float:
    from scipy.special import fdtrc  # here, because it costs 0.1 s to import

    scores = group_totals(x * residuals[:, None], codes)
    m = len(scores)
    spread = scores - scores.mean(axis=0)
    variance = spread.T @ spread * (m / max(m - 1, 1))
    rank = int(np.linalg.matrix_rank(variance)) if m > 1 else 0
    if not rank or m <= rank + 1:
        return UNDEFINED
    total = scores.sum(axis=0)
    statistic = float(total @ np.linalg.pinv(variance) @ total)
    return float(fdtrc(rank, m - rank, statistic * (m - rank) / (rank * (m - 1))))


def labelling_propensities(features: ArrayLike, labelled: ArrayLike) -> Floats:
    """Return the probability of each question to be labelled given its features: logistic regression with a ridge.

    Args:
        features: (n, p), not NaN.
        labelled: (n,) whether a question has a label.

    Returns:
        (n,) between 0.05 and 1.

    Reference: Rosenbaum and Rubin 1983, The central role of the propensity score.

    Example:
        >>> from yarus.metrics.incomplete.selection import labelling_propensities
        >>> probabilities = labelling_propensities([[0.0], [0.0], [1.0], [1.0]] * 50, [True, False, True, True] * 50)
        >>> probabilities[[0, 2]].round(2)
        array([0.51, 0.99])
    """
    x, is_labelled = _as_columns(features), np.asarray(labelled, dtype=np.float64)
    scale = x.std(axis=0)
    x = (x - x.mean(axis=0)) / np.where(scale > 0, scale, 1)
    x = np.column_stack([np.ones(len(x)), x])
    penalty = np.diag([0.0, *[RIDGE] * (x.shape[1] - 1)])
    coefficients: Floats = np.zeros(x.shape[1])
    for _ in range(MAX_ITERATIONS):
        probabilities = 1 / (1 + np.exp(-np.clip(x @ coefficients, -30, 30)))
        gradient = x.T @ (is_labelled - probabilities) - penalty @ coefficients
        curvature = (x * (probabilities * (1 - probabilities))[:, None]).T @ x + penalty
        step = np.linalg.lstsq(curvature, gradient, rcond=None)[0]
        coefficients = coefficients + step
        if np.abs(step).max() < 1e-8:
            break
    return np.clip(1 / (1 + np.exp(-np.clip(x @ coefficients, -30, 30))), MIN_PROPENSITY, 1)


def inverse_propensity_mean(values: ArrayLike, chance: ArrayLike, groups: Sequence[Hashable]) -> ReweightedMean:
    """Return the mean over labelled questions, weighted to represent all questions (inverse propensity).

    The correction is as good as the features: unobserved differences remain.

    Args:
        values: (n,) of the metric; NaN without a label, or if nothing was measured.
        chance: (n,) from `labelling_propensities`.
        groups: n users or pages; None marks a question without a group.

    Returns:
        The mean with weights inverse to the chances (Hájek's), and Student's 95 % interval over groups.

    Reference: Hájek 1971, comment on Basu's essay on the logical foundations of survey sampling.

    Example:
        >>> from math import nan
        >>> from yarus.metrics.incomplete.selection import inverse_propensity_mean
        >>> round(inverse_propensity_mean([1.0, 1.0, 0.0, nan], [0.8, 0.8, 0.4, 0.4], [None] * 4).value, 3)
        0.5
    """
    y = np.asarray(values, dtype=np.float64)
    measured = ~np.isnan(y)
    if measured.sum() < 2:
        return ReweightedMean(UNDEFINED, NO_INTERVAL)
    weights = np.where(measured, 1 / np.asarray(chance, dtype=np.float64), 0)
    weights /= weights.sum()
    value = float(weights @ np.where(measured, y, 0))
    codes = group_codes(groups, len(y))
    influences = np.bincount(codes, weights * np.where(measured, y - value, 0))
    shares = np.bincount(codes, weights)
    n_effective = 1 / float((shares**2).sum())
    if n_effective <= 1:
        return ReweightedMean(value, NO_INTERVAL)
    m = int(np.count_nonzero(shares))
    error = float(np.sqrt((influences**2).sum() * m / (m - 1)))
    half_width = student_quantile(0.95, n_effective - 1) * error
    return ReweightedMean(value, Interval(max(value - half_width, 0.0), min(value + half_width, 1.0)))


def _as_columns(features: ArrayLike) -> Floats:
    x = np.asarray(features, dtype=np.float64)
    return x[:, None] if x.ndim == 1 else x

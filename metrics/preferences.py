"""Agreement of differences of a score with the preferences of people who compared the same two answers."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def pearson(differences: ArrayLike, labels: ArrayLike) -> float:
    """Return Pearson's correlation of a score's differences with people's labels, one pair per label.

    Args:
        differences: (n,) score of the second answer - score of the first; NaN if missing.
        labels: (n, people) how much better the second is, NaN if a person did not label it.

    Returns:
        -1 to 1; NaN below two pairs, or if one side does not vary.

    Raises:
        ValueError: shapes that do not fit.

    Reference: Ru et al. 2024, RAGChecker (arXiv 2408.08067), whose meta-evaluation stacks both annotators.

    Example:
        >>> from yarus.metrics.preferences import pearson
        >>> round(pearson([0.5, -0.5, 0.25], [[2, 1], [-2, -1], [0, 1]]), 3)
        0.924
    """
    deltas, ratings = _rated_pairs(differences, labels)
    deltas_by_label, labels_flat = np.repeat(deltas, ratings.shape[1]), ratings.ravel()
    is_complete = ~np.isnan(deltas_by_label) & ~np.isnan(labels_flat)
    deltas_by_label, labels_flat = deltas_by_label[is_complete], labels_flat[is_complete]
    if len(deltas_by_label) < 2 or np.ptp(deltas_by_label) == 0 or np.ptp(labels_flat) == 0:
        return np.nan
    return float(np.corrcoef(deltas_by_label, labels_flat)[0, 1])


def accuracy(differences: ArrayLike, labels: ArrayLike) -> float:
    """Return the share of the answers preferred by people overall that also score higher; an equal score counts half.

    Args:
        differences, labels: as in `pearson`.

    Returns:
        0 to 1, 0.5 for guessing; NaN if people prefer no answer, or none was scored.

    Raises:
        ValueError: shapes that do not fit.

    Example:
        >>> from yarus.metrics.preferences import accuracy
        >>> accuracy([0.5, 0.5, 0.0, 0.9], [[2, 1], [-2, -1], [1, 1], [1, -1]])
        0.5
    """
    deltas, ratings = _rated_pairs(differences, labels)
    is_rated = ~np.isnan(ratings)
    preferred = np.sign(np.where(is_rated, ratings, 0).sum(axis=1))
    is_counted = (preferred != 0) & ~np.isnan(deltas)
    if not is_counted.any():
        return np.nan
    right = np.sign(deltas[is_counted]) * preferred[is_counted]
    return float(np.mean((right > 0) + 0.5 * (right == 0)))


def _rated_pairs(differences: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats]:
    deltas, ratings = np.asarray(differences, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if deltas.ndim != 1 or ratings.ndim != 2 or len(deltas) != len(ratings):
        raise ValueError(f"{deltas.shape} differences but {ratings.shape} labels; one row of labels a difference")
    return deltas, ratings

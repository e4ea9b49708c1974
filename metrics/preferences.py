"""How far differences of a score follow people who compared the same two answers."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def pearson(differences: ArrayLike, labels: ArrayLike) -> float:
    """Pearson's correlation of a score's differences with people's labels, every person's label a pair of its own.

    Args:
        differences: (n,) score of the second answer - score of the first; NaN where there is none.
        labels: (n, people) how much better the second is, NaN where a person said nothing.

    Returns:
        -1 to 1; NaN below two pairs, or where one side does not vary.

    Raises:
        ValueError: shapes that do not fit.

    Reference: Ru et al. 2024, RAGChecker (arXiv 2408.08067), whose meta-evaluation stacks both annotators.

    Example:
        >>> from yarus.metrics.preferences import pearson
        >>> round(pearson([0.5, -0.5, 0.25], [[2, 1], [-2, -1], [0, 1]]), 3)
        0.924
    """
    apart, said = _pairs(differences, labels)
    one, two = np.repeat(apart, said.shape[1]), said.ravel()
    kept = ~np.isnan(one) & ~np.isnan(two)
    one, two = one[kept], two[kept]
    if len(one) < 2 or np.ptp(one) == 0 or np.ptp(two) == 0:
        return np.nan
    return float(np.corrcoef(one, two)[0, 1])


def accuracy(differences: ArrayLike, labels: ArrayLike) -> float:
    """Share of the answers that people prefer on the whole which also score higher; an equal score is half right.

    Args:
        differences, labels: as of `pearson`.

    Returns:
        0 to 1, 0.5 for whoever guesses; NaN where people prefer none, or none was scored.

    Raises:
        ValueError: shapes that do not fit.

    Example:
        >>> from yarus.metrics.preferences import accuracy
        >>> accuracy([0.5, 0.5, 0.0, 0.9], [[2, 1], [-2, -1], [1, 1], [1, -1]])
        0.5
    """
    apart, said = _pairs(differences, labels)
    there = ~np.isnan(said)
    preferred = np.sign(np.where(there, said, 0).sum(axis=1))
    kept = (preferred != 0) & ~np.isnan(apart)
    if not kept.any():
        return np.nan
    right = np.sign(apart[kept]) * preferred[kept]
    return float(np.mean((right > 0) + 0.5 * (right == 0)))


def _pairs(differences: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats]:
    apart, said = np.asarray(differences, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if apart.ndim != 1 or said.ndim != 2 or len(apart) != len(said):
        raise ValueError(f"{apart.shape} differences but {said.shape} labels; one row of labels a difference")
    return apart, said

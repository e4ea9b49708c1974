"""Retrieval metrics. All read one matrix of gains (questions x ranks, best rank first), so each is a line of NumPy.

The matrix comes from `gain_matrix` (metrics/gains.py), which also marks questions without scores: the row of a question
without labels, or whose retriever failed, is NaN throughout, and so is every metric of it. Values equal trec_eval's on
the same ranking.
"""

import numpy as np
from numpy.typing import ArrayLike

from yarus.metrics.gains import Counts, Floats, gain_matrix, ideal_gains

__all__ = ["gain_matrix", "hit_rate", "ideal_gains", "ndcg", "precision", "recall", "reciprocal_rank"]


def hit_rate(gains: ArrayLike, *, k: int) -> Floats:
    """Return 1 if one of the first k results is relevant, else 0.

    Args:
        gains: (n, depth) from `gain_matrix`; above 0 is relevant.
        k: number of ranks, 1 to depth.

    Returns:
        float64 (n,), 0 or 1, higher is better; NaN if the row is NaN (unlabelled, or the retriever failed).

    Raises:
        ValueError: k below 1 or beyond the depth.

    Reference: success_k of trec_eval.

    Stored as: `hit_rate@1`, `hit_rate@5`, `hit_rate@10` (metrics/table/retrieval.py).

    Example:
        >>> from yarus.metrics.retrieval import hit_rate
        >>> hit_rate([[0, 1, 0], [0, 0, 1]], k=2)
        array([1., 0.])
    """
    return np.asarray(np.sign(_first_ranks(gains, k)).max(axis=1))


def precision(gains: ArrayLike, *, k: int) -> Floats:
    """Return the share of relevant results among the first k; divides by k even if fewer were retrieved.

    Args:
        gains: (n, depth) from `gain_matrix`; above 0 is relevant.
        k: number of ranks, 1 to depth.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN if the row is NaN.

    Raises:
        ValueError: k below 1 or beyond the depth.

    Reference: P_k of trec_eval; Manning, Raghavan and Schütze 2008, Introduction to Information Retrieval, 8.4.

    Stored as: `precision@1`, `precision@3`, `precision@5`, `precision@10` (metrics/table/retrieval.py).

    Example:
        >>> from yarus.metrics.retrieval import precision
        >>> precision([[0, 1, 0, 1], [0, 0, 0, 0]], k=4)
        array([0.5, 0. ])
    """
    return np.asarray(np.sign(_first_ranks(gains, k)).sum(axis=1) / k)


def recall(gains: ArrayLike, n_relevant: ArrayLike, *, k: int) -> Floats:
    """Return the share of all relevant documents that are among the first k results.

    Args:
        gains: (n, depth) from `gain_matrix`; above 0 is relevant.
        n_relevant: (n,) from `gain_matrix`: number of relevant documents, retrieved or not.
        k: number of ranks, 1 to depth.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN if the row is NaN or nothing is relevant.

    Raises:
        ValueError: k below 1 or beyond the depth, different lengths.

    Reference: recall_k of trec_eval; Manning, Raghavan and Schütze 2008, 8.4.

    Stored as: `recall@1`, `recall@3`, `recall@5`, `recall@10` (metrics/table/retrieval.py).

    Example:
        >>> from yarus.metrics.retrieval import recall
        >>> recall([[0, 1, 0, 1]], [4], k=4)  # two of four are found
        array([0.5])
    """
    top, total = _first_ranks(gains, k), _check_totals(gains, n_relevant)
    return np.asarray(np.sign(top).sum(axis=1) / np.where(total > 0, total, np.nan))


def reciprocal_rank(gains: ArrayLike) -> Floats:
    """Return 1 / rank of the first relevant result, over the whole depth; 0 if there is none. Its mean is MRR.

    Args:
        gains: (n, depth) from `gain_matrix`; above 0 is relevant.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN if the row is NaN.

    Raises:
        ValueError: gains that are not a matrix of at least one rank.

    Reference: recip_rank of trec_eval; Voorhees 1999, The TREC-8 Question Answering Track Report.

    Stored as: `mrr` (metrics/table/retrieval.py).

    Example:
        >>> from yarus.metrics.retrieval import reciprocal_rank
        >>> reciprocal_rank([[0, 1, 1], [0, 0, 0]])
        array([0.5, 0. ])
    """
    top = _first_ranks(gains)
    return np.asarray((np.sign(top) / np.arange(1, top.shape[1] + 1)).max(axis=1))


def ndcg(gains: ArrayLike, n_relevant: ArrayLike, *, k: int, ideal: ArrayLike | None = None) -> Floats:
    """Return the discounted gain of the first k over that of the best ranking; linear gain, discount log2(rank + 1).

    Args:
        gains: (n, depth) from `gain_matrix`.
        n_relevant: (n,) from `gain_matrix`; without grades it determines the best possible ranking.
        k: number of ranks, 1 to depth.
        ideal: (n, at least k) from `ideal_gains`; needed if the labels have grades other than 1, otherwise ignored.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN if the row is NaN or nothing is relevant.

    Raises:
        ValueError: k below 1 or beyond the depth, different lengths, gains other than 0 and 1 without `ideal`.

    Reference: ndcg_cut_k of trec_eval; Järvelin and Kekäläinen 2002, Cumulated Gain-based Evaluation of IR Techniques,
    with the discount of Burges et al. 2005.

    Stored as: `ndcg@5`, `ndcg@10` (metrics/table/retrieval.py).

    Example:
        >>> from yarus.metrics.retrieval import ndcg
        >>> ndcg([[0, 1, 1]], [2], k=3).round(3)  # (1 / log2(3) + 1 / 2) / (1 + 1 / log2(3))
        array([0.693])
    """
    top, total = _first_ranks(gains, k), _check_totals(gains, n_relevant)
    if ideal is not None:
        best = _discounted_gain(_first_ranks(ideal, k))
        if len(best) != len(top):
            raise ValueError(f"gains for {len(top)} questions but ideal gains for {len(best)}")
    elif (graded := np.abs((matrix := _first_ranks(gains)) - np.sign(matrix)) > 0).any():
        raise ValueError(f"a gain of {matrix[graded][0]:g} is a grade: give ideal=ideal_gains(relevant, depth=…) too")
    else:
        best = _discounted_gain(np.tri(k + 1, k, -1))[np.minimum(total, k)]
    return np.asarray(_discounted_gain(top) / np.where(best > 0, best, np.nan))


def _discounted_gain(gains: Floats) -> Floats:
    """Return DCG of whole rows, summed rank by rank, whatever the shape, so that a perfect ranking equals the ideal."""
    return np.asarray(sum(gain / np.log2(rank + 1) for rank, gain in enumerate(gains.T, 1)))


def _first_ranks(gains: ArrayLike, k: int | None = None) -> Floats:
    """Return the first k ranks (all, if k is None) of a matrix of gains, in Fortran order."""
    matrix = np.asfortranarray(gains, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] < 1:
        raise ValueError(f"gains of shape {matrix.shape} are not (questions, ranks); make them by gain_matrix")
    if k is not None and not 1 <= k <= matrix.shape[1]:
        raise ValueError(f"k = {k} is outside 1 to {matrix.shape[1]}, the depth of the gains")
    return matrix[:, :k]


def _check_totals(gains: ArrayLike, n_relevant: ArrayLike) -> Counts:
    """Return n_relevant as an array, one value per row of gains."""
    totals, n = np.asarray(n_relevant), len(np.asarray(gains))
    if totals.shape != (n,):
        raise ValueError(f"gains for {n} questions but n_relevant of shape {totals.shape}")
    return totals

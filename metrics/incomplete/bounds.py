"""Upper bounds of ranked metrics: their values if all unjudged results were relevant."""

import numpy as np
from numpy.typing import ArrayLike

from yarus.metrics.gains import Floats
from yarus.metrics.incomplete.judgements import UNJUDGED


def gains_if_unjudged_relevant(judgements: ArrayLike) -> Floats:
    """Return gains as if every unjudged result were relevant.

    Hit rate, precision and reciprocal rank of these gains are upper bounds.

    Args:
        judgements: (n, depth) from `judgement_matrix`.

    Returns:
        float64 (n, depth), as in `yarus.metrics.retrieval.gain_matrix`; a row of NaN stays NaN.

    Example:
        >>> from yarus.metrics.incomplete import gains_if_unjudged_relevant
        >>> gains_if_unjudged_relevant([[-1, 0, 1, -2]])
        array([[1., 0., 1., 0.]])
    """
    matrix = np.asfortranarray(judgements, dtype=np.float64)
    return np.asarray(np.maximum(np.where(matrix == UNJUDGED, 1, matrix), 0))


def recall_upper_bound(judgements: ArrayLike, n_relevant: ArrayLike, *, k: int) -> Floats:
    """Return recall at k if every unjudged result of the first k were relevant, and no other unjudged document.

    Args:
        judgements: (n, depth) from `judgement_matrix`.
        n_relevant: (n,) judged relevant.
        k: number of ranks, 1 to depth.

    Returns:
        float64 (n,), 0 to 1; NaN if the row is NaN.

    Example:
        >>> from yarus.metrics.incomplete import recall_upper_bound
        >>> recall_upper_bound([[-1, 0, 1]], [2], k=3)  # two of three
        array([0.66666667])
    """
    top = np.asarray(judgements, dtype=np.float64)[:, :k]
    n_unjudged = (top == UNJUDGED).sum(axis=1)
    all_relevant = np.asarray(n_relevant) + n_unjudged
    is_scored = (all_relevant > 0) & ~np.isnan(top[:, 0])
    return np.asarray(((top > 0).sum(axis=1) + n_unjudged) / np.where(is_scored, all_relevant, np.nan))


def ndcg_upper_bound(judgements: ArrayLike, ideal: ArrayLike, *, k: int) -> Floats:
    """Return the highest NDCG at k that the unjudged results of the first k allow.

    If m of them are relevant, with the highest grade of all, NDCG is highest if these are the first m. Each also
    improves the ideal ranking, so that all m are compared.

    Args:
        judgements: (n, depth) from `judgement_matrix`.
        ideal: (n, at least k) from `yarus.metrics.retrieval.ideal_gains`.
        k: number of ranks, 1 to depth.

    Returns:
        float64 (n,), 0 to 1, at least the NDCG if all of them are irrelevant; NaN if the row is NaN.

    Example:
        >>> from yarus.metrics.incomplete import ndcg_upper_bound
        >>> ndcg_upper_bound([[-1, 1]], [[1, 0]], k=2)
        array([1.])
    """
    top = np.asarray(judgements, dtype=np.float64)[:, :k]
    best_order = np.asarray(ideal, dtype=np.float64)[:, :k]
    discounts = 1 / np.log2(np.arange(2, k + 2))
    grade = max(float(best_order.max(initial=0)), 1.0)
    is_unjudged = top == UNJUDGED
    positions = np.where(is_unjudged, np.cumsum(is_unjudged, axis=1), k + 1)
    n_unjudged = is_unjudged.sum(axis=1)
    judged_gain = np.maximum(top, 0) @ discounts
    highest: Floats = np.full(len(top), np.nan)
    for m in range(int(n_unjudged.max(initial=0)) + 1):
        gain = judged_gain + grade * ((positions <= m) @ discounts)
        ideal_gain = grade * discounts[:m].sum() + best_order[:, : k - m] @ discounts[m:]
        ndcg = gain / np.where((ideal_gain > 0) & (n_unjudged >= m), ideal_gain, np.nan)
        highest = np.fmax(highest, ndcg)
    return np.minimum(highest, 1.0)

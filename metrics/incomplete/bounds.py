"""What ranked metrics would be at best, if what nobody has judged were relevant; at worst they are as they stand."""

import numpy as np
from numpy.typing import ArrayLike

from yarus.metrics.gains import Floats
from yarus.metrics.incomplete.judgements import UNJUDGED


def unjudged_right(judgements: ArrayLike) -> Floats:
    """Gains as if every result that nobody has judged were relevant: hit rate, precision and reciprocal rank of them
    are the highest that there can be.

    Args:
        judgements: (n, depth) from `judgement_matrix`.

    Returns:
        float64 (n, depth), as `yarus.metrics.retrieval.gain_matrix` gives them; a row of NaN stays one.

    Example:
        >>> from yarus.metrics.incomplete import unjudged_right
        >>> unjudged_right([[-1, 0, 1, -2]])
        array([[1., 0., 1., 0.]])
    """
    known = np.asfortranarray(judgements, dtype=np.float64)
    return np.asarray(np.maximum(np.where(known == UNJUDGED, 1, known), 0))


def highest_recall(judgements: ArrayLike, n_relevant: ArrayLike, *, k: int) -> Floats:
    """Recall at k if every unjudged result of the first k were relevant, and nothing else that nobody has judged.

    Args:
        judgements: (n, depth) from `judgement_matrix`.
        n_relevant: (n,) judged relevant.
        k: ranks looked at, 1 to depth.

    Returns:
        float64 (n,), 0 to 1; NaN where the row is NaN.

    Example:
        >>> from yarus.metrics.incomplete import highest_recall
        >>> highest_recall([[-1, 0, 1]], [2], k=3)  # two of three
        array([0.66666667])
    """
    top = np.asarray(judgements, dtype=np.float64)[:, :k]
    unknown = (top == UNJUDGED).sum(axis=1)
    all_relevant = np.asarray(n_relevant) + unknown
    scored = (all_relevant > 0) & ~np.isnan(top[:, 0])
    return np.asarray(((top > 0).sum(axis=1) + unknown) / np.where(scored, all_relevant, np.nan))


def highest_ndcg(judgements: ArrayLike, ideal: ArrayLike, *, k: int) -> Floats:
    """The highest NDCG at k that the unjudged results of the first k leave possible.

    If m of them are relevant, of the highest grade that anything has, it is highest where these are the first m. More
    of them also make the ideal ranking better, so that the best m is looked for.

    Args:
        judgements: (n, depth) from `judgement_matrix`.
        ideal: (n, at least k) from `yarus.metrics.retrieval.ideal_gains`.
        k: ranks looked at, 1 to depth.

    Returns:
        float64 (n,), 0 to 1, at least the NDCG where all of them are irrelevant; NaN where the row is NaN.

    Example:
        >>> from yarus.metrics.incomplete import highest_ndcg
        >>> highest_ndcg([[-1, 1]], [[1, 0]], k=2)
        array([1.])
    """
    top = np.asarray(judgements, dtype=np.float64)[:, :k]
    best_order = np.asarray(ideal, dtype=np.float64)[:, :k]
    discounts = 1 / np.log2(np.arange(2, k + 2))
    grade = max(float(best_order.max(initial=0)), 1.0)
    unknown = top == UNJUDGED
    nth = np.where(unknown, np.cumsum(unknown, axis=1), k + 1)
    n_unknown = unknown.sum(axis=1)
    known = np.maximum(top, 0) @ discounts
    highest: Floats = np.full(len(top), np.nan)
    for m in range(int(n_unknown.max(initial=0)) + 1):
        gained = known + grade * ((nth <= m) @ discounts)
        possible = grade * discounts[:m].sum() + best_order[:, : k - m] @ discounts[m:]
        share = gained / np.where((possible > 0) & (n_unknown >= m), possible, np.nan)
        highest = np.fmax(highest, share)
    return np.minimum(highest, 1.0)

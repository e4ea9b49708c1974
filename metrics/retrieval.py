"""Retrieval metrics. All read one matrix of gains (questions x ranks, best rank first), so each is a line of NumPy.

The matrix comes from `gain_matrix`, which also marks what cannot be scored: the row of a question without labels, or
whose retriever failed, is NaN throughout, and so is every metric of it. Values equal trec_eval's on the same ranking.
"""

from collections.abc import Hashable, Mapping, Sequence, Set
from itertools import chain, repeat
from operator import attrgetter
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

Ranking: TypeAlias = Sequence[Hashable] | None
Labels: TypeAlias = Set[Hashable] | Mapping[Hashable, float]
Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]


def gain_matrix(rankings: Sequence[Ranking], relevant: Sequence[Labels], *, depth: int) -> tuple[Floats, Counts]:
    """The gain of what stands at each rank: its grade (1 without grades), 0 for what is not labelled or beyond the end.

    Args:
        rankings: n sequences of distinct ids, best first, cut at `depth`; None where the retriever failed.
        relevant: n sets of ids of the same type, or mappings of id to grade; grade 0 is "judged, not relevant".
        depth: number of ranks kept, the largest k that will be asked for.

    Returns:
        gains, float64 (n, depth), at least 0; a row is NaN where the ranking is None or nothing is relevant.
        n_relevant, int (n,): labels with a grade above 0, whether retrieved or not; 0 where unlabelled.

    Raises:
        ValueError: different lengths, a ranking with a duplicate, a grade below 0 or NaN, depth < 1.
        TypeError: a ranking that is one text instead of a list, labels that are neither a set nor a mapping.

    Example:
        >>> from metrics.retrieval import gain_matrix
        >>> gains, n_relevant = gain_matrix([["а", "б", "в"], ["г"]], [{"б", "я"}, set()], depth=3)
        >>> gains
        array([[ 0.,  1.,  0.],
               [nan, nan, nan]])
        >>> n_relevant
        array([2, 0])
    """
    n = len(rankings)
    if n != len(relevant):
        raise ValueError(f"{n} rankings but {len(relevant)} relevant sets; give one of each per question")
    grades, owner = _grades(relevant, depth)
    n_relevant = np.bincount(owner[grades > 0], minlength=n)
    answered, lengths = _checked(rankings, depth)
    # Everything per id stays inside map and fromiter: a Python loop over a million ids would take longer than the rest.
    dtype: DTypeLike = np.bool_
    found = map(map, map(attrgetter("__contains__"), relevant), answered)
    if _any_graded(relevant):
        dtype = np.float64
        graded = (labels if isinstance(labels, Mapping) else dict.fromkeys(labels, 1.0) for labels in relevant)
        found = map(map, map(attrgetter("get"), graded), answered, repeat(repeat(0.0)))
    # Ranks apart in memory (Fortran order): sums and maxima over a question's ranks then run over whole columns.
    gains = np.zeros((n, depth), order="F")
    gains[np.arange(depth) < lengths[:, None]] = np.fromiter(chain.from_iterable(found), dtype, lengths.sum())
    gains[n_relevant == 0] = np.nan
    gains[[row for row, ranking in enumerate(rankings) if ranking is None]] = np.nan
    return gains, n_relevant


def ideal_gains(relevant: Sequence[Labels], *, depth: int) -> Floats:
    """The gains of the best possible ranking: each question's positive grades, highest first. NDCG needs it for grades.

    Args:
        relevant: n sets of ids, or mappings of id to grade.
        depth: number of ranks kept.

    Returns:
        float64 (n, depth), at least 0; a row of zeros where nothing is relevant.

    Raises:
        ValueError: a grade below 0 or NaN, depth < 1.
        TypeError: labels that are neither a set nor a mapping.

    Example:
        >>> from metrics.retrieval import ideal_gains
        >>> ideal_gains([{"а": 1, "б": 3, "в": 0}], depth=3)
        array([[3., 1., 0.]])
    """
    grades, owner = _grades(relevant, depth)
    order = np.lexsort((-grades, owner))
    starts = np.searchsorted(owner, owner)  # owner is sorted: where the labels of the same question begin
    rank = np.arange(len(owner)) - starts
    ideal = np.zeros((len(relevant), depth), order="F")
    ideal[owner[rank < depth], rank[rank < depth]] = grades[order][rank < depth]
    return ideal


def hit_rate(gains: ArrayLike, *, k: int) -> Floats:
    """1 where one of the first k is relevant, else 0.

    Args:
        gains: (n, depth) from `gain_matrix`; above 0 is relevant.
        k: ranks looked at, 1 to depth.

    Returns:
        float64 (n,), 0 or 1, higher is better; NaN where the row is NaN (unlabelled, or the retriever failed).

    Raises:
        ValueError: k below 1 or beyond the depth.

    Reference: success_k of trec_eval.

    Stored as: `hit_rate@1`, `hit_rate@5`, `hit_rate@10` (metrics/table/retrieval.py).

    Example:
        >>> from metrics.retrieval import hit_rate
        >>> hit_rate([[0, 1, 0], [0, 0, 1]], k=2)
        array([1., 0.])
    """
    return np.asarray(np.sign(_top(gains, k)).max(axis=1))


def precision(gains: ArrayLike, *, k: int) -> Floats:
    """Share of the k places that hold something relevant; divides by k even if fewer came back.

    Args:
        gains: (n, depth) from `gain_matrix`; above 0 is relevant.
        k: ranks looked at, 1 to depth.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN where the row is NaN.

    Raises:
        ValueError: k below 1 or beyond the depth.

    Reference: P_k of trec_eval; Manning, Raghavan and Schütze 2008, Introduction to Information Retrieval, 8.4.

    Stored as: `precision@1`, `precision@3`, `precision@5`, `precision@10` (metrics/table/retrieval.py).

    Example:
        >>> from metrics.retrieval import precision
        >>> precision([[0, 1, 0, 1], [0, 0, 0, 0]], k=4)
        array([0.5, 0. ])
    """
    return np.asarray(np.sign(_top(gains, k)).sum(axis=1) / k)


def recall(gains: ArrayLike, n_relevant: ArrayLike, *, k: int) -> Floats:
    """Share of all that is relevant that stands among the first k.

    Args:
        gains: (n, depth) from `gain_matrix`; above 0 is relevant.
        n_relevant: (n,) from `gain_matrix`: how much is relevant, retrieved or not.
        k: ranks looked at, 1 to depth.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN where the row is NaN or nothing is relevant.

    Raises:
        ValueError: k below 1 or beyond the depth, different lengths.

    Reference: recall_k of trec_eval; Manning, Raghavan and Schütze 2008, 8.4.

    Stored as: `recall@1`, `recall@3`, `recall@5`, `recall@10` (metrics/table/retrieval.py).

    Example:
        >>> from metrics.retrieval import recall
        >>> recall([[0, 1, 0, 1]], [4], k=4)  # two of four are found
        array([0.5])
    """
    top, total = _top(gains, k), _totals(gains, n_relevant)
    return np.asarray(np.sign(top).sum(axis=1) / np.where(total > 0, total, np.nan))


def reciprocal_rank(gains: ArrayLike) -> Floats:
    """1 / rank of the first relevant one, over the whole depth; 0 where there is none. Its mean is MRR.

    Args:
        gains: (n, depth) from `gain_matrix`; above 0 is relevant.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN where the row is NaN.

    Raises:
        ValueError: gains that are not a matrix of at least one rank.

    Reference: recip_rank of trec_eval; Voorhees 1999, The TREC-8 Question Answering Track Report.

    Stored as: `mrr` (metrics/table/retrieval.py).

    Example:
        >>> from metrics.retrieval import reciprocal_rank
        >>> reciprocal_rank([[0, 1, 1], [0, 0, 0]])
        array([0.5, 0. ])
    """
    top = _top(gains)
    return np.asarray((np.sign(top) / np.arange(1, top.shape[1] + 1)).max(axis=1))


def ndcg(gains: ArrayLike, n_relevant: ArrayLike, *, k: int, ideal: ArrayLike | None = None) -> Floats:
    """Discounted gain of the first k over that of the best possible ranking; linear gain, discount log2(rank + 1).

    Args:
        gains: (n, depth) from `gain_matrix`.
        n_relevant: (n,) from `gain_matrix`; without grades it is all that the best possible ranking depends on.
        k: ranks looked at, 1 to depth.
        ideal: (n, at least k) from `ideal_gains`; needed where the labels have grades other than 1, ignored otherwise.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN where the row is NaN or nothing is relevant.

    Raises:
        ValueError: k below 1 or beyond the depth, different lengths, gains other than 0 and 1 without `ideal`.

    Reference: ndcg_cut_k of trec_eval; Järvelin and Kekäläinen 2002, Cumulated Gain-based Evaluation of IR Techniques,
    with the discount of Burges et al. 2005.

    Stored as: `ndcg@5`, `ndcg@10` (metrics/table/retrieval.py).

    Example:
        >>> from metrics.retrieval import ndcg
        >>> ndcg([[0, 1, 1]], [2], k=3).round(3)  # (1 / log2(3) + 1 / 2) / (1 + 1 / log2(3))
        array([0.693])
    """
    top, total = _top(gains, k), _totals(gains, n_relevant)
    if ideal is not None:
        best = _discounted(_top(ideal, k))
        if len(best) != len(top):
            raise ValueError(f"gains for {len(top)} questions but ideal gains for {len(best)}")
    elif (graded := np.abs((whole := _top(gains)) - np.sign(whole)) > 0).any():
        raise ValueError(f"a gain of {whole[graded][0]:g} is a grade: give ideal=ideal_gains(relevant, depth=…) too")
    else:
        best = _discounted(np.tri(k + 1, k, -1))[np.minimum(total, k)]
    return np.asarray(_discounted(top) / np.where(best > 0, best, np.nan))


def _discounted(gains: Floats) -> Floats:
    """DCG of whole rows. Added rank by rank, whatever the shape, so that a perfect ranking is exactly the ideal."""
    return np.asarray(sum(gain / np.log2(rank + 1) for rank, gain in enumerate(gains.T, 1)))


def _top(gains: ArrayLike, k: int | None = None) -> Floats:
    """The first k ranks (all, if k is None) of a matrix of gains, ranks apart in memory."""
    matrix = np.asfortranarray(gains, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] < 1:
        raise ValueError(f"gains of shape {matrix.shape} are not (questions, ranks); make them by gain_matrix")
    if k is not None and not 1 <= k <= matrix.shape[1]:
        raise ValueError(f"k = {k} is outside 1 to {matrix.shape[1]}, the depth of the gains")
    return matrix[:, :k]


def _totals(gains: ArrayLike, n_relevant: ArrayLike) -> Counts:
    """n_relevant as an array, one for each row of gains."""
    totals, n = np.asarray(n_relevant), len(np.asarray(gains))
    if totals.shape != (n,):
        raise ValueError(f"gains for {n} questions but n_relevant of shape {totals.shape}")
    return totals


def _checked(rankings: Sequence[Ranking], depth: int) -> tuple[list[Sequence[Hashable]], Counts]:
    """The rankings cut at depth, empty where the retriever failed, and their lengths; refuses texts and duplicates."""
    if str in set(map(type, rankings)):
        row = next(row for row, ranking in enumerate(rankings) if isinstance(ranking, str))
        raise TypeError(f"ranking {row} is the text {rankings[row]!r}; give a list of ids")
    answered = [() if ranking is None else ranking for ranking in rankings]
    lengths = np.fromiter(map(len, answered), np.int64, len(answered))
    distinct = np.fromiter(map(len, map(set, answered)), np.int64, len(answered))
    if (lengths != distinct).any():
        raise ValueError(_duplicate(int(np.argmax(lengths != distinct)), answered))
    if lengths.max(initial=0) > depth:
        answered = [ranking[:depth] for ranking in answered]
    return answered, np.minimum(lengths, depth)


def _duplicate(row: int, rankings: Sequence[Sequence[Hashable]]) -> str:
    """What to tell of the first id that comes twice in a ranking."""
    first: dict[Hashable, int] = {}
    again = next(rank for rank, name in enumerate(rankings[row], 1) if first.setdefault(name, rank) != rank)
    name = rankings[row][again - 1]
    return f"ranking {row} has {name!r} twice, at ranks {first[name]} and {again}; keep the better one of each id"


def _any_graded(relevant: Sequence[Labels]) -> bool:
    """Whether any labels are a mapping; asks each type once."""
    return any(issubclass(kind, Mapping) for kind in set(map(type, relevant)))


def _grades(relevant: Sequence[Labels], depth: int) -> tuple[Floats, Counts]:
    """The grade of every label and the question that it belongs to, question after question."""
    if depth < 1:
        raise ValueError(f"depth = {depth} is below 1")
    if not all(issubclass(kind, Set | Mapping) for kind in set(map(type, relevant))):
        row = next(row for row, labels in enumerate(relevant) if not isinstance(labels, Set | Mapping))
        raise TypeError(f"relevant {row} is {relevant[row]!r}; give a set of ids (empty if unlabelled) or id -> grade")
    sizes = np.fromiter(map(len, relevant), np.int64, len(relevant))
    owner = np.repeat(np.arange(len(relevant)), sizes)
    if not _any_graded(relevant):
        return np.ones(len(owner)), owner
    each = (labels.values() if isinstance(labels, Mapping) else repeat(1.0, len(labels)) for labels in relevant)
    grades = np.fromiter(chain.from_iterable(each), np.float64, len(owner))
    if (bad := ~((grades >= 0) & np.isfinite(grades))).any():
        row = owner[np.argmax(bad)]
        raise ValueError(
            f"relevant {row} has a grade of {grades[bad][0]:g}: {relevant[row]!r}; grades are finite and 0 or more"
        )
    return grades, owner

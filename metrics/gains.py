"""The matrix of gains (questions x ranks, best rank first) that retrieval metrics read, from rankings and labels.

It also marks questions without scores: the row of a question without labels, or whose retriever failed, is NaN.
"""

from collections.abc import Hashable, Mapping, Sequence, Set
from itertools import chain, repeat
from operator import attrgetter
from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

Ranking: TypeAlias = Sequence[Hashable] | None
RelevanceLabels: TypeAlias = Set[Hashable] | Mapping[Hashable, float]
Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]


def gain_matrix(
    rankings: Sequence[Ranking], relevant: Sequence[RelevanceLabels], *, depth: int
) -> tuple[Floats, Counts]:
    """Return the gain at each rank: the grade (1 without grades), or 0 for an unlabelled result or beyond the end.

    Args:
        rankings: n sequences of distinct ids, best first, cut at `depth`; None if the retriever failed.
        relevant: n sets of ids of the same type, or mappings of id to grade; grade 0 is "judged, not relevant".
        depth: number of ranks to keep, the largest k that will be used.

    Returns:
        gains, float64 (n, depth), at least 0; a row is NaN if the ranking is None or nothing is relevant.
        n_relevant, int (n,): labels with a grade above 0, whether retrieved or not; 0 if unlabelled.

    Raises:
        ValueError: different lengths, a ranking with a duplicate, a grade below 0 or NaN, depth < 1.
        TypeError: a ranking that is one text instead of a list, labels that are neither a set nor a mapping.

    Example:
        >>> from yarus.metrics.retrieval import gain_matrix
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
    grades, owner = label_grades(relevant, depth)
    n_relevant = np.bincount(owner[grades > 0], minlength=n)
    answered, lengths = check_rankings(rankings, depth)
    # Everything per id stays inside map and fromiter: a Python loop over a million ids would take longer than the rest.
    # Rankings [а б в] and [г], labels {б} and {г}, depth 3: `looked_up` has a lazy row each, "is а in {б}, is б, is в"
    # and "is г in {г}". Chained they are 0 1 0 1, and fill, row by row, the cells with an id:
    #     cells [[id id id] [id -- --]]  ->  gains [[0 1 0] [1 0 0]], where cells without an id stay 0
    dtype: DTypeLike = np.bool_
    looked_up = map(map, map(attrgetter("__contains__"), relevant), answered)
    if _has_grades(relevant):
        dtype = np.float64
        graded = (labels if isinstance(labels, Mapping) else dict.fromkeys(labels, 1.0) for labels in relevant)
        looked_up = map(map, map(attrgetter("get"), graded), answered, repeat(repeat(0.0)))
    # Fortran order: sums and maxima over a question's ranks then run over whole columns.
    gains = np.zeros((n, depth), order="F")
    gains[np.arange(depth) < lengths[:, None]] = np.fromiter(chain.from_iterable(looked_up), dtype, lengths.sum())
    gains[n_relevant == 0] = np.nan
    gains[[row for row, ranking in enumerate(rankings) if ranking is None]] = np.nan
    return gains, n_relevant


def ideal_gains(relevant: Sequence[RelevanceLabels], *, depth: int) -> Floats:
    """Return the gains of the best possible ranking: each question's positive grades, highest first, for graded NDCG.

    Args:
        relevant: n sets of ids, or mappings of id to grade.
        depth: number of ranks to keep.

    Returns:
        float64 (n, depth), at least 0; a row of zeros if nothing is relevant.

    Raises:
        ValueError: a grade below 0 or NaN, depth < 1.
        TypeError: labels that are neither a set nor a mapping.

    Example:
        >>> from yarus.metrics.retrieval import ideal_gains
        >>> ideal_gains([{"а": 1, "б": 3, "в": 0}], depth=3)
        array([[3., 1., 0.]])
    """
    grades, owner = label_grades(relevant, depth)
    order = np.lexsort((-grades, owner))
    starts = np.searchsorted(owner, owner)  # owner is sorted: the start of the labels of the same question
    rank = np.arange(len(owner)) - starts
    ideal = np.zeros((len(relevant), depth), order="F")
    ideal[owner[rank < depth], rank[rank < depth]] = grades[order][rank < depth]
    return ideal


def check_rankings(rankings: Sequence[Ranking], depth: int) -> tuple[list[Sequence[Hashable]], Counts]:
    """Return the rankings cut at depth, empty if the retriever failed, and their lengths; raise on texts, duplicates.

    Example:
        >>> from yarus.metrics.gains import check_rankings
        >>> check_rankings([["а", "б", "в"], None], 2)
        ([['а', 'б'], ()], array([2, 0]))
    """
    if str in set(map(type, rankings)):
        row = next(row for row, ranking in enumerate(rankings) if isinstance(ranking, str))
        raise TypeError(f"ranking {row} is the text {rankings[row]!r}; give a list of ids")
    answered = [() if ranking is None else ranking for ranking in rankings]
    lengths = np.fromiter(map(len, answered), np.int64, len(answered))
    distinct = np.fromiter(map(len, map(set, answered)), np.int64, len(answered))
    if (lengths != distinct).any():
        raise ValueError(_describe_duplicate(int(np.argmax(lengths != distinct)), answered))
    if lengths.max(initial=0) > depth:
        answered = [ranking[:depth] for ranking in answered]
    return answered, np.minimum(lengths, depth)


def _describe_duplicate(row: int, rankings: Sequence[Sequence[Hashable]]) -> str:
    """Return the error message about the first duplicate id in a ranking."""
    ranks: dict[Hashable, int] = {}
    repeat_rank = next(rank for rank, name in enumerate(rankings[row], 1) if ranks.setdefault(name, rank) != rank)
    name = rankings[row][repeat_rank - 1]
    return f"ranking {row} has {name!r} twice, at ranks {ranks[name]} and {repeat_rank}; keep the better one of each id"


def _has_grades(relevant: Sequence[RelevanceLabels]) -> bool:
    """Return whether any labels are a mapping; checks each type once."""
    return any(issubclass(kind, Mapping) for kind in set(map(type, relevant)))


def label_grades(relevant: Sequence[RelevanceLabels], depth: int) -> tuple[Floats, Counts]:
    """Return the grade of every label and the question that it belongs to, question after question.

    Example:
        >>> from yarus.metrics.gains import label_grades
        >>> label_grades([{"а": 1, "б": 3}, {"в": 0}], 10)
        (array([1., 3., 0.]), array([0, 0, 1]))
    """
    if depth < 1:
        raise ValueError(f"depth = {depth} is below 1")
    if not all(issubclass(kind, Set | Mapping) for kind in set(map(type, relevant))):
        row = next(row for row, labels in enumerate(relevant) if not isinstance(labels, Set | Mapping))
        raise TypeError(f"relevant {row} is {relevant[row]!r}; give a set of ids (empty if unlabelled) or id -> grade")
    sizes = np.fromiter(map(len, relevant), np.int64, len(relevant))
    owner = np.repeat(np.arange(len(relevant)), sizes)
    if not _has_grades(relevant):
        return np.ones(len(owner)), owner
    per_question = (labels.values() if isinstance(labels, Mapping) else repeat(1.0, len(labels)) for labels in relevant)
    grades = np.fromiter(chain.from_iterable(per_question), np.float64, len(owner))
    if (bad := ~((grades >= 0) & np.isfinite(grades))).any():
        row = owner[np.argmax(bad)]
        raise ValueError(
            f"relevant {row} has a grade of {grades[bad][0]:g}: {relevant[row]!r}; grades are finite and 0 or more"
        )
    return grades, owner

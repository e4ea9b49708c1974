"""Metrics for incomplete judgments: how much of a ranking was judged, and values from the judged results alone.

All metrics read one matrix of judgements (questions x ranks, best rank first): the grade of a judged result, 0 if it
was judged not relevant, -1 if it was not judged, -2 beyond the end of a ranking. The row of a question without labels,
or whose retriever failed, is NaN throughout, and so is every metric of it. Values equal trec_eval's on the same
ranking.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from operator import attrgetter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from yarus.metrics.gains import Counts, Floats, Ranking, check_rankings, label_grades

UNJUDGED, NO_RESULT = -1.0, -2.0
EPSILON = 1e-5
"""Constant that trec_eval adds to the judged results above a relevant one, so that a share of 0 results is defined."""
Grades = Mapping[object, float]


def judgement_matrix(
    rankings: Sequence[Ranking], judged: Sequence[Grades], *, depth: int
) -> tuple[Floats, Counts, Counts]:
    """Return the judgement of each result.

    Args:
        rankings: n sequences of distinct ids, best first, cut at `depth`; None if the retriever failed.
        judged: n mappings of id to grade; 0 is "judged, not relevant".
        depth: number of ranks to keep.

    Returns:
        judgements, float64 (n, depth): grade, 0, -1 for an unjudged result, or -2 beyond the end of a ranking. A row is
        NaN if the ranking is None or nothing is relevant, as in `yarus.metrics.retrieval.gain_matrix`.
        n_relevant and n_irrelevant, int (n,): judged so, whether retrieved or not.

    Raises:
        ValueError: different lengths, a ranking with a duplicate, a grade below 0 or NaN, depth < 1.
        TypeError: a ranking that is one text instead of a list, labels that are not a mapping.

    Example:
        >>> from yarus.metrics.incomplete import judgement_matrix
        >>> judgement_matrix([["а", "б", "в"]], [{"б": 1, "в": 0, "я": 2}], depth=4)[0]
        array([[-1.,  1.,  0., -2.]])
    """
    n = len(rankings)
    if n != len(judged):
        raise ValueError(f"{n} rankings but judgements of {len(judged)}; give one of each per question")
    if bad := [row for row, labels in enumerate(judged) if not isinstance(labels, Mapping)]:
        raise TypeError(f"judgements {bad[0]} are {judged[bad[0]]!r}; give id -> grade")
    grades, owner = label_grades(judged, depth)
    n_relevant = np.bincount(owner[grades > 0], minlength=n)
    n_irrelevant = np.bincount(owner[grades == 0], minlength=n)
    answered, lengths = check_rankings(rankings, depth)
    looked_up = map(map, map(attrgetter("get"), judged), answered, repeat(repeat(UNJUDGED)))
    matrix = np.full((n, depth), NO_RESULT, order="F")
    matrix[np.arange(depth) < lengths[:, None]] = np.fromiter(chain.from_iterable(looked_up), np.float64, lengths.sum())
    matrix[n_relevant == 0] = np.nan
    matrix[[row for row, ranking in enumerate(rankings) if ranking is None]] = np.nan
    return matrix, n_relevant, n_irrelevant


def judged(judgements: ArrayLike, *, k: int) -> Floats:
    """Return the share of the first k results that were judged, relevant or not.

    Args:
        judgements: (n, depth) from `judgement_matrix`.
        k: number of ranks, 1 to depth; of a shorter ranking, all results.

    Returns:
        float64 (n,), 0 to 1; NaN if the row is NaN or the ranking is empty.

    Raises:
        ValueError: k below 1 or beyond the depth.

    Reference: Büttcher, Clarke, Yeung and Soboroff 2007, Reliable information retrieval evaluation with incomplete and
    biased judgements.

    Stored as: `judged@1`, `judged@5`, `judged@10` (metrics/table/incomplete.py).

    Example:
        >>> from yarus.metrics.incomplete import judged
        >>> judged([[1, 0, -1, -1], [-1, -2, -2, -2]], k=4)
        array([0.5, 0. ])
    """
    top = _first_ranks(judgements, k)
    n = (top > NO_RESULT).sum(axis=1)  # 0 for a row of NaN
    return np.asarray((top >= 0).sum(axis=1) / np.where(n > 0, n, np.nan))


def unjudged_above(judgements: ArrayLike) -> Floats:
    """Return how many unjudged results are ranked above the first relevant one: a bound of the possible improvement.

    Args:
        judgements: (n, depth) from `judgement_matrix`.

    Returns:
        float64 (n,), 0 to depth - 1; NaN if nothing relevant was retrieved.

    Raises:
        ValueError: judgements that are not a matrix of at least one rank.

    Stored as: `avg_unjudged_above` (metrics/table/incomplete.py).

    Example:
        >>> from yarus.metrics.incomplete import unjudged_above
        >>> unjudged_above([[-1, 0, -1, 1], [0, 0, 0, -1]])
        array([ 2., nan])
    """
    top = _first_ranks(judgements)
    hit = top > 0
    first = hit.argmax(axis=1)
    above = ((top == UNJUDGED) & (np.arange(top.shape[1]) < first[:, None])).sum(axis=1)
    return np.where(hit.any(axis=1), above, np.nan)


def bpref(judgements: ArrayLike, n_relevant: ArrayLike, n_irrelevant: ArrayLike) -> Floats:
    """Return how seldom results judged not relevant are ranked above relevant ones; unjudged results are ignored.

    Args:
        judgements: (n, depth) from `judgement_matrix`.
        n_relevant, n_irrelevant: (n,) from `judgement_matrix`.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN if the row is NaN; 0 for an empty ranking. If nothing was judged
        not relevant it is the recall of the ranking.

    Raises:
        ValueError: different lengths.

    Reference: bpref of trec_eval; Buckley and Voorhees 2004, Retrieval evaluation with incomplete information.

    Stored as: `bpref` (metrics/table/incomplete.py).

    Example:
        >>> from yarus.metrics.incomplete import bpref
        >>> bpref([[0, 1, -1, 1]], [2], [3])  # one of at most two is above each
        array([0.5])
    """
    top = _first_ranks(judgements)
    relevant, irrelevant = (_check_counts(top, counts) for counts in (n_relevant, n_irrelevant))
    most = np.minimum(relevant, irrelevant)[:, None]
    above = np.minimum(np.cumsum(top == 0, axis=1), relevant[:, None])
    scores = np.where(above > 0, 1 - above / np.where(most > 0, most, 1), 1.0)
    return _average_over_relevant(scores * (top > 0), top, relevant)


def inf_ap(judgements: ArrayLike, n_relevant: ArrayLike, *, pooled: bool = False) -> Floats:
    """Return average precision as inferred from the judged results.

    Args:
        judgements: (n, depth) from `judgement_matrix`.
        n_relevant: (n,) from `judgement_matrix`.
        pooled: unjudged results were in the pool from which judgements were drawn at random. Otherwise they are outside
            of the pool and so not relevant, as in trec_eval for ids that its file does not name.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN as in `bpref`. With complete judgements it is average precision.

    Raises:
        ValueError: different lengths.

    Reference: infAP of trec_eval; Yilmaz and Aslam 2006, Estimating average precision with incomplete and imperfect
    judgments.

    Stored as: `inf_ap` (metrics/table/incomplete.py).

    Example:
        >>> from yarus.metrics.incomplete import inf_ap
        >>> inf_ap([[1, 0, 1, -1]], [2]).round(3)  # (1 + 2 / 3) / 2
        array([0.833])
    """
    top = _first_ranks(judgements)
    relevant = _check_counts(top, n_relevant)
    hit, miss = top > 0, top == 0
    above = np.arange(top.shape[1], dtype=np.float64)
    hits, misses = (np.cumsum(flags, axis=1) - flags for flags in (hit, miss))
    n_unjudged = np.cumsum(top == UNJUDGED, axis=1) if pooled else 0
    n_judged = hits + misses
    share = (hits + EPSILON) / (n_judged + 2 * EPSILON)
    expected = (n_judged + n_unjudged) / np.maximum(above, 1) * share
    scores = np.where(above > 0, (1 + above * expected) / (above + 1), 1.0)
    return _average_over_relevant(scores * hit, top, relevant)


def _average_over_relevant(scores: Floats, top: Floats, relevant: Counts) -> Floats:
    """Return the sum over a row as a share of all that is relevant."""
    is_scored = (relevant > 0) & ~np.isnan(top[:, 0])
    return np.asarray(scores.sum(axis=1) / np.where(is_scored, relevant, np.nan))


def _first_ranks(judgements: ArrayLike, k: int | None = None) -> Floats:
    matrix = np.asfortranarray(judgements, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] < 1:
        raise ValueError(
            f"judgements of shape {matrix.shape} are not (questions, ranks); make them by judgement_matrix"
        )
    if k is not None and not 1 <= k <= matrix.shape[1]:
        raise ValueError(f"k = {k} is outside 1 to {matrix.shape[1]}, the depth of the judgements")
    return matrix[:, :k]


def _check_counts(top: Floats, counts: ArrayLike) -> Counts:
    totals: NDArray[np.int64] = np.asarray(counts)
    if totals.shape != (len(top),):
        raise ValueError(f"judgements of {len(top)} questions but counts of shape {totals.shape}")
    return totals

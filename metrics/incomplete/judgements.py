"""How much of a ranking anybody has judged, and what can be said by the judged results alone.

All read one matrix of judgements (questions x ranks, best rank first): the grade of what was judged, 0 for what was
judged not relevant, -1 for what nobody has judged, -2 beyond the end of a ranking. The row of a question without
labels, or whose retriever failed, is NaN throughout, and so is every metric of it. Values equal trec_eval's on the same
ranking.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from operator import attrgetter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from yarus.metrics.gains import Counts, Floats, Ranking, checked_rankings, label_grades

UNJUDGED, NO_RESULT = -1.0, -2.0
EPSILON = 1e-5
"""What trec_eval adds to the judged results above a relevant one, so that of none a share can be had."""
Grades = Mapping[object, float]


def judgement_matrix(
    rankings: Sequence[Ranking], judged: Sequence[Grades], *, depth: int
) -> tuple[Floats, Counts, Counts]:
    """What is known of each result.

    Args:
        rankings: n sequences of distinct ids, best first, cut at `depth`; None where the retriever failed.
        judged: n mappings of id to grade; 0 is "judged, not relevant".
        depth: number of ranks kept.

    Returns:
        judgements, float64 (n, depth): grade, 0, -1 for what nobody has judged, or -2 beyond the end of a ranking. A
        row is NaN if the ranking is None or nothing is relevant, as in `yarus.metrics.retrieval.gain_matrix`.
        n_relevant and n_irrelevant, int (n,): judged so, whether retrieved or not.

    Raises:
        ValueError: different lengths, a ranking with a duplicate, a grade below 0 or NaN, depth < 1.
        TypeError: a ranking that is one text instead of a list, labels that are no mapping.

    Example:
        >>> from yarus.metrics.incomplete import judgement_matrix
        >>> judgement_matrix([["а", "б", "в"]], [{"б": 1, "в": 0, "я": 2}], depth=4)[0]
        array([[-1.,  1.,  0., -2.]])
    """
    n = len(rankings)
    if n != len(judged):
        raise ValueError(f"{n} rankings but judgements of {len(judged)}; give one of each per question")
    if bad := [row for row, of in enumerate(judged) if not isinstance(of, Mapping)]:
        raise TypeError(f"judgements {bad[0]} are {judged[bad[0]]!r}; give id -> grade")
    grades, owner = label_grades(judged, depth)
    n_relevant = np.bincount(owner[grades > 0], minlength=n)
    n_irrelevant = np.bincount(owner[grades == 0], minlength=n)
    answered, lengths = checked_rankings(rankings, depth)
    found = map(map, map(attrgetter("get"), judged), answered, repeat(repeat(UNJUDGED)))
    matrix = np.full((n, depth), NO_RESULT, order="F")
    matrix[np.arange(depth) < lengths[:, None]] = np.fromiter(chain.from_iterable(found), np.float64, lengths.sum())
    matrix[n_relevant == 0] = np.nan
    matrix[[row for row, ranking in enumerate(rankings) if ranking is None]] = np.nan
    return matrix, n_relevant, n_irrelevant


def judged(judgements: ArrayLike, *, k: int) -> Floats:
    """Share of the first k results that anybody has judged, relevant or not.

    Args:
        judgements: (n, depth) from `judgement_matrix`.
        k: ranks looked at, 1 to depth; of a shorter ranking, the results that there are.

    Returns:
        float64 (n,), 0 to 1; NaN where the row is NaN or the ranking is empty.

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
    top = _top(judgements, k)
    n = (top > NO_RESULT).sum(axis=1)  # of a row of NaN, none
    return np.asarray((top >= 0).sum(axis=1) / np.where(n > 0, n, np.nan))


def unjudged_above(judgements: ArrayLike) -> Floats:
    """How many results that nobody has judged stand above the first relevant one: so much may be better than it says.

    Args:
        judgements: (n, depth) from `judgement_matrix`.

    Returns:
        float64 (n,), 0 to depth - 1; NaN where nothing relevant was retrieved.

    Raises:
        ValueError: judgements that are not a matrix of at least one rank.

    Stored as: `avg_unjudged_above` (metrics/table/incomplete.py).

    Example:
        >>> from yarus.metrics.incomplete import unjudged_above
        >>> unjudged_above([[-1, 0, -1, 1], [0, 0, 0, -1]])
        array([ 2., nan])
    """
    top = _top(judgements)
    hit = top > 0
    first = hit.argmax(axis=1)
    above = ((top == UNJUDGED) & (np.arange(top.shape[1]) < first[:, None])).sum(axis=1)
    return np.where(hit.any(axis=1), above, np.nan)


def bpref(judgements: ArrayLike, n_relevant: ArrayLike, n_irrelevant: ArrayLike) -> Floats:
    """How seldom something judged not relevant stands above something relevant; what nobody has judged is passed over.

    Args:
        judgements: (n, depth) from `judgement_matrix`.
        n_relevant, n_irrelevant: (n,) from `judgement_matrix`.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN where the row is NaN; 0 of an empty ranking. Where nothing was
        judged not relevant it is the recall of the ranking.

    Raises:
        ValueError: different lengths.

    Reference: bpref of trec_eval; Buckley and Voorhees 2004, Retrieval evaluation with incomplete information.

    Stored as: `bpref` (metrics/table/incomplete.py).

    Example:
        >>> from yarus.metrics.incomplete import bpref
        >>> bpref([[0, 1, -1, 1]], [2], [3])  # one of at most two stands above each
        array([0.5])
    """
    top = _top(judgements)
    relevant, irrelevant = (_totals(top, counts) for counts in (n_relevant, n_irrelevant))
    most = np.minimum(relevant, irrelevant)[:, None]
    above = np.minimum(np.cumsum(top == 0, axis=1), relevant[:, None])
    worth = np.where(above > 0, 1 - above / np.where(most > 0, most, 1), 1.0)
    return _shared(worth * (top > 0), top, relevant)


def inf_ap(judgements: ArrayLike, n_relevant: ArrayLike, *, pooled: bool = False) -> Floats:
    """Average precision as it is inferred from those results that were judged.

    Args:
        judgements: (n, depth) from `judgement_matrix`.
        n_relevant: (n,) from `judgement_matrix`.
        pooled: what nobody has judged was in the pool that judgements were drawn from, at random; otherwise it is
            taken as outside of the pool, and so as not relevant, as trec_eval takes what its file does not name.

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
    top = _top(judgements)
    relevant = _totals(top, n_relevant)
    hit, miss = top > 0, top == 0
    above = np.arange(top.shape[1], dtype=np.float64)
    hits, misses = (np.cumsum(flags, axis=1) - flags for flags in (hit, miss))
    unknown = np.cumsum(top == UNJUDGED, axis=1) if pooled else 0
    known = hits + misses
    share = (hits + EPSILON) / (known + 2 * EPSILON)
    expected = (known + unknown) / np.maximum(above, 1) * share
    worth = np.where(above > 0, (1 + above * expected) / (above + 1), 1.0)
    return _shared(worth * hit, top, relevant)


def _shared(worth: Floats, top: Floats, relevant: Counts) -> Floats:
    """The sum over a row as a share of all that is relevant."""
    scored = (relevant > 0) & ~np.isnan(top[:, 0])
    return np.asarray(worth.sum(axis=1) / np.where(scored, relevant, np.nan))


def _top(judgements: ArrayLike, k: int | None = None) -> Floats:
    matrix = np.asfortranarray(judgements, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] < 1:
        raise ValueError(
            f"judgements of shape {matrix.shape} are not (questions, ranks); make them by judgement_matrix"
        )
    if k is not None and not 1 <= k <= matrix.shape[1]:
        raise ValueError(f"k = {k} is outside 1 to {matrix.shape[1]}, the depth of the judgements")
    return matrix[:, :k]


def _totals(top: Floats, counts: ArrayLike) -> Counts:
    totals: NDArray[np.int64] = np.asarray(counts)
    if totals.shape != (len(top),):
        raise ValueError(f"judgements of {len(top)} questions but counts of shape {totals.shape}")
    return totals

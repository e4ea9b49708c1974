"""What users of a dialogue system feel: answers that could come from the cache, and questions that hang together.

Vectors are (n, d) embeddings of questions, in order of turn where they belong to dialogs; a zero vector is an error.
"""

from collections.abc import Hashable, Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from yarus.metrics.embedding.vectors import as_matrix, blocks, cluster_codes, mean_defined, vector_lengths

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

SIDE = 1024  # rows and columns of a block of cosines: 8 MB
DIGITS = 12  # of a cosine; beyond them equal texts differ by where they stand in a block


def cache_hit_rate(questions: ArrayLike, cached: ArrayLike, *, threshold: float = 0.85) -> float:
    """Share of questions whose nearest cached question has a cosine above the threshold.

    A question that is itself in the cache finds itself; `nearest_earlier` is for a log, where only earlier ones count.

    Args:
        questions: (n, d).
        cached: (m, d).
        threshold: cosine, -1 to 1; equal to it is no hit.

    Returns:
        0 to 1, higher is better; NaN without questions, and without cached ones: nothing could have been hit.

    Raises:
        ValueError: a threshold outside -1 to 1, different dimensions, a vector that is zero, NaN or infinite.

    Stored as: `cache_hit_rate`, `cache_hit_rate@0.8`, `cache_hit_rate@0.9`, `cache_hit_rate@0.95`
    (metrics/table/ux.py).

    Example:
        >>> from yarus.metrics.dialogue import cache_hit_rate
        >>> cached = [[1.0, 0.0]]
        >>> cache_hit_rate([[1.0, 0.1], [1.0, 1.0]], cached)  # cosines 0.995 and 0.707
        0.5
    """
    asked, known = as_matrix(questions), as_matrix(cached)
    similarities, _ = _nearest(asked, known, np.full(len(asked), len(known)))
    return float(np.mean(cache_hits(similarities, threshold=threshold))) if len(asked) and len(known) else np.nan


def cache_hits(similarities: ArrayLike, *, threshold: float = 0.85) -> NDArray[np.bool_]:
    """Whether each question is hit: its similarity is above the threshold; NaN (nothing to find) is no hit.

    Raises:
        ValueError: a threshold outside -1 to 1.

    Example:
        >>> from math import nan
        >>> from yarus.metrics.dialogue import cache_hits
        >>> cache_hits([0.9, 0.85, nan])
        array([ True, False, False])
    """
    if not -1 <= threshold <= 1:
        raise ValueError(f"threshold = {threshold} is not a cosine, -1 to 1")
    return np.asarray(similarities, dtype=np.float64) > threshold


def cache_wrong_hit_rate(similarities: ArrayLike, right: ArrayLike, *, threshold: float = 0.85) -> float:
    """Share of the hits whose nearest question has an answer that would have been wrong here.

    Args:
        similarities: (n,) from `nearest_earlier`.
        right: (n,) 1 or True where the nearest question's answer is right for this one, 0 or False where it is not, NaN
            where that is not known (left out).
        threshold: as in `cache_hit_rate`.

    Returns:
        0 to 1, lower is better; NaN without a hit of which it is known.

    Raises:
        ValueError: different lengths, a threshold outside -1 to 1.

    Stored as: `cache_wrong_hit_rate`, `cache_wrong_hit_rate@0.8`, `cache_wrong_hit_rate@0.9`,
    `cache_wrong_hit_rate@0.95` (metrics/table/ux.py).

    Example:
        >>> from yarus.metrics.dialogue import cache_wrong_hit_rate
        >>> cache_wrong_hit_rate([0.99, 0.9, 0.5], [1, 0, 0])  # two hits, of which one is wrong
        0.5
    """
    hits, fits = cache_hits(similarities, threshold=threshold), np.asarray(right, dtype=np.float64)
    if hits.shape != fits.shape:
        raise ValueError(f"{hits.shape} similarities but {fits.shape} verdicts; give one of each per question")
    known = fits[hits & ~np.isnan(fits)]
    return float(np.mean(known == 0)) if len(known) else np.nan


def nearest_earlier(
    vectors: ArrayLike, times: ArrayLike, *, candidates: ArrayLike | None = None, asked: ArrayLike | None = None
) -> tuple[Floats, Integers]:
    """The nearest question asked strictly before each one: what a cache filled by then could have answered from.

    Args:
        vectors: (n, d).
        times: (n,) numbers or datetimes, in any order; what was asked at the same time is not earlier.
        candidates: (n,) booleans: the questions that may be found, such as the well-rated ones (default: all).
        asked: (n,) booleans: the questions that one is looked for, such as a sample of them (default: all).

    Returns:
        Cosines, float64 (n,), -1 to 1, NaN where there is no earlier candidate; and the row of the one found, int (n,),
        -1 where there is none. Of equally near ones the earliest.

    Raises:
        ValueError: different lengths, a time that is NaN or NaT, a vector that is zero, NaN or infinite.

    Example:
        >>> from yarus.metrics.dialogue import nearest_earlier
        >>> similarities, places = nearest_earlier([[1, 0], [0, 1], [3, 4]], [1, 2, 3])
        >>> similarities
        array([nan, 0. , 0.8])
        >>> places
        array([-1,  0,  1])
    """
    matrix, when = as_matrix(vectors), np.asarray(times)
    everything = np.ones(len(matrix), np.bool_)
    usable = everything if candidates is None else np.asarray(candidates, dtype=np.bool_)
    sought = everything if asked is None else np.asarray(asked, dtype=np.bool_)
    if not len(matrix) == len(when) == len(usable) == len(sought):
        raise ValueError(
            f"{len(matrix)} vectors but {len(when)} times, {len(usable)} candidates and {len(sought)} asked; "
            "give one of each per question"
        )
    if (unknown := when != when).any():  # NaN and NaT differ from themselves
        raise ValueError(f"time {np.argmax(unknown)} is {when[np.argmax(unknown)]}; leave the question out")
    order = np.argsort(when, kind="stable")
    found = order[usable[order]]
    order = order[sought[order]]
    earlier = np.searchsorted(when[found], when[order], side="left")
    similarities, places = np.full(len(matrix), np.nan), np.full(len(matrix), -1)
    near, place = _nearest(matrix[order], matrix[found], earlier)
    similarities[order] = near
    there = ~np.isnan(near)
    places[order[there]] = found[place[there]]
    return similarities, places


def context_by_dialog(vectors: ArrayLike, dialogs: Iterable[Hashable]) -> Floats:
    """Mean cosine of each dialog's consecutive questions.

    Args:
        vectors: (n, d) in order of turn; the dialogs may be interleaved.
        dialogs: n names of dialogs.

    Returns:
        float64, one a dialog in order of first appearance, -1 to 1; NaN for a dialog of one question.

    Raises:
        ValueError: lengths differ, a question without dialog, a vector that is zero, NaN or infinite.

    Example:
        >>> from yarus.metrics.dialogue import context_by_dialog
        >>> context_by_dialog([[1, 0], [3, 4], [0, 1]], ["anna", "anna", "boris"])
        array([0.6, nan])
    """
    unit, codes = _dialogs(vectors, dialogs)
    order = np.argsort(codes, kind="stable")
    before, after = order[:-1], order[1:]
    same = codes[before] == codes[after]
    before, after = before[same], after[same]
    cosines = np.einsum("ij,ij->i", unit[before], unit[after])
    sizes = np.bincount(codes)
    sums = np.bincount(codes[after], weights=cosines, minlength=len(sizes))
    return np.asarray(np.clip(sums / np.where(sizes > 1, sizes - 1, np.nan), -1, 1))


def context_preservation(vectors: ArrayLike, dialogs: Iterable[Hashable]) -> float:
    """Mean over dialogs of `context_by_dialog`: -1 to 1, higher is better; NaN where no dialog has two questions.

    Stored as: `context_preservation` (metrics/table/ux.py).

    Example:
        >>> from yarus.metrics.dialogue import context_preservation
        >>> context_preservation([[1, 0], [3, 4], [0, 1]], ["anna", "anna", "anna"])  # cosines 0.6 and 0.8
        0.7
    """
    return mean_defined(context_by_dialog(vectors, dialogs))


def consistency_by_dialog(vectors: ArrayLike, dialogs: Iterable[Hashable]) -> Floats:
    """Mean cosine over all pairs of each dialog's questions, a negative one counting as 0.

    Args:
        vectors: (n, d); within a dialog the order does not matter.
        dialogs: n names of dialogs.

    Returns:
        float64, one a dialog in order of first appearance, 0 to 1; NaN for a dialog of one question.

    Raises:
        ValueError: lengths differ, a question without dialog, a vector that is zero, NaN or infinite.

    Example:
        >>> from yarus.metrics.dialogue import consistency_by_dialog
        >>> consistency_by_dialog([[1, 0], [3, 4], [0, 1]], ["anna", "anna", "boris"])
        array([0.6, nan])
    """
    unit, codes = _dialogs(vectors, dialogs)
    sizes = np.bincount(codes)
    values = np.full(len(sizes), np.nan)
    ends = np.cumsum(sizes)
    order = np.argsort(codes, kind="stable")
    for dialog in np.flatnonzero(sizes > 1):
        turns, n = unit[order[ends[dialog] - sizes[dialog] : ends[dialog]]], int(sizes[dialog])
        total = sum(float(np.maximum(block @ turns.T, 0).sum()) for _, block in blocks(turns, SIDE))
        values[dialog] = np.clip((total - n) / (n * (n - 1)), 0, 1)  # each question's cosine with itself is 1
    return values


def multi_turn_consistency(vectors: ArrayLike, dialogs: Iterable[Hashable]) -> float:
    """Mean over dialogs of `consistency_by_dialog`: 0 to 1, higher is better; NaN where no dialog has two questions.

    Stored as: `multi_turn_consistency` (metrics/table/ux.py).

    Example:
        >>> from yarus.metrics.dialogue import multi_turn_consistency
        >>> round(multi_turn_consistency([[1, 0], [3, 4], [0, 1]], ["anna"] * 3), 3)  # cosines 0.6, 0.8 and 0
        0.467
    """
    return mean_defined(consistency_by_dialog(vectors, dialogs))


def _dialogs(vectors: ArrayLike, dialogs: Iterable[Hashable]) -> tuple[Floats, Integers]:
    """Unit vectors, and the number of each one's dialog."""
    matrix, codes = as_matrix(vectors), cluster_codes(dialogs)
    if len(matrix) != len(codes):
        raise ValueError(f"{len(matrix)} vectors but {len(codes)} dialogs; give one dialog per vector")
    return matrix / vector_lengths(matrix)[:, None], codes


def _nearest(questions: NDArray[np.float64], known: NDArray[np.float64], usable: Integers) -> tuple[Floats, Integers]:
    """Highest cosine of each question with the first `usable` known ones, and its place; NaN without any."""
    if len(questions) and len(known) and questions.shape[1] != known.shape[1]:
        raise ValueError(f"questions of {questions.shape[1]} dimensions but known ones of {known.shape[1]}")
    asked_lengths, known_lengths = vector_lengths(questions), vector_lengths(known)
    similarities, places = np.full(len(questions), -np.inf), np.zeros(len(questions), dtype=np.int64)
    for rows, asked in blocks(questions, SIDE):
        best, place = similarities[rows], places[rows]  # views
        for columns, others in blocks(known, SIDE):
            cosines = (asked @ others.T) / np.outer(asked_lengths[rows], known_lengths[columns])
            np.round(cosines, DIGITS, out=cosines)
            cosines[np.arange(columns.start, columns.stop) >= usable[rows, None]] = -np.inf
            nearest = cosines.argmax(axis=1)
            here = cosines[np.arange(len(nearest)), nearest]
            better = here > best
            best[better], place[better] = here[better], nearest[better] + columns.start
    similarities[np.isneginf(similarities)] = np.nan
    return similarities, places

"""Metrics of dialogs: cache hits, and the coherence of consecutive questions.

Vectors are (n, d) embeddings of questions, in order of turn within dialogs; a zero vector is an error.
"""

from collections.abc import Hashable, Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from yarus.metrics.embedding.vectors import as_matrix, blocks, cluster_codes, mean_defined, vector_lengths

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

BLOCK_SIDE = 1024  # rows and columns of a block of cosines: 8 MB
COSINE_DIGITS = 12  # of a cosine; beyond them equal texts differ by their position in a block


def cache_hit_rate(questions: ArrayLike, cached: ArrayLike, *, threshold: float = 0.85) -> float:
    """Return the share of questions whose nearest cached question has a cosine above the threshold.

    A question that is itself in the cache is its own hit; use `nearest_earlier_question` for a log, in which only
    earlier questions count.

    Args:
        questions: (n, d).
        cached: (m, d).
        threshold: cosine, -1 to 1; a cosine equal to it is not a hit.

    Returns:
        0 to 1, higher is better; NaN without questions, and without cached ones, as no hit is possible.

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
    queries, entries = as_matrix(questions), as_matrix(cached)
    similarities, _ = _nearest_candidates(queries, entries, np.full(len(queries), len(entries)))
    return float(np.mean(is_cache_hit(similarities, threshold=threshold))) if len(queries) and len(entries) else np.nan


def is_cache_hit(similarities: ArrayLike, *, threshold: float = 0.85) -> NDArray[np.bool_]:
    """Return whether each question is a hit: its similarity is above the threshold; NaN (nothing to find) is not a hit.

    Raises:
        ValueError: a threshold outside -1 to 1.

    Example:
        >>> from math import nan
        >>> from yarus.metrics.dialogue import is_cache_hit
        >>> is_cache_hit([0.9, 0.85, nan])
        array([ True, False, False])
    """
    if not -1 <= threshold <= 1:
        raise ValueError(f"threshold = {threshold} is not a cosine, -1 to 1")
    return np.asarray(similarities, dtype=np.float64) > threshold


def cache_wrong_hit_rate(similarities: ArrayLike, right: ArrayLike, *, threshold: float = 0.85) -> float:
    """Return the share of the hits whose nearest question has an answer that is wrong for this question.

    Args:
        similarities: (n,) from `nearest_earlier_question`.
        right: (n,) 1 or True if the nearest question's answer is right for this one, 0 or False if it is not, NaN if
            unknown (left out).
        threshold: as in `cache_hit_rate`.

    Returns:
        0 to 1, lower is better; NaN without a hit with a verdict.

    Raises:
        ValueError: different lengths, a threshold outside -1 to 1.

    Stored as: `cache_wrong_hit_rate`, `cache_wrong_hit_rate@0.8`, `cache_wrong_hit_rate@0.9`,
    `cache_wrong_hit_rate@0.95` (metrics/table/ux.py).

    Example:
        >>> from yarus.metrics.dialogue import cache_wrong_hit_rate
        >>> cache_wrong_hit_rate([0.99, 0.9, 0.5], [1, 0, 0])  # two hits, one of them wrong
        0.5
    """
    hits, verdicts = is_cache_hit(similarities, threshold=threshold), np.asarray(right, dtype=np.float64)
    if hits.shape != verdicts.shape:
        raise ValueError(f"{hits.shape} similarities but {verdicts.shape} verdicts; give one of each per question")
    judged_hits = verdicts[hits & ~np.isnan(verdicts)]
    return float(np.mean(judged_hits == 0)) if len(judged_hits) else np.nan


def nearest_earlier_question(
    vectors: ArrayLike, times: ArrayLike, *, candidates: ArrayLike | None = None, asked: ArrayLike | None = None
) -> tuple[Floats, Integers]:
    """Return the nearest question asked strictly before each one: a cache filled by then could have answered from it.

    Args:
        vectors: (n, d).
        times: (n,) numbers or datetimes, in any order; questions asked at the same time are not earlier.
        candidates: (n,) booleans: the questions that may be found, such as the well-rated ones (default: all).
        asked: (n,) booleans: the questions to search for, such as a sample of them (default: all).

    Returns:
        Cosines, float64 (n,), -1 to 1, NaN without an earlier candidate; and the row of the nearest question, int (n,),
        -1 without one. Among equally near questions it is the earliest.

    Raises:
        ValueError: different lengths, a time that is NaN or NaT, a vector that is zero, NaN or infinite.

    Example:
        >>> from yarus.metrics.dialogue import nearest_earlier_question
        >>> similarities, places = nearest_earlier_question([[1, 0], [0, 1], [3, 4]], [1, 2, 3])
        >>> similarities
        array([nan, 0. , 0.8])
        >>> places
        array([-1,  0,  1])
    """
    matrix, asked_at = as_matrix(vectors), np.asarray(times)
    all_questions = np.ones(len(matrix), np.bool_)
    usable = all_questions if candidates is None else np.asarray(candidates, dtype=np.bool_)
    searched = all_questions if asked is None else np.asarray(asked, dtype=np.bool_)
    if not len(matrix) == len(asked_at) == len(usable) == len(searched):
        raise ValueError(
            f"{len(matrix)} vectors but {len(asked_at)} times, {len(usable)} candidates and {len(searched)} asked; "
            "give one of each per question"
        )
    if (is_invalid := asked_at != asked_at).any():  # NaN and NaT differ from themselves
        raise ValueError(f"time {np.argmax(is_invalid)} is {asked_at[np.argmax(is_invalid)]}; leave the question out")
    order = np.argsort(asked_at, kind="stable")
    candidate_order = order[usable[order]]
    order = order[searched[order]]
    earlier = np.searchsorted(asked_at[candidate_order], asked_at[order], side="left")
    similarities, nearest_rows = np.full(len(matrix), np.nan), np.full(len(matrix), -1)
    nearest_similarities, nearest_positions = _nearest_candidates(matrix[order], matrix[candidate_order], earlier)
    similarities[order] = nearest_similarities
    has_nearest = ~np.isnan(nearest_similarities)
    nearest_rows[order[has_nearest]] = candidate_order[nearest_positions[has_nearest]]
    return similarities, nearest_rows


def context_similarity_by_dialog(vectors: ArrayLike, dialogs: Iterable[Hashable]) -> Floats:
    """Return the mean cosine of each dialog's consecutive questions.

    Args:
        vectors: (n, d) in order of turn; the dialogs may be interleaved.
        dialogs: n names of dialogs.

    Returns:
        float64, one per dialog in order of first appearance, -1 to 1; NaN for a dialog of one question.

    Raises:
        ValueError: lengths differ, a question without dialog, a vector that is zero, NaN or infinite.

    Example:
        >>> from yarus.metrics.dialogue import context_similarity_by_dialog
        >>> context_similarity_by_dialog([[1, 0], [3, 4], [0, 1]], ["anna", "anna", "boris"])
        array([0.6, nan])
    """
    unit_vectors, codes = _prepare_dialogs(vectors, dialogs)
    order = np.argsort(codes, kind="stable")
    before, after = order[:-1], order[1:]
    is_same_dialog = codes[before] == codes[after]
    before, after = before[is_same_dialog], after[is_same_dialog]
    cosines = np.einsum("ij,ij->i", unit_vectors[before], unit_vectors[after])
    sizes = np.bincount(codes)
    sums = np.bincount(codes[after], weights=cosines, minlength=len(sizes))
    return np.asarray(np.clip(sums / np.where(sizes > 1, sizes - 1, np.nan), -1, 1))


def context_preservation(vectors: ArrayLike, dialogs: Iterable[Hashable]) -> float:
    """Return the mean over dialogs of `context_similarity_by_dialog`.

    From -1 to 1, higher is better; NaN if every dialog has one question.

    Stored as: `context_preservation` (metrics/table/ux.py).

    Example:
        >>> from yarus.metrics.dialogue import context_preservation
        >>> context_preservation([[1, 0], [3, 4], [0, 1]], ["anna", "anna", "anna"])  # cosines 0.6 and 0.8
        0.7
    """
    return mean_defined(context_similarity_by_dialog(vectors, dialogs))


def consistency_by_dialog(vectors: ArrayLike, dialogs: Iterable[Hashable]) -> Floats:
    """Return the mean cosine over all pairs of each dialog's questions; a negative cosine counts as 0.

    Args:
        vectors: (n, d); within a dialog the order does not matter.
        dialogs: n names of dialogs.

    Returns:
        float64, one per dialog in order of first appearance, 0 to 1; NaN for a dialog of one question.

    Raises:
        ValueError: lengths differ, a question without dialog, a vector that is zero, NaN or infinite.

    Example:
        >>> from yarus.metrics.dialogue import consistency_by_dialog
        >>> consistency_by_dialog([[1, 0], [3, 4], [0, 1]], ["anna", "anna", "boris"])
        array([0.6, nan])
    """
    unit_vectors, codes = _prepare_dialogs(vectors, dialogs)
    sizes = np.bincount(codes)
    values = np.full(len(sizes), np.nan)
    ends = np.cumsum(sizes)
    order = np.argsort(codes, kind="stable")
    for dialog in np.flatnonzero(sizes > 1):
        turns, n = unit_vectors[order[ends[dialog] - sizes[dialog] : ends[dialog]]], int(sizes[dialog])
        total = sum(float(np.maximum(block @ turns.T, 0).sum()) for _, block in blocks(turns, BLOCK_SIDE))
        values[dialog] = np.clip((total - n) / (n * (n - 1)), 0, 1)  # each question's cosine with itself is 1
    return values


def multi_turn_consistency(vectors: ArrayLike, dialogs: Iterable[Hashable]) -> float:
    """Return the mean over dialogs of `consistency_by_dialog`.

    From 0 to 1, higher is better; NaN if every dialog has one question.

    Stored as: `multi_turn_consistency` (metrics/table/ux.py).

    Example:
        >>> from yarus.metrics.dialogue import multi_turn_consistency
        >>> round(multi_turn_consistency([[1, 0], [3, 4], [0, 1]], ["anna"] * 3), 3)  # cosines 0.6, 0.8 and 0
        0.467
    """
    return mean_defined(consistency_by_dialog(vectors, dialogs))


def _prepare_dialogs(vectors: ArrayLike, dialogs: Iterable[Hashable]) -> tuple[Floats, Integers]:
    """Return unit vectors, and the number of each vector's dialog."""
    matrix, codes = as_matrix(vectors), cluster_codes(dialogs)
    if len(matrix) != len(codes):
        raise ValueError(f"{len(matrix)} vectors but {len(codes)} dialogs; give one dialog per vector")
    return matrix / vector_lengths(matrix)[:, None], codes


def _nearest_candidates(
    questions: NDArray[np.float64], candidates: NDArray[np.float64], usable: Integers
) -> tuple[Floats, Integers]:
    """Return the highest cosine of each question with its first `usable` candidates, and its position; NaN if none."""
    if len(questions) and len(candidates) and questions.shape[1] != candidates.shape[1]:
        raise ValueError(f"questions of {questions.shape[1]} dimensions but known ones of {candidates.shape[1]}")
    question_lengths, candidate_lengths = vector_lengths(questions), vector_lengths(candidates)
    similarities, positions = np.full(len(questions), -np.inf), np.zeros(len(questions), dtype=np.int64)
    for rows, block in blocks(questions, BLOCK_SIDE):
        best_cosines, best_places = similarities[rows], positions[rows]  # views
        for columns, candidate_block in blocks(candidates, BLOCK_SIDE):
            cosines = (block @ candidate_block.T) / np.outer(question_lengths[rows], candidate_lengths[columns])
            np.round(cosines, COSINE_DIGITS, out=cosines)
            cosines[np.arange(columns.start, columns.stop) >= usable[rows, None]] = -np.inf
            nearest = cosines.argmax(axis=1)
            highest = cosines[np.arange(len(nearest)), nearest]
            better = highest > best_cosines
            best_cosines[better], best_places[better] = highest[better], nearest[better] + columns.start
    similarities[np.isneginf(similarities)] = np.nan
    return similarities, positions

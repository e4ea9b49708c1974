"""Results of a sampled question that people judge, and corrected metrics from their judgements.

People judge the ranking down to the first relevant result, and all results that the judge calls relevant. For a random
quarter of the sampled questions they judge all results; these estimate what the partial judgements miss. So a third of
the results suffices for a metric of the sampled questions.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from yarus.metrics.statistics.groups import Floats
from yarus.tasks.cases.labels import NO_DUPLICATES
from yarus.tasks.cases.rankings import (
    MIN_ANSWERING_GRADE,
    Pool,
    PooledResult,
    Relevance,
    add_metrics,
    judge_grade,
    needs_judgement,
    relabel_cases,
)
from yarus.tasks.cases.table import column_values, float_column

FULL_JUDGING_PROBABILITY = 0.25
"""Probability that all results of a sampled question are judged."""
MIN_FULLY_JUDGED = 3
"""Minimum number of fully judged questions for an estimate."""
EPSILON = 1e-12


def is_fully_judged(case_id: str) -> bool:
    """Return whether people judge all results of a question once it is sampled.

    Example:
        >>> from yarus.tasks.dataset.labelling.relevance.result_order import is_fully_judged
        >>> sum(is_fully_judged(f"case {number}") for number in range(1_000))
        242
    """
    digest = hashlib.blake2b(f"whole|{case_id}".encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest) < FULL_JUDGING_PROBABILITY * 2**64


def results_to_judge(pool: Pool, judgements: Relevance, *, whole: bool) -> Iterator[PooledResult]:
    """Yield the results to judge next, in order; each choice depends on the judgements so far.

    Args:
        pool: pool of the question.
        judgements: people's judgements of its results so far.
        whole: whether to judge all results.
    """
    has_relevant = False
    # Results without a rank, which only other retrievers returned, come last.
    ranked = sorted(pool, key=lambda result: (result["rank"] is None, result["rank"] or 0))
    for result in ranked:
        if not needs_judgement(result):
            has_relevant = has_relevant or bool(result["label"])
            continue
        before_relevant = result["rank"] is not None and not has_relevant
        if before_relevant or whole or judge_grade(result) >= MIN_ANSWERING_GRADE:
            yield result
            has_relevant = has_relevant or judgements.get(result["result"], False)


def estimate_people_metrics(
    cases: pa.Table, judgements: Sequence[Relevance], weights: Floats, names: Sequence[str], k: int
) -> dict[str, Floats]:
    """Estimate metrics of sampled questions from people's partial judgements.

    Each partial value is scaled by its regression slope on the fully judged questions. Fully judged questions add
    their weighted residuals. Single values may leave 0..1.

    Args:
        cases: n cases with `case_id` and `pooled`.
        judgements: people's judgements of the results of each case.
        weights: (n,) number of questions that each case represents.
        names: columns of the metrics.
        k: the length of the rankings.

    Returns:
        Column -> n values; NaN if fewer than three questions are fully judged.
    """
    is_full = np.array([is_fully_judged(case_id) for case_id in column_values(cases, "case_id")], dtype=bool)
    pairs = list(zip(column_values(cases, "pooled"), judgements, strict=True))
    n_full = int(is_full.sum())
    if n_full < MIN_FULLY_JUDGED:
        return {name: np.full(len(pairs), np.nan) for name in names}
    partial_values = _score_cases(
        cases, [_partial_relevance(pool, case_judgements, judge_all=False) for pool, case_judgements in pairs], names, k
    )
    full_values = _score_cases(
        cases.filter(pa.array(is_full)),
        [_partial_relevance(*pairs[row], judge_all=True) for row in np.flatnonzero(is_full)],
        names,
        k,
    )
    full_weights = weights[is_full]
    represented = weights.sum() / full_weights.sum() * (n_full / (n_full - 2)) ** 0.5
    for name, values in partial_values.items():
        slope = _regression_slope(values[is_full], full_values[name], full_weights)
        residual = full_values[name] - slope * values[is_full]
        values *= slope
        values += np.average(residual, weights=full_weights)
        values[is_full] += represented * (residual - np.average(residual, weights=full_weights))
    return partial_values


def _regression_slope(partial: Floats, full: Floats, weights: Floats) -> float:
    """Return the slope of fully judged values on partial values, clipped to 0..1."""
    deviation = partial - np.average(partial, weights=weights)
    variance = float(weights @ deviation**2)
    return min(max(float(weights @ (deviation * full)) / variance, 0.0), 1.0) if variance > EPSILON else 1.0


def _score_cases(cases: pa.Table, judgements: Sequence[Relevance], names: Sequence[str], k: int) -> dict[str, Floats]:
    scored = add_metrics(relabel_cases(cases, judgements), NO_DUPLICATES, k)
    return {name: float_column(scored, name).copy() for name in names}


def _partial_relevance(pool: Pool, judgements: Relevance, *, judge_all: bool) -> Mapping[str, bool]:
    """Return the relevance of each result by labels and people; results that were not judged are not relevant."""
    required = {result["result"] for result in results_to_judge(pool, judgements, whole=judge_all)}
    return {
        result["result"]: judgements.get(result["result"], False)
        if result["result"] in required
        else bool(result["label"])
        for result in pool
    }

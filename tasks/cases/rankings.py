"""Rankings: their metrics for every case, and pools of judged results."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from typing_extensions import TypedDict

from yarus.metrics import incomplete, retrieval
from yarus.metrics.gains import Counts, Floats
from yarus.tasks.cases.table import column_values, iterate_rows, optional_column_values, set_columns
from yarus.tasks.cases.vocabulary import Duplicates

HIT_RATE_DEPTHS, RECALL_DEPTHS, PRECISION_DEPTHS = (1, 5, 10), (1, 3, 5, 10), (1, 3, 5, 10)
NDCG_DEPTHS, JUDGED_DEPTHS = (5, 10), (1, 5, 10)


def add_metrics(cases: pa.Table, twins: Duplicates, k: int) -> pa.Table:
    """Add the metrics of the rankings to the cases.

    Args:
        cases: cases with `retrieved` and the labels.
        twins: duplicates, which count as one result.
        k: length of the rankings.
    """
    rankings = [ranking and merge_duplicates(ranking, twins) for ranking in column_values(cases, "retrieved")]
    judged_grades = grades_by_id(cases, twins)
    depth = max(k, *HIT_RATE_DEPTHS)
    matrix, n_relevant, n_irrelevant = incomplete.judgement_matrix(rankings, judged_grades, depth=depth)
    ideal = retrieval.ideal_gains(judged_grades, depth=depth)
    columns = _compute_metrics(np.maximum(matrix, 0), n_relevant, ideal)
    columns |= {f"judged@{k}": incomplete.judged(matrix, k=k) for k in JUDGED_DEPTHS}
    columns["unjudged_above"] = incomplete.unjudged_above(matrix)
    columns["bpref"] = incomplete.bpref(matrix, n_relevant, n_irrelevant)
    columns["inf_ap"] = incomplete.inf_ap(matrix, n_relevant)
    bounds = _compute_upper_bounds(matrix, n_relevant, ideal)
    has_value = ~np.isnan(matrix[:, 0])
    by_case = [dict(zip(bounds, row, strict=True)) for row in np.column_stack(list(bounds.values())).tolist()]
    return set_columns(
        cases, **columns, if_right=[row if defined else None for row, defined in zip(by_case, has_value, strict=True)]
    )


def merge_duplicates(ranking: Sequence[str], twins: Duplicates) -> list[str]:
    """Replace each result by the first of its duplicates, and drop repeated ones."""
    return list(dict.fromkeys(twins.get(name, name) for name in ranking))


def grades_by_id(cases: pa.Table, twins: Duplicates) -> list[Mapping[object, float]]:
    """Return id -> grade of the labelled results, duplicates merged; 0 for those judged not relevant."""
    # Older evaluations have no `irrelevant`.
    label_columns = (
        column_values(cases, "relevant"),
        column_values(cases, "grades"),
        optional_column_values(cases, "irrelevant"),
    )
    return [
        {twins.get(name, name): 0.0 for name in irrelevant or ()}
        | {twins.get(name, name): grade for name, grade in zip(relevant, grades or [1.0] * len(relevant), strict=True)}
        for relevant, grades, irrelevant in zip(*label_columns, strict=True)
    ]


def _compute_metrics(gains: Floats, n_relevant: Counts, ideal: Floats) -> dict[str, Floats]:
    """Return the metrics by the labels; unjudged results count as not relevant."""
    columns = _score_gains(gains) | {f"recall@{k}": retrieval.recall(gains, n_relevant, k=k) for k in RECALL_DEPTHS}
    return columns | {f"ndcg@{k}": retrieval.ndcg(gains, n_relevant, k=k, ideal=ideal) for k in NDCG_DEPTHS}


def _compute_upper_bounds(matrix: Floats, n_relevant: Counts, ideal: Floats) -> dict[str, Floats]:
    """Return the metrics if every unjudged result were relevant."""
    columns = _score_gains(incomplete.gains_if_unjudged_relevant(matrix))
    columns |= {f"recall@{k}": incomplete.recall_upper_bound(matrix, n_relevant, k=k) for k in RECALL_DEPTHS}
    return columns | {f"ndcg@{k}": incomplete.ndcg_upper_bound(matrix, ideal, k=k) for k in NDCG_DEPTHS}


def _score_gains(gains: Floats) -> dict[str, Floats]:
    columns = {f"hit_rate@{k}": retrieval.hit_rate(gains, k=k) for k in HIT_RATE_DEPTHS}
    columns["mrr"] = retrieval.reciprocal_rank(gains)
    return columns | {f"precision@{k}": retrieval.precision(gains, k=k) for k in PRECISION_DEPTHS}


MIN_ANSWERING_GRADE = 2
"""Lowest grade of a passage that has an answer."""
NO_RELEVANT_RESULT = "\0"
"""Id in place of the relevant result of a question without one."""
Relevance = Mapping[str, bool]
"""Result -> whether it is relevant."""


class PooledResult(TypedDict):
    """A result of a pool."""

    result: str
    """A chunk or page; the first of its duplicates."""
    rank: int | None
    """Rank in the evaluation's own ranking, from 1; null if only other rankings have it."""
    label: bool | None
    """Whether it is relevant by the source's labels; null if it has none. A result that the corpus lacks is not."""
    grade: int | None
    """The judge's grade, 0 to 3; null if there is a label, or if the judge failed."""


Pool = list[PooledResult]


def make_unlabelled_measurable(cases: pa.Table, answerable: Sequence[bool | None]) -> pa.Table:
    """Mark unlabelled cases as measurable, unless the annotation states that there is no answer."""
    rows = zip(column_values(cases, "status"), column_values(cases, "reason"), answerable, strict=True)
    states = [
        ("ok", None) if status in ("unlabelled", "stale_label") and has_answer is not False else (status, reason)
        for status, reason, has_answer in rows
    ]
    return set_columns(cases, status=[status for status, _ in states], reason=[reason for _, reason in states])


def needs_judgement(pooled: PooledResult) -> bool:
    """Return whether a result needs the judge because it has no label."""
    return pooled["label"] is None


def judged_passages(cases: pa.Table) -> list[dict[str, str]]:
    """Return, per case, result -> the passage that the judge got, for results with one.

    Args:
        cases: cases with `pooled` and `passages`.
    """
    rows = iterate_rows(cases, "pooled", "passages")
    return [
        {pooled["result"]: text for pooled, text in zip(pool or (), texts or (), strict=True) if text is not None}
        for pool, texts in rows
    ]


def judge_grade(pooled: PooledResult) -> int:
    """Return the judge's grade of a result.

    Raises:
        ValueError: it has no grade, because the judge failed or was not asked.
    """
    if pooled["grade"] is None:
        raise ValueError(f"{pooled['result']!r} has no grade")
    return pooled["grade"]


def relevance_by_judge(pool: Pool) -> Relevance | None:
    """Return which results are relevant by the labels, else by the judge; None if the judge failed."""
    if any(needs_judgement(pooled) and pooled["grade"] is None for pooled in pool):
        return None
    return {
        pooled["result"]: judge_grade(pooled) >= MIN_ANSWERING_GRADE if pooled["label"] is None else pooled["label"]
        for pooled in pool
    }


def relabel_cases(cases: pa.Table, relevance_by_case: Sequence[Relevance | None]) -> pa.Table:
    """Return the cases with rankings and labels by the given relevance; without labels for None.

    Args:
        cases: cases with `pooled`.
        relevance_by_case: relevance of the pool's results, per case.
    """
    pools: list[Pool | None] = column_values(cases, "pooled")
    labels = [relevance if pool is not None else None for pool, relevance in zip(pools, relevance_by_case, strict=True)]
    return set_columns(
        cases,
        retrieved=[pool and own_ranking(pool) for pool in pools],
        relevant=[_relevant_results(relevance) if relevance is not None else [] for relevance in labels],
        irrelevant=[
            [result for result, is_relevant in (relevance or {}).items() if not is_relevant] for relevance in labels
        ],
        grades=[None] * len(cases),
    )


def own_ranking(pool: Pool) -> list[str]:
    """Return the evaluation's own ranking of a pool, best first."""
    ranked: list[Any] = sorted((pooled["rank"], pooled["result"]) for pooled in pool if pooled["rank"] is not None)
    return [result for _, result in ranked]


def _relevant_results(relevance: Relevance) -> list[str]:
    return [result for result, is_relevant in relevance.items() if is_relevant] or [NO_RELEVANT_RESULT]

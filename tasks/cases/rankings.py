"""Rankings: their metrics for every case, and pools of results that a judge has looked at."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from typing_extensions import TypedDict

from yarus.metrics import incomplete, retrieval
from yarus.metrics.gains import Counts, Floats
from yarus.tasks.cases.table import rows_of, values_if_any, values_of, with_columns
from yarus.tasks.cases.vocabulary import Twins

HIT_RATE, RECALL, PRECISION, NDCG, JUDGED = (1, 5, 10), (1, 3, 5, 10), (1, 3, 5, 10), (5, 10), (1, 5, 10)


def score(cases: pa.Table, twins: Twins, k: int) -> pa.Table:
    """The cases with the metrics of their rankings.

    Args:
        cases: with `retrieved` and the labels.
        twins: what counts as one.
        k: the length of the rankings.
    """
    rankings = [ranking and distinct(ranking, twins) for ranking in values_of(cases, "retrieved")]
    known = judgements(cases, twins)
    depth = max(k, *HIT_RATE)
    matrix, n_relevant, n_irrelevant = incomplete.judgement_matrix(rankings, known, depth=depth)
    ideal = retrieval.ideal_gains(known, depth=depth)
    columns = _ranked(np.maximum(matrix, 0), n_relevant, ideal)
    columns |= {f"judged@{k}": incomplete.judged(matrix, k=k) for k in JUDGED}
    columns["unjudged_above"] = incomplete.unjudged_above(matrix)
    columns["bpref"] = incomplete.bpref(matrix, n_relevant, n_irrelevant)
    columns["inf_ap"] = incomplete.inf_ap(matrix, n_relevant)
    highest = _highest(matrix, n_relevant, ideal)
    has_value = ~np.isnan(matrix[:, 0])
    best = [dict(zip(highest, row, strict=True)) for row in np.column_stack(list(highest.values())).tolist()]
    return with_columns(
        cases, **columns, if_right=[row if there else None for row, there in zip(best, has_value, strict=True)]
    )


def distinct(ranking: Sequence[str], twins: Twins) -> list[str]:
    """What stands for each result and its twins, each once."""
    return list(dict.fromkeys(twins.get(name, name) for name in ranking))


def judgements(cases: pa.Table, twins: Twins) -> list[Mapping[object, float]]:
    """Id -> grade, of what stands for the labelled ones and their twins; 0 where it was judged not relevant."""
    # Evaluations that were begun before these were told apart have no `irrelevant`.
    named = values_of(cases, "relevant"), values_of(cases, "grades"), values_if_any(cases, "irrelevant")
    return [
        {twins.get(name, name): 0.0 for name in no or ()}
        | {twins.get(name, name): grade for name, grade in zip(yes, grades or [1.0] * len(yes), strict=True)}
        for yes, grades, no in zip(*named, strict=True)
    ]


def _ranked(gains: Floats, n_relevant: Counts, ideal: Floats) -> dict[str, Floats]:
    """As the labels say; what nobody has judged counts as not relevant."""
    columns = _of_gains(gains) | {f"recall@{k}": retrieval.recall(gains, n_relevant, k=k) for k in RECALL}
    return columns | {f"ndcg@{k}": retrieval.ndcg(gains, n_relevant, k=k, ideal=ideal) for k in NDCG}


def _highest(matrix: Floats, n_relevant: Counts, ideal: Floats) -> dict[str, Floats]:
    """The same if every result that nobody has judged were relevant."""
    columns = _of_gains(incomplete.unjudged_right(matrix))
    columns |= {f"recall@{k}": incomplete.highest_recall(matrix, n_relevant, k=k) for k in RECALL}
    return columns | {f"ndcg@{k}": incomplete.highest_ndcg(matrix, ideal, k=k) for k in NDCG}


def _of_gains(gains: Floats) -> dict[str, Floats]:
    columns = {f"hit_rate@{k}": retrieval.hit_rate(gains, k=k) for k in HIT_RATE}
    columns["mrr"] = retrieval.reciprocal_rank(gains)
    return columns | {f"precision@{k}": retrieval.precision(gains, k=k) for k in PRECISION}


ANSWERS = 2
"""Grade from which on a passage has an answer."""
NOT_FOUND = "\0"
"""Stands for the answer of a question that nobody has found."""
Said = Mapping[str, bool]
"""Result -> whether it is relevant."""


class Pooled(TypedDict):
    """One result of a pool."""

    result: str
    """A chunk or page; of twins the first."""
    rank: int | None
    """In the evaluation's own ranking, from 1; null where only others have found it."""
    label: bool | None
    """Whether it is relevant by the labels of the source; null where these do not tell. What the corpus does not have
    is not."""
    grade: int | None
    """The judge's, 0 to 3; null where the labels tell, or the judge failed."""


Pool = list[Pooled]


def fillable(cases: pa.Table, answerable: Sequence[bool | None]) -> pa.Table:
    """The cases, where those without a label can be measured too, unless it is annotated that there is no answer."""
    rows = zip(values_of(cases, "status"), values_of(cases, "reason"), answerable, strict=True)
    states = [
        ("ok", None) if status in ("unlabelled", "stale_label") and has_answer is not False else (status, reason)
        for status, reason, has_answer in rows
    ]
    return with_columns(cases, status=[status for status, _ in states], reason=[reason for _, reason in states])


def to_judge(one: Pooled) -> bool:
    """Whether the labels say nothing of it."""
    return one["label"] is None


def passages_of(cases: pa.Table) -> list[dict[str, str]]:
    """Result -> what the judge was shown of it: of each case, where it was shown something.

    Args:
        cases: with `pooled` and `passages`.
    """
    rows = rows_of(cases, "pooled", "passages")
    return [
        {one["result"]: text for one, text in zip(pool or (), texts or (), strict=True) if text is not None}
        for pool, texts in rows
    ]


def graded(one: Pooled) -> int:
    """The judge's grade of a result that it has graded.

    Raises:
        ValueError: it has none: a failure is no grade.
    """
    if one["grade"] is None:
        raise ValueError(f"{one['result']!r} has no grade")
    return one["grade"]


def by_judge(pool: Pool) -> Said | None:
    """What is relevant by the labels, else by the judge; None where the judge has failed."""
    if any(to_judge(one) and one["grade"] is None for one in pool):
        return None
    return {one["result"]: graded(one) >= ANSWERS if one["label"] is None else one["label"] for one in pool}


def seen(cases: pa.Table, said: Sequence[Said | None]) -> pa.Table:
    """The cases with rankings and labels as somebody sees them; without labels where it is not known.

    Args:
        cases: with `pooled`.
        said: of each case, what is relevant.
    """
    pools: list[Pool | None] = values_of(cases, "pooled")
    known = [of if pool is not None else None for pool, of in zip(pools, said, strict=True)]
    return with_columns(
        cases,
        retrieved=[pool and ranking(pool) for pool in pools],
        relevant=[_relevant(of) if of is not None else [] for of in known],
        irrelevant=[[name for name, yes in (of or {}).items() if not yes] for of in known],
        grades=[None] * len(cases),
    )


def ranking(pool: Pool) -> list[str]:
    """The evaluation's own, best first."""
    own: list[Any] = sorted((one["rank"], one["result"]) for one in pool if one["rank"] is not None)
    return [result for _, result in own]


def _relevant(said: Said) -> list[str]:
    return [name for name, yes in said.items() if yes] or [NOT_FOUND]

"""The metrics of rankings: of every case, as columns, from its results and its labels."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from yarus.metrics import incomplete, retrieval
from yarus.metrics.gains import Counts, Floats
from yarus.tasks.cases.table import with_columns
from yarus.tasks.cases.vocabulary import Twins

HIT_RATE, RECALL, PRECISION, NDCG, JUDGED = (1, 5, 10), (1, 3, 5, 10), (1, 3, 5, 10), (5, 10), (1, 5, 10)


def score(cases: pa.Table, twins: Twins, k: int) -> pa.Table:
    """The cases with the metrics of their rankings.

    Args:
        cases: with `retrieved` and the labels.
        twins: what counts as one.
        k: the length of the rankings.
    """
    rankings = [ranking and distinct(ranking, twins) for ranking in cases["retrieved"].to_pylist()]
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
    named = ("relevant", "grades", "irrelevant")
    if "irrelevant" not in cases.column_names:  # of an evaluation that was begun before these were told apart
        cases = with_columns(cases, irrelevant=[None] * len(cases))
    return [
        {twins.get(name, name): 0.0 for name in no or ()}
        | {twins.get(name, name): grade for name, grade in zip(yes, grades or [1.0] * len(yes), strict=True)}
        for yes, grades, no in zip(*(cases[name].to_pylist() for name in named), strict=True)
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

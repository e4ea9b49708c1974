"""Scoring rankings: the retrieval metrics of every case, as columns."""

import pyarrow as pa

from metrics import retrieval
from tasks.cases.table import with_columns
from tasks.evaluation.run import Run

HIT_RATE, RECALL, PRECISION, NDCG = (1, 5, 10), (1, 3, 5, 10), (1, 3, 5, 10), (5, 10)


def score_rankings(run: Run, cases: pa.Table) -> pa.Table:
    """Adds tier 1's metrics; NULL in all of them without a label, or without a ranking because the retriever failed."""
    rankings = cases["retrieved"].to_pylist()
    relevant = [
        dict(zip(ids, grades, strict=True)) if grades is not None else dict.fromkeys(ids, 1.0)
        for ids, grades in zip(cases["relevant"].to_pylist(), cases["grades"].to_pylist(), strict=True)
    ]
    depth = max(run.resolved["k"], *HIT_RATE)
    gains, n_relevant = retrieval.gain_matrix(rankings, relevant, depth=depth)
    ideal = retrieval.ideal_gains(relevant, depth=depth)
    columns = {f"hit_rate@{k}": retrieval.hit_rate(gains, k=k) for k in HIT_RATE}
    columns["mrr"] = retrieval.reciprocal_rank(gains)
    columns |= {f"recall@{k}": retrieval.recall(gains, n_relevant, k=k) for k in RECALL}
    columns |= {f"precision@{k}": retrieval.precision(gains, k=k) for k in PRECISION}
    columns |= {f"ndcg@{k}": retrieval.ndcg(gains, n_relevant, k=k, ideal=ideal) for k in NDCG}
    return with_columns(cases, **columns)

"""Scoring rankings: the retrieval metrics of every case, as columns."""

import pyarrow as pa

from yarus.tasks.cases.labels import NO_TWINS
from yarus.tasks.cases.ranked.pools import by_judge, seen
from yarus.tasks.cases.ranked.rankings import score
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.work_folder import read_twins


def score_rankings(run: Run, cases: pa.Table) -> pa.Table:
    """Adds the metrics of rankings; NULL in all of them without a label, or where the retriever failed."""
    if "pooled" not in cases.column_names:
        return score(cases, read_twins(run), run.resolved["k"])
    said = [None if pool is None else by_judge(pool) for pool in cases["pooled"].to_pylist()]
    scored = score(seen(cases, said), NO_TWINS, run.resolved["k"])  # in pools twins are one already
    for name in scored.column_names[len(cases.column_names) :]:
        cases = cases.append_column(scored.field(name), scored[name])
    return cases

"""The end of an evaluation of 100,000 cases of 3,000 users: its metrics with their intervals, and what changed."""

import time
from collections.abc import Iterator

from benchmarks import Row
from benchmarks.compare import cases
from benchmarks.home import keep, temporary_home
from yarus.db import journal
from yarus.metrics.table import metrics_of
from yarus.tasks.cases.table import LONG
from yarus.tasks.comparison.paired_changes import paired_changes
from yarus.tasks.evaluation.aggregate import summarise
from yarus.tasks.evaluation.result_files import parquet
from yarus.tasks.evaluation.set_metrics import measure_set

CASES, USERS, LIMIT_S = 100_000, 3_000, 10.0


def run() -> Iterator[Row]:
    """Both by their limit."""
    declared = metrics_of("tier3")
    with temporary_home() as (home, engine):
        for number, name in enumerate(("eight before", "before", "now")):
            file = home / f"{name}.parquet"
            made = cases(number + 1, 0.002 * number, n=CASES, users=USERS)
            keep(engine, file, "tier3", made, closed=name != "now")
        evaluated = parquet(file, without=(*LONG, "question"))
        start = time.perf_counter()
        whole = measure_set([metric.name for metric in declared], evaluated, seed=0)
        n = len(list(summarise(declared, evaluated, seed=0, options={}, whole=whole)))
        intervals = time.perf_counter() - start
        changes = paired_changes(engine, journal.find(engine, "now"), "k", evaluated, declared)
        assert changes is not None
        seconds = time.perf_counter() - start
    what = f"{CASES:,} cases of {USERS:,} users: {n} metrics with intervals"
    yield Row(what, "limit", intervals, LIMIT_S)
    yield Row(f"and what changed in {len(changes['changes'])}", "limit", seconds, LIMIT_S)

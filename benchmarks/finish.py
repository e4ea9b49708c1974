"""The end of an evaluation of 100,000 cases of 3,000 users: metrics with intervals, and changes since the last ones."""

import time
from collections.abc import Iterator

from benchmarks import Row
from benchmarks.compare import simulate_cases
from benchmarks.home import store_evaluation, temporary_home
from yarus.db import journal
from yarus.metrics.table import metrics_for_tier
from yarus.tasks.cases.table import LONG_TEXT_COLUMNS
from yarus.tasks.comparison.paired_changes import paired_changes
from yarus.tasks.evaluation.aggregate import aggregate_metrics
from yarus.tasks.evaluation.result_files import read_parquet
from yarus.tasks.evaluation.set_metrics import measure_set

CASES, USERS, LIMIT_S = 100_000, 3_000, 10.0


def run() -> Iterator[Row]:
    """Compare both with their limit."""
    metrics = metrics_for_tier("tier3")
    with temporary_home() as (home, engine):
        for number, name in enumerate(("eight before", "before", "now")):
            file = home / f"{name}.parquet"
            evaluated_cases = simulate_cases(number + 1, 0.002 * number, n=CASES, users=USERS)
            store_evaluation(engine, file, "tier3", evaluated_cases, closed=name != "now")
        cases_read = read_parquet(file, without=(*LONG_TEXT_COLUMNS, "question"))
        start = time.perf_counter()
        set_values = measure_set([metric.name for metric in metrics], cases_read, seed=0)
        n = len(list(aggregate_metrics(metrics, cases_read, seed=0, options={}, whole=set_values)))
        intervals = time.perf_counter() - start
        changes = paired_changes(engine, journal.find_evaluation(engine, "now"), "k", cases_read, metrics)
        assert changes is not None
        seconds = time.perf_counter() - start
    what = f"{CASES:,} cases of {USERS:,} users: {n} metrics with intervals"
    yield Row(what, "limit", intervals, LIMIT_S)
    yield Row(f"and what changed in {len(changes['changes'])}", "limit", seconds, LIMIT_S)

"""The comparison of two evaluations of 10,000 cases, all metrics of tier 3, 10,000 resamples, with files and slices."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import Row
from benchmarks.home import store_evaluation, temporary_home
from yarus.metrics.table import metrics_for_tier
from yarus.tasks.cases.table import make_cases
from yarus.tasks.comparison.compare import compare

CASES, LIMIT_S = 10_000, 5.0
KINDS = ("Когда", "Где", "Кто", "Как", "Можно ли", "Что")


def simulate_cases(seed: int, shift: float, *, n: int = CASES, users: int = 0) -> pa.Table:
    """Return cases of tier 3 with a value of every metric: rankings, judged scores, answers, latencies.

    Args:
        seed: of this evaluation; the common part of two evaluations does not depend on it.
        shift: of the scores.
        n: number of cases.
        users: number of users; 0: unknown.
    """
    common_generator, generator = np.random.default_rng(0), np.random.default_rng(seed)
    words = [f"слово{number}" for number in range(500)]
    columns: dict[str, Any] = {
        "case_id": [f"bench:{number}" for number in range(n)],
        "question_id": [str(number) for number in range(n)],
        "question": [f"{KINDS[i % 6]} {' '.join(words[i % 400 : i % 400 + i % 11 + 1])}?" for i in range(n)],
        "status": ["ok"] * n,
        "reason": [None] * n,
        "group": [f"user {number % users}" if users else None for number in range(n)],
        "page": [f"https://wiki.example/{number % 300}" for number in range(n)],
        "answerable": [number % 10 > 0 for number in range(n)],
        "context": [" ".join(words[i % 100 : i % 100 + 300]) for i in range(n)],
        "answer": [" ".join(generator.choice(words, 20)) for _ in range(n)],
        "reference": [" ".join(words[i % 400 : i % 400 + 20]) for i in range(n)],
    }
    for metric in metrics_for_tier("tier3"):
        if metric.column is None:
            continue
        level = common_generator.random(n)
        if metric.unit == "ms":
            columns[metric.column] = generator.lognormal(3 + level, 0.5)
        elif metric.interval == "wilson":
            columns[metric.column] = np.where(generator.random(n) < 0.2, generator.random(n) < 0.7, level < 0.7) * 1.0
        else:
            columns[metric.column] = np.clip(level + generator.normal(shift, 0.2, n), 0, 1)
    return make_cases(**columns)


def run() -> Iterator[Row]:
    """Compare the time of a comparison with its limit."""
    with temporary_home() as (home, engine):
        for number, name in enumerate(("before", "after")):
            store_evaluation(engine, home / f"{name}.parquet", "tier3", simulate_cases(number + 1, 0.002 * number))
        compare(engine, "before", "after", only=("mrr",))  # warm-up: imports what a command would have imported
        start = time.perf_counter()
        compared = len(compare(engine, "before", "after")["metrics"])
        seconds = time.perf_counter() - start
    yield Row(f"compare {CASES:,} cases, {compared} metrics, 10,000 resamples", "limit", seconds, LIMIT_S)

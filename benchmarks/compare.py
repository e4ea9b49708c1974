"""Two evaluations of 10,000 cases, all metrics of tier 3, 10,000 resamples: files read, cases paired, slices too."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import Row
from benchmarks.home import keep, temporary_home
from yarus.metrics.table import metrics_of
from yarus.tasks.cases.table import table
from yarus.tasks.comparison.compare import compare

CASES, LIMIT_S = 10_000, 5.0
KINDS = ("Когда", "Где", "Кто", "Как", "Можно ли", "Что")


def cases(seed: int, shift: float, *, n: int = CASES, users: int = 0) -> pa.Table:
    """Tier 3's cases with a value of every metric: rankings, judged scores, answers, latencies.

    Args:
        seed: of this evaluation; what two have in common is the same under any.
        shift: of the scores.
        n: cases.
        users: who asked them; 0: nobody knows.
    """
    same, own_ = np.random.default_rng(0), np.random.default_rng(seed)
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
        "answer": [" ".join(own_.choice(words, 20)) for _ in range(n)],
        "reference": [" ".join(words[i % 400 : i % 400 + 20]) for i in range(n)],
    }
    for metric in metrics_of("tier3"):
        if metric.column is None:
            continue
        level = same.random(n)
        if metric.unit == "ms":
            columns[metric.column] = own_.lognormal(3 + level, 0.5)
        elif metric.interval == "wilson":
            columns[metric.column] = np.where(own_.random(n) < 0.2, own_.random(n) < 0.7, level < 0.7) * 1.0
        else:
            columns[metric.column] = np.clip(level + own_.normal(shift, 0.2, n), 0, 1)
    return table(**columns)


def run() -> Iterator[Row]:
    """The comparison by its limit."""
    with temporary_home() as (home, engine):
        for number, name in enumerate(("before", "after")):
            keep(engine, home / f"{name}.parquet", "tier3", cases(number + 1, 0.002 * number))
        compare(engine, "before", "after", only=("mrr",))  # imports what a command would have imported
        start = time.perf_counter()
        compared = len(compare(engine, "before", "after")["metrics"])
        seconds = time.perf_counter() - start
    yield Row(f"compare {CASES:,} cases, {compared} metrics, 10,000 resamples", "limit", seconds, LIMIT_S)

"""The time of a metric's history over many evaluations, against a limit."""

import time
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

import numpy as np
from sqlalchemy import Engine, insert

from benchmarks import Row
from benchmarks.home import temporary_home
from yarus.db.tables import evaluation, evaluation_metric
from yarus.metrics.table import metrics_for_tier
from yarus.tasks.comparison.trend import trend

NIGHTS = 1_000
LIMIT_S = 1.0


def store_nights(engine: Engine) -> None:
    """Store a thousand nights of tier 1 with all of its metrics."""
    start, values = datetime(2024, 1, 1, tzinfo=UTC), 0.7 + 0.02 * np.random.default_rng(0).normal(size=NIGHTS)
    shared: dict[str, Any] = {"tier": "tier1", "state": "completed", "source": "many", "comparability_key": "key"}
    shared |= {"parameters": {}, "settings": {}, "versions": {}}
    change = {"difference": 0.0, "variance": 1e-4, "far_variance": 1e-4, "lag": 8, "step": 0.005}
    changes = {metric.name: change for metric in metrics_for_tier("tier1")}
    nights = [
        shared
        | {"id": f"tier1-{night:04d}", "started_at": start + timedelta(days=night)}
        | {"resolved": {"paired": {"since": f"tier1-{night - 1:04d}", "share": 1.0, "changes": changes}}}
        for night in range(NIGHTS)
    ]
    metric_rows = [
        {"evaluation_id": f"tier1-{night:04d}", "metric": metric.name, "stratum": "", "value": float(values[night])}
        | {"n_scored": 200, "n_total": 200, "direction": metric.better, "signature": metric.signature}
        for night in range(NIGHTS)
        for metric in metrics_for_tier("tier1")
    ]
    with engine.begin() as connection:
        connection.execute(insert(evaluation), nights)
        connection.execute(insert(evaluation_metric), metric_rows)


def run() -> list[Row]:
    """Return one row."""
    with temporary_home() as (_, engine):
        store_nights(engine)
        times = []
        for _ in range(5):
            start = time.perf_counter()
            history = trend(engine, "hit_rate@1", tier="tier1", source="many", last=NIGHTS)
            times.append(time.perf_counter() - start)
        assert len(history["nights"]) == NIGHTS
        assert history["nights"][-1]["paired"]
    return [Row(f"trend over {NIGHTS:,} evaluations", "limit", median(times), LIMIT_S)]

"""Verdicts of a night for eight tiers over a long history, and a simulated year of one tier, against limits."""

import time
import uuid
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

import numpy as np
from sqlalchemy import Engine, func, insert, select

from benchmarks import Row
from benchmarks.home import temporary_home
from benchmarks.simulations.alarms import WORLDS, find_incidents, simulate_nights
from yarus.db.tables import evaluation, evaluation_metric, nightly_verdict
from yarus.deployments.alarms.incidents import follow_run
from yarus.metrics.statistics.change_detection.noise import NightlyValue
from yarus.tasks.comparison.compare import directed_headlines
from yarus.tasks.config.tiers import TIERS

NIGHTS, YEAR = 1_000, 365
LIMIT_S, YEAR_LIMIT_S = 2.0, 10.0
NOISY = next(world for world in WORLDS if world.noise)


def store_nights(engine: Engine, tier: str, nightly_values: list[NightlyValue]) -> str:
    """Store a thousand nights of a tier, all judged except the last; return its flow run."""
    runs = [str(uuid.uuid4()) for _ in nightly_values]
    start, names = datetime(2024, 1, 1, tzinfo=UTC), [f"{tier}-{number:04d}" for number in range(len(nightly_values))]
    shared: dict[str, Any] = {
        "tier": tier,
        "state": "completed",
        "source": "many",
        "comparability_key": f"key of {tier}",
    }
    shared |= {"parameters": {}, "settings": {}, "versions": {}}
    rows, metric_rows = [], []
    for number, (name, night) in enumerate(zip(names, nightly_values, strict=True)):
        change = {field: getattr(night, field) for field in ("n", "variance", "far_variance", "lag", "step")}
        change |= {"since": names[number - 1], "difference": night.change}
        changes = {metric.name: change for metric in directed_headlines(tier)} if number else {}
        paired = {"paired": {"since": names[number - 1], "share": 1.0, "changes": changes}} if number else {}
        started_at = start + timedelta(days=number)
        rows.append(
            shared
            | {
                "id": name,
                "started_at": started_at,
                "finished_at": started_at,
                "accepted_at": None if number else started_at,
                "resolved": paired,
                "flow_run_id": runs[number],
            }
        )
        half = 1.96 * night.sampling**0.5
        metric_rows += [
            {"evaluation_id": name, "metric": metric.name, "stratum": "", "value": night.value, "n_scored": night.total}
            | {"n_total": night.total, "direction": metric.better, "signature": metric.signature}
            | {"ci_low": night.value - half, "ci_high": night.value + half}
            for metric in directed_headlines(tier)
        ]
    judged = [{"evaluation_id": name, "verdict": "good", "changes": []} for name in names[:-1]]
    with engine.begin() as connection:
        connection.execute(insert(evaluation), rows)
        connection.execute(insert(evaluation_metric), metric_rows)
        connection.execute(insert(nightly_verdict), judged)
    return runs[-1]


def run() -> list[Row]:
    """Yield both rows."""
    with temporary_home() as (_, engine):
        nights_by_tier = [simulate_nights(NOISY, NIGHTS, np.random.default_rng(number)) for number in range(len(TIERS))]
        runs = [store_nights(engine, tier, nights) for tier, nights in zip(TIERS, nights_by_tier, strict=True)]
        start = time.perf_counter()
        for flow_run_id in runs:
            follow_run(engine, flow_run_id)
        judging = time.perf_counter() - start
        good = select(func.count()).where(nightly_verdict.c.verdict == "good")
        with engine.connect() as connection:
            assert connection.scalar(good) == NIGHTS * len(TIERS)
    years = []
    for seed in range(5):
        start = time.perf_counter()
        find_incidents(simulate_nights(NOISY, YEAR, np.random.default_rng(seed)))
        years.append(time.perf_counter() - start)
    return [
        Row(f"verdicts of {len(TIERS)} tiers, {NIGHTS:,} nights each", "limit", judging, LIMIT_S),
        Row("a simulated year of one tier", "limit", median(years), YEAR_LIMIT_S),
    ]

"""How long a night's verdicts of eight tiers take over a long history, and a simulated year of one, against limits."""

import time
import uuid
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

import numpy as np
from sqlalchemy import Engine, func, insert, select

from benchmarks import Row
from benchmarks.home import temporary_home
from benchmarks.simulations.alarms import WORLDS, nights, watched
from yarus.db.tables import evaluation, evaluation_metric, nightly_verdict
from yarus.deployments.alarms.incidents import follow_run
from yarus.metrics.statistics.alarms.noise import Night
from yarus.tasks.comparison.compare import headlines_of
from yarus.tasks.config.tiers import TIERS

NIGHTS, YEAR = 1_000, 365
LIMIT_S, YEAR_LIMIT_S = 2.0, 10.0
NOISY = next(world for world in WORLDS if world.noise)


def filled(engine: Engine, tier: str, line: list[Night]) -> str:
    """A thousand nights of a tier, judged but for the last; the flow run of that."""
    runs = [str(uuid.uuid4()) for _ in line]
    start, names = datetime(2024, 1, 1, tzinfo=UTC), [f"{tier}-{number:04d}" for number in range(len(line))]
    shared: dict[str, Any] = {
        "tier": tier,
        "state": "completed",
        "source": "many",
        "comparability_key": f"key of {tier}",
    }
    shared |= {"parameters": {}, "settings": {}, "versions": {}}
    rows, measured = [], []
    for number, (name, night) in enumerate(zip(names, line, strict=True)):
        told = {field: getattr(night, field) for field in ("n", "variance", "far_variance", "lag", "step")}
        told |= {"since": names[number - 1], "difference": night.change}
        changes = {one.name: told for one in headlines_of(tier)} if number else {}
        paired = {"paired": {"since": names[number - 1], "share": 1.0, "changes": changes}} if number else {}
        begun = start + timedelta(days=number)
        rows.append(
            shared
            | {
                "id": name,
                "started_at": begun,
                "finished_at": begun,
                "accepted_at": None if number else begun,
                "resolved": paired,
                "flow_run_id": runs[number],
            }
        )
        half = 1.96 * night.sampling**0.5
        measured += [
            {"evaluation_id": name, "metric": one.name, "stratum": "", "value": night.value, "n_scored": night.total}
            | {"n_total": night.total, "direction": one.better, "signature": one.signature}
            | {"ci_low": night.value - half, "ci_high": night.value + half}
            for one in headlines_of(tier)
        ]
    judged = [{"evaluation_id": name, "verdict": "good", "changes": []} for name in names[:-1]]
    with engine.begin() as connection:
        connection.execute(insert(evaluation), rows)
        connection.execute(insert(evaluation_metric), measured)
        connection.execute(insert(nightly_verdict), judged)
    return runs[-1]


def run() -> list[Row]:
    """Two rows."""
    with temporary_home() as (_, engine):
        lines = [nights(NOISY, NIGHTS, np.random.default_rng(number)) for number in range(len(TIERS))]
        runs = [filled(engine, tier, line) for tier, line in zip(TIERS, lines, strict=True)]
        begin = time.perf_counter()
        for flow_run_id in runs:
            follow_run(engine, flow_run_id)
        judging = time.perf_counter() - begin
        good = select(func.count()).where(nightly_verdict.c.verdict == "good")
        with engine.connect() as connection:
            assert connection.scalar(good) == NIGHTS * len(TIERS)
    years = []
    for seed in range(5):
        begin = time.perf_counter()
        watched(nights(NOISY, YEAR, np.random.default_rng(seed)))
        years.append(time.perf_counter() - begin)
    return [
        Row(f"verdicts of {len(TIERS)} tiers, {NIGHTS:,} nights each", "limit", judging, LIMIT_S),
        Row("a simulated year of one tier", "limit", median(years), YEAR_LIMIT_S),
    ]

"""Write long histories of evaluations into the journal, as their flows would. Imported by full name."""

import secrets
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from sqlalchemy import Engine, insert, select

from yarus.db import journal
from yarus.db.tables import evaluation, evaluation_metric, nightly_verdict
from yarus.deployments.alarms.incidents import follow_run, list_incidents
from yarus.metrics.table import metrics_for_tier
from yarus.tasks.cases.table import make_cases
from yarus.tasks.comparison.common_cases import read_cases
from yarus.tasks.comparison.gate import gate
from yarus.tasks.comparison.gate_rules import GateRule, GateRules
from yarus.tasks.comparison.paired_changes import paired_changes
from yarus.tasks.evaluation.aggregate import aggregate_metrics, split_by_stratum
from yarus.tasks.steps.question_mix import question_mix

START = datetime(2024, 1, 4, 3, tzinfo=UTC)
DAYS_BETWEEN = 400
"""Days between the first nights of two histories; all are past, so that a test's own runs are the newest."""
Columns = Mapping[str, Sequence[Any]]
N_GATED = 200
"""Number of cases of an evaluation that a gate checks."""
N_WATCHED = 300
"""Number of cases of a nightly run that is monitored."""


def make_source_name() -> str:
    """Return a unique source name for a test, because all tests share the journal."""
    return f"history_{secrets.token_hex(4)}"


def write_evaluations(
    engine: Engine,
    source: str,
    values: Sequence[float | None],
    *,
    tier: str = "tier1",
    metric: str = "hit_rate@1",
    stratum: str = "",
    first_night: int = 0,
    key: str | None = None,
    width: float = 0.05,
    n: int = 200,
    **more: Any,
) -> list[str]:
    """Write one evaluation per night with that value of the metric; return their ids, oldest first."""
    ids = [f"{tier}-{source}-{first_night + night:04d}-{secrets.token_hex(2)}" for night in range(len(values))]
    row = {"tier": tier, "state": "completed", "source": source, "n_cases": n, "parameters": {}, "settings": {}}
    row |= {"versions": {}, "resolved": {}, "comparability_key": key or f"key of {source}", "comparability": {}} | more
    starts = [START + timedelta(days=first_night + night) for night in range(len(values))]
    rows = [
        row | {"id": name, "started_at": start, "finished_at": start + timedelta(minutes=1)}
        for name, start in zip(ids, starts, strict=True)
    ]
    metric_rows = [
        {
            "evaluation_id": name,
            "metric": metric,
            "stratum": stratum,
            "value": value,
            "ci_low": None if value is None else value - width,
            "ci_high": None if value is None else value + width,
            "n_scored": 0 if value is None else n,
            "n_total": n,
            "direction": "higher",
            "signature": f"{metric}|v:1",
        }
        for name, value in zip(ids, values, strict=True)
    ]
    with engine.begin() as connection:
        connection.execute(insert(evaluation), rows)
        connection.execute(insert(evaluation_metric), metric_rows)
        if ids:
            journal.accept_if_first(connection, ids[0])
    return ids


def write_evaluation_with_cases(
    engine: Engine,
    folder: Path,
    source: str,
    columns: Mapping[str, Sequence[Any]],
    *,
    tier: str = "tier1",
    night: int = 0,
    **more: Any,
) -> str:
    """Write a finished evaluation with a file of cases and the metrics of its columns; return its id."""
    n = len(next(iter(columns.values())))
    defaults: dict[str, Any] = {
        "case_id": [f"{source}:{number}" for number in range(n)],
        "question": [f"Вопрос {number}?" for number in range(n)],
        "status": ["ok"] * n,
        "reason": [None] * n,
        "group": [None] * n,
    }
    cases = make_cases(**(defaults | dict(columns)))
    file = folder / f"{source}-{night}-{secrets.token_hex(2)}.parquet"
    pq.write_table(cases, file)
    more = {"parquet": str(file)} | more
    (name,) = write_evaluations(engine, source, [None], tier=tier, metric="-", first_night=night, n=n, **more)
    declared = [row for row in metrics_for_tier(tier) if row.column in {*columns} or row.name == "sut_error_rate"]
    rows = [
        value.row(stratum) | {"evaluation_id": name}
        for stratum, part in split_by_stratum(cases).items()
        for value in aggregate_metrics(declared, part, seed=0, options={}, whole={})
    ]
    with engine.begin() as connection:
        for row in rows:
            connection.execute(insert(evaluation_metric).values(row))
    return name


def make_hits(share: float, n: int = N_GATED) -> list[float]:
    """Return binary values with that share of ones, the zeros first."""
    return [0.0] * round(n * (1 - share)) + [1.0] * round(n * share)


def run_gate(
    engine: Engine,
    folder: Path,
    before: Columns | None,
    after: Columns,
    *rules: GateRule,
    **more: Any,
) -> Any:
    """Return the gate's document on an evaluation that follows another one."""
    source = make_source_name()
    baseline = write_evaluation_with_cases(engine, folder, source, before, **more) if before is not None else None
    name = write_evaluation_with_cases(engine, folder, source, after, night=1, **more)
    result = gate(engine, name, GateRules(None, {}, rules))
    assert result["baseline"] == baseline
    return result


def run_gate_rule(
    engine: Engine,
    folder: Path,
    before: Columns | None,
    after: Columns,
    rule: GateRule,
    **more: Any,
) -> Any:
    (rule_result,) = run_gate(engine, folder, before, after, rule, **more)["rules"]
    return rule_result


class NightHistory:
    """Nights of one tier over its own source, in its own year, so that other tests' nights do not count."""

    _years = count(1)

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine, self.folder, self.source, self.n = engine, folder, make_source_name(), 0
        self._first = -DAYS_BETWEEN * next(self._years)

    def night(self, hits: Any, *, cases: str = "", columns: Columns | None = None, **more: Any) -> str:
        """Write a night with those hits and return its verdict; other `cases` make other case ids."""
        self.n += 1
        flow_run_id, values = str(uuid.uuid4()), np.asarray(hits, dtype=np.float64).tolist()
        columns = dict(columns or {}) | dict.fromkeys(("hit_rate@1", "mrr", "ndcg@10"), values)
        columns["case_id"] = [f"{self.source}:{cases}{number}" for number in range(len(values))]
        options = {"night": self._first + self.n, "flow_run_id": flow_run_id, **more}
        self.last = write_evaluation_with_cases(self.engine, self.folder, self.source, columns, **options)
        row = journal.find_evaluation(self.engine, self.last)
        if row["state"] == "completed" and row["parquet"] and Path(row["parquet"]).exists():
            key = row["comparability_key"]
            mix, ordered = question_mix(self.engine, row, key, read_cases(row))
            findings = {"mix": mix, "paired": paired_changes(self.engine, row, key, ordered, metrics_for_tier("tier1"))}
            stored = {name: finding for name, finding in findings.items() if finding}
            journal.update_evaluation(self.engine, self.last, resolved=row["resolved"] | stored)
        follow_run(self.engine, flow_run_id)
        verdict_query = select(nightly_verdict.c.verdict).where(nightly_verdict.c.evaluation_id == self.last)
        with self.engine.connect() as connection:
            return str(connection.scalar(verdict_query))

    @property
    def open(self) -> list[str]:
        """Return the verdicts of the open incidents."""
        return [incident["verdict"] for incident in list_incidents(self.engine) if incident["source"] == self.source]


def make_hit_flags(hit: float, n: int = N_WATCHED) -> list[bool]:
    return [number < hit * n for number in range(n)]

"""Long histories of evaluations, written into the journal as their flows would have. Imported by full name."""

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
from yarus.deployments.alarms.incidents import follow_run, incidents
from yarus.metrics.table import metrics_of
from yarus.tasks.cases.table import table
from yarus.tasks.comparison.common_cases import read_cases
from yarus.tasks.comparison.gate import gate
from yarus.tasks.comparison.gate_rules import Policy, Rule
from yarus.tasks.comparison.paired_changes import paired_changes
from yarus.tasks.evaluation.aggregate import strata, summarise
from yarus.tasks.steps.question_mix import question_mix

START = datetime(2024, 1, 4, 3, tzinfo=UTC)
APART = 400
"""Days between the first nights of two histories; all are past, so that the newest is what a test has just made."""
Columns = Mapping[str, Sequence[Any]]
N_GATED = 200
"""Cases of what a gate judges."""
N_WATCHED = 300
"""Cases of a night that is watched."""


def source_name() -> str:
    """A source of its own for a test, in the journal that all tests share."""
    return f"history_{secrets.token_hex(4)}"


def write(
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
    """One evaluation a night with that value of the metric; their ids, oldest first."""
    ids = [f"{tier}-{source}-{first_night + night:04d}-{secrets.token_hex(2)}" for night in range(len(values))]
    row = {"tier": tier, "state": "completed", "source": source, "n_cases": n, "parameters": {}, "settings": {}}
    row |= {"versions": {}, "resolved": {}, "comparability_key": key or f"key of {source}", "comparability": {}} | more
    starts = [START + timedelta(days=first_night + night) for night in range(len(values))]
    rows = [
        row | {"id": name, "started_at": start, "finished_at": start + timedelta(minutes=1)}
        for name, start in zip(ids, starts, strict=True)
    ]
    measured = [
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
        connection.execute(insert(evaluation_metric), measured)
        if ids:
            journal.accept_first(connection, ids[0])
    return ids


def with_cases(
    engine: Engine,
    folder: Path,
    source: str,
    columns: Mapping[str, Sequence[Any]],
    *,
    tier: str = "tier1",
    night: int = 0,
    **more: Any,
) -> str:
    """A finished evaluation with a file of cases, and the metrics that its columns come to; its id."""
    n = len(next(iter(columns.values())))
    given: dict[str, Any] = {
        "case_id": [f"{source}:{number}" for number in range(n)],
        "question": [f"Вопрос {number}?" for number in range(n)],
        "status": ["ok"] * n,
        "reason": [None] * n,
        "group": [None] * n,
    }
    cases = table(**(given | dict(columns)))
    file = folder / f"{source}-{night}-{secrets.token_hex(2)}.parquet"
    pq.write_table(cases, file)
    more = {"parquet": str(file)} | more
    (name,) = write(engine, source, [None], tier=tier, metric="-", first_night=night, n=n, **more)
    declared = [metric for metric in metrics_of(tier) if metric.column in {*columns} or metric.name == "sut_error_rate"]
    rows = [
        value.row(stratum) | {"evaluation_id": name}
        for stratum, part in strata(cases).items()
        for value in summarise(declared, part, seed=0, options={}, whole={})
    ]
    with engine.begin() as connection:
        for row in rows:
            connection.execute(insert(evaluation_metric).values(row))
    return name


def hits(share: float, n: int = N_GATED) -> list[float]:
    """Yes/no values with that share of yes, the noes first."""
    return [0.0] * round(n * (1 - share)) + [1.0] * round(n * share)


def judged(
    engine: Engine,
    folder: Path,
    before: Columns | None,
    after: Columns,
    *rules: Rule,
    **more: Any,
) -> Any:
    """The gate's document on an evaluation that follows another one."""
    source = source_name()
    baseline = with_cases(engine, folder, source, before, **more) if before is not None else None
    name = with_cases(engine, folder, source, after, night=1, **more)
    found = gate(engine, name, Policy(None, {}, rules))
    assert found["baseline"] == baseline
    return found


def one(
    engine: Engine,
    folder: Path,
    before: Columns | None,
    after: Columns,
    rule: Rule,
    **more: Any,
) -> Any:
    (found,) = judged(engine, folder, before, after, rule, **more)["rules"]
    return found


class History:
    """Nights of one tier over a source of its own, in a year of its own: other tests' nights do not count as looks."""

    _years = count(1)

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine, self.folder, self.source, self.n = engine, folder, source_name(), 0
        self._first = -APART * next(self._years)

    def night(self, hits: Any, *, cases: str = "", columns: Columns | None = None, **more: Any) -> str:
        """The verdict of a night whose evaluation has those hits; cases of another name are other cases."""
        self.n += 1
        run, values = str(uuid.uuid4()), np.asarray(hits, dtype=np.float64).tolist()
        columns = dict(columns or {}) | dict.fromkeys(("hit_rate@1", "mrr", "ndcg@10"), values)
        columns["case_id"] = [f"{self.source}:{cases}{number}" for number in range(len(values))]
        given = {"night": self._first + self.n, "flow_run_id": run, **more}
        self.last = with_cases(self.engine, self.folder, self.source, columns, **given)
        row = journal.find(self.engine, self.last)
        if row["state"] == "completed" and row["parquet"] and Path(row["parquet"]).exists():
            key = row["comparability_key"]
            mix, sorted_cases = question_mix(self.engine, row, key, read_cases(row))
            found = {"mix": mix, "paired": paired_changes(self.engine, row, key, sorted_cases, metrics_of("tier1"))}
            stored = {name: one for name, one in found.items() if one}
            journal.describe(self.engine, self.last, resolved=row["resolved"] | stored)
        follow_run(self.engine, run)
        said = select(nightly_verdict.c.verdict).where(nightly_verdict.c.evaluation_id == self.last)
        with self.engine.connect() as connection:
            return str(connection.scalar(said))

    @property
    def open(self) -> list[str]:
        """The verdicts of what goes on."""
        return [one["verdict"] for one in incidents(self.engine) if one["source"] == self.source]


def share(hit: float, n: int = N_WATCHED) -> list[bool]:
    return [number < hit * n for number in range(n)]

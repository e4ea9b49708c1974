"""Interrupt evaluations: catch one while it runs, and assert that it left no partial result. Imported by full name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, select

from yarus.db import journal
from yarus.db.tables import evaluation, evaluation_metric

Server = dict[str, str]
STOP_S = 10
QUALITY = ("hit_rate@1", "mrr", "recall@10", "ndcg@10")


def add_delay(server: Mapping[str, str], seconds: float = 0) -> dict[str, str]:
    return {**server, "SLUGGISH_S": str(seconds)}


def find_running(engine: Engine, before: set[str]) -> Any:
    """Return a new evaluation whose cases are loaded and that is about to call the retriever."""
    query = select(evaluation).where(evaluation.c.state == "running", evaluation.c.id.not_in(before))
    with engine.connect() as connection:
        rows = connection.execute(query.where(evaluation.c.resolved["k"].is_not(None))).mappings()
        return rows.first()


def list_evaluation_ids(engine: Engine) -> set[str]:
    with engine.connect() as connection:
        return set(connection.scalars(select(evaluation.c.id)))


def assert_no_partial_result(engine: Engine, home: Path, name: str) -> None:
    with engine.connect() as connection:
        metrics = connection.execute(select(evaluation_metric).where(evaluation_metric.c.evaluation_id == name)).all()
    assert metrics == []
    assert list((home / "results").rglob(f"*{name}*")) == []


def assert_stopped_in_time(engine: Engine, home: Path, name: str, seconds: float) -> None:
    """Assert that an evaluation stopped soon, without a partial result, and with a hint how to resume."""
    assert seconds < 3 * STOP_S  # 10 s on an idle machine
    stopped = journal.find_evaluation(engine, name)
    assert stopped["state"] == "cancelled"
    assert f"yarus run tier1 --resume {name}" in stopped["error"]
    assert_no_partial_result(engine, home, name)

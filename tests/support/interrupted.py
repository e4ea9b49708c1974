"""Evaluations to be interrupted: one caught on its way, and that it left no half result. Imported by full name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, select

from yarus.db import journal
from yarus.db.tables import evaluation, evaluation_metric

Server = dict[str, str]
STOP_S = 10
QUALITY = ("hit_rate@1", "mrr", "recall@10", "ndcg@10")


def variables(server: Mapping[str, str], seconds: float = 0) -> dict[str, str]:
    return {**server, "SLUGGISH_S": str(seconds)}


def running(engine: Engine, before: set[str]) -> Any:
    """A new evaluation whose cases are loaded, and that is about to ask the retriever."""
    wanted = select(evaluation).where(evaluation.c.state == "running", evaluation.c.id.not_in(before))
    with engine.connect() as connection:
        rows = connection.execute(wanted.where(evaluation.c.resolved["k"].is_not(None))).mappings()
        return rows.first()


def known(engine: Engine) -> set[str]:
    with engine.connect() as connection:
        return set(connection.scalars(select(evaluation.c.id)))


def no_half_result(engine: Engine, home: Path, name: str) -> None:
    with engine.connect() as connection:
        metrics = connection.execute(select(evaluation_metric).where(evaluation_metric.c.evaluation_id == name)).all()
    assert metrics == []
    assert list((home / "results").rglob(f"*{name}*")) == []


def stopped_in_time(engine: Engine, home: Path, name: str, seconds: float) -> None:
    """Soon, without half a result, and saying how to go on."""
    assert seconds < 3 * STOP_S  # 10 s on a machine that is not busy with other things
    stopped = journal.find(engine, name)
    assert stopped["state"] == "cancelled"
    assert f"yarus run tier1 --resume {name}" in stopped["error"]
    no_half_result(engine, home, name)

"""The evaluations that ask again what changed in another one, as the journal has them."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Engine, select
from sqlalchemy.engine import RowMapping

from yarus.db.journal import FINISHED
from yarus.db.tables import evaluation
from yarus.tasks.results.persistence.documents import Persistence


def confirmation(engine: Engine, row: RowMapping, *, finished: bool = True) -> RowMapping | None:
    """The newest evaluation that asks again what changed in another one.

    Args:
        engine: of our own database.
        row: of the other one.
        finished: or one that was begun and is not.
    """
    of = evaluation.c
    # Where it is looked for first: an index has these.
    later = of.tier == row["tier"], of.source == row["source"], of.started_at >= row["started_at"]
    asks = select(evaluation).where(*later, of.parameters["confirms"].astext == row["id"])
    wanted = asks.where(of.state.in_(FINISHED) if finished else of.state.not_in(FINISHED))
    with engine.connect() as connection:
        return connection.execute(wanted.order_by(of.started_at.desc()).limit(1)).mappings().first()


def persistence_of(engine: Engine, row: RowMapping) -> Persistence | None:
    """What was found where the changes of an evaluation were asked again; None where nobody has.

    Args:
        engine: of our own database.
        row: of the evaluation.
    """
    asked = confirmation(engine, row)
    found: Persistence | None = asked["resolved"].get("persistence") if asked is not None else None
    return found


def asks_again(summary: Mapping[str, Any]) -> bool:
    """Whether an evaluation, by its summary, asks again what changed in another one, or what failed."""
    return "failed_again" in summary or bool(
        summary.get("persistence", {}).get("asked_again") == summary["evaluation_id"]
    )

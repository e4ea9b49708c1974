"""Prefect's retry of a night: what is completed is kept, what was begun goes on, the rest is evaluated."""

import logging
from typing import TypeVar
from uuid import UUID

from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.deployments.prefect.cancellation import runs_of
from yarus.tasks.config.parameters import Parameters
from yarus.tasks.evaluation.identity import same_settings

log = logging.getLogger("yarus")
Begun = dict[tuple[str, str | None], RowMapping]
"""Tier and anchor -> its evaluation."""
Chosen = TypeVar("Chosen", bound=Parameters)


async def begun_by(engine: Engine, flow_run_id: str | None) -> Begun:
    """What earlier tries of a night's flow run have begun, as the journal has it."""
    parts = await runs_of(UUID(flow_run_id)) if flow_run_id else []
    rows = [row for part in parts if (row := journal.of_flow_run(engine, str(part.id)))]
    nights = [row for row in rows if not row["parameters"].get("confirms")]
    return {
        (row["tier"], row["parameters"].get("anchor")): row for row in sorted(nights, key=lambda row: row["started_at"])
    }


def completed(begun: Begun, tier: str, parameters: Parameters) -> RowMapping | None:
    """The evaluation that an earlier try has completed; an invalid one is no result to keep."""
    row = _of(begun, tier, parameters)
    return row if row is not None and row["state"] == "completed" else None


def going_on(engine: Engine, begun: Begun, tier: str, parameters: Chosen) -> Chosen:
    """The parameters, to resume what an earlier try has begun and could not finish, unless the settings changed."""
    row = _of(begun, tier, parameters)
    if row is None or row["state"] in journal.FINISHED:
        return parameters
    try:
        same_settings(row)
    except InputError as changed:
        log.warning("%s: evaluated anew", changed)
        journal.describe(engine, row["id"], flow_run_id=None)  # Prefect may give the tier that flow run again
        return parameters
    return parameters.model_copy(update={"resume": row["id"]})


def _of(begun: Begun, tier: str, parameters: Parameters) -> RowMapping | None:
    return begun.get((tier, getattr(parameters, "anchor", None)))

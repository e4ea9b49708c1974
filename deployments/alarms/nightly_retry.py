"""Retry a night in Prefect: keep completed evaluations, resume unfinished ones, run the rest."""

import logging
from typing import TypeVar
from uuid import UUID

from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.deployments.prefect.cancellation import read_flow_runs
from yarus.tasks.config.parameters import Parameters
from yarus.tasks.evaluation.identity import require_same_settings

log = logging.getLogger("yarus")
StartedEvaluations = dict[tuple[str, str | None], RowMapping]
"""Tier and anchor -> its evaluation."""
ParametersT = TypeVar("ParametersT", bound=Parameters)


async def read_started(engine: Engine, flow_run_id: str | None) -> StartedEvaluations:
    """Return the evaluations that earlier tries of a night's flow run have begun, from the journal."""
    flow_runs = await read_flow_runs(UUID(flow_run_id)) if flow_run_id else []
    rows = [row for flow_run in flow_runs if (row := journal.find_by_flow_run(engine, str(flow_run.id)))]
    nights = [row for row in rows if not row["parameters"].get("confirms")]
    return {
        (row["tier"], row["parameters"].get("anchor")): row for row in sorted(nights, key=lambda row: row["started_at"])
    }


def find_completed(begun: StartedEvaluations, tier: str, parameters: Parameters) -> RowMapping | None:
    """Return the evaluation that an earlier try has completed; an invalid one is not kept."""
    row = _find_evaluation(begun, tier, parameters)
    return row if row is not None and row["state"] == "completed" else None


def resume_parameters(engine: Engine, begun: StartedEvaluations, tier: str, parameters: ParametersT) -> ParametersT:
    """Return the parameters that resume an unfinished evaluation of an earlier try, unless the settings changed."""
    row = _find_evaluation(begun, tier, parameters)
    if row is None or row["state"] in journal.FINISHED_STATES:
        return parameters
    try:
        require_same_settings(row)
    except InputError as error:
        log.warning("%s: evaluated anew", error)
        journal.update_evaluation(engine, row["id"], flow_run_id=None)  # Prefect may give the tier that flow run again
        return parameters
    return parameters.model_copy(update={"resume": row["id"]})


def _find_evaluation(begun: StartedEvaluations, tier: str, parameters: Parameters) -> RowMapping | None:
    return begun.get((tier, getattr(parameters, "anchor", None)))

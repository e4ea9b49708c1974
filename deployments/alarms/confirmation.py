"""Before an alarm of a fallen level the questions that changed are asked again: the alarm says how many persisted.

It is raised all the same. The questions were chosen for having changed, so that asked again they look better than the
level is; and what has passed by the time of asking was a loss in its night.
"""

import logging
from collections.abc import Awaitable, Callable

from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.errors import InputError, ResultsUnavailable
from yarus.deployments.alarms.levels import LevelVerdict
from yarus.tasks.config.parameters import Confirmable, Generation, Parameters
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.findings.persistence import before_of
from yarus.tasks.evaluation.findings_schema import Persistence
from yarus.tasks.evaluation.identity import same_settings
from yarus.tasks.evaluation.repeats import confirmation, persistence_of
from yarus.tasks.systems.retrievers.registry import RETRIEVERS
from yarus.tasks.systems.retrievers.reranking import is_outside

log = logging.getLogger("yarus")
Evaluate = Callable[..., Awaitable[object]]
"""The flow of a tier: takes its parameters, and with `return_state` raises nothing where it fails."""


def to_confirm(engine: Engine, row: RowMapping, found: LevelVerdict) -> Parameters | None:
    """The parameters by which the questions that changed are asked again.

    What an earlier try of the night has begun goes on: nothing is bought twice.

    Args:
        engine: of our own database.
        row: of the evaluation that an alarm would be raised for.
        found: its verdict.

    Returns:
        None where they cannot be: a tier that asks nobody, or nothing from before the loss with the same questions.
    """
    kind = TIERS[row["tier"]].parameters
    if not issubclass(kind, Confirmable) or not _may_answer_otherwise(kind, row):
        return None
    try:
        before = journal.find(engine, before_of(engine, row).id)["started_at"]
        if any(journal.find(engine, change["since"])["started_at"] <= before for change in found.changes):
            raise InputError("{id}: the accepted evaluation asked other questions", id=row["id"])
    except (InputError, ResultsUnavailable) as error:
        log.warning("not asked again before the alarm: %s", error)
        return None
    asked = {"confirms": row["id"]}
    begun = confirmation(engine, row, finished=False)
    if begun is not None:
        try:
            same_settings(begun)
            asked["resume"] = begun["id"]
        except InputError as changed:
            log.warning("%s: asked anew", changed)
            journal.describe(engine, begun["id"], flow_run_id=None)  # Prefect may give another part that flow run again
    return kind.model_validate(asked)


async def confirmed(engine: Engine, row: RowMapping, parameters: Parameters, evaluate: Evaluate) -> Persistence | None:
    """Asks again, unless that was done before; what it found, or None where it failed.

    Args:
        engine: of our own database.
        row: of the evaluation that an alarm would be raised for.
        parameters: as `to_confirm` gives them.
        evaluate: the flow of the tier.
    """
    if (found := persistence_of(engine, row)) is not None:
        return found
    await evaluate(parameters, return_state=True)
    return persistence_of(engine, row)


def _may_answer_otherwise(kind: type[Parameters], row: RowMapping) -> bool:
    """Whether something is asked that need not say the same twice: a model, a judge, somebody's own retriever or
    re-ranker.
    """
    config = EvaluationConfig.of(row)
    outside = config.retriever not in RETRIEVERS or is_outside(config.reranker)
    return issubclass(kind, Generation) or outside

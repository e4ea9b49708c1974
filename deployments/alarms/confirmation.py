"""Ask the changed questions again before an alarm of a fallen level; the alarm states how many changes persisted.

The alarm is raised in any case. The questions were chosen because they changed, so asked again they look better than
the level is. A loss that has passed by then was still a loss in its night.
"""

import logging
from collections.abc import Awaitable, Callable

from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.errors import InputError, ResultsUnavailable
from yarus.deployments.alarms.levels import LevelVerdict
from yarus.tasks.config.parameters import GenerationParameters, Parameters, RecheckParameters
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.findings.persistence import find_reference_pair
from yarus.tasks.evaluation.findings_schema import Persistence
from yarus.tasks.evaluation.identity import require_same_settings
from yarus.tasks.evaluation.repeats import find_confirmation, read_persistence
from yarus.tasks.systems.retrievers.registry import RETRIEVERS
from yarus.tasks.systems.retrievers.reranking import is_external_scorer

log = logging.getLogger("yarus")
Evaluate = Callable[..., Awaitable[object]]
"""The flow of a tier: takes its parameters, and with `return_state` raises no error if it fails."""


def confirmation_parameters(engine: Engine, row: RowMapping, verdict: LevelVerdict) -> Parameters | None:
    """Return the parameters for asking the changed questions again.

    A confirmation that an earlier try of the night has begun is resumed: nothing is paid for twice.

    Args:
        engine: the engine of Yarus's database.
        row: the row of the evaluation that raises the alarm.
        verdict: its verdict.

    Returns:
        None if it is not possible: the tier asks no model, or no evaluation before the loss has the same questions.
    """
    parameters_type = TIERS[row["tier"]].parameters
    if not issubclass(parameters_type, RecheckParameters) or not _may_answer_differently(parameters_type, row):
        return None
    try:
        before = journal.find_evaluation(engine, find_reference_pair(engine, row).id)["started_at"]
        if any(journal.find_evaluation(engine, change["since"])["started_at"] <= before for change in verdict.changes):
            raise InputError("{id}: the accepted evaluation asked other questions", id=row["id"])
    except (InputError, ResultsUnavailable) as error:
        log.warning("not asked again before the alarm: %s", error)
        return None
    values = {"recheck": row["id"]}
    unfinished = find_confirmation(engine, row, finished=False)
    if unfinished is not None:
        try:
            require_same_settings(unfinished)
            values["resume"] = unfinished["id"]
        except InputError as error:
            log.warning("%s: asked anew", error)
            # Prefect may give another part that flow run again.
            journal.update_evaluation(engine, unfinished["id"], flow_run_id=None)
    return parameters_type.model_validate(values)


async def ask_again(engine: Engine, row: RowMapping, parameters: Parameters, evaluate: Evaluate) -> Persistence | None:
    """Ask again unless that was done before, and return what persisted; None if it failed.

    Args:
        engine: the engine of Yarus's database.
        row: the row of the evaluation that raises the alarm.
        parameters: the parameters from `confirmation_parameters`.
        evaluate: the flow of the tier.
    """
    if (persistence := read_persistence(engine, row)) is not None:
        return persistence
    await evaluate(parameters, return_state=True)
    return read_persistence(engine, row)


def _may_answer_differently(parameters_type: type[Parameters], row: RowMapping) -> bool:
    """Return whether answers may differ when asked twice: a model, a judge, or an external retriever or re-ranker."""
    configuration = EvaluationConfig.of(row)
    is_external = configuration.retriever not in RETRIEVERS or is_external_scorer(configuration.reranker)
    return issubclass(parameters_type, GenerationParameters) or is_external

"""Before an alarm of a fallen level the questions that changed are asked again: what is gone by then wakes nobody."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from sqlalchemy import Engine, select
from sqlalchemy.engine import RowMapping

from db import journal
from db.errors import InputError, ResultsUnavailable
from db.tables import evaluation
from metrics.table import metric
from tasks.config.parameters import Generation, Parameters
from tasks.config.tiers import TIERS
from tasks.evaluation.comparability import same_settings
from tasks.orchestration.alarms.levels import LevelVerdict
from tasks.orchestration.documents import MetricChange
from tasks.results.persistence.asked_again import before_of
from tasks.results.persistence.documents import Persistence
from tasks.texts import LANGUAGES, texts

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
    if not issubclass(kind, Generation):
        return None
    try:
        since = before_of(engine, row).id
        if not _before_all(engine, since, found.changes):
            raise InputError(f"{row['id']}: the accepted evaluation asked other questions")
        begun = _begun(engine, row["id"])
        if begun is not None:
            same_settings(begun)
            return kind.model_validate({"confirms": row["id"], "resume": begun["id"]})
    except (InputError, ResultsUnavailable) as error:
        log.warning("not asked again before the alarm: %s", error)
        return None
    return kind.model_validate({"confirms": row["id"]})


async def confirmed(engine: Engine, row: RowMapping, parameters: Parameters, evaluate: Evaluate) -> Persistence | None:
    """Asks again, unless that was done before; what it found, or None where it failed: then the alarm stands.

    Args:
        engine: of our own database.
        row: of the evaluation that an alarm would be raised for.
        parameters: as `to_confirm` gives them.
        evaluate: the flow of the tier.
    """
    if _found(engine, row["id"]) is None:
        await evaluate(parameters, return_state=True)
    return _found(engine, row["id"])


def with_confirmation(row: RowMapping, found: LevelVerdict, asked: Persistence | None) -> LevelVerdict:
    """The verdict, after the questions that changed were asked again.

    It is held back only where nothing of the loss was left: each metric that fell is no worse than before.
    """
    if asked is None or found.verdict != "regressed":
        return found
    if not found.changes or not all(_is_back(change, asked) for change in found.changes):
        return found
    known = {"id": row["id"], "since": asked["since"]}
    why = {language: texts("inconclusive", language)["not confirmed"].format(**known) for language in LANGUAGES}
    return LevelVerdict("inconclusive", found.baseline, [], why)


def _is_back(change: MetricChange, asked: Persistence) -> bool:
    """Whether a metric that fell, and fell in this night too, is no worse than before when it is asked again."""
    of = asked["metrics"].get(change["metric"])
    if of is None or of["before"] is None or of["after"] is None or of["again"] is None:
        return False
    sign = 1 if metric(change["metric"]).better == "higher" else -1
    return sign * of["after"] < sign * of["before"] <= sign * of["again"]


def _before_all(engine: Engine, since: str, changes: list[MetricChange]) -> bool:
    """Whether an evaluation is from before all that was lost began."""
    began = [journal.find(engine, change["since"])["started_at"] for change in changes]
    return all(journal.find(engine, since)["started_at"] < at for at in began)


def _begun(engine: Engine, evaluation_id: str) -> RowMapping | None:
    """What asks an evaluation's changes again and is not finished."""
    wanted = _confirming(evaluation_id).where(evaluation.c.state.not_in(journal.FINISHED))
    with engine.connect() as connection:
        return connection.execute(wanted).mappings().first()


def _found(engine: Engine, evaluation_id: str) -> Persistence | None:
    """What came of it, where that is known."""
    wanted = _confirming(evaluation_id).where(evaluation.c.state.in_(journal.FINISHED))
    with engine.connect() as connection:
        row = connection.execute(wanted).mappings().first()
    found: Persistence | None = row["resolved"].get("persistence") if row is not None else None
    return found


def _confirming(evaluation_id: str) -> Any:
    of = evaluation.c
    return select(evaluation).where(of.parameters["confirms"].astext == evaluation_id).order_by(of.started_at.desc())

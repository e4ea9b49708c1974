"""Repeated evaluations: repeats for noise, changed questions asked again, an anchor that shows the judge's drift."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from sqlalchemy import Engine, or_, select
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.tables import evaluation
from yarus.tasks.cases.vocabulary import FAILED_STATUSES
from yarus.tasks.config.flow_parameters import NightlyParameters
from yarus.tasks.config.parameters import AnswerParameters, Parameters, ParameterValues
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.config import EvaluationConfig, stored_findings
from yarus.tasks.evaluation.findings_schema import Persistence

P = TypeVar("P", bound=Parameters)
REPEAT_PARAMETERS = ("repeat_of", "anchor", "recheck")
"""Parameters that request a repeat; the first two are stored under keys of `yarus.db.journal.NON_LIVE_KEYS`."""
NAMING = ("name", "tags")
"""Parameters that a repeat does not take over."""
MAX_REPEATS = 16
"""Most repeats of a call within one evaluation."""


def resolve_repeated_parameters(engine: Engine, parameters: P) -> tuple[P, RowMapping | None]:
    """Return the parameters of a repeated evaluation for the one that repeats it or judges its answers again.

    Args:
        engine: of our own database.
        parameters: as given; without any of REPEAT_PARAMETERS they stay as they are.

    Returns:
        The parameters, and the repeated evaluation, whose settings must be equal too; None if nothing is repeated.

    Raises:
        InputError: no such evaluation, not finished, of another tier, one that confirms another, or a contradicting
            parameter.
    """
    marks = list(_requested_marks(parameters))
    failed = getattr(parameters, "retry_failed", None)
    if not marks:
        return (_parameters_of_failed(engine, parameters, failed) if failed else parameters), None
    if failed:
        marks.append(("retry_failed", failed))
    if len(marks) > 1:
        raise InputError(
            "{marks} cannot be combined; use one of them",
            marks=" and ".join((f"--{_option(mark)}" for mark, _ in marks)),
        )
    mark, name = marks[0]
    row = _find_finished(engine, mark, name)
    if TIERS[row["tier"]].parameters is not type(parameters):
        raise InputError(
            "--{mark} {name}: it is of {tier}: yarus run {tier} --{mark} {name}",
            mark=_option(mark),
            name=name,
            tier=row["tier"],
        )
    repeated = type(parameters).model_validate(row["parameters"])
    _require_equal(mark, parameters, repeated)
    changes: ParameterValues = {mark: row["id"], "resume": None, **{key: getattr(parameters, key) for key in NAMING}}
    if mark == "anchor":
        changes |= {"reuse_answers": row["id"], "repeat_of": None}
    if mark == "recheck":  # not in the history of the one or the other, nor with another exam
        changes |= {"repeat_of": None, "anchor": None, "exam": 0}
    changes = {name: value for name, value in changes.items() if name in type(repeated).model_fields}
    return repeated.model_copy(update=changes), None if mark == "anchor" else row


def _parameters_of_failed(engine: Engine, parameters: P, failed: str) -> P:
    """Return the parameters of an evaluation whose failed cases are run again; given values take precedence.

    The settings may differ, because one of them may have caused the failures.

    Raises:
        InputError: no such evaluation, without cases, of another tier or source, or without failures.
    """
    tier = next(name for name, row in TIERS.items() if row.parameters is type(parameters))
    row = _find_with_failures(engine, failed, tier, parameters.source)
    fields = type(parameters).model_fields
    overrides = {name: value for name, field in fields.items() if (value := getattr(parameters, name)) != field.default}
    if row["tier"] != tier or overrides.get("source", row["source"]) != row["source"]:
        raise InputError(
            "--retry-failed {id}: it is of {tier} and {source!r}: yarus run {tier} --retry-failed {id}",
            id=row["id"],
            tier=row["tier"],
            source=row["source"],
        )
    repeated = type(parameters).model_validate(row["parameters"])
    reset: ParameterValues = {**dict.fromkeys(("resume", *REPEAT_PARAMETERS, "name")), "exam": 0, "tags": []}
    changes = {
        name: value for name, value in (reset | overrides | {"retry_failed": row["id"]}).items() if name in fields
    }
    return repeated.model_copy(update=changes)


def anchor_evaluations(engine: Engine, parameters: NightlyParameters) -> Iterator[tuple[str, Parameters]]:
    """Yield the tier and parameters of the night's evaluation of the anchor, if there is one.

    Raises:
        InputError: no such evaluation, not finished, or of a tier that judges no answers of a system.
    """
    if parameters.anchor is None:
        return
    row = _find_finished(engine, "anchor", parameters.anchor)
    tier = TIERS[row["tier"]]
    if not issubclass(tier.parameters, AnswerParameters):
        raise InputError(
            "--anchor {anchor}: it is of {tier}; name one of tier2 or tier3", anchor=parameters.anchor, tier=row["tier"]
        )
    naming = {key: getattr(parameters, key) for key in NAMING}
    yield row["tier"], tier.parameters.model_validate({"anchor": row["id"], **naming})


def repeat_config(parameters: Parameters) -> EvaluationConfig:
    """Return the evaluations that it repeats, whose answers it judges, or that it is a part of."""
    keys = {"again": getattr(parameters, "repeat_of", None), "anchor": getattr(parameters, "anchor", None)}
    keys["part_of"] = getattr(parameters, "recheck", None) or getattr(parameters, "retry_failed", None)
    return EvaluationConfig(**{name: evaluation for name, evaluation in keys.items() if evaluation})


def first_repeat_number(evaluation_id: str, parameters: Parameters) -> int:
    """Return the first repeat number of its calls: 0, or beyond all stored numbers if it must ask again."""
    return new_repeat_number(evaluation_id) if any(_requested_marks(parameters)) else 0


def new_repeat_number(evaluation_id: str) -> int:
    """Return a repeat number unique to the evaluation, so that its calls are not in the store unless it resumes."""
    return int.from_bytes(hashlib.sha256(evaluation_id.encode()).digest()[:5]) * MAX_REPEATS


def _requested_marks(parameters: Parameters) -> Iterator[tuple[str, str]]:
    """Yield the marks that are set, with the evaluation that each names; a repeated anchor has both."""
    return ((mark, evaluation_id) for mark in REPEAT_PARAMETERS if (evaluation_id := getattr(parameters, mark, None)))


def _option(parameter: str) -> str:
    return parameter.replace("_", "-")


def _find_finished(engine: Engine, mark: str, name: str) -> RowMapping:
    try:
        row = journal.find_evaluation(engine, name)
    except InputError as error:
        raise InputError("--{mark} {name}: {error}", mark=_option(mark), name=name, error=error) from None
    if row["state"] != "completed" or row["parquet"] is None:
        raise InputError(
            "--{mark} {name}: {id} is {state}; name a completed evaluation that has its file",
            mark=_option(mark),
            name=name,
            id=row["id"],
            state=row["state"],
        )
    if failed := row["parameters"].get("failed"):
        raise InputError(
            "--{mark} {name}: {id} covers only the failed cases of {failed}; use that one",
            mark=_option(mark),
            name=name,
            id=row["id"],
            failed=failed,
        )
    if confirms := row["parameters"].get("confirms"):
        raise InputError(
            "--{mark} {name}: {id} only rechecks the changes of {confirms}; use that one",
            mark=_option(mark),
            name=name,
            id=row["id"],
            confirms=confirms,
        )
    return row


def _require_equal(mark: str, parameters: Parameters, repeated: Parameters) -> None:
    """Raise an error if a given parameter differs from that of the repeated evaluation."""
    for name, field in type(parameters).model_fields.items():
        value = getattr(parameters, name)
        if name not in (*REPEAT_PARAMETERS, *NAMING) and value != field.default and value != getattr(repeated, name):
            raise InputError(
                "--{mark} takes the parameters of that evaluation, whose {name} is {theirs!r}; leave out --{option} "
                "{value}",
                mark=_option(mark),
                name=name,
                theirs=getattr(repeated, name),
                option=_option(name),
                value=value,
            )


class NothingFailedError(InputError):
    """No case failed, so there is nothing to evaluate again."""

    @property
    def of(self) -> object:
        """Return the id of the evaluation."""
        return self.args[0].values["id"]


def _find_with_failures(engine: Engine, name: str, tier: str, source: str) -> RowMapping:
    """Find the evaluation whose failed cases are meant; `last` is the newest of that tier and source."""
    row = _find_last(engine, tier, source) if name == "last" else journal.find_evaluation(engine, name)
    if row is None:
        raise InputError(
            "--retry-failed: no finished evaluation of {tier} and {source!r} yet", tier=tier, source=source
        )
    if row["parquet"] is None:
        raise InputError(
            "--retry-failed {id}: it is {state} and has no cases; finish it first: yarus run {tier} --resume {id}",
            id=row["id"],
            state=row["state"],
            tier=row["tier"],
        )
    if not any((row["statuses"] or {}).get(status) for status in FAILED_STATUSES):
        raise NothingFailedError("{id}: no case failed, there is nothing to evaluate again", id=row["id"])
    return row


def _find_last(engine: Engine, tier: str, source: str) -> RowMapping | None:
    """Find the newest finished evaluation in the history, or of failed cases."""
    columns = evaluation.c
    is_eligible = or_(journal.IS_LIVE, columns.parameters["failed"].astext.is_not(None))
    query = select(evaluation).where(
        columns.tier == tier, columns.source == source, columns.state.in_(journal.FINISHED_STATES), is_eligible
    )
    with engine.connect() as connection:
        return (
            connection.execute(query.order_by(columns.started_at.desc(), columns.id.desc()).limit(1)).mappings().first()
        )


def find_confirmation(engine: Engine, row: RowMapping, *, finished: bool = True) -> RowMapping | None:
    """Return the newest evaluation that asks again what changed in another one.

    Args:
        engine: of our own database.
        row: of the other one.
        finished: whether to look for a finished one, else for one that was begun and is not finished.
    """
    columns = evaluation.c
    # The indexed conditions come first.
    indexed = columns.tier == row["tier"], columns.source == row["source"], columns.started_at >= row["started_at"]
    query = select(evaluation).where(*indexed, columns.parameters["confirms"].astext == row["id"])
    filtered = query.where(
        columns.state.in_(journal.FINISHED_STATES) if finished else columns.state.not_in(journal.FINISHED_STATES)
    )
    with engine.connect() as connection:
        return connection.execute(filtered.order_by(columns.started_at.desc()).limit(1)).mappings().first()


def read_persistence(engine: Engine, row: RowMapping) -> Persistence | None:
    """Return the result of asking an evaluation's changes again; None if that has not happened.

    Args:
        engine: of our own database.
        row: of the evaluation.
    """
    confirming = find_confirmation(engine, row)
    persistence: Persistence | None = stored_findings(confirming).get("persistence") if confirming is not None else None
    return persistence


def is_repeat_of_cases(summary: Mapping[str, Any]) -> bool:
    """Return whether an evaluation, by its summary, asks again what changed or failed in another one."""
    return "failed_again" in summary or bool(
        summary.get("persistence", {}).get("asked_again") == summary["evaluation_id"]
    )

"""The same once more: an evaluation repeated to see the noise, its changes asked again before an alarm, and an anchor
judged again to see the judge drift."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from sqlalchemy import Engine, or_, select
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.tables import evaluation
from yarus.tasks.cases.vocabulary import FAILED
from yarus.tasks.config.flow_parameters import Nightly
from yarus.tasks.config.parameters import Answering, Parameters, ParameterValues
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.config import EvaluationConfig, stored_findings
from yarus.tasks.evaluation.findings_schema import Persistence

P = TypeVar("P", bound=Parameters)
MARKS = ("again", "anchor", "confirms")
"""The parameters that ask for it; what they came to stands in `yarus.db.journal.ASIDE` as well."""
LABELS = ("name", "tags")
"""What it is called is its own."""
FROM_BELOW = 16
"""Repeats that one evaluation may ask of a call."""


def parameters_of_repeated(engine: Engine, parameters: P) -> tuple[P, RowMapping | None]:
    """The parameters of an evaluation that repeats another one, or judges its answers again: those of the other one.

    Args:
        engine: of our own database.
        parameters: as given; without any of MARKS they stay as they are.

    Returns:
        The parameters, and the evaluation that is repeated: its settings must hold too. None where none is.

    Raises:
        InputError: no such evaluation, not finished, of another tier, one that confirms another, or a parameter that
            contradicts it.
    """
    asked = list(_asked(parameters))
    failed = getattr(parameters, "failed", None)
    if not asked:
        return (_of_failed(engine, parameters, failed) if failed else parameters), None
    if failed:
        asked.append(("failed", failed))
    if len(asked) > 1:
        raise InputError(
            "{marks} exclude each other: leave one out", marks=" and ".join((f"--{mark}" for mark, _ in asked))
        )
    mark, name = asked[0]
    row = _finished(engine, mark, name)
    if TIERS[row["tier"]].parameters is not type(parameters):
        raise InputError(
            "--{mark} {name}: it is of {tier}: yarus run {tier} --{mark} {name}", mark=mark, name=name, tier=row["tier"]
        )
    then = type(parameters).model_validate(row["parameters"])
    _refuse_others(mark, parameters, then)
    now: ParameterValues = {mark: row["id"], "resume": None, **{label: getattr(parameters, label) for label in LABELS}}
    if mark == "anchor":
        now |= {"reuse_answers": row["id"], "again": None}
    if mark == "confirms":  # not in the history of the one or the other, nor with another exam
        now |= {"again": None, "anchor": None, "exam": 0}
    now = {name: value for name, value in now.items() if name in type(then).model_fields}
    return then.model_copy(update=now), None if mark == "anchor" else row


def _of_failed(engine: Engine, parameters: P, failed: str) -> P:
    """The parameters of an evaluation whose failed cases are evaluated again; what is given here goes before those.

    The settings may differ, for one of them may have been what was wrong.

    Raises:
        InputError: no such evaluation, without cases, of another tier or source, or without failures.
    """
    tier = next(name for name, of in TIERS.items() if of.parameters is type(parameters))
    row = _with_failures(engine, failed, tier, parameters.source)
    fields = type(parameters).model_fields
    given = {name: value for name, of in fields.items() if (value := getattr(parameters, name)) != of.default}
    if row["tier"] != tier or given.get("source", row["source"]) != row["source"]:
        raise InputError(
            "--failed {id}: it is of {tier} and {source!r}: yarus run {tier} --failed {id}",
            id=row["id"],
            tier=row["tier"],
            source=row["source"],
        )
    then = type(parameters).model_validate(row["parameters"])
    alone: ParameterValues = {**dict.fromkeys(("resume", *MARKS, "name")), "exam": 0, "tags": []}
    now = {name: value for name, value in (alone | given | {"failed": row["id"]}).items() if name in fields}
    return then.model_copy(update=now)


def anchored(engine: Engine, parameters: Nightly) -> Iterator[tuple[str, Parameters]]:
    """The night's evaluation of the anchor; none without one.

    Raises:
        InputError: no such evaluation, not finished, or of a tier that judges no answers of a system.
    """
    if parameters.anchor is None:
        return
    row = _finished(engine, "anchor", parameters.anchor)
    tier = TIERS[row["tier"]]
    if not issubclass(tier.parameters, Answering):
        raise InputError(
            "--anchor {anchor}: it is of {tier}; name one of tier2 or tier3", anchor=parameters.anchor, tier=row["tier"]
        )
    called = {label: getattr(parameters, label) for label in LABELS}
    yield row["tier"], tier.parameters.model_validate({"anchor": row["id"], **called})


def repeating(parameters: Parameters) -> EvaluationConfig:
    """Return the evaluations that it repeats, whose answers it judges, or of which it is a part."""
    named = {name: getattr(parameters, name, None) for name in ("again", "anchor")}
    named["part_of"] = getattr(parameters, "confirms", None) or getattr(parameters, "failed", None)
    return EvaluationConfig(**{name: evaluation for name, evaluation in named.items() if evaluation})


def first_repeat(evaluation_id: str, parameters: Parameters) -> int:
    """What the repeats of its calls are counted from: 0, or where it asks anew, beyond everything in the store."""
    return fresh_repeat(evaluation_id) if any(_asked(parameters)) else 0


def fresh_repeat(evaluation_id: str) -> int:
    """A number that no other evaluation's repeats begin at: what it asks is not in the store yet, unless it resumes."""
    return int.from_bytes(hashlib.sha256(evaluation_id.encode()).digest()[:5]) * FROM_BELOW


def _asked(parameters: Parameters) -> Iterator[tuple[str, str]]:
    """Which of them are asked for, and the evaluation that each names; a repeated anchor has both."""
    return ((mark, name) for mark in MARKS if (name := getattr(parameters, mark, None)))


def _finished(engine: Engine, mark: str, name: str) -> RowMapping:
    try:
        row = journal.find(engine, name)
    except InputError as error:
        raise InputError("--{mark} {name}: {error}", mark=mark, name=name, error=error) from None
    if row["state"] != "completed" or row["parquet"] is None:
        raise InputError(
            "--{mark} {name}: {id} is {state}; name a completed evaluation that has its file",
            mark=mark,
            name=name,
            id=row["id"],
            state=row["state"],
        )
    if failed := row["parameters"].get("failed"):
        raise InputError(
            "--{mark} {name}: {id} is of the cases that failed in {failed}; name that one",
            mark=mark,
            name=name,
            id=row["id"],
            failed=failed,
        )
    if confirms := row["parameters"].get("confirms"):
        raise InputError(
            "--{mark} {name}: {id} asks again what changed in {confirms}; name that one",
            mark=mark,
            name=name,
            id=row["id"],
            confirms=confirms,
        )
    return row


def _refuse_others(mark: str, given: Parameters, then: Parameters) -> None:
    """Nothing may be given that the other evaluation did not have: the pair would not be one."""
    for name, field in type(given).model_fields.items():
        value = getattr(given, name)
        if name not in (*MARKS, *LABELS) and value != field.default and value != getattr(then, name):
            raise InputError(
                "--{mark} takes the parameters of that evaluation, whose {name} is {theirs!r}; leave out --{option} "
                "{value}",
                mark=mark,
                name=name,
                theirs=getattr(then, name),
                option=name.replace("_", "-"),
                value=value,
            )


class NothingFailedError(InputError):
    """There is nothing to evaluate again, which is good news."""

    @property
    def of(self) -> object:
        """The evaluation."""
        return self.args[0].values["id"]


def _with_failures(engine: Engine, name: str, tier: str, source: str) -> RowMapping:
    """The evaluation whose failed cases are meant; `last` is of that tier and source, one of failed cases too."""
    row = _last(engine, tier, source) if name == "last" else journal.find(engine, name)
    if row is None:
        raise InputError("--failed: no finished evaluation of {tier} and {source!r} yet", tier=tier, source=source)
    if row["parquet"] is None:
        raise InputError(
            "--failed {id}: it is {state} and has no cases; finish it first: yarus run {tier} --resume {id}",
            id=row["id"],
            state=row["state"],
            tier=row["tier"],
        )
    if not any((row["statuses"] or {}).get(status) for status in FAILED):
        raise NothingFailedError("{id}: no case failed, there is nothing to evaluate again", id=row["id"])
    return row


def _last(engine: Engine, tier: str, source: str) -> RowMapping | None:
    """The newest finished evaluation that says something of the system, or of what failed in one."""
    of = evaluation.c
    meant = or_(journal.LIVE, of.parameters["failed"].astext.is_not(None))
    found = select(evaluation).where(of.tier == tier, of.source == source, of.state.in_(journal.FINISHED), meant)
    with engine.connect() as connection:
        return connection.execute(found.order_by(of.started_at.desc(), of.id.desc()).limit(1)).mappings().first()


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
    wanted = asks.where(of.state.in_(journal.FINISHED) if finished else of.state.not_in(journal.FINISHED))
    with engine.connect() as connection:
        return connection.execute(wanted.order_by(of.started_at.desc()).limit(1)).mappings().first()


def persistence_of(engine: Engine, row: RowMapping) -> Persistence | None:
    """What was found where the changes of an evaluation were asked again; None where nobody has.

    Args:
        engine: of our own database.
        row: of the evaluation.
    """
    asked = confirmation(engine, row)
    found: Persistence | None = stored_findings(asked).get("persistence") if asked is not None else None
    return found


def asks_again(summary: Mapping[str, Any]) -> bool:
    """Whether an evaluation, by its summary, asks again what changed in another one, or what failed."""
    return "failed_again" in summary or bool(
        summary.get("persistence", {}).get("asked_again") == summary["evaluation_id"]
    )

"""Questions that changed or failed, asked again: how many stay so, as JSON and sentences."""

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import Engine, select
from sqlalchemy.engine import RowMapping
from typing_extensions import TypedDict

from yarus.db.journal import FINISHED
from yarus.db.tables import evaluation
from yarus.tasks.config.texts import LANGUAGES, Text, texts, translations


class PersistedMetric(TypedDict):
    """Of one headline metric."""

    n: int
    """Questions whose value had changed."""
    persisted: int
    """Of these, those that are nearer to the changed value than to the one before when they are asked again. Of changes
    by chance about half are: of as many the value before was the odd one."""
    unmeasured: int
    """Of these, those that gave no value when they were asked again: nothing is said of them."""


class Persistence(TypedDict):
    """Of an evaluation that asks again what changed in another one, and of that other one."""

    confirms: str
    """The evaluation whose changes were asked about."""
    asked_again: str
    """The evaluation that asked."""
    since: str
    """The evaluation before, beside which they had changed."""
    metrics: dict[str, PersistedMetric]


class FailedAgain(TypedDict):
    """Of an evaluation of the cases that failed in another one."""

    of: str
    """That evaluation."""
    n: int
    """Cases that failed in it: the system, the judge or the budget stood in the way."""
    asked: int
    """Of these, those that the source still has."""
    succeeded: int
    """Of these, those that nothing stood in the way of now."""


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


def persistence_sentences(found: Persistence | None) -> Iterator[Text]:
    """Of every headline metric that changed, how many of the changes persisted; nothing where nothing was asked."""
    for name, of in (found["metrics"] if found else {}).items():
        yield {language: _said(name, of, language) for language in LANGUAGES}


def _said(name: str, found: PersistedMetric, language: str) -> str:
    words, n, unmeasured = texts("persistence", language), found["n"], found["unmeasured"]
    if unmeasured == n:
        return words["nothing"].format(metric=name, n=n)
    said = words["persisted"].format(metric=name, n=n - unmeasured, persisted=found["persisted"])
    return said + (" " + words["unmeasured"].format(n=unmeasured) if unmeasured else "")


def failed_sentences(found: FailedAgain | None) -> Iterator[Text]:
    """How many of the failed cases succeeded, in words; nothing where none was asked again."""
    if found:
        yield translations("persistence", "failed again", **found)
    if found and (gone := found["n"] - found["asked"]):
        yield translations("persistence", "failed gone", n=gone)

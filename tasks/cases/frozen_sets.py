"""Versions of case sets: freezing a source's questions with their labels, what changed between two, splits in time."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, cast

from typing_extensions import TypedDict

from yarus.db import case_sets
from yarus.db.case_sets import CaseSet, Rule
from yarus.db.errors import InputError
from yarus.db.source_rows import Row, read_questions
from yarus.db.sources import snapshot
from yarus.db.words import Words
from yarus.tasks.cases.dialogs import by_time, places, sampled_whole
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.config.connections import database, source


class FrozenSet(TypedDict):
    """A frozen case set."""

    name: str
    sha256: str
    """Of its questions and labels: equal for equal content."""
    source: str
    n_cases: int
    rule: Rule
    """How they were chosen: limit, seed, since, until, or the set that was split."""


class ListedSet(FrozenSet):
    """A frozen case set in the list of them."""

    frozen_at: str


class Split(TypedDict):
    """A set split in time."""

    of: str
    without_time: int
    """Questions without a time, which are in neither half."""
    sets: list[FrozenSet]
    """What was asked before, and the rest."""


class LabelChange(TypedDict):
    """A label that is not the same in both sets."""

    before: Any
    after: Any


class Relabelled(TypedDict):
    """A question with other labels."""

    question_id: str
    labels: dict[str, LabelChange]


class SetDifference(TypedDict):
    """What changed from one set to another; questions by id."""

    a: FrozenSet
    b: FrozenSet
    added: list[str]
    removed: list[str]
    reworded: list[str]
    relabelled: list[Relabelled]


def freeze(
    name: str,
    source_name: str,
    *,
    limit: int | None = None,
    seed: int = 0,
    since: datetime | None = None,
    until: datetime | None = None,
) -> FrozenSet:
    """Keeps questions of a source with their labels as they are now; a production log is copied too.

    Args:
        name: of the set.
        source_name: where its questions are from.
        limit: about so many, in a seeded sample of whole dialogs in which every topic keeps its share.
        seed: of the sample.
        since: only questions asked then or later.
        until: only questions asked before.

    Raises:
        InputError: no such source, no question left, or the name stands for another content.
    """
    where = source(source_name)
    with snapshot(where) as connection:
        rows = read_questions(connection, where)
    rows = [row for row in rows if _within(row["created_at"], since, until)]
    log = by_time(rows)
    chosen = {log[number]["question_id"] for number in sampled_whole(log, places(log), limit, seed)}
    rule: Rule = {"since": since and since.isoformat(), "until": until and until.isoformat(), "limit": limit}
    rule = {key: value for key, value in rule.items() if value is not None} | ({"seed": seed} if limit else {})
    return _document(
        case_sets.keep(database(), name, where.name, [row for row in rows if row["question_id"] in chosen], rule)
    )


def split(name: str, at: datetime, into: tuple[str, str]) -> Split:
    """Two sets of one: what was asked before a moment, and the rest; questions without a time are in neither.

    Both are frozen, or none.

    Raises:
        InputError: no such set, a half would be empty, or its name stands for another content.
    """
    engine = database()
    whole, rows = case_sets.find(engine, name), case_sets.read(engine, name)
    timed = [row for row in rows if row["created_at"] is not None]
    before = [row for row in timed if _within(row["created_at"], None, at)]
    since = [row for row in timed if _within(row["created_at"], at, None)]
    moment = at.isoformat()
    for half, when in ((before, Words("before {at}", at=moment)), (since, Words("since {at}", at=moment))):
        if not half:
            raise InputError(
                "case set {name!r}: no question was asked {when}; choose another --at", name=name, when=when
            )
    if into[0] == into[1]:
        raise InputError("--into {first} {second}: the two halves need two names", first=into[0], second=into[1])
    made = case_sets.keep_all(
        engine,
        whole.source,
        [(into[0], before, {"of": name, "until": moment}), (into[1], since, {"of": name, "since": moment})],
    )
    return {"of": name, "without_time": len(rows) - len(timed), "sets": [_document(one) for one in made]}


def difference(a: str, b: str) -> SetDifference:
    """What changed from one set to another; see `yarus.db.case_sets.difference`.

    Raises:
        InputError: one of them is not there.
    """
    engine = database()
    sets = {"a": case_sets.find(engine, a), "b": case_sets.find(engine, b)}
    changed = case_sets.difference(case_sets.read(engine, a), case_sets.read(engine, b))
    shown = {"a": _document(sets["a"]), "b": _document(sets["b"]), **pseudonyms.document(changed, sets["b"].source)}
    return cast(SetDifference, shown)


def listing() -> list[ListedSet]:
    """All sets, newest first."""
    listed = [{**row, "frozen_at": row["frozen_at"].isoformat()} for row in case_sets.listing(database())]
    return cast(list[ListedSet], listed)


def frozen(name: str, source_name: str) -> CaseSet:
    """The set that an evaluation of that source names.

    Raises:
        InputError: there is none, or it is of another source, whose ids mean nothing here.
    """
    found = case_sets.find(database(), name)
    if found.source != source_name:
        raise InputError(
            "case set {name!r} was frozen from source {source!r}, not {source_name!r}; evaluate it there: --source "
            "{source} --cases {name}",
            name=name,
            source=found.source,
            source_name=source_name,
        )
    return found


def frozen_questions(name: str, source_name: str) -> list[Row]:
    """The questions of the set with their labels; errors as `frozen`."""
    return case_sets.read(database(), frozen(name, source_name).name)


def _document(kept: CaseSet) -> FrozenSet:
    return cast(FrozenSet, asdict(kept))


def _within(moment: datetime | None, since: datetime | None, until: datetime | None) -> bool:
    """Whether a moment is in a stretch of time; one without a zone is in UTC; an unknown one is in no stretch."""
    if since is None and until is None:
        return True
    if moment is None:
        return False
    known = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (since is None or known >= since) and (until is None or known < until)

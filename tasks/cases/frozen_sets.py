"""Version case sets: freeze a source's questions with their labels, compare two sets, split a set in time."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, cast

from typing_extensions import TypedDict

from yarus.db import case_sets
from yarus.db.case_sets import CaseSet, SelectionRule
from yarus.db.errors import InputError
from yarus.db.messages import Words
from yarus.db.source_rows import QuestionRow, read_questions
from yarus.db.sources import open_snapshot
from yarus.tasks.cases.dialogs import dialog_turns, sample_whole_dialogs, sort_by_time
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.config.connections import database, open_source


class FrozenSet(TypedDict):
    """A frozen case set."""

    name: str
    sha256: str
    """Hash of its questions and labels: equal for equal content."""
    source: str
    n_cases: int
    rule: SelectionRule
    """How its questions were selected: limit, seed, since, until, or the set that was split."""


class ListedSet(FrozenSet):
    """Summary of a frozen case set."""

    frozen_at: str


class CaseSetSplit(TypedDict):
    """A case set, split by time."""

    of: str
    """Name of the set that was split."""
    without_time: int
    """Questions without a time, which are in neither part."""
    sets: list[FrozenSet]
    """The earlier questions and the later ones."""


class LabelChange(TypedDict):
    """A label that differs between two sets."""

    before: Any
    after: Any


class RelabelledQuestion(TypedDict):
    """A question with other labels."""

    question_id: str
    labels: dict[str, LabelChange]


class CaseSetDiff(TypedDict):
    """Differences between two case sets; questions by id."""

    a: FrozenSet
    b: FrozenSet
    added: list[str]
    removed: list[str]
    reworded: list[str]
    relabelled: list[RelabelledQuestion]


def freeze(
    name: str,
    source_name: str,
    *,
    limit: int | None = None,
    seed: int = 0,
    since: datetime | None = None,
    until: datetime | None = None,
) -> FrozenSet:
    """Freeze questions of a source with their current labels; rows of a production log are copied too.

    Args:
        name: name of the set.
        source_name: source of the questions.
        limit: approximate number of questions, in a seeded sample of whole dialogs in which every topic keeps its
            share.
        seed: seed of the sample.
        since: only questions asked at this time or later.
        until: only questions asked before this time.

    Raises:
        InputError: no such source, no question selected, or the name has another content.
    """
    source_ = open_source(source_name)
    with open_snapshot(source_) as connection:
        rows = read_questions(connection, source_)
    rows = [row for row in rows if _is_within(row["created_at"], since, until)]
    log = sort_by_time(rows)
    selected = {log[position]["question_id"] for position in sample_whole_dialogs(log, dialog_turns(log), limit, seed)}
    rule: SelectionRule = {"since": since and since.isoformat(), "until": until and until.isoformat(), "limit": limit}
    rule = {key: value for key, value in rule.items() if value is not None} | ({"seed": seed} if limit else {})
    return _as_dict(
        case_sets.freeze_case_set(
            database(), name, source_.name, [row for row in rows if row["question_id"] in selected], rule
        )
    )


def split_frozen_set(name: str, at: datetime, into: tuple[str, str]) -> CaseSetSplit:
    """Split a set in time into two: questions before a time, and later ones; both are frozen, or none.

    Questions without a time are in neither.

    Raises:
        InputError: no such set, a half would be empty, or its name has another content.
    """
    engine = database()
    original, rows = case_sets.find_case_set(engine, name), case_sets.read_case_set(engine, name)
    timed = [row for row in rows if row["created_at"] is not None]
    earlier = [row for row in timed if _is_within(row["created_at"], None, at)]
    later = [row for row in timed if _is_within(row["created_at"], at, None)]
    split_time = at.isoformat()
    for half, when in ((earlier, Words("before {at}", at=split_time)), (later, Words("since {at}", at=split_time))):
        if not half:
            raise InputError(
                "case set {name!r}: no question was asked {when}; choose another --from-date", name=name, when=when
            )
    if into[0] == into[1]:
        raise InputError("--into {first} {second}: the two halves need two names", first=into[0], second=into[1])
    halves = case_sets.freeze_case_sets(
        engine,
        original.source,
        [(into[0], earlier, {"of": name, "until": split_time}), (into[1], later, {"of": name, "since": split_time})],
    )
    return {"of": name, "without_time": len(rows) - len(timed), "sets": [_as_dict(case_set) for case_set in halves]}


def diff_frozen_sets(a: str, b: str) -> CaseSetDiff:
    """Return the changes from one set to another; see `yarus.db.case_sets.diff_case_sets`.

    Raises:
        InputError: one of them does not exist.
    """
    engine = database()
    sets = {"a": case_sets.find_case_set(engine, a), "b": case_sets.find_case_set(engine, b)}
    changes = case_sets.diff_case_sets(case_sets.read_case_set(engine, a), case_sets.read_case_set(engine, b))
    diff = {"a": _as_dict(sets["a"]), "b": _as_dict(sets["b"]), **pseudonyms.mask_document(changes, sets["b"].source)}
    return cast(CaseSetDiff, diff)


def list_frozen_sets() -> list[ListedSet]:
    """Return all sets, newest first."""
    rows = [{**row, "frozen_at": row["frozen_at"].isoformat()} for row in case_sets.list_case_sets(database())]
    return cast(list[ListedSet], rows)


def find_frozen_set(name: str, source_name: str) -> CaseSet:
    """Return the case set that an evaluation of a source names.

    Raises:
        InputError: it does not exist, or it is of another source, whose ids differ.
    """
    case_set = case_sets.find_case_set(database(), name)
    if case_set.source != source_name:
        raise InputError(
            "case set {name!r} was frozen from source {source!r}, not {source_name!r}; evaluate it there: --source "
            "{source} --cases {name}",
            name=name,
            source=case_set.source,
            source_name=source_name,
        )
    return case_set


def read_frozen_questions(name: str, source_name: str) -> list[QuestionRow]:
    """Return the questions of the set with their labels; errors as `find_frozen_set`."""
    return case_sets.read_case_set(database(), find_frozen_set(name, source_name).name)


def _as_dict(case_set: CaseSet) -> FrozenSet:
    return cast(FrozenSet, asdict(case_set))


def _is_within(moment: datetime | None, since: datetime | None, until: datetime | None) -> bool:
    """Return whether a time, UTC if it has no zone, is in an interval; an unknown one is only in an unbounded one."""
    if since is None and until is None:
        return True
    if moment is None:
        return False
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (since is None or aware >= since) and (until is None or aware < until)

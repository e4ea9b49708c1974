"""The dialogs of a log: which questions belong together, in what order, and samples that tear none of them apart."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from yarus.db.source_rows import Row
from yarus.tasks.cases.outcomes import HIDDEN
from yarus.tasks.cases.sampling import sampled, topic_and_score

MINUTES = 30
"""Between two questions of one user in the same dialog, at most."""


class Place(NamedTuple):
    """Where a question stands; both None where it belongs to no dialog whose order is known."""

    dialog: str | None = None
    turn: int | None = None
    """From 1."""


def spoken(question: str, answer: str | None, path: str | None = None) -> tuple[dict[str, str], ...]:
    """What a turn leaves in the history of its dialog: what the user saw, no more.

    That is the question, and after it the answer, a refusal in the system's own words too. A turn that failed, whose
    answer is empty, or whose answer the system's gate hid leaves the question alone: what follows may rest on it.

    Args:
        question: as it was asked.
        answer: None where the turn failed.
        path: as `yarus.tasks.cases.outcomes.declined` takes it.

    Example:
        >>> from yarus.tasks.cases.dialogs import spoken
        >>> spoken("Когда пересдача?", "В январе.")
        ({'role': 'user', 'content': 'Когда пересдача?'}, {'role': 'assistant', 'content': 'В январе.'})
        >>> len(spoken("Когда пересдача?", None))
        1
    """
    said = {"role": "user", "content": question}
    seen = answer if answer and answer.strip() and path != HIDDEN else None
    return (said,) if seen is None else (said, {"role": "assistant", "content": seen})


def by_time(questions: Sequence[Row]) -> list[Row]:
    """The log in the order of time; questions without one at the end."""
    return sorted(questions, key=_when)


def _when(question: Row) -> tuple[bool, Any]:
    return question["created_at"] is None, question["created_at"] or 0


def places(log: Sequence[Row]) -> list[Place]:
    """The dialog of every question, and its place in it.

    A dialog is in the order of its `turn` where all of its questions have one, else of time; one in which some have
    neither has no order that is known.

    Args:
        log: the whole of it, as `by_time` orders it.
    """
    members: dict[str, list[int]] = {}
    for row, name in enumerate(_names(log)):
        if name is not None:
            members.setdefault(name, []).append(row)
    found = [Place()] * len(log)
    for name, rows in members.items():
        for turn, row in enumerate(_in_order(log, rows), start=1):
            found[row] = Place(name, turn)
    return found


def followed(questions: Sequence[Row]) -> list[Place]:
    """The places of questions in any order, in theirs; nothing where no question follows another."""
    rows = sorted(range(len(questions)), key=lambda row: _when(questions[row]))
    found = dict(zip(rows, places([questions[row] for row in rows]), strict=True))
    return [found[row] for row in range(len(questions))] if any(at.turn == 2 for at in found.values()) else []


def together(rows: Sequence[int], found: Sequence[Place]) -> list[int]:
    """Those questions, the turns of each dialog one after another where its first one stands."""
    first: dict[str, int] = {}
    for number, row in enumerate(rows):
        if (name := found[row].dialog) is not None:
            first.setdefault(name, number)
    keys = {row: (first.get(found[row].dialog or "", number), found[row].turn or 0) for number, row in enumerate(rows)}
    return sorted(rows, key=lambda row: keys[row])


def with_what_was_said(rows: Sequence[int], found: Sequence[Place]) -> list[int]:
    """Those questions, and those before them in their dialogs; ascending."""
    last: dict[str, int] = {}
    for name, turn in (found[row] for row in rows):
        if name is not None:
            last[name] = max(turn or 0, last.get(name, 0))
    before = [row for row, at in enumerate(found) if at.dialog is not None and (at.turn or 0) <= last.get(at.dialog, 0)]
    return sorted({*rows, *before})


def sampled_whole(log: Sequence[Row], found: Sequence[Place], limit: int | None, seed: int) -> list[int]:
    """The numbers of the questions of a seeded sample, ascending, or all: whole dialogs, and questions of none.

    Every dialog is as likely as every single question; each length, and within it each topic, keeps its share, so that
    there are about as many questions as the limit says. Of a dialog that is longer than that, its beginning is taken.
    """
    units: dict[Any, list[int]] = {}
    for row, place in enumerate(found):
        units.setdefault(row if place.dialog is None else place.dialog, []).append(row)
    rows = [sorted(unit, key=lambda row: found[row].turn or 0)[:limit] for unit in units.values()]
    ids = [found[unit[0]].dialog or log[unit[0]]["question_id"] for unit in rows]
    strata = [f"{len(unit):09}|{topic_and_score(log[unit[0]])}" for unit in rows]
    n = None if limit is None else max(1, round(limit * len(rows) / sum(map(len, rows))))
    return sorted(row for number in sampled(ids, strata, n, seed) for row in rows[number])


def _names(log: Sequence[Row]) -> list[str | None]:
    """The annotation's dialog, else one user's questions that follow each other; None without a user or a time."""
    names: list[str | None] = []
    last: dict[Any, tuple[Any, str]] = {}
    for question in log:
        name, user, at = question.get("dialog_id") or None, question["user_id"], question["created_at"]
        if user is not None and at is not None:
            before = last.get(user)
            near = before is not None and (at - before[0]).total_seconds() <= MINUTES * 60
            name = name or (before[1] if before and near else f"{user}@{at:%Y-%m-%dT%H:%M:%S}")
            last[user] = at, name
        names.append(name)
    return names


def _in_order(log: Sequence[Row], rows: list[int]) -> list[int]:
    """The questions of a dialog in their order; none where it is not known. Ties stay in the order of time."""
    if all(log[row].get("turn") is not None for row in rows):
        return sorted(rows, key=lambda row: int(log[row]["turn"]))
    if any(log[row]["created_at"] is None for row in rows):
        return []
    return sorted(rows, key=lambda row: (log[row]["created_at"], log[row].get("turn") or math.inf))

"""The dialogs of a log: which questions belong together, in what order, and samples that tear none of them apart."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from tasks.cases.labels import Row
from tasks.cases.sampling import sampled, topic_and_score


class Place(NamedTuple):
    """Where a question stands; both None where it belongs to no dialog whose order is known."""

    dialog: str | None = None
    turn: int | None = None
    """From 1."""


def by_time(questions: Sequence[Row]) -> list[Row]:
    """The log in the order of time; questions without one at the end."""
    return sorted(questions, key=lambda question: (question["created_at"] is None, question["created_at"] or 0))


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


def _names(log: Sequence[Row], *, minutes: int = 30) -> list[str | None]:
    """The annotation's dialog, else one user's questions no more than so many minutes apart; None without a user or a
    time.
    """
    names: list[str | None] = []
    last: dict[Any, tuple[Any, str]] = {}
    for question in log:
        name, user, at = question.get("dialog_id") or None, question["user_id"], question["created_at"]
        if user is not None and at is not None:
            before = last.get(user)
            near = before is not None and (at - before[0]).total_seconds() <= minutes * 60
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

"""The dialogs of a log: which questions belong together, in which order, and samples of whole dialogs."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from yarus.db.source_rows import QuestionRow
from yarus.tasks.cases.outcomes import HIDDEN_PATH
from yarus.tasks.cases.sampling import question_stratum, stratified_sample

MAX_PAUSE_MINUTES = 30
"""Longest pause between two questions of one user in the same dialog."""


class DialogTurn(NamedTuple):
    """Dialog and turn of a question; both None if it belongs to no dialog with a known order."""

    dialog: str | None = None
    turn: int | None = None
    """Turn in the dialog, from 1."""


def history_messages(question: str, answer: str | None, path: str | None = None) -> tuple[dict[str, str], ...]:
    """Return the messages that a turn adds to the history of its dialog: only those the user saw.

    These are the question and the answer, including refusals in the system's own words. If the turn failed, or the
    answer is empty or hidden by the system's gate, only the question remains, because later ones may refer to it.

    Args:
        question: the question as asked.
        answer: the answer; None if the turn failed.
        path: as in `yarus.tasks.cases.outcomes.refusal_reason`.

    Example:
        >>> from yarus.tasks.cases.dialogs import history_messages
        >>> history_messages("Когда пересдача?", "В январе.")
        ({'role': 'user', 'content': 'Когда пересдача?'}, {'role': 'assistant', 'content': 'В январе.'})
        >>> len(history_messages("Когда пересдача?", None))
        1
    """
    user_message = {"role": "user", "content": question}
    reply = answer if answer and answer.strip() and path != HIDDEN_PATH else None
    return (user_message,) if reply is None else (user_message, {"role": "assistant", "content": reply})


def sort_by_time(questions: Sequence[QuestionRow]) -> list[QuestionRow]:
    """Return the log in order of time; questions without a time come last."""
    return sorted(questions, key=_time_key)


def _time_key(question: QuestionRow) -> tuple[bool, Any]:
    return question["created_at"] is None, question["created_at"] or 0


def dialog_turns(log: Sequence[QuestionRow]) -> list[DialogTurn]:
    """Return dialog and turn of every question.

    A dialog is ordered by `turn` if all its questions have one, else by time. If some have neither, its order is
    unknown.

    Args:
        log: the whole log, as `sort_by_time` orders it.
    """
    members: dict[str, list[int]] = {}
    for row, name in enumerate(_dialog_names(log)):
        if name is not None:
            members.setdefault(name, []).append(row)
    turns = [DialogTurn()] * len(log)
    for name, rows in members.items():
        for turn, row in enumerate(_order_turns(log, rows), start=1):
            turns[row] = DialogTurn(name, turn)
    return turns


def dialog_turns_if_any(questions: Sequence[QuestionRow]) -> list[DialogTurn]:
    """Return dialog and turn of questions in any order; empty if no question follows another."""
    rows = sorted(range(len(questions)), key=lambda row: _time_key(questions[row]))
    by_row = dict(zip(rows, dialog_turns([questions[row] for row in rows]), strict=True))
    return [by_row[row] for row in range(len(questions))] if any(place.turn == 2 for place in by_row.values()) else []


def group_by_dialog(rows: Sequence[int], turns: Sequence[DialogTurn]) -> list[int]:
    """Order the rows so that the turns of each dialog follow each other, at the position of its first row."""
    first: dict[str, int] = {}
    for index, row in enumerate(rows):
        if (name := turns[row].dialog) is not None:
            first.setdefault(name, index)
    keys = {row: (first.get(turns[row].dialog or "", index), turns[row].turn or 0) for index, row in enumerate(rows)}
    return sorted(rows, key=lambda row: keys[row])


def with_earlier_turns(rows: Sequence[int], turns: Sequence[DialogTurn]) -> list[int]:
    """Return the rows and all earlier turns of their dialogs, ascending."""
    last: dict[str, int] = {}
    for name, turn in (turns[row] for row in rows):
        if name is not None:
            last[name] = max(turn or 0, last.get(name, 0))
    earlier = [
        row
        for row, place in enumerate(turns)
        if place.dialog is not None and (place.turn or 0) <= last.get(place.dialog, 0)
    ]
    return sorted({*rows, *earlier})


def sample_whole_dialogs(
    log: Sequence[QuestionRow], turns: Sequence[DialogTurn], limit: int | None, seed: int
) -> list[int]:
    """Return the rows of a seeded sample of whole dialogs and single questions, ascending; all without a limit.

    A dialog is as likely as a single question. Each length, and within it each topic, keeps its share, so that the
    number of questions is close to the limit. A dialog longer than the limit is cut to its beginning.
    """
    units: dict[Any, list[int]] = {}
    for row, place in enumerate(turns):
        units.setdefault(row if place.dialog is None else place.dialog, []).append(row)
    rows = [sorted(unit, key=lambda row: turns[row].turn or 0)[:limit] for unit in units.values()]
    ids = [turns[unit[0]].dialog or log[unit[0]]["question_id"] for unit in rows]
    strata = [f"{len(unit):09}|{question_stratum(log[unit[0]])}" for unit in rows]
    n = None if limit is None else max(1, round(limit * len(rows) / sum(map(len, rows))))
    return sorted(row for position in stratified_sample(ids, strata, n, seed) for row in rows[position])


def _dialog_names(log: Sequence[QuestionRow]) -> list[str | None]:
    """Return the annotated dialogs, else dialogs of one user's close questions; None without user or time."""
    names: list[str | None] = []
    last_by_user: dict[Any, tuple[Any, str]] = {}
    for question in log:
        name, user, asked_at = question.get("dialog_id") or None, question["user_id"], question["created_at"]
        if user is not None and asked_at is not None:
            previous = last_by_user.get(user)
            is_near = previous is not None and (asked_at - previous[0]).total_seconds() <= MAX_PAUSE_MINUTES * 60
            name = name or (previous[1] if previous and is_near else f"{user}@{asked_at:%Y-%m-%dT%H:%M:%S}")
            last_by_user[user] = asked_at, name
        names.append(name)
    return names


def _order_turns(log: Sequence[QuestionRow], rows: list[int]) -> list[int]:
    """Return the rows of a dialog in order, ties by time; empty if the order is unknown."""
    if all(log[row].get("turn") is not None for row in rows):
        return sorted(rows, key=lambda row: int(log[row]["turn"]))
    if any(log[row]["created_at"] is None for row in rows):
        return []
    return sorted(rows, key=lambda row: (log[row]["created_at"], log[row].get("turn") or math.inf))

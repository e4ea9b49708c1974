"""The nuggets of a question as they are stored, and as people read and edit them: one a line, vital ones marked."""

from collections.abc import Mapping
from typing import Any

from typing_extensions import TypedDict

from yarus.db.errors import InputError
from yarus.tasks.cases.text import same_said

MOST = 20
"""Nuggets of a question; as many the AutoNuggetizer keeps."""
VITAL = "!"
"""Begins the line of a vital one."""


class Nugget(TypedDict):
    """One thing that an answer may contain."""

    nugget: str
    vital: bool
    """Whether a good answer must have it, or it is okay to have."""


def nuggets_of(question: Mapping[str, Any]) -> list[Nugget]:
    """The nuggets that a question is labelled with; none where nobody has made any.

    Raises:
        InputError: the column holds something else.
    """
    given = question.get("nuggets") or []
    if isinstance(given, list) and all(map(_is_nugget, given)):
        return [{"nugget": one["nugget"], "vital": one["vital"]} for one in given]
    raise InputError(
        'annotation.nuggets of question {question}: expected a list of {{"nugget": text, "vital": true or false}}, '
        "not {given!r:.200}",
        question=question["question_id"],
        given=given,
    )


def most_important(found: list[Nugget]) -> list[Nugget]:
    """Each once, the vital ones first, and no more than a judge can hold against an answer at once."""
    once: dict[str, Nugget] = {}
    for one in found:
        key = same_said(one["nugget"])
        if key not in once or (one["vital"] and not once[key]["vital"]):
            once[key] = one
    return sorted(once.values(), key=lambda one: not one["vital"])[:MOST]


def as_text(nuggets: list[Nugget]) -> str:
    """One a line, for people; `from_text` reads it back.

    Example:
        >>> from yarus.tasks.dataset.nuggets.form import as_text
        >>> as_text([{"nugget": "до 25 июля", "vital": True}, {"nugget": "можно почтой", "vital": False}])
        '! до 25 июля\\nможно почтой'
    """
    return "\n".join(f"{VITAL} {one['nugget']}" if one["vital"] else one["nugget"] for one in nuggets)


def from_text(text: str) -> list[Nugget]:
    """What people have written, one a line; empty lines and what stands twice count for nothing."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    found = (
        Nugget(nugget=line.removeprefix(VITAL).strip(), vital=line.startswith(VITAL))
        for line in lines
        if line.removeprefix(VITAL).strip()
    )
    return most_important(list(found))


def _is_nugget(given: Any) -> bool:
    if not isinstance(given, dict):
        return False
    text = given.get("nugget")
    return isinstance(text, str) and bool(text.strip()) and isinstance(given.get("vital"), bool)

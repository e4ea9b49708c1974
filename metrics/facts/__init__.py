"""Facts in answers that rules can find, and which of them a context supports."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FOUND = re.compile(r"(?P<date>\d{1,2}\.\d{1,2}\.\d{4})|(?P<phone>\+7[\d ()-]{9,}\d)|(?P<number>\d+(?:[.,]\d+)?)")


class Fact(NamedTuple):
    """A fact that stands in a text."""

    kind: str
    text: str
    """As it stands in the text."""
    start: int
    """Its place, in characters."""
    end: int


def facts(text: str) -> list[Fact]:
    """The facts of a text, in the order in which they stand."""
    return [Fact(str(found.lastgroup), found[0], *found.span()) for found in FOUND.finditer(text)]


def unsupported(answers: Sequence[str | None], contexts: Sequence[str | None]) -> list[list[Fact] | None]:
    """The facts of each answer that its context does not support; None where it has none, or a side is missing.

    Stored as: `unsupported_fact_rate` (metrics/table/facts.py).
    """
    found: list[list[Fact] | None] = []
    for answer, context in zip(answers, contexts, strict=True):
        stated = facts(answer) if answer and context else []
        known = {fact.text for fact in facts(context or "")}
        found.append([fact for fact in stated if fact.text not in known] if stated else None)
    return found


def fact_precision(answers: Sequence[str | None], contexts: Sequence[str | None]) -> NDArray[np.float64]:
    """The share of the answer's facts that the context supports, (n,); NaN where it has none, or a side is missing.

    Stored as: `avg_fact_precision` (metrics/table/facts.py).
    """
    lost = unsupported(answers, contexts)
    return np.array(
        [
            np.nan if none is None else 1 - len(none) / len(facts(answer or ""))
            for none, answer in zip(lost, answers, strict=True)
        ]
    )


def fact_recall(answers: Sequence[str | None], references: Sequence[str | None]) -> NDArray[np.float64]:
    """The share of the reference's facts that the answer has, (n,); NaN where it has none, or a side is missing.

    Stored as: `avg_fact_recall` (metrics/table/facts.py).
    """
    return fact_precision(references, answers)

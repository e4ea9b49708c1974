"""Questions that were asked again: they count every time, and lists show each once, with how often it was asked."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from yarus.tasks.cases.text import normalised


def once(questions: Sequence[str | None], others: Iterable[Hashable] = ()) -> dict[int, int]:
    """The first row of each question, in order, and how many rows ask it.

    Args:
        questions: n texts; a row without one stands alone.
        others: n things that must be the same too for rows to be one; by default none.

    Returns:
        Row -> rows.

    Example:
        >>> from yarus.tasks.cases.repeated import once
        >>> once(["Где столовая?", "Когда обед?", "где  столовая"])
        {0: 2, 1: 1}
    """
    beside = list(others) or [None] * len(questions)
    keys = [
        (normalised(text) or number, other) if text else (number, other)
        for number, (text, other) in enumerate(zip(questions, beside, strict=True))
    ]
    counts: Counter[Hashable] = Counter(keys)
    first: dict[Hashable, int] = {}
    for number, key in enumerate(keys):
        first.setdefault(key, number)
    return {number: counts[key] for key, number in first.items()}


def listed_once(entries: Sequence[dict[str, Any]], *same: str) -> list[Any]:
    """Entries with a question, those of one question as one, the first; `n` is how many there were.

    Args:
        entries: with `question`.
        same: names of what must be the same too.
    """
    rows = once([entry["question"] for entry in entries], [tuple(entry[name] for name in same) for entry in entries])
    return [{**entries[row], "n": n} for row, n in rows.items()]

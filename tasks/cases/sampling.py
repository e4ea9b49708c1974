"""Seeded stratified samples of logged questions, which keep their members as the log grows; repeated questions."""

import hashlib
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from yarus.db.source_rows import Row
from yarus.db.urls import canonical_url
from yarus.tasks.cases import labels
from yarus.tasks.cases.labels import is_reviewed, shown_page
from yarus.tasks.cases.text import folded, normalised
from yarus.tasks.cases.vocabulary import Note


def sampled(ids: Sequence[str], strata: Sequence[str], limit: int | None, seed: int, *, off: float = 2) -> list[int]:
    """The numbers of the cases of a seeded sample, ascending, or all; every stratum keeps its share to a few cases.

    A sample keeps its members: those are in it whose hash of seed and id is smallest. Of a log that has grown few are
    replaced, hardly more than the new ones that a sample of that size holds; one that has lost cases replaces little
    more than those. So that every stratum keeps its share, the r-th smallest hash of its m counts as no further than
    `off / m` from `(r - 0.5) / m`, where it is to be expected.

    Args:
        ids: of the cases, or of what is taken as a whole; what is in the sample depends on them, not on their order.
        strata: the stratum of each.
        limit: how many; None for all.
        seed: other seeds draw other samples.
        off: cases by which about a stratum may be off its share, at least 0.5. The less, the more members a new
            question displaces (at 0.5 a third more), and the less likely are cases of the smallest strata (by 8 %).
    """
    if limit is None or limit >= len(ids):
        return list(range(len(ids)))
    members: dict[str, list[tuple[float, str, int]]] = {}
    for number, (name, stratum) in enumerate(zip(ids, strata, strict=True)):
        members.setdefault(stratum, []).append((_chance(seed, name), name, number))
    keyed = [
        (min(max(chance, (rank - 0.5 - off) / len(alike)), (rank - 0.5 + off) / len(alike)), chance, name, number)
        for alike in members.values()
        for rank, (chance, name, number) in enumerate(sorted(alike), start=1)
    ]
    return sorted(number for *_, number in sorted(keyed)[:limit])


def _chance(seed: int, name: str) -> float:
    """A number from 0 to 1 that the seed and the name give, the same on every machine."""
    return int.from_bytes(hashlib.blake2b(f"{seed}|{name}".encode(), digest_size=6).digest()) / 2**48


def topic_and_score(question: Row) -> str:
    """The stratum of a question for sampling."""
    return f"{question.get('cluster') or canonical_url(question['confluence_url']) or ''}|{question['score']}"


def page_and_stratum(rows: Sequence[Row]) -> str:
    """The same of duplicate questions."""
    return f"{next(iter(shown_page(rows)), '')}|{labels.stratum(row['score'] for row in rows)}"


def merged(questions: Sequence[Row]) -> list[list[Row]]:
    """Duplicate questions together: those that differ in case and white space only, in order of first appearance."""
    groups: dict[str, list[Row]] = {}
    for question in questions:
        groups.setdefault(folded(question["question"]), []).append(question)
    return list(groups.values())


def topics(questions: Sequence[Row]) -> tuple[list[str | None], list[Note]]:
    """The cluster of every question: its annotated topic; where it has no annotation, the page that the bot showed."""
    named = [question.get("cluster") for question in questions]
    shown = [
        name if name is not None or is_reviewed(row) else next(iter(shown_page([row])), None)
        for name, row in zip(named, questions, strict=True)
    ]
    fallbacks = named.count(None) - shown.count(None)
    return shown, [{"note": "topic from the log", "n": fallbacks}] if fallbacks else []


def once(questions: Sequence[str | None], others: Iterable[Hashable] = ()) -> dict[int, int]:
    """The first row of each question, in order, and how many rows ask it.

    Args:
        questions: n texts; a row without one stands alone.
        others: n things that must be the same too for rows to be one; by default none.

    Returns:
        Row -> rows.

    Example:
        >>> from yarus.tasks.cases.sampling import once
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

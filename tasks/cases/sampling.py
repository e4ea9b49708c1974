"""Seeded stratified samples of logged questions, which stay stable as the log grows; duplicate questions."""

import hashlib
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from yarus.db.source_rows import QuestionRow
from yarus.db.urls import canonical_url
from yarus.tasks.cases import labels
from yarus.tasks.cases.labels import is_reviewed, shown_pages
from yarus.tasks.cases.text import fold_text, normalise_question
from yarus.tasks.cases.vocabulary import Note


def stratified_sample(
    ids: Sequence[str], strata: Sequence[str], limit: int | None, seed: int, *, off: float = 2
) -> list[int]:
    """Return the positions of the cases in a seeded stratified sample, ascending; all without a limit.

    The sample holds the cases with the smallest hashes of seed and id, so it is stable: if the log grows, few members
    are replaced, hardly more than the new cases that the sample holds; if cases are deleted, few others are replaced.
    To keep each stratum's share, the r-th smallest of a stratum's m hashes is clipped to within `off / m` of its
    expected value, `(r - 0.5) / m`.

    Args:
        ids: ids of the cases or groups; the sample depends on them, not on their order.
        strata: the stratum of each.
        limit: size of the sample; None for all.
        seed: seed of the sample.
        off: number of cases by which a stratum may roughly deviate from its share, at least 0.5. Smaller values let a
            new question displace more members (at 0.5 a third more) and draw cases of the smallest strata less often
            (by 8 %).
    """
    if limit is None or limit >= len(ids):
        return list(range(len(ids)))
    members: dict[str, list[tuple[float, str, int]]] = {}
    for position, (id_, stratum) in enumerate(zip(ids, strata, strict=True)):
        members.setdefault(stratum, []).append((_hash_to_unit_interval(seed, id_), id_, position))
    ranked = [
        (min(max(value, (rank - 0.5 - off) / len(group)), (rank - 0.5 + off) / len(group)), value, id_, position)
        for group in members.values()
        for rank, (value, id_, position) in enumerate(sorted(group), start=1)
    ]
    return sorted(position for *_, position in sorted(ranked)[:limit])


def _hash_to_unit_interval(seed: int, name: str) -> float:
    """Return a number from 0 to 1 computed from seed and name, the same on every machine."""
    return int.from_bytes(hashlib.blake2b(f"{seed}|{name}".encode(), digest_size=6).digest()) / 2**48


def question_stratum(question: QuestionRow) -> str:
    """Return the stratum of a question for sampling."""
    return f"{question.get('cluster') or canonical_url(question['confluence_url']) or ''}|{question['score']}"


def duplicates_stratum(rows: Sequence[QuestionRow]) -> str:
    """Return the stratum of duplicate questions for sampling."""
    return f"{next(iter(shown_pages(rows)), '')}|{labels.stratum_of_scores(row['score'] for row in rows)}"


def group_duplicate_questions(questions: Sequence[QuestionRow]) -> list[list[QuestionRow]]:
    """Group duplicate questions, which differ only in case and white space, by first appearance."""
    groups: dict[str, list[QuestionRow]] = {}
    for question in questions:
        groups.setdefault(fold_text(question["question"]), []).append(question)
    return list(groups.values())


def question_topics(questions: Sequence[QuestionRow]) -> tuple[list[str | None], list[Note]]:
    """Return the cluster of every question: its annotated topic, or without annotation the page that the bot showed."""
    annotated = [question.get("cluster") for question in questions]
    clusters = [
        topic if topic is not None or is_reviewed(row) else next(iter(shown_pages([row])), None)
        for topic, row in zip(annotated, questions, strict=True)
    ]
    fallbacks = annotated.count(None) - clusters.count(None)
    return clusters, [{"note": "topic from the log", "n": fallbacks}] if fallbacks else []


def count_distinct_questions(questions: Sequence[str | None], others: Iterable[Hashable] = ()) -> dict[int, int]:
    """Return the first row of each distinct question, in order, and its number of rows.

    Args:
        questions: n texts; a row without a text is its own group.
        others: n further values that must be equal too; by default none.

    Returns:
        First row -> number of rows.

    Example:
        >>> from yarus.tasks.cases.sampling import count_distinct_questions
        >>> count_distinct_questions(["Где столовая?", "Когда обед?", "где  столовая"])
        {0: 2, 1: 1}
    """
    extra_keys = list(others) or [None] * len(questions)
    keys = [
        (normalise_question(text) or row, extra_key) if text else (row, extra_key)
        for row, (text, extra_key) in enumerate(zip(questions, extra_keys, strict=True))
    ]
    counts: Counter[Hashable] = Counter(keys)
    first: dict[Hashable, int] = {}
    for row, key in enumerate(keys):
        first.setdefault(key, row)
    return {row: counts[key] for key, row in first.items()}


def merge_entries(entries: Sequence[dict[str, Any]], *same: str) -> list[Any]:
    """Merge entries with the same question into the first of them; `n` is their number.

    Args:
        entries: entries with `question`.
        same: names of further keys that must be equal.
    """
    counts = count_distinct_questions(
        [entry["question"] for entry in entries], [tuple(entry[name] for name in same) for entry in entries]
    )
    return [{**entries[position], "n": n} for position, n in counts.items()]

"""What is relevant for a question, from its annotation or else from the log; and which questions are evaluated."""

import random
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import pyarrow as pa

from db.sources import Corpus
from db.urls import canonical_url
from tasks.cases import table

Row = dict[str, Any]
Labels = dict[str, float]
Unit = Literal["chunk", "page"]
Note = dict[str, Any]
GOOD, BAD = 5, 1


def annotated_cases(source: str, questions: Sequence[Row], corpus: Corpus, unit: Unit) -> tuple[pa.Table, list[Note]]:
    """Tier 1's cases: labels from annotations; where there is none, the page that the bot showed.

    Args:
        source: its name, for the case ids.
        questions: rows of `question_answer` with their annotation, if they have one.
        corpus: the chunks, to tell labels that name nothing.
        unit: `chunk` or `page`.

    Returns:
        The table of cases, and a note for every fallback used and every label left out.
    """
    pages = pages_of(corpus)
    labels = [_labels(question, unit, pages) for question in questions]
    shown = [
        unit == "page" and not question.get("origin") and bool(of)
        for question, of in zip(questions, labels, strict=True)
    ]
    notes: list[Note] = [{"note": "page from the log", "n": sum(shown)}] if any(shown) else []
    cases, stale = _cases(source, questions, labels, unit, pages)
    return cases, notes + stale


def logged_cases(source: str, questions: Sequence[Row], corpus: Corpus) -> tuple[pa.Table, list[Note]]:
    """The real users' cases: the page that the bot showed is the label, duplicate questions are one case.

    Questions are the same when they differ in case and white space only. Their pages are united; a score counts when
    all of them agree on it.

    Returns:
        The table of cases with their stratum, and notes.
    """
    merged: dict[str, list[Row]] = {}
    for question in questions:
        merged.setdefault(" ".join(question["question"].casefold().split()), []).append(question)
    firsts = [rows[0] for rows in merged.values()]
    urls = [[canonical_url(row["confluence_url"]) for row in rows] for rows in merged.values()]
    labels: list[Labels] = [dict.fromkeys((url for url in shown if url), 1.0) for shown in urls]
    cases, notes = _cases(source, firsts, labels, "page", pages_of(corpus))
    if len(firsts) < len(questions):
        notes.append({"note": "duplicates merged", "n": len(questions) - len(firsts)})
    strata = [stratum(row["score"] for row in rows) for rows in merged.values()]
    return cases.append_column("stratum", pa.array(strata)), notes


def stratum(scores: Iterable[int | None]) -> str:
    """What users said of the answer: `confirmed` (5), `contradicted` (1), else `agreement` (nothing clear)."""
    said = {score for score in scores if score is not None}
    return {frozenset({GOOD}): "confirmed", frozenset({BAD}): "contradicted"}.get(frozenset(said), "agreement")


def pages_of(corpus: Corpus) -> dict[str, str | None]:
    """The page of every chunk."""
    return dict(zip(corpus.ids, map(canonical_url, corpus.urls), strict=True))


def default_unit(questions: Sequence[Row]) -> Unit:
    """`chunk` where chunks are labelled, else `page`."""
    return "chunk" if any(question.get("relevant_chunk_ids") for question in questions) else "page"


def sampled(strata: Sequence[str], limit: int | None, seed: int) -> list[int]:
    """The numbers of a seeded sample, ascending, or all; every stratum keeps its share.

    Ordered by stratum, at random within, and taken at equal steps from a random start.
    """
    if limit is None or limit >= len(strata):
        return list(range(len(strata)))
    generator = random.Random(seed)
    keys = [(stratum, generator.random()) for stratum in strata]
    order = sorted(range(len(strata)), key=keys.__getitem__)
    step, start = len(strata) / limit, generator.random()
    return sorted(order[int((start + number) * step)] for number in range(limit))


def topic_and_score(question: Row) -> str:
    """The stratum of a question for sampling."""
    return f"{question.get('cluster') or canonical_url(question['confluence_url']) or ''}|{question['score']}"


def _cases(
    source: str, questions: Sequence[Row], labels: Sequence[Labels], unit: Unit, pages: dict[str, str | None]
) -> tuple[pa.Table, list[Note]]:
    there = set(pages) if unit == "chunk" else set(pages.values())
    kept = [{name: grade for name, grade in of.items() if name in there} for of in labels]
    states = [_state(of, known, unit) for of, known in zip(labels, kept, strict=True)]
    graded = any(grade != 1 for known in kept for grade in known.values())
    ids = [question["question_id"] for question in questions]
    cases = table(
        case_id=[f"{source}:{question_id}" for question_id in ids],
        question_id=ids,
        question=[question["question"] for question in questions],
        status=[status for status, _ in states],
        reason=[reason for _, reason in states],
        group=[_group(question, known, unit, pages) for question, known in zip(questions, kept, strict=True)],
        relevant=[list(known) for known in kept],
        grades=[list(known.values()) if graded else None for known in kept],
    )
    stale = sum(map(len, labels)) - sum(map(len, kept))
    return cases, [{"note": "stale labels", "n": stale}] if stale else []


def _labels(question: Row, unit: Unit, pages: dict[str, str | None]) -> Labels:
    """Id -> grade of what is relevant, of the unit."""
    if unit == "chunk":
        return {name: grade for name, grade in _graded(question.get("relevant_chunk_ids")).items() if grade > 0}
    annotated = _annotated_pages(question, pages)
    if annotated or question.get("origin"):
        return annotated
    shown = canonical_url(question["confluence_url"])
    return {shown: 1.0} if shown else {}


def _annotated_pages(question: Row, pages: dict[str, str | None]) -> Labels:
    named = [(canonical_url(url), grade) for url, grade in _graded(question.get("relevant_urls")).items()]
    named += [(pages.get(chunk), grade) for chunk, grade in _graded(question.get("relevant_chunk_ids")).items()]
    labels: Labels = {}
    for page, grade in named:  # a page is as relevant as its most relevant chunk
        if page is not None and grade > 0:
            labels[page] = max(grade, labels.get(page, 0))
    return labels


def _graded(labels: Any) -> Labels:
    """A list of ids has grade 1 each; an object gives the grade of each."""
    if isinstance(labels, dict):
        return {str(name): float(grade) for name, grade in labels.items()}
    return {str(name): 1.0 for name in labels or ()}


def _state(labels: Labels, known: Labels, unit: Unit) -> tuple[str, str | None]:
    if known:
        return "ok", None
    if labels:
        return "stale_label", f"the {unit} that is labelled relevant is not in the corpus: {', '.join(labels)}"
    return "unlabelled", f"no {unit} is labelled relevant"


def _group(question: Row, known: Labels, unit: Unit, pages: dict[str, str | None]) -> str | None:
    """Questions of one user, or about one page, are not independent."""
    if question["user_id"] is not None:
        return f"user {question['user_id']}"
    name = next(iter(known), None)
    return pages.get(name) if name is not None and unit == "chunk" else name

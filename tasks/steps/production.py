"""What production did with the same question, as the log says it, beside the evaluated system."""

import asyncio
from collections.abc import Iterable, Sequence

import pyarrow as pa

from yarus.db.source_rows import Row
from yarus.db.urls import canonical_url
from yarus.tasks.cases.labels import pages_of
from yarus.tasks.cases.outcomes import declined
from yarus.tasks.cases.table import with_columns
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.work_folder import read_stored_corpus, read_twins

NEEDED = ("outcome", "decision", "production_shown", "production_page", "retrieved")
ANSWERED = {"answered": True, "refused": False, "failed": None, None: None}
"""What the system did -> whether it answered; None where that is not known."""


async def beside_production(run: Run, cases: pa.Table) -> pa.Table:
    """Adds `same_page` and `same_decision`: 1 where the system does what the log says of production, 0 where not.

    What the log does not say, and a question that the system failed on, has no value.
    """
    if "production_shown" not in cases.column_names:  # of an evaluation that was begun before it was asked for
        return cases
    return await asyncio.to_thread(_beside, run, cases)


def _beside(run: Run, cases: pa.Table) -> pa.Table:
    rows = cases.select([name for name in NEEDED if name in cases.column_names]).to_pylist()
    theirs = [row["production_shown"] for row in rows]
    ours = [row["decision"] if "decision" in row else ANSWERED[row["outcome"]] for row in rows]
    decisions = [None if None in pair else float(pair[0] == pair[1]) for pair in zip(ours, theirs, strict=True)]
    if "retrieved" not in cases.column_names:
        return with_columns(cases, same_decision=decisions)
    twins = read_twins(run)
    pages_named = pages_of(read_stored_corpus(run))
    if pages_named and not any(pages_named.values()):  # no passage says whose page it is: nothing can be the same
        return with_columns(cases, same_decision=decisions, same_page=[None] * len(rows))
    page_of = pages_named if run.config.unit == "chunk" else {}

    def same(page: str | None, retrieved: list[str] | None) -> float | None:
        if page is None or retrieved is None:
            return None
        first = page_of.get(retrieved[0], retrieved[0]) if retrieved else None
        return float(first is not None and twins.get(first, first) == twins.get(page, page))

    pages = [same(row["production_page"], row["retrieved"]) for row in rows]
    return with_columns(cases, same_decision=decisions, same_page=pages)


def has_answers(questions: Iterable[Row]) -> bool:
    """Return whether any question has an answer beside it: without one, nothing says what production did."""
    return any((question["answer"] or "").strip() for question in questions)


def with_production(cases: pa.Table, questions: Sequence[Row], *, logs_answers: bool = True) -> pa.Table:
    """Adds `production_page` and `production_shown`.

    A question without an answer was hidden or declined if a user asked it; what was synthesised, imported or written
    beside the log says nothing.

    Args:
        cases: n rows.
        questions: their rows in the source.
        logs_answers: whether the source has answers at all.
    """
    refusals = settings().refusals
    shown = [_shown(question, refusals) if logs_answers else None for question in questions]
    pages = [
        canonical_url(question["confluence_url"]) if out else None
        for question, out in zip(questions, shown, strict=True)
    ]
    return with_columns(cases, production_page=pages, production_shown=shown)


def _shown(question: Row, refusals: list[str]) -> bool | None:
    answer = (question["answer"] or "").strip()
    if answer:
        return declined(answer, refusals) is None
    asked = question["user_id"] is not None or not question.get("origin")
    return False if asked else None

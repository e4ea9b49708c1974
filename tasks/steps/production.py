"""Compare the evaluated system with production, by the log's record of the same questions."""

import asyncio
from collections.abc import Iterable, Sequence

import pyarrow as pa

from yarus.db.source_rows import QuestionRow
from yarus.db.urls import canonical_url
from yarus.tasks.cases.labels import page_by_chunk
from yarus.tasks.cases.outcomes import refusal_reason
from yarus.tasks.cases.table import set_columns
from yarus.tasks.config.settings import get_settings
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.evaluation.work_folder import read_duplicates, read_stored_corpus

NEEDED = ("outcome", "decision", "production_shown", "production_page", "retrieved")
ANSWERED_BY_OUTCOME = {"answered": True, "refused": False, "failed": None, None: None}
"""Outcome -> whether the system answered; None if unknown."""


async def compare_with_production(run: EvaluationRun, cases: pa.Table) -> pa.Table:
    """Add `same_page` and `same_decision`: 1 if the system does the same as production, else 0.

    Questions without a record in the log, or that the system failed on, have no value.
    """
    if "production_shown" not in cases.column_names:  # begun by a version without this comparison
        return cases
    return await asyncio.to_thread(_compare, run, cases)


def _compare(run: EvaluationRun, cases: pa.Table) -> pa.Table:
    rows = cases.select([name for name in NEEDED if name in cases.column_names]).to_pylist()
    logged = [row["production_shown"] for row in rows]
    own = [row["decision"] if "decision" in row else ANSWERED_BY_OUTCOME[row["outcome"]] for row in rows]
    decisions = [None if None in pair else float(pair[0] == pair[1]) for pair in zip(own, logged, strict=True)]
    if "retrieved" not in cases.column_names:
        return set_columns(cases, same_decision=decisions)
    twins = read_duplicates(run)
    by_chunk = page_by_chunk(read_stored_corpus(run))
    if by_chunk and not any(by_chunk.values()):  # no passage has a page: pages cannot be compared
        return set_columns(cases, same_decision=decisions, same_page=[None] * len(rows))
    page_by_id = by_chunk if run.config.unit == "chunk" else {}

    def is_same_page(page: str | None, retrieved: list[str] | None) -> float | None:
        if page is None or retrieved is None:
            return None
        first = page_by_id.get(retrieved[0], retrieved[0]) if retrieved else None
        return float(first is not None and twins.get(first, first) == twins.get(page, page))

    pages = [is_same_page(row["production_page"], row["retrieved"]) for row in rows]
    return set_columns(cases, same_decision=decisions, same_page=pages)


def has_answers(questions: Iterable[QuestionRow]) -> bool:
    """Return whether any question has a logged answer; without one, production's decisions are unknown."""
    return any((question["answer"] or "").strip() for question in questions)


def add_production(cases: pa.Table, questions: Sequence[QuestionRow], *, logs_answers: bool = True) -> pa.Table:
    """Add `production_page` and `production_shown`.

    A user's question without an answer was hidden or declined. Synthetic, imported or manual questions without one tell
    nothing.

    Args:
        cases: n rows.
        questions: their rows in the source.
        logs_answers: whether the source has answers at all.
    """
    refusals = get_settings().refusal_phrases
    is_shown = [_was_shown(question, refusals) if logs_answers else None for question in questions]
    pages = [
        canonical_url(question["confluence_url"]) if was_shown else None
        for question, was_shown in zip(questions, is_shown, strict=True)
    ]
    return set_columns(cases, production_page=pages, production_shown=is_shown)


def _was_shown(question: QuestionRow, refusals: list[str]) -> bool | None:
    answer = (question["answer"] or "").strip()
    if answer:
        return refusal_reason(answer, refusals) is None
    is_from_user = question["user_id"] is not None or not question.get("origin")
    return False if is_from_user else None

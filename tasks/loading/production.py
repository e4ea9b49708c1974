"""What the log says that production did with a question."""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from yarus.db.urls import canonical_url
from yarus.tasks.cases.labels import Row
from yarus.tasks.cases.refusals import declined
from yarus.tasks.cases.table import with_columns
from yarus.tasks.config.settings import settings


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

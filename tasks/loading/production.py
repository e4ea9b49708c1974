"""What the log says that production did with a question."""

from collections.abc import Sequence

import pyarrow as pa

from db.urls import canonical_url
from tasks.cases.labels import Row
from tasks.cases.refusals import declined
from tasks.cases.table import with_columns
from tasks.config.settings import settings


def with_production(cases: pa.Table, questions: Sequence[Row]) -> pa.Table:
    """Adds `production_page` and `production_shown`.

    A question without an answer was hidden or declined if a user asked it; what was synthesised, imported or written
    beside the log says nothing.
    """
    refusals = settings().refusals
    shown = [_shown(question, refusals) for question in questions]
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

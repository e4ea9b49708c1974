"""Sources of a few rows, stored as they are, whatever reads files. Imported by full name."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Engine

from yarus.db.loading.fill import Rows, fill
from yarus.db.loading.staging import Row

LABELS = ("ground_truth_answer", "relevant_chunk_ids", "relevant_urls", "ground_truth_show", "answerable", "nuggets")
LABELS += ("cluster", "dialog_id", "turn", "origin")


def store(engine: Engine, name: str, questions: Iterable[dict[str, Any]], chunks: Iterable[dict[str, Any]] = ()) -> str:
    """Store questions with their labels, and chunks, as a source; a label has no other beside it that is not given.

    Args:
        engine: of our own database.
        name: of the source.
        questions: rows of `question_answer` and, by the names of labels, of `annotation`.
        chunks: rows of `chunk`.

    Returns:
        The name.
    """
    rows = Rows()
    for number, values in enumerate(questions):
        row = {"id": str(number), **values}
        log = {key: value for key, value in row.items() if key not in LABELS}
        rows.questions.append(Row(f"question {number}", _EMPTY | log))
        if labels := {key: value for key, value in row.items() if key in LABELS}:
            every = dict.fromkeys(LABELS) | labels
            rows.annotations.append(Row(f"question {number}", {"question_id": row["id"], **every}))
    rows.chunks = [Row(f"chunk {values['id']}", {"confluence_url": None, **values}) for values in chunks]
    report = fill(engine, name, rows, language="ru", origin="test")
    assert report.problems == []
    return name


_EMPTY: dict[str, Any] = dict.fromkeys(
    ("question", "answer", "confluence_url", "score", "user_id", "created_at", "recorded")
)

"""Store sources of a few rows unchanged, without reading files. Imported by full name."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Engine

from yarus.db.loading.load_rows import ImportedRows, load_rows
from yarus.db.loading.staging import IncomingRow

LABELS = ("ground_truth_answer", "relevant_chunk_ids", "relevant_urls", "ground_truth_show", "answerable", "nuggets")
LABELS += ("cluster", "dialog_id", "turn", "origin")


def store_source(
    engine: Engine, name: str, questions: Iterable[dict[str, Any]], chunks: Iterable[dict[str, Any]] = ()
) -> str:
    """Store questions with their labels, and chunks, as a source; labels that are not given are NULL.

    Args:
        engine: engine of Yarus's database.
        name: name of the source.
        questions: rows of `question_answer` and, by the names of labels, of `annotation`.
        chunks: rows of `chunk`.

    Returns:
        The name.
    """
    rows = ImportedRows()
    for number, values in enumerate(questions):
        row = {"id": str(number), **values}
        log = {key: value for key, value in row.items() if key not in LABELS}
        rows.questions.append(IncomingRow(f"question {number}", _EMPTY | log))
        if labels := {key: value for key, value in row.items() if key in LABELS}:
            all_labels = dict.fromkeys(LABELS) | labels
            rows.annotations.append(IncomingRow(f"question {number}", {"question_id": row["id"], **all_labels}))
    rows.chunks = [IncomingRow(f"chunk {values['id']}", {"confluence_url": None, **values}) for values in chunks]
    report = load_rows(engine, name, rows, language="ru", origin="test")
    assert report.problems == []
    return name


_EMPTY: dict[str, Any] = dict.fromkeys(
    ("question", "answer", "confluence_url", "score", "user_id", "created_at", "recorded")
)

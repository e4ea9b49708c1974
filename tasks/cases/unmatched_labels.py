"""Detect labels made for another corpus: most of them match no page or chunk of this one."""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from yarus.db.source_rows import Corpus
from yarus.tasks.cases.labels import page_by_chunk
from yarus.tasks.cases.table import column_values
from yarus.tasks.cases.vocabulary import Note, Unit

MAX_EXAMPLES = 3
STALE_NOTE = "stale labels"
UNMATCHED_NOTES: dict[Unit, str] = {"chunk": "labels match no chunk", "page": "labels match no page"}


def compare_labels(notes: Sequence[Note], cases: pa.Table, corpus: Corpus, unit: Unit) -> list[Note]:
    """Add to the note about stale labels three of them and three ids of the corpus, if most labels are stale.

    Args:
        notes: notes of the evaluation.
        cases: cases with `labelled`.
        corpus: the chunks.
        unit: unit of the labels.
    """
    if not any(note["note"] == STALE_NOTE for note in notes):
        return list(notes)
    names = corpus.ids if unit == "chunk" else [page for page in page_by_chunk(corpus).values() if page is not None]
    existing = set(names)
    labels = [label.rpartition("=")[0] for entries in column_values(cases, "labelled") for label in entries or ()]
    stale = [label for label in labels if label not in existing]
    if 2 * len(stale) <= len(labels):
        return list(notes)
    unmatched: Note = {"note": UNMATCHED_NOTES[unit], "n": len(stale), "of": len(labels)}
    unmatched |= {"theirs": _join_first(stale), "ours": _join_first(names)}
    return [unmatched if note["note"] == STALE_NOTE else note for note in notes]


def unmatched_unit(notes: Iterable[Note]) -> Unit | None:
    """Return the unit of the labels if none of them matches; else None."""
    units = {note_text: unit for unit, note_text in UNMATCHED_NOTES.items()}
    return next((units[note["note"]] for note in notes if note["note"] in units and note["n"] == note["of"]), None)


def _join_first(names: Iterable[str]) -> str:
    return ", ".join(list(dict.fromkeys(names))[:MAX_EXAMPLES]) or "—"

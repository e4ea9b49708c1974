"""Labels of another corpus: most of them name no page or chunk of this one."""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from yarus.db.source_rows import Corpus
from yarus.tasks.cases.labels import pages_of
from yarus.tasks.cases.table import values_of
from yarus.tasks.cases.vocabulary import Note, Unit

SHOWN = 3
STALE = "stale labels"
UNMATCHED: dict[Unit, str] = {"chunk": "labels match no chunk", "page": "labels match no page"}


def compare_labels(notes: Sequence[Note], cases: pa.Table, corpus: Corpus, unit: Unit) -> list[Note]:
    """The notes; if most labels are stale, the note on them shows three of theirs beside three of ours.

    Args:
        notes: on what was met.
        cases: with `labelled`.
        corpus: the chunks.
        unit: of the labels.
    """
    if not any(note["note"] == STALE for note in notes):
        return list(notes)
    there = corpus.ids if unit == "chunk" else [page for page in pages_of(corpus).values() if page is not None]
    known = set(there)
    labels = [label.rpartition("=")[0] for some in values_of(cases, "labelled") for label in some or ()]
    stale = [label for label in labels if label not in known]
    if 2 * len(stale) <= len(labels):
        return list(notes)
    said: Note = {"note": UNMATCHED[unit], "n": len(stale), "of": len(labels)}
    said |= {"theirs": _first(stale), "ours": _first(there)}
    return [said if note["note"] == STALE else note for note in notes]


def unmatched_unit(notes: Iterable[Note]) -> Unit | None:
    """The unit of the labels if not one of them matches; else None."""
    units = {said: unit for unit, said in UNMATCHED.items()}
    return next((units[note["note"]] for note in notes if note["note"] in units and note["n"] == note["of"]), None)


def _first(names: Iterable[str]) -> str:
    return ", ".join(list(dict.fromkeys(names))[:SHOWN]) or "—"

"""The questions of two evaluations as one table: what each is about, and what became of the pages that answer it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from yarus.tasks.cases.table import values_if_any
from yarus.tasks.cases.text import script_of
from yarus.tasks.comparison.explanation.explanation_schema import TopicsBy
from yarus.tasks.comparison.slices import lengths
from yarus.tasks.dataset.corpus.topics import topics_by_words
from yarus.tasks.evaluation.corpus_versions import FATES, Fate, Version, fates

LABELS = ("labelled", "reference", "shown")
"""What a question is measured against: with others it is another one."""


class Questions(NamedTuple):
    """The questions of either evaluation; all columns have one entry each."""

    rows: tuple[NDArray[np.int64], NDArray[np.int64]]
    """Their rows before and after; -1 where a side has them not."""
    case_ids: list[str]
    texts: list[str | None]
    statuses: tuple[list[str | None], list[str | None]]
    groups: list[str | None]
    topics: list[str | None]
    topics_by: TopicsBy
    lengths: list[str | None]
    scripts: list[str]
    fates: list[Fate | None]
    pages: list[str | None]
    """The relevant page that had the fate."""
    n_relabelled: int

    def of(self, side: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values of a side's cases, by question; NaN where it has none."""
        rows = self.rows[side]
        return np.where(rows >= 0, values[np.maximum(rows, 0)] if len(values) else np.nan, np.nan)


def read_questions(
    sides: Sequence[pa.Table], versions: tuple[Version, Version] | None, page_of: Mapping[str, str | None]
) -> Questions:
    """The questions of both.

    Args:
        sides: cases before and after.
        versions: of the corpora, where both are known.
        page_of: chunk -> page, where chunks are labelled; what is not in it is a page.
    """
    keys = [_keys(cases) for cases in sides]
    places = [{key: row for row, key in enumerate(of)} for of in keys]
    union = list(dict.fromkeys([*keys[0], *keys[1]]))
    rows = tuple(np.array([of.get(key, -1) for key in union], dtype=np.int64) for of in places)
    ids = [key[0] for key in union]
    texts = _either(sides, rows, "question")
    labelled = _either(sides, rows, "labelled")
    shown = _either(sides, rows, "page")
    relevant = [_pages(*of, page_of) for of in zip(labelled, shown, strict=True)]
    became = fates(*versions) if versions else {}
    decided = [_decided(pages, became) for pages in relevant]
    annotated = [a or b for a, b in zip(*(_either(sides, rows, name) for name in ("cluster", "topic")), strict=True)]
    topics, topics_by = _topics(annotated, texts, [page for _, page in decided], same=set(keys[0]) == set(keys[1]))
    common = {key[0] for key in keys[0]} & {key[0] for key in keys[1]}
    return Questions(
        rows=(rows[0], rows[1]),
        case_ids=ids,
        texts=texts,
        statuses=(_of(sides[0], rows[0], "status"), _of(sides[1], rows[1], "status")),
        groups=_either(sides, rows, "group"),
        topics=topics,
        topics_by=topics_by,
        lengths=lengths(texts),
        scripts=[script_of(text) for text in texts],
        fates=[fate for fate, _ in decided],
        pages=[page for _, page in decided],
        n_relabelled=len(common) - sum(key in places[1] for key in keys[0]),
    )


def _topics(
    annotated: list[str | None], texts: Sequence[str | None], pages: list[str | None], *, same: bool
) -> tuple[list[str | None], TopicsBy]:
    """As annotated. Else by words, which takes a while; of the same questions it is enough to say which page."""
    if 2 * sum(topic is not None for topic in annotated) >= len(annotated):
        return annotated, "annotation"
    return (pages, "page") if same else (topics_by_words(tuple(texts)), "words")


def _keys(cases: pa.Table) -> list[tuple[Any, ...]]:
    columns = [values_if_any(cases, name) for name in ("case_id", *LABELS)]
    return [(case, tuple(sorted(labels or ())), *rest) for case, labels, *rest in zip(*columns, strict=True)]


def _of(cases: pa.Table, rows: NDArray[np.int64], name: str) -> list[Any]:
    values = values_if_any(cases, name)
    return [values[row] if row >= 0 else None for row in rows.tolist()]


def _either(sides: Sequence[pa.Table], rows: Sequence[NDArray[np.int64]], name: str) -> list[Any]:
    """What the side before says, else the side after."""
    before, after = (_of(cases, own, name) for cases, own in zip(sides, rows, strict=True))
    return [b if a is None else a for a, b in zip(before, after, strict=True)]


def _pages(labelled: list[str] | None, shown: str | None, page_of: Mapping[str, str | None]) -> list[str]:
    """The pages that are relevant: of what is labelled, `id=grade`, else the page that the answer came from."""
    named = (label.rpartition("=") for label in labelled or ())
    pages = (page_of.get(name, name) for name, _, grade in named if float(grade) > 0)
    return list(dict.fromkeys(page for page in pages if page)) or ([shown] if shown else [])


def _decided(pages: Sequence[str], became: Mapping[str, Fate]) -> tuple[Fate | None, str | None]:
    """The weightiest fate of a question's pages, and the page that had it."""
    found = {became[page]: page for page in reversed(pages) if page in became}
    for fate in FATES:
        if fate in found:
            return fate, found[fate]
    return None, next(iter(pages), None)

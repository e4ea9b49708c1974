"""Align the questions of two evaluations: what each is about, and the fate of the pages that answer it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from yarus.tasks.cases.table import optional_column_values
from yarus.tasks.cases.text import main_script
from yarus.tasks.comparison.explanation.explanation_schema import TopicsBy
from yarus.tasks.comparison.slices import length_labels
from yarus.tasks.dataset.corpus.topics import name_topics_by_words
from yarus.tasks.evaluation.corpus_versions import PAGE_CHANGES, CorpusVersion, PageChange, compare_versions

LABEL_COLUMNS = ("labelled", "reference", "shown")
"""Columns that a question is measured against; a question with other labels is a different one."""


class Questions(NamedTuple):
    """The questions of either evaluation; all columns have one entry each."""

    rows: tuple[NDArray[np.int64], NDArray[np.int64]]
    """Their rows before and after; -1 if a side does not have the question."""
    case_ids: list[str]
    texts: list[str | None]
    statuses: tuple[list[str | None], list[str | None]]
    groups: list[str | None]
    topics: list[str | None]
    topics_by: TopicsBy
    lengths: list[str | None]
    scripts: list[str]
    fates: list[PageChange | None]
    pages: list[str | None]
    """The relevant page that had the fate."""
    n_relabelled: int

    def of(self, side: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values of a side's cases, by question; NaN if the side does not have it."""
        rows = self.rows[side]
        return np.where(rows >= 0, values[np.maximum(rows, 0)] if len(values) else np.nan, np.nan)


def align_questions(
    sides: Sequence[pa.Table], versions: tuple[CorpusVersion, CorpusVersion] | None, page_of: Mapping[str, str | None]
) -> Questions:
    """Return the aligned questions of both sides.

    Args:
        sides: cases before and after.
        versions: the versions of the corpora, if both are known.
        page_of: chunk -> page, if chunks are labelled; other labels are pages.
    """
    keys = [_question_keys(cases) for cases in sides]
    rows_by_key = [{key: row for row, key in enumerate(side_keys)} for side_keys in keys]
    all_keys = list(dict.fromkeys([*keys[0], *keys[1]]))
    rows = tuple(np.array([side.get(key, -1) for key in all_keys], dtype=np.int64) for side in rows_by_key)
    ids = [key[0] for key in all_keys]
    texts = _coalesce(sides, rows, "question")
    labelled = _coalesce(sides, rows, "labelled")
    source_pages = _coalesce(sides, rows, "page")
    relevant = [_relevant_pages(*pair, page_of) for pair in zip(labelled, source_pages, strict=True)]
    fate_of = compare_versions(*versions) if versions else {}
    fates = [_decisive_fate(pages, fate_of) for pages in relevant]
    annotated = [a or b for a, b in zip(*(_coalesce(sides, rows, name) for name in ("cluster", "topic")), strict=True)]
    topics, topics_by = _choose_topics(annotated, texts, [page for _, page in fates], same=set(keys[0]) == set(keys[1]))
    common_ids = {key[0] for key in keys[0]} & {key[0] for key in keys[1]}
    return Questions(
        rows=(rows[0], rows[1]),
        case_ids=ids,
        texts=texts,
        statuses=(_read_column(sides[0], rows[0], "status"), _read_column(sides[1], rows[1], "status")),
        groups=_coalesce(sides, rows, "group"),
        topics=topics,
        topics_by=topics_by,
        lengths=length_labels(texts),
        scripts=[main_script(text) for text in texts],
        fates=[fate for fate, _ in fates],
        pages=[page for _, page in fates],
        n_relabelled=len(common_ids) - sum(key in rows_by_key[1] for key in keys[0]),
    )


def _choose_topics(
    annotated: list[str | None], texts: Sequence[str | None], pages: list[str | None], *, same: bool
) -> tuple[list[str | None], TopicsBy]:
    """Return annotated topics; else pages if both sides have the same questions, else topics from words (slow)."""
    if 2 * sum(topic is not None for topic in annotated) >= len(annotated):
        return annotated, "annotation"
    return (pages, "page") if same else (name_topics_by_words(tuple(texts)), "words")


def _question_keys(cases: pa.Table) -> list[tuple[Any, ...]]:
    columns = [optional_column_values(cases, name) for name in ("case_id", *LABEL_COLUMNS)]
    return [(case, tuple(sorted(labels or ())), *rest) for case, labels, *rest in zip(*columns, strict=True)]


def _read_column(cases: pa.Table, rows: NDArray[np.int64], name: str) -> list[Any]:
    values = optional_column_values(cases, name)
    return [values[row] if row >= 0 else None for row in rows.tolist()]


def _coalesce(sides: Sequence[pa.Table], rows: Sequence[NDArray[np.int64]], name: str) -> list[Any]:
    """Return the values of the side before, else of the side after."""
    before, after = (_read_column(cases, side_rows, name) for cases, side_rows in zip(sides, rows, strict=True))
    return [b if a is None else a for a, b in zip(before, after, strict=True)]


def _relevant_pages(labelled: list[str] | None, origin: str | None, page_of: Mapping[str, str | None]) -> list[str]:
    """Return the relevant pages from labels `id=grade`, else the page that the answer came from."""
    label_parts = (label.rpartition("=") for label in labelled or ())
    pages = (page_of.get(name, name) for name, _, grade in label_parts if float(grade) > 0)
    return list(dict.fromkeys(page for page in pages if page)) or ([origin] if origin else [])


def _decisive_fate(pages: Sequence[str], fate_of: Mapping[str, PageChange]) -> tuple[PageChange | None, str | None]:
    """Return the most important fate of a question's pages, and the page with it."""
    page_by_fate = {fate_of[page]: page for page in reversed(pages) if page in fate_of}
    for fate in PAGE_CHANGES:
        if fate in page_by_fate:
            return fate, page_by_fate[fate]
    return None, next(iter(pages), None)

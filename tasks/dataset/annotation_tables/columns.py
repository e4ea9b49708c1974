"""Columns of an annotation file, and the chunks and pages that people name in them."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from yarus.db.source_rows import Corpus
from yarus.db.urls import canonical_url
from yarus.tasks.cases.labels import page_by_chunk
from yarus.tasks.config.texts import texts
from yarus.tasks.dataset.annotation_tables.spreadsheets import Cell, annotation_problem
from yarus.tasks.dataset.annotation_tables.workbook import Passage, WorkbookLayout

COLUMNS: tuple[str, ...] = ("question_id", "source", "why", "question", "answer", "answer_of", "other_answers")
COLUMNS += ("reference", "retrieved", "nuggets", "question_ok", "answer_ok", "relevant", "show", "notes")
HEADINGS = "annotation.columns"
YES_NO = ("question_ok", "answer_ok", "show")
LABEL_COLUMNS = (*YES_NO, "relevant", "notes")
VERDICT_COLUMNS = (*LABEL_COLUMNS, "nuggets")
"""Columns that people fill in; the nuggets are prefilled for editing."""
REQUIRED_COLUMNS = ("question_id", "source", "answer_of", *LABEL_COLUMNS)
YES = {"да", "д", "yes", "y", "1", "true", "истина", "+", "верно", "ok"}
NO = {"нет", "н", "no", "n", "0", "false", "ложь", "-", "неверно"}
NONE = {"нет", "none", "no", "-", "0", "ни один", "ничего"}


def column_headings(language: str) -> list[str]:
    """Return the header of a file."""
    return [texts(HEADINGS, language)[name] for name in COLUMNS]


def workbook_layout(passages: Sequence[Passage], language: str) -> WorkbookLayout:
    """Return the layout of the workbook around the table."""
    workbook_texts = texts("annotation.workbook", language)
    return WorkbookLayout(
        title=workbook_texts["questions"],
        choices={COLUMNS.index(name): (workbook_texts["yes"], workbook_texts["no"]) for name in YES_NO},
        input_columns=frozenset(COLUMNS.index(name) for name in VERDICT_COLUMNS),
        guide=(workbook_texts["guide"], workbook_texts["how"].strip().split("\n")),
        passages=(workbook_texts["passages"], workbook_texts["passage columns"].split("|"), passages),
        choice_column=COLUMNS.index("relevant"),
    )


def parse_yes_no(cell: Cell) -> bool | None:
    """Parse a cell with yes or no; None if it is empty.

    Raises:
        ValueError: the cell is neither yes nor no.
    """
    word = cell.text.strip(" .!").casefold()
    if not word:
        return None
    if cell.is_date or word not in YES | NO:
        raise ValueError(annotation_problem("yes or no", given=cell.text))
    return word in YES


RelevantNames = dict[str, list[str]]
"""`chunks`: ids; `pages`: canonical URLs."""
SEPARATOR = re.compile(r"[;,\s\[\]]")
"""A separator between two names, which may also occur in one name."""
AMBIGUOUS_URL = re.compile(r"[\n\r\t]|[?#].*[;,\s\[\]]")
"""Text that a canonical URL drops, and that may contain another name."""

MAX_ENCODING_RATIO = 9
"""Maximum encoded length of one character in a URL: a letter of three bytes is `%E2%82%AC`."""


class ReferenceIndex(NamedTuple):
    """Names of chunks and pages that people can use."""

    names: dict[str, tuple[str, str]]
    """Name as written -> `chunks` or `pages`, and the stored name."""
    longest: int
    """Length of the longest name in characters."""


def build_reference_index(corpus: Corpus) -> ReferenceIndex:
    """Return the index of chunks by id and of pages by stored and canonical URL; ids take precedence over pages."""
    pages = list(page_by_chunk(corpus).values())
    stored = {page: url for page, url in zip(pages, corpus.urls, strict=True) if page is not None and url is not None}
    stored = {page: page if canonical_url(page) == page else url for page, url in stored.items()}
    names = {url.strip(): ("pages", stored[page]) for page, url in zip(pages, corpus.urls, strict=True) if page and url}
    names |= {page: ("pages", url) for page, url in stored.items()}
    names |= {chunk: ("chunks", chunk) for chunk in corpus.ids}
    return ReferenceIndex(names, max(map(len, names), default=0))


def find_references(text: str, index: ReferenceIndex) -> RelevantNames:
    """Return the chunks and pages that a cell names, without repetitions.

    If a name contains a comma, a semicolon, a bracket or a space, the longest name in the corpus is used.

    Args:
        text: names, separated by any of these.
        index: index of the names.

    Raises:
        ValueError: a part of the text is neither a chunk nor a page of the corpus.
    """
    references: dict[str, dict[str, None]] = {"chunks": {}, "pages": {}}
    start = 0
    while start < len(text):
        match = next(_find_matches(text, start, index), None)
        if match is not None:
            kind, name, start = match
            references[kind][name] = None
        elif SEPARATOR.match(text, start):
            start += 1
        else:
            raise ValueError(annotation_problem("label", given=text[start : _name_end(text, start)]))
    return {kind: list(names) for kind, names in references.items()}


def _find_matches(text: str, start: int, index: ReferenceIndex) -> Iterator[tuple[str, str, int]]:
    """Yield kind, name and end of the matches at a position: exact names, then canonical URLs; the longest first."""
    last = start + MAX_ENCODING_RATIO * index.longest
    ends = {_name_end(text, start), *(separator.start() for separator in SEPARATOR.finditer(text, start + 1, last + 1))}
    ends |= {len(text)} if len(text) <= last else set()
    pieces = [(text[start:end], end) for end in sorted(ends, reverse=True)]
    for piece, end in pieces:
        if piece in index.names:
            yield *index.names[piece], end
    if SEPARATOR.match(text, start):
        return
    for piece, end in pieces:
        page = None if AMBIGUOUS_URL.search(piece) else index.names.get(canonical_url(piece) or "")
        if page is not None and page[0] == "pages":
            yield *page, end


def _name_end(text: str, start: int) -> int:
    separator = SEPARATOR.search(text, start + 1)
    return separator.start() if separator else len(text)

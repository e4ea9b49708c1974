"""The columns of an annotation file, and the chunks and pages that people name in them."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from yarus.db.source_rows import Corpus
from yarus.db.urls import canonical_url
from yarus.tasks.cases.labels import pages_of
from yarus.tasks.config.texts import texts
from yarus.tasks.dataset.annotation.spreadsheets import Cell, said
from yarus.tasks.dataset.annotation.workbook import Look, Passage

COLUMNS: tuple[str, ...] = ("question_id", "source", "why", "question", "answer", "answer_of", "other_answers")
COLUMNS += ("reference", "retrieved", "nuggets", "question_ok", "answer_ok", "relevant", "show", "notes")
HEADINGS = "annotation.columns"
YES_NO = ("question_ok", "answer_ok", "show")
ASKED = (*YES_NO, "relevant", "notes")
VERDICTS = (*ASKED, "nuggets")
"""What people may say: the nuggets are there already, to be edited."""
NEEDED = ("question_id", "source", "answer_of", *ASKED)
YES = {"да", "д", "yes", "y", "1", "true", "истина", "+", "верно", "ok"}
NO = {"нет", "н", "no", "n", "0", "false", "ложь", "-", "неверно"}
NONE = {"нет", "none", "no", "-", "0", "ни один", "ничего"}


def headings(language: str) -> list[str]:
    """The header of a file."""
    return [texts(HEADINGS, language)[name] for name in COLUMNS]


def look(passages: Sequence[Passage], language: str) -> Look:
    """What the workbook has beside the table."""
    said = texts("annotation.workbook", language)
    return Look(
        title=said["questions"],
        choices={COLUMNS.index(name): (said["yes"], said["no"]) for name in YES_NO},
        asked=frozenset(COLUMNS.index(name) for name in VERDICTS),
        guide=(said["guide"], said["how"].strip().split("\n")),
        passages=(said["passages"], said["passage columns"].split("|"), passages),
        named_in=COLUMNS.index("relevant"),
    )


def yes_no(cell: Cell) -> bool | None:
    """What a cell says.

    Raises:
        ValueError: neither yes nor no.
    """
    word = cell.text.strip(" .!").casefold()
    if not word:
        return None
    if cell.is_date or word not in YES | NO:
        raise ValueError(said("yes or no", given=cell.text))
    return word in YES


Relevant = dict[str, list[str]]
"""`chunks`: their ids; `pages`: their canonical URLs."""
BETWEEN = re.compile(r"[;,\s\[\]]")
"""What may stand between two names, and in one."""
MAYBE_TWO = re.compile(r"[\n\r\t]|[?#].*[;,\s\[\]]")
"""What the canonical URL leaves out, with another name in it perhaps."""

ENCODED = 9
"""Most characters of an address for one of a page's: a letter of three bytes, `%E2%82%AC`."""


class Known(NamedTuple):
    """What can be named."""

    names: dict[str, tuple[str, str]]
    """As it may be written -> `chunks` or `pages`, and how it is stored."""
    longest: int
    """Characters of the longest name."""


def known(corpus: Corpus) -> Known:
    """The chunks of a corpus by id, and its pages by their URLs as stored and canonical; an id goes before a page."""
    pages = list(pages_of(corpus).values())
    stored = {page: url for page, url in zip(pages, corpus.urls, strict=True) if page is not None and url is not None}
    stored = {page: page if canonical_url(page) == page else url for page, url in stored.items()}
    names = {url.strip(): ("pages", stored[page]) for page, url in zip(pages, corpus.urls, strict=True) if page and url}
    names |= {page: ("pages", url) for page, url in stored.items()}
    names |= {chunk: ("chunks", chunk) for chunk in corpus.ids}
    return Known(names, max(map(len, names), default=0))


def named(text: str, corpus: Known) -> Relevant:
    """The chunks and pages that a cell names, each once.

    Of names with a comma, a semicolon, a bracket or a space in them, the longest that the corpus has counts.

    Args:
        text: names, parted by any of those.
        corpus: what can be named.

    Raises:
        ValueError: something is neither a chunk nor a page of the corpus.
    """
    found: dict[str, dict[str, None]] = {"chunks": {}, "pages": {}}
    start = 0
    while start < len(text):
        hit = next(_hits(text, start, corpus), None)
        if hit is not None:
            kind, name, start = hit
            found[kind][name] = None
        elif BETWEEN.match(text, start):
            start += 1
        else:
            raise ValueError(said("label", given=text[start : _end(text, start)]))
    return {kind: list(names) for kind, names in found.items()}


def _hits(text: str, start: int, corpus: Known) -> Iterator[tuple[str, str, int]]:
    """Kind, name and end of what stands here: first as it is written, then by the canonical URL; the longest first."""
    last = start + ENCODED * corpus.longest
    ends = {_end(text, start), *(gap.start() for gap in BETWEEN.finditer(text, start + 1, last + 1))}
    ends |= {len(text)} if len(text) <= last else set()
    pieces = [(text[start:end], end) for end in sorted(ends, reverse=True)]
    for piece, end in pieces:
        if piece in corpus.names:
            yield *corpus.names[piece], end
    if BETWEEN.match(text, start):
        return
    for piece, end in pieces:
        page = None if MAYBE_TWO.search(piece) else corpus.names.get(canonical_url(piece) or "")
        if page is not None and page[0] == "pages":
            yield *page, end


def _end(text: str, start: int) -> int:
    gap = BETWEEN.search(text, start + 1)
    return gap.start() if gap else len(text)

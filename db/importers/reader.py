"""The one reader of what people have: a table, a retrieval set, traces, or pages, told by what is in it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from yarus.db.errors import InputError
from yarus.db.importers import beir, squad, traces
from yarus.db.importers.containers import Container, open_container
from yarus.db.importers.corpus_names import CorpusNames
from yarus.db.importers.lines import UTF8
from yarus.db.importers.pages import Page, is_page, iter_pages
from yarus.db.importers.recognise import Kind, is_known
from yarus.db.importers.table import SMALL, Table, look
from yarus.db.importers.traces.recognise import REQUESTS
from yarus.db.loading.fill import Rows, Stream
from yarus.db.loading.staging import Rejected, Row
from yarus.db.words import Words

EXAMPLE = 200
"""Characters of a page by which the language is told."""
AUTORAG = ("qa.parquet", "corpus.parquet")


@dataclass
class Recognised:
    """A file or folder of somebody's, looked at as a whole."""

    path: Path
    kind: Literal["questions", "chunks", "set"]
    """Of its rows; a set has questions and passages."""
    shape: str
    """Whose shape it has, '' for a table of nobody's."""
    open: Callable[[CorpusNames | None], Rows | Stream]
    """Reads it, with the names of the corpus that labels may use."""
    encoding: str = UTF8
    table: Table | None = None
    notes: list[str] = field(default_factory=list)
    example: str = ""
    """A question or text, by which the language is told."""
    pages: Callable[[], Iterator[tuple[str, str | None, str, Sequence[str]]]] | None = None
    """Id, address, text and further names of each passage."""

    def add_names(self, corpus: CorpusNames) -> None:
        """Add what its pages and passages may be called."""
        for chunk_id, address, text, names in self.pages() if self.pages is not None else ():
            corpus.add(chunk_id, address, text, names)


def recognise(
    path: Path,
    *,
    kind: Kind | None = None,
    mapping: Mapping[str, str] | None = None,
    encoding: str | None = None,
    where: Mapping[str, str] | None = None,
) -> Recognised:
    """Look at a file or folder, whatever it is.

    Args:
        path: of a table (CSV, JSON, JSON Lines, YAML, Parquet, XLSX), traces, a SQuAD file, a BEIR folder, a page or a
            folder of pages.
        kind: of the rows of a table; None for what its columns say.
        mapping: our column -> theirs, where somebody knows it.
        encoding: of a text file; None for what its bytes say.
        where: their column -> the value that a row must have to be read.

    Raises:
        InputError: it cannot be read, or nobody can tell what it holds; nothing is loaded then.
    """
    if path.is_dir():
        return _folder(path)
    if not mapping and is_page(path) and not _is_table(path):
        return _pages(path)
    container = open_container(path, encoding)
    if not mapping:
        if container.document is not None and _is_squad(container.document):
            return _squad(path)
        if kind is None and _is_requests(container):
            return _traces(path, lambda: read_traces([path]))
        if kind is None and traces.is_trace_row(container.names):
            return _traces(path, lambda: traces.read_documents(_documents(container), str(path)), container.encoding)
    return _of_table(look(path, kind=kind, mapping=mapping, encoding=encoding, where=where, container=container))


def expand(paths: Sequence[Path]) -> list[Path]:
    """The paths, a folder of AutoRAG's as its two files."""
    expanded: list[Path] = []
    for path in paths:
        both = [path / name for name in AUTORAG]
        expanded += both if path.is_dir() and all(file.is_file() for file in both) else [path]
    return expanded


def read_traces(paths: Sequence[Path]) -> Stream:
    """Read recorded traces: JSON, or rows of tables (Parquet, CSV, XLSX).

    Args:
        paths: of one export; of a trace that is in two files, both must be among them.

    Raises:
        InputError: unreadable, cut off, or without any trace.
    """
    documents = (
        traces.documents_in(path) if traces.is_json(path) else _documents(open_container(path)) for path in paths
    )
    return traces.read_documents(chain.from_iterable(documents), ", ".join(map(str, paths)))


def match_labels(tables: Sequence[Recognised], corpus: CorpusNames) -> list[str]:
    """How many labels name nothing of the corpus.

    Args:
        tables: of questions.
        corpus: with at least one page.

    Returns:
        A line for each file of which some match.

    Raises:
        InputError: of a file none does: three of its labels are shown beside three of the pages.
    """
    notes: list[str] = []
    for recognised in tables:
        if recognised.table is None or recognised.table.kind != "questions":
            continue
        n = n_matched = 0
        strange = dict[str, None]()
        for ours, label in recognised.table.labels():
            n += 1
            if (corpus.page(label) if ours == "relevant_urls" else corpus.chunk(label)) is None:
                strange[label] = None
            else:
                n_matched += 1
        if not strange:
            continue
        theirs, ours_ = ", ".join(list(strange)[:3]), ", ".join(corpus.examples)
        if not n_matched:
            raise InputError(
                "{path}: none of its {n} labels names a page that is there: {theirs}; the pages are called {ours}. "
                "Write both alike, load the pages that are meant, or map another column: --map relevant_urls=COLUMN; "
                "nothing was loaded",
                path=recognised.path, n=n, theirs=theirs, ours=ours_,
            )  # fmt: skip
        notes.append(
            Words(
                "{file}: names of relevant pages that name no page, or several: {n} ({theirs}); the pages are called "
                "{ours}",
                file=recognised.path.name, n=len(strange), theirs=theirs, ours=ours_,
            )
        )  # fmt: skip
    return notes


def _is_table(path: Path) -> bool:
    """Whether a text file is a table: its first line has several columns of known names."""
    if path.suffix.lower() != ".txt":
        return False
    try:
        container = open_container(path)
    except InputError:
        return False
    return len(container.names) > 1 and any(map(is_known, container.names))


def _of_table(table: Table) -> Recognised:
    return Recognised(
        table.path, table.kind, table.shape.name if table.shape else "", table.stream, table.container.encoding, table,
        example=table.survey.example, pages=table.passages if table.kind == "chunks" else None,
    )  # fmt: skip


def _folder(path: Path) -> Recognised:
    if (path / "corpus.jsonl").is_file() and (path / "queries.jsonl").is_file():
        return Recognised(path, "set", "BEIR", lambda corpus: beir.read(path), example=_first_question(beir.read(path)))
    return _pages(path)


def _pages(path: Path) -> Recognised:
    problems: list[str] = []
    kept: list[Page] | None = []
    count, size, example = 0, 0, ""
    for page in iter_pages(path, problems):
        count, size, example = count + 1, size + len(page.text), example or page.text[:EXAMPLE]
        if kept is not None:
            kept.append(page)
            kept = None if size > SMALL else kept
    again: Callable[[], Iterator[Page]] = (lambda: iter_pages(path, [])) if kept is None else partial(iter, kept)

    def rows() -> Iterator[Row]:
        for page in again():
            yield Row(page.name, {"id": page.name, "confluence_url": page.address(), "text": page.text})

    def names() -> Iterator[tuple[str, str | None, str, Sequence[str]]]:
        for page in again():
            yield page.name, page.address(), page.text, (*page.names(), *([page.title] if page.title else []))

    return Recognised(
        path, "chunks", "pages", lambda corpus: Stream(chunks=rows(), problems=list(problems)),
        notes=[Words("{n} pages", n=count), *problems], example=example, pages=names,
    )  # fmt: skip


def _is_squad(document: Any) -> bool:
    articles = document.get("data") if isinstance(document, dict) else None
    return isinstance(articles, list) and bool(articles) and all(
        isinstance(article, dict) and "paragraphs" in article for article in articles
    )  # fmt: skip


def _squad(path: Path) -> Recognised:
    rows = squad.read(path)
    example = str(rows.questions[0].values["question"]) if rows.questions else ""
    return Recognised(path, "set", "SQuAD", lambda corpus: rows, example=example)


def _is_requests(container: Container) -> bool:
    document = container.document
    first = document[0] if isinstance(document, list) and document else document
    keys = set(first) if isinstance(first, dict) else set(container.names)
    return not keys.isdisjoint(REQUESTS)


def _traces(path: Path, opened: Callable[[], Stream], encoding: str = UTF8) -> Recognised:
    stream = opened()
    notes: list[str] = [Words("a question is loaded with the answer that was given, and what it was made from")]
    return Recognised(
        path, "set", "traces", lambda corpus: opened(), encoding, notes=notes, example=_first_question(stream)
    )


def _documents(container: Container) -> Iterator[tuple[str, Any]]:
    for place, cells in container.rows():
        yield place, cells if isinstance(cells, Rejected) else dict(cells)


def _first_question(stream: Stream) -> str:
    """The first question, by which the language is told; passages come before, so they are read over."""
    for _ in stream.chunks:  # type: ignore[union-attr]
        pass
    rows = (row for row in stream.questions if isinstance(row, Row))  # type: ignore[union-attr]
    return next((str(row.values["question"]) for row in rows if row.values.get("question")), "")

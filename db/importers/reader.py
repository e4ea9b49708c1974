"""Recognise what a file or folder holds (a table, a retrieval set, traces or pages), and read it."""

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
from yarus.db.importers.lines import UTF8_WITH_OPTIONAL_BOM
from yarus.db.importers.pages import Page, is_page, iter_pages
from yarus.db.importers.recognise import RowKind, is_known
from yarus.db.importers.table import MAX_CACHED_CHARACTERS, ImportedTable, inspect_table
from yarus.db.importers.traces.recognise import REQUEST_KEYS
from yarus.db.loading.load_rows import ImportedRows, RowStream
from yarus.db.loading.staging import IncomingRow, Rejected
from yarus.db.messages import Words

EXAMPLE_LENGTH = 200
"""Characters of a page that are enough to detect its language."""
AUTORAG_FILES = ("qa.parquet", "corpus.parquet")


@dataclass
class RecognisedSource:
    """A file or folder whose format and content are recognised."""

    path: Path
    kind: Literal["questions", "chunks", "set"]
    """The kind of its rows; a set has questions and passages."""
    shape: str
    """The tool whose shape it has; '' if unknown."""
    open: Callable[[CorpusNames | None], ImportedRows | RowStream]
    """Reads the file, given the corpus names that labels may use."""
    encoding: str = UTF8_WITH_OPTIONAL_BOM
    table: ImportedTable | None = None
    notes: list[str] = field(default_factory=list)
    example: str = ""
    """A question or text, to detect the language by."""
    pages: Callable[[], Iterator[tuple[str, str | None, str, Sequence[str]]]] | None = None
    """Id, address, text and further names of each passage."""

    def add_names(self, corpus: CorpusNames) -> None:
        """Add the names of its pages and passages."""
        for chunk_id, address, text, names in self.pages() if self.pages is not None else ():
            corpus.add(chunk_id, address, text, names)


def recognise_source(
    path: Path,
    *,
    kind: RowKind | None = None,
    mapping: Mapping[str, str] | None = None,
    encoding: str | None = None,
    where: Mapping[str, str] | None = None,
) -> RecognisedSource:
    """Recognise a file or folder of any supported format.

    Args:
        path: of a table (CSV, JSON, JSON Lines, YAML, Parquet, XLSX), traces, a SQuAD file, a BEIR folder, a page or a
            folder of pages.
        kind: of the rows of a table; None to detect it by the columns.
        mapping: our column -> its name in the file, if known.
        encoding: of a text file; None to detect it.
        where: column of the file -> the value that a row must have to be read.

    Raises:
        InputError: the file cannot be read or recognised; nothing is loaded then.
    """
    if path.is_dir():
        return _recognise_folder(path)
    if not mapping and is_page(path) and not _is_table(path):
        return _recognise_pages(path)
    container = open_container(path, encoding)
    if not mapping:
        if container.document is not None and _is_squad(container.document):
            return _recognise_squad(path)
        if kind is None and _has_requests(container):
            return _recognise_traces(path, lambda: read_traces([path]))
        if kind is None and traces.is_trace_row(container.names):
            return _recognise_traces(
                path, lambda: traces.read_documents(_iter_documents(container), str(path)), container.encoding
            )
    return _recognise_table(
        inspect_table(path, kind=kind, mapping=mapping, encoding=encoding, where=where, container=container)
    )


def expand_autorag_folders(paths: Sequence[Path]) -> list[Path]:
    """Return the paths, with each AutoRAG folder replaced by its two files."""
    expanded: list[Path] = []
    for path in paths:
        files = [path / name for name in AUTORAG_FILES]
        expanded += files if path.is_dir() and all(file.is_file() for file in files) else [path]
    return expanded


def read_traces(paths: Sequence[Path]) -> RowStream:
    """Read recorded traces: JSON, or rows of tables (Parquet, CSV, XLSX).

    Args:
        paths: of one export; if a trace is in two files, both must be among them.

    Raises:
        InputError: unreadable, truncated, or without any trace.
    """
    documents = (
        traces.documents_in(path) if traces.is_json(path) else _iter_documents(open_container(path)) for path in paths
    )
    return traces.read_documents(chain.from_iterable(documents), ", ".join(map(str, paths)))


def report_unmatched_labels(tables: Sequence[RecognisedSource], corpus: CorpusNames) -> list[str]:
    """Count the labels that match nothing in the corpus.

    Args:
        tables: of questions.
        corpus: with at least one page.

    Returns:
        One line per file with labels of which only some match.

    Raises:
        InputError: no label of a file matches; the message has three of its labels and three page names.
    """
    notes: list[str] = []
    for recognised in tables:
        if recognised.table is None or recognised.table.kind != "questions":
            continue
        n_labels = n_matched = 0
        unmatched = dict[str, None]()
        for column, label in recognised.table.labels():
            n_labels += 1
            if (corpus.find_page(label) if column == "relevant_urls" else corpus.find_chunk(label)) is None:
                unmatched[label] = None
            else:
                n_matched += 1
        if not unmatched:
            continue
        unmatched_names, corpus_examples = ", ".join(list(unmatched)[:3]), ", ".join(corpus.examples)
        if not n_matched:
            raise InputError(
                "{path}: none of its {n} labels names a page that is there: {theirs}; the pages are called {ours}. "
                "Write both alike, load the pages that are meant, or map another column: --map relevant_urls=COLUMN; "
                "nothing was loaded",
                path=recognised.path, n=n_labels, theirs=unmatched_names, ours=corpus_examples,
            )  # fmt: skip
        notes.append(
            Words(
                "{file}: names of relevant pages that name no page, or several: {n} ({theirs}); the pages are called "
                "{ours}",
                file=recognised.path.name, n=len(unmatched), theirs=unmatched_names, ours=corpus_examples,
            )
        )  # fmt: skip
    return notes


def _is_table(path: Path) -> bool:
    """Return whether a text file is a table: its first line has several columns, one of them known."""
    if path.suffix.lower() != ".txt":
        return False
    try:
        container = open_container(path)
    except InputError:
        return False
    return len(container.names) > 1 and any(map(is_known, container.names))


def _recognise_table(table: ImportedTable) -> RecognisedSource:
    return RecognisedSource(
        table.path, table.kind, table.shape.name if table.shape else "", table.stream, table.container.encoding, table,
        example=table.survey.example, pages=table.passages if table.kind == "chunks" else None,
    )  # fmt: skip


def _recognise_folder(path: Path) -> RecognisedSource:
    if (path / "corpus.jsonl").is_file() and (path / "queries.jsonl").is_file():
        return RecognisedSource(
            path, "set", "BEIR", lambda corpus: beir.read_beir(path), example=_first_question(beir.read_beir(path))
        )
    return _recognise_pages(path)


def _recognise_pages(path: Path) -> RecognisedSource:
    problems: list[str] = []
    cached: list[Page] | None = []
    n_pages, size, example = 0, 0, ""
    for page in iter_pages(path, problems):
        n_pages, size, example = (n_pages + 1, size + len(page.text), example or page.text[:EXAMPLE_LENGTH])
        if cached is not None:
            cached.append(page)
            cached = None if size > MAX_CACHED_CHARACTERS else cached
    iterate: Callable[[], Iterator[Page]] = (lambda: iter_pages(path, [])) if cached is None else partial(iter, cached)

    def iter_rows() -> Iterator[IncomingRow]:
        for page in iterate():
            yield IncomingRow(page.name, {"id": page.name, "confluence_url": page.address(), "text": page.text})

    def iter_names() -> Iterator[tuple[str, str | None, str, Sequence[str]]]:
        for page in iterate():
            yield page.name, page.address(), page.text, (*page.names(), *([page.title] if page.title else []))

    return RecognisedSource(
        path, "chunks", "pages", lambda corpus: RowStream(chunks=iter_rows(), problems=list(problems)),
        notes=[Words("{n} pages", n=n_pages), *problems], example=example, pages=iter_names,
    )  # fmt: skip


def _is_squad(document: Any) -> bool:
    articles = document.get("data") if isinstance(document, dict) else None
    return isinstance(articles, list) and bool(articles) and all(
        isinstance(article, dict) and "paragraphs" in article for article in articles
    )  # fmt: skip


def _recognise_squad(path: Path) -> RecognisedSource:
    rows = squad.read_squad(path)
    example = str(rows.questions[0].values["question"]) if rows.questions else ""
    return RecognisedSource(path, "set", "SQuAD", lambda corpus: rows, example=example)


def _has_requests(container: Container) -> bool:
    document = container.document
    first = document[0] if isinstance(document, list) and document else document
    keys = set(first) if isinstance(first, dict) else set(container.names)
    return not keys.isdisjoint(REQUEST_KEYS)


def _recognise_traces(
    path: Path, open_stream: Callable[[], RowStream], encoding: str = UTF8_WITH_OPTIONAL_BOM
) -> RecognisedSource:
    stream = open_stream()
    notes: list[str] = [Words("a question is loaded with the answer that was given, and what it was made from")]
    return RecognisedSource(
        path, "set", "traces", lambda corpus: open_stream(), encoding, notes=notes, example=_first_question(stream)
    )


def _iter_documents(container: Container) -> Iterator[tuple[str, Any]]:
    for place, cells in container.rows():
        yield place, cells if isinstance(cells, Rejected) else dict(cells)


def _first_question(stream: RowStream) -> str:
    """Return the first question, to detect the language by; the chunks before it are read and skipped."""
    for _ in stream.chunks:  # type: ignore[union-attr]
        pass
    rows = (row for row in stream.questions if isinstance(row, IncomingRow))  # type: ignore[union-attr]
    return next((str(row.values["question"]) for row in rows if row.values.get("question")), "")

"""Resolve the names by which labels refer to pages and passages of a corpus: addresses, file names, ids, texts."""

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import Connection, inspect, select, update

from yarus.db.loading.recorded import Record
from yarus.db.sources import SCHEMA_PREFIX
from yarus.db.tables import ANNOTATION_TABLE, source_tables
from yarus.db.urls import canonical_url

Labels = list[str] | dict[str, float]
"""Names of relevant items, or name -> grade."""


class LabelTarget(NamedTuple):
    """The target of a label: a page by its address, or a chunk by its id."""

    page: str | None = None
    chunk: str | None = None


class CorpusNames:
    """The names of a corpus; a name that two pages share refers to neither."""

    def __init__(self) -> None:
        self._pages: dict[str, str | None] = {}
        self._chunks: set[str] = set()
        self._texts: dict[bytes, str] = {}
        self.examples: list[str] = []
        """Addresses, or ids of pages without one, for the message about labels that match nothing."""

    def __len__(self) -> int:
        return len(self._chunks)

    def add(self, chunk_id: str, address: str | None, text: str | None, names: Iterable[str] = ()) -> None:
        """Add a chunk.

        Args:
            chunk_id: its id.
            address: of its page.
            text: of the chunk.
            names: other names of its page.
        """
        self._chunks.add(chunk_id)
        if text:
            self._texts.setdefault(_hash_text(text), chunk_id)
        if len(self.examples) < 3 and (address or chunk_id) not in self.examples:
            self.examples.append(address or chunk_id)
        page = canonical_url(address)
        if address is None or page is None:
            return
        self._pages[page] = self._pages[address.casefold()] = self._pages[_strip_scheme(page)] = address
        file = page.rstrip("/").rpartition("/")[2].casefold()
        for name in {name.casefold() for name in (*names, file)} - {address.casefold()}:
            self._pages[name] = address if self._pages.get(name, address) == address else None

    def find_page(self, label: str) -> LabelTarget | None:
        """Return the target of a page name; None if the corpus has no such name."""
        page = canonical_url(label) or label
        address = self._pages.get(page) or self._pages.get(label.casefold()) or self._pages.get(_strip_scheme(page))
        if address is None and "://" not in label:
            address = self._pages.get(label.replace("\\", "/").rpartition("/")[2].casefold())
        if address is not None:
            return LabelTarget(page=address)
        return LabelTarget(chunk=label) if label in self._chunks else None

    def find_chunk(self, label: str) -> LabelTarget | None:
        """Return the target of a chunk id; None if the corpus has no such name."""
        return LabelTarget(chunk=label) if label in self._chunks else self.find_page(label)

    def resolve(self, chunks: Labels | None, pages: Labels | None) -> tuple[Labels | None, Labels | None]:
        """Replace the names in labels by those of the corpus; unknown names stay unchanged.

        Args:
            chunks: ids of relevant chunks, or id -> grade.
            pages: names of relevant pages, or name -> grade.

        Returns:
            The labels of chunks by id, and those of pages by address.
        """
        chunk_ids, addresses = _empty_like(chunks), _empty_like(pages)
        for labels, find in ((chunks, self.find_chunk), (pages, self.find_page)):
            for label in labels or ():
                grade = labels[label] if isinstance(labels, dict) else 1
                target = find(label) or (LabelTarget(chunk=label) if labels is chunks else LabelTarget(page=label))
                if target.chunk is not None:
                    chunk_ids = add_label(chunk_ids, target.chunk, grade)
                elif target.page is not None:
                    addresses = add_label(addresses, target.page, grade)
        return chunk_ids, addresses

    def find_by_text(self, text: str) -> str | None:
        """Return the id of the chunk with that text; None if there is none."""
        return self._texts.get(_hash_text(text))

    def with_corpus_id(self, passage: Record) -> Record:
        """Return the passage with the id that the corpus has for its text."""
        corpus_id = self.find_by_text(passage["text"]) if passage.get("text") else None
        return passage if corpus_id is None or passage["id"] in self._chunks else {**passage, "id": corpus_id}


def _empty_like(labels: Labels | None) -> Labels | None:
    return None if labels is None else {} if isinstance(labels, dict) else []


def add_label(labels: Labels | None, name: str, grade: float) -> Labels:
    """Add a label; labels get grades as soon as one grade is not 1."""
    labels = [] if labels is None else labels
    if isinstance(labels, list) and grade != 1:
        labels = dict.fromkeys(labels, 1.0)
    if isinstance(labels, dict):
        return labels | {name: max(grade, labels.get(name, grade))}
    return labels if name in labels else [*labels, name]


def _strip_scheme(address: str) -> str:
    """Return an address without its scheme and `www.`, which people often omit."""
    return re.sub(r"^https?://(?:www\.)?", "", address.casefold()).rstrip("/")


def _hash_text(text: str) -> bytes:
    return hashlib.blake2b(" ".join(text.split()).encode(errors="surrogatepass"), digest_size=12).digest()


def add_source_names(connection: Connection, name: str, corpus: CorpusNames) -> None:
    """Add the names in a loaded source; nothing if the source does not exist."""
    chunk = source_tables(SCHEMA_PREFIX + name)["chunk"]
    if not inspect(connection).has_table(chunk.name, schema=chunk.schema):
        return
    columns = select(chunk.c.id, chunk.c.confluence_url, chunk.c.text).execution_options(yield_per=5_000)
    for row in connection.execute(columns):
        corpus.add(row.id, row.confluence_url, row.text)


def resolve_stored_labels(connection: Connection, name: str, corpus: CorpusNames) -> None:
    """Resolve the stored labels of a source by the names of pages that were loaded later."""
    annotation = source_tables(SCHEMA_PREFIX + name)[ANNOTATION_TABLE]
    if not inspect(connection).has_table(annotation.name, schema=annotation.schema):
        return
    columns = annotation.c
    labelled = columns.relevant_urls.is_not(None) | columns.relevant_chunk_ids.is_not(None)
    stored = select(columns.question_id, columns.relevant_chunk_ids, columns.relevant_urls).where(labelled)
    for row in connection.execute(stored).all():
        chunks, pages = corpus.resolve(row.relevant_chunk_ids, row.relevant_urls)
        if (chunks, pages) != (row.relevant_chunk_ids, row.relevant_urls):
            change = update(annotation).where(columns.question_id == row.question_id)
            connection.execute(change.values(relevant_chunk_ids=chunks, relevant_urls=pages))

"""By which names labels may call the pages and passages of a corpus: addresses, names of files, ids, texts."""

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import Connection, inspect, select, update

from yarus.db.loading.recorded import Record
from yarus.db.sources import SCHEMA_PREFIX
from yarus.db.tables import ANNOTATION, source_tables
from yarus.db.urls import canonical_url

Labels = list[str] | dict[str, float]
"""Names of what is relevant, or name -> grade."""


class Matched(NamedTuple):
    """What a label names: a page by its address, or a chunk by its id."""

    page: str | None = None
    chunk: str | None = None


class CorpusNames:
    """The names of a corpus; a name of two pages names none."""

    def __init__(self) -> None:
        self._pages: dict[str, str | None] = {}
        self._chunks: set[str] = set()
        self._texts: dict[bytes, str] = {}
        self.examples: list[str] = []
        """Addresses, or ids where there are none, to be shown beside labels that match nothing."""

    def __len__(self) -> int:
        return len(self._chunks)

    def add(self, chunk_id: str, address: str | None, text: str | None, names: Iterable[str] = ()) -> None:
        """Add a chunk.

        Args:
            chunk_id: its id.
            address: of its page.
            text: of the chunk.
            names: what else its page may be called.
        """
        self._chunks.add(chunk_id)
        if text:
            self._texts.setdefault(_digest(text), chunk_id)
        if len(self.examples) < 3 and (address or chunk_id) not in self.examples:
            self.examples.append(address or chunk_id)
        page = canonical_url(address)
        if address is None or page is None:
            return
        self._pages[page] = self._pages[address.casefold()] = self._pages[_bare(page)] = address
        file = page.rstrip("/").rpartition("/")[2].casefold()
        for name in {name.casefold() for name in (*names, file)} - {address.casefold()}:
            self._pages[name] = address if self._pages.get(name, address) == address else None

    def page(self, label: str) -> Matched | None:
        """What the name of a page names; None where the corpus has nothing of that name."""
        page = canonical_url(label) or label
        address = self._pages.get(page) or self._pages.get(label.casefold()) or self._pages.get(_bare(page))
        if address is None and "://" not in label:
            address = self._pages.get(label.replace("\\", "/").rpartition("/")[2].casefold())
        if address is not None:
            return Matched(page=address)
        return Matched(chunk=label) if label in self._chunks else None

    def chunk(self, label: str) -> Matched | None:
        """What the id of a chunk names; None where the corpus has nothing of that name."""
        return Matched(chunk=label) if label in self._chunks else self.page(label)

    def resolve(self, chunks: Labels | None, pages: Labels | None) -> tuple[Labels | None, Labels | None]:
        """Give labels the names that the corpus has for what they mean; what it has not stays as it is.

        Args:
            chunks: ids of relevant chunks, or id -> grade.
            pages: names of relevant pages, or name -> grade.

        Returns:
            The same for chunks, and for pages by their addresses.
        """
        chunk_ids, addresses = _empty_like(chunks), _empty_like(pages)
        for labels, find in ((chunks, self.chunk), (pages, self.page)):
            for label in labels or ():
                grade = labels[label] if isinstance(labels, dict) else 1
                meant = find(label) or (Matched(chunk=label) if labels is chunks else Matched(page=label))
                if meant.chunk is not None:
                    chunk_ids = with_label(chunk_ids, meant.chunk, grade)
                elif meant.page is not None:
                    addresses = with_label(addresses, meant.page, grade)
        return chunk_ids, addresses

    def passage(self, text: str) -> str | None:
        """The id of the chunk with that text; None where there is none."""
        return self._texts.get(_digest(text))

    def known(self, passage: Record) -> Record:
        """The passage under the id that the corpus has for its text."""
        there = self.passage(passage["text"]) if passage.get("text") else None
        return passage if there is None or passage["id"] in self._chunks else {**passage, "id": there}


def _empty_like(labels: Labels | None) -> Labels | None:
    return None if labels is None else {} if isinstance(labels, dict) else []


def with_label(labels: Labels | None, name: str, grade: float) -> Labels:
    """Labels with one more; with grades as soon as one is not 1."""
    labels = [] if labels is None else labels
    if isinstance(labels, list) and grade != 1:
        labels = dict.fromkeys(labels, 1.0)
    if isinstance(labels, dict):
        return labels | {name: max(grade, labels.get(name, grade))}
    return labels if name in labels else [*labels, name]


def _bare(address: str) -> str:
    """An address without its scheme and `www.`, by which people leave them out."""
    return re.sub(r"^https?://(?:www\.)?", "", address.casefold()).rstrip("/")


def _digest(text: str) -> bytes:
    return hashlib.blake2b(" ".join(text.split()).encode(errors="surrogatepass"), digest_size=12).digest()


def names_of_source(connection: Connection, name: str, corpus: CorpusNames) -> None:
    """Add the names of what a loaded source has already; nothing where there is no such source."""
    chunk = source_tables(SCHEMA_PREFIX + name)["chunk"]
    if not inspect(connection).has_table(chunk.name, schema=chunk.schema):
        return
    columns = select(chunk.c.id, chunk.c.confluence_url, chunk.c.text).execution_options(yield_per=5_000)
    for row in connection.execute(columns):
        corpus.add(row.id, row.confluence_url, row.text)


def resolve_stored_labels(connection: Connection, name: str, corpus: CorpusNames) -> None:
    """Give the labels that a source has already the names of pages that came after them."""
    annotation = source_tables(SCHEMA_PREFIX + name)[ANNOTATION]
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

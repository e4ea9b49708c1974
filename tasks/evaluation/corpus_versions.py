"""Versions of a corpus: the text digests of its chunks and pages, and the page changes between two versions."""

import hashlib
import io
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Set
from typing import Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Engine

from yarus.db.source_rows import Corpus
from yarus.db.stores import corpora
from yarus.tasks.cases.labels import page_by_chunk

PageChange = Literal["removed", "edited", "duplicated", "added", "untouched"]
PAGE_CHANGES: tuple[PageChange, ...] = ("removed", "edited", "duplicated", "added", "untouched")
"""Possible changes of a page, the most important first."""
DIGEST = 16
"""Bytes of a text digest."""


class CorpusVersion(NamedTuple):
    """A version of a corpus."""

    page_of: Mapping[str, str | None]
    """Chunk -> page."""
    texts: Mapping[str, Set[bytes]]
    """Page -> digests of the texts of its chunks."""
    on: Mapping[bytes, Set[str]]
    """Digest of a text -> the pages that contain it."""


def save_version(engine: Engine, corpus: Corpus) -> str:
    """Store the outline of a corpus, and return the SHA-256 that identifies it.

    Texts count as equal whatever their white space and Unicode form; the texts are not stored.
    """
    digests = [
        hashlib.blake2b(
            " ".join(unicodedata.normalize("NFC", text).split()).encode(errors="surrogatepass"), digest_size=DIGEST
        ).digest()
        for text in corpus.texts
    ]
    pages = list(page_by_chunk(corpus).values())
    corpus_digest = hashlib.sha256()
    for row in sorted(zip(corpus.ids, (page or "" for page in pages), digests, strict=True)):
        corpus_digest.update(repr(row).encode(errors="surrogatepass"))
    name = corpus_digest.hexdigest()
    if not corpora.has_corpus_version(engine, name):
        table = pa.table(
            {"chunk": pa.array(corpus.ids, pa.string()), "page": pa.array(pages, pa.string()), "digest": digests}
        )
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression="zstd")
        corpora.save_corpus_version(engine, name, buffer.getvalue())
    return name


def read_version(engine: Engine, name: str | None) -> CorpusVersion | None:
    """Read the version of that name; None if it is not stored, as for evaluations of older releases."""
    content = corpora.read_corpus_version(engine, name) if name else None
    if content is None:
        return None
    table = pq.read_table(io.BytesIO(content))
    chunks, pages, digests = (table[column].to_pylist() for column in ("chunk", "page", "digest"))
    texts: dict[str, set[bytes]] = defaultdict(set)
    pages_by_digest: dict[bytes, set[str]] = defaultdict(set)
    for page, digest in zip(pages, digests, strict=True):
        if page is not None:
            texts[page].add(digest)
            pages_by_digest[digest].add(page)
    return CorpusVersion(dict(zip(chunks, pages, strict=True)), dict(texts), dict(pages_by_digest))


def compare_versions(a: CorpusVersion, b: CorpusVersion) -> dict[str, PageChange]:
    """Return the change of every page that either version has.

    A page is duplicated if one of its texts is now on another page that did not have it before.
    """
    return {page: _page_change(page, a, b) for page in {**a.texts, **b.texts}}


def _page_change(page: str, a: CorpusVersion, b: CorpusVersion) -> PageChange:
    if page not in b.texts:
        return "removed"
    if page not in a.texts:
        return "added"
    if a.texts[page] != b.texts[page]:
        return "edited"
    is_duplicated = any(b.on[digest] - a.on[digest] for digest in b.texts[page])
    return "duplicated" if is_duplicated else "untouched"

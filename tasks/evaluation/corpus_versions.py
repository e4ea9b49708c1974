"""Versions of a corpus: which chunk of which page had which text, and what became of the pages between two of them."""

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
from yarus.tasks.cases.labels import pages_of

Fate = Literal["removed", "edited", "duplicated", "added", "untouched"]
FATES: tuple[Fate, ...] = ("removed", "edited", "duplicated", "added", "untouched")
"""What may have become of a page, what weighs most first."""
DIGEST = 16
"""Bytes of the digest of a text."""


class Version(NamedTuple):
    """A version of a corpus."""

    page_of: Mapping[str, str | None]
    """Chunk -> page."""
    texts: Mapping[str, Set[bytes]]
    """Page -> digests of the texts of its chunks."""
    on: Mapping[bytes, Set[str]]
    """Digest of a text -> the pages that it stands on."""


def keep_version(engine: Engine, corpus: Corpus) -> str:
    """Keeps what a corpus is made of; returns the SHA-256 by which it is found again.

    Texts count as equal whatever their white space and Unicode form; they are not kept.
    """
    digests = [
        hashlib.blake2b(
            " ".join(unicodedata.normalize("NFC", text).split()).encode(errors="surrogatepass"), digest_size=DIGEST
        ).digest()
        for text in corpus.texts
    ]
    pages = list(pages_of(corpus).values())
    whole = hashlib.sha256()
    for row in sorted(zip(corpus.ids, (page or "" for page in pages), digests, strict=True)):
        whole.update(repr(row).encode(errors="surrogatepass"))
    name = whole.hexdigest()
    if not corpora.known(engine, name):
        table = pa.table(
            {"chunk": pa.array(corpus.ids, pa.string()), "page": pa.array(pages, pa.string()), "digest": digests}
        )
        written = io.BytesIO()
        pq.write_table(table, written, compression="zstd")
        corpora.keep(engine, name, written.getvalue())
    return name


def read_version(engine: Engine, name: str | None) -> Version | None:
    """The version of that name; None where it is not kept, as of evaluations of older releases."""
    content = corpora.content_of(engine, name) if name else None
    if content is None:
        return None
    table = pq.read_table(io.BytesIO(content))
    chunks, pages, digests = (table[column].to_pylist() for column in ("chunk", "page", "digest"))
    texts: dict[str, set[bytes]] = defaultdict(set)
    on: dict[bytes, set[str]] = defaultdict(set)
    for page, digest in zip(pages, digests, strict=True):
        if page is not None:
            texts[page].add(digest)
            on[digest].add(page)
    return Version(dict(zip(chunks, pages, strict=True)), dict(texts), dict(on))


def fates(a: Version, b: Version) -> dict[str, Fate]:
    """What became of every page that either version has.

    A page is duplicated where a text of it stands on a page that did not have it before.
    """
    return {page: _fate(page, a, b) for page in {**a.texts, **b.texts}}


def _fate(page: str, a: Version, b: Version) -> Fate:
    if page not in b.texts:
        return "removed"
    if page not in a.texts:
        return "added"
    if a.texts[page] != b.texts[page]:
        return "edited"
    more = any(b.on[digest] - a.on[digest] for digest in b.texts[page])
    return "duplicated" if more else "untouched"

"""Store each version of a corpus once: the chunks, their pages, and digests of their texts."""

from collections.abc import Collection
from datetime import timedelta

from sqlalchemy import Column, DateTime, Engine, LargeBinary, Table, Text, delete, func, select
from sqlalchemy.dialects.postgresql import insert

from yarus.db.tables import YARUS_METADATA

corpus_version = Table(
    "corpus_version",
    YARUS_METADATA,
    Column("sha256", Text, primary_key=True, comment="of its content; resolved.corpus of evaluations names it"),
    Column("content", LargeBinary, nullable=False, comment="Parquet: chunk, page, digest of the chunk's text"),
    Column("at", DateTime(timezone=True), server_default=func.now(), nullable=False, comment="when it was first read"),
    comment="versions of the corpora that were searched, without their texts: what was edited, removed, added between",
)


def save_corpus_version(engine: Engine, sha256: str, content: bytes) -> None:
    """Store a version, unless it is already stored."""
    with engine.begin() as connection:
        connection.execute(insert(corpus_version).on_conflict_do_nothing(), {"sha256": sha256, "content": content})


def has_corpus_version(engine: Engine, sha256: str) -> bool:
    """Return whether that version is stored."""
    with engine.connect() as connection:
        return connection.scalar(select(1).where(corpus_version.c.sha256 == sha256)) is not None


def read_corpus_version(engine: Engine, sha256: str) -> bytes | None:
    """Return the content of a version; None if it is not stored."""
    with engine.connect() as connection:
        content: bytes | None = connection.scalar(
            select(corpus_version.c.content).where(corpus_version.c.sha256 == sha256)
        )
        return content


def prune_corpus_versions(engine: Engine, needed: Collection[str]) -> int:
    """Delete versions that nothing refers to, except those of the last day; return how many."""
    unused = corpus_version.c.sha256.not_in(needed), corpus_version.c.at < func.now() - timedelta(days=1)
    with engine.begin() as connection:
        return connection.execute(delete(corpus_version).where(*unused)).rowcount

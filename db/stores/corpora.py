"""What was searched: of every version of a corpus, kept once, which chunk and page had which text, by digests."""

from collections.abc import Collection
from datetime import timedelta

from sqlalchemy import Column, DateTime, Engine, LargeBinary, Table, Text, delete, func, select
from sqlalchemy.dialects.postgresql import insert

from yarus.db.tables import OURS

corpus_version = Table(
    "corpus_version",
    OURS,
    Column("sha256", Text, primary_key=True, comment="of its content; resolved.corpus of evaluations names it"),
    Column("content", LargeBinary, nullable=False, comment="Parquet: chunk, page, digest of the chunk's text"),
    Column("at", DateTime(timezone=True), server_default=func.now(), nullable=False, comment="when it was first read"),
    comment="versions of the corpora that were searched, without their texts: what was edited, removed, added between",
)


def keep(engine: Engine, sha256: str, content: bytes) -> None:
    """Keeps a version; one that is there already stays."""
    with engine.begin() as connection:
        connection.execute(insert(corpus_version).on_conflict_do_nothing(), {"sha256": sha256, "content": content})


def known(engine: Engine, sha256: str) -> bool:
    """Whether that version is kept."""
    with engine.connect() as connection:
        return connection.scalar(select(1).where(corpus_version.c.sha256 == sha256)) is not None


def content_of(engine: Engine, sha256: str) -> bytes | None:
    """A version's content; None where it is not kept."""
    with engine.connect() as connection:
        found: bytes | None = connection.scalar(
            select(corpus_version.c.content).where(corpus_version.c.sha256 == sha256)
        )
        return found


def forget_all_but(engine: Engine, needed: Collection[str]) -> int:
    """Removes the versions that nothing names any more; how many. One of today may be about to be named."""
    unnamed = corpus_version.c.sha256.not_in(needed), corpus_version.c.at < func.now() - timedelta(days=1)
    with engine.begin() as connection:
        return connection.execute(delete(corpus_version).where(*unnamed)).rowcount

"""Store vectors in Yarus's own database: embedded texts by hash, and corpora for pgvector."""

import hashlib
from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from pgvector import Vector
from pgvector.psycopg import register_vector
from sqlalchemy import ARRAY, Connection, Engine, LargeBinary, Table, any_, func, literal, select
from sqlalchemy.dialects.postgresql import insert

from yarus.db.engine import driver_connection
from yarus.db.tables import chunk_vector, embedding


def corpus_name(scheme: str, *columns: Sequence[str]) -> str:
    """Return a corpus's name in an index: a digest of its columns and of the model or text search."""
    digest = hashlib.sha256(scheme.encode())
    for part in chain(*columns):
        digest.update(hashlib.sha256(part.encode()).digest())
    return digest.hexdigest()[:16]


def is_indexed(connection: Connection, index: Table, corpus: str) -> bool:
    """Return whether an index has a corpus; concurrent callers with this corpus wait until this transaction ends."""
    connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(corpus))))
    return connection.scalar(select(index.c.corpus).where(index.c.corpus == corpus).limit(1)) is not None


def index_vectors(engine: Engine, corpus: str, ids: Sequence[str], vectors: NDArray[np.float32]) -> None:
    """Store the vectors of a corpus, unless they are stored; a row of NaN is a chunk without a vector."""
    with engine.begin() as connection:
        if is_indexed(connection, chunk_vector, corpus):
            return
        driver = driver_connection(connection)
        register_vector(driver)
        copy_statement = "COPY yarus.chunk_vector (corpus, position, chunk_id, vector) FROM STDIN (FORMAT BINARY)"
        with driver.cursor() as cursor, cursor.copy(copy_statement) as copy:
            copy.set_types(["text", "int4", "text", "vector"])
            for position, (chunk_id, vector) in enumerate(zip(ids, vectors, strict=True)):
                if not np.isnan(vector[0]):
                    copy.write_row((corpus, position, chunk_id, Vector(vector)))


BLOCK_SIZE = 5_000


def find_vectors(engine: Engine, model: str, hashes: Sequence[bytes]) -> dict[bytes, bytes]:
    """Return the stored vectors (little-endian float32) of a model, by text hash."""
    vectors: dict[bytes, bytes] = {}
    by_model = select(embedding.c.text_hash, embedding.c.vector).where(embedding.c.model == model)
    with engine.connect() as connection:
        for start in range(0, len(hashes), BLOCK_SIZE):
            block = list(hashes[start : start + BLOCK_SIZE])
            # One array, because thousands of parameters would take longer than the search.
            rows = connection.execute(by_model.where(embedding.c.text_hash == any_(literal(block, ARRAY(LargeBinary)))))
            vectors |= {row.text_hash: row.vector for row in rows}
    return vectors


def store_vectors(engine: Engine, model: str, vectors: dict[bytes, bytes]) -> None:
    """Store vectors by text hash; a hash that exists keeps its vector."""
    # Sorted, because two evaluations that store the same texts in different orders could deadlock.
    rows: list[dict[str, str | bytes]] = [
        {"model": model, "text_hash": text_hash, "vector": vector} for text_hash, vector in sorted(vectors.items())
    ]
    if rows:
        with engine.begin() as connection:
            connection.execute(insert(embedding).on_conflict_do_nothing(), rows)

"""Vectors in our own database: those of texts that were embedded before, and those of a corpus for pgvector."""

import hashlib
from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from pgvector import Vector
from pgvector.psycopg import register_vector
from sqlalchemy import ARRAY, Connection, Engine, LargeBinary, Table, any_, func, literal, select
from sqlalchemy.dialects.postgresql import insert

from yarus.db.engine import driver_of
from yarus.db.tables import chunk_vector, embedding


def corpus_name(scheme: str, *columns: Sequence[str]) -> str:
    """Return the name of a corpus in an index: of its columns, and of the model or text search that indexes them."""
    digest = hashlib.sha256(scheme.encode())
    for part in chain(*columns):
        digest.update(hashlib.sha256(part.encode()).digest())
    return digest.hexdigest()[:16]


def is_indexed(connection: Connection, index: Table, corpus: str) -> bool:
    """Return whether an index has a corpus; others who ask for the same wait until this transaction ends."""
    connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(corpus))))
    return connection.scalar(select(index.c.corpus).where(index.c.corpus == corpus).limit(1)) is not None


def index_vectors(engine: Engine, corpus: str, ids: Sequence[str], vectors: NDArray[np.float32]) -> None:
    """Stores the vectors under the corpus's name, if they are not there yet; a row of NaN is a chunk without one."""
    with engine.begin() as connection:
        if is_indexed(connection, chunk_vector, corpus):
            return
        driver = driver_of(connection)
        register_vector(driver)
        into = "COPY yarus.chunk_vector (corpus, position, chunk_id, vector) FROM STDIN (FORMAT BINARY)"
        with driver.cursor() as cursor, cursor.copy(into) as copy:
            copy.set_types(["text", "int4", "text", "vector"])
            for position, (chunk_id, vector) in enumerate(zip(ids, vectors, strict=True)):
                if not np.isnan(vector[0]):
                    copy.write_row((corpus, position, chunk_id, Vector(vector)))


BLOCK = 5_000


def stored_vectors(engine: Engine, model: str, hashes: Sequence[bytes]) -> dict[bytes, bytes]:
    """The vectors (little-endian float32) of those text hashes that the model has embedded before."""
    found: dict[bytes, bytes] = {}
    wanted = select(embedding.c.text_hash, embedding.c.vector).where(embedding.c.model == model)
    with engine.connect() as connection:
        for start in range(0, len(hashes), BLOCK):
            block = list(hashes[start : start + BLOCK])
            # One array: thousands of parameters would take longer than the search.
            rows = connection.execute(wanted.where(embedding.c.text_hash == any_(literal(block, ARRAY(LargeBinary)))))
            found |= {row.text_hash: row.vector for row in rows}
    return found


def store_vectors(engine: Engine, model: str, vectors: dict[bytes, bytes]) -> None:
    """Keeps vectors by text hash; what is there already stays."""
    # In one order everywhere: two evaluations that keep the same texts at once would wait for each other otherwise.
    rows: list[dict[str, str | bytes]] = [
        {"model": model, "text_hash": text_hash, "vector": vector} for text_hash, vector in sorted(vectors.items())
    ]
    if rows:
        with engine.begin() as connection:
            connection.execute(insert(embedding).on_conflict_do_nothing(), rows)

"""A corpus's vectors in our own database, for pgvector over sources that have none stored."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pgvector import Vector
from pgvector.psycopg import register_vector
from sqlalchemy import Engine, func, select

from yarus.db.tables import chunk_vector


def corpus_name(model: str, ids: Sequence[str], texts: Sequence[str]) -> str:
    """A name for the vectors of these chunks by this model."""
    digest = hashlib.sha256(model.encode())
    for part in (*ids, *texts):
        digest.update(hashlib.sha256(part.encode()).digest())
    return digest.hexdigest()[:16]


def index_vectors(engine: Engine, corpus: str, ids: Sequence[str], vectors: NDArray[np.float32]) -> None:
    """Stores the vectors under the corpus's name, if they are not there yet; a row of NaN is a chunk without one."""
    with engine.begin() as connection:
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(corpus))))
        if connection.scalar(select(chunk_vector.c.corpus).where(chunk_vector.c.corpus == corpus).limit(1)):
            return
        driver = connection.connection.driver_connection
        if driver is None:
            raise RuntimeError("a connection that is in use has a driver connection")
        register_vector(driver)
        into = "COPY yarus.chunk_vector (corpus, position, chunk_id, vector) FROM STDIN (FORMAT BINARY)"
        with driver.cursor() as cursor, cursor.copy(into) as copy:
            copy.set_types(["text", "int4", "text", "vector"])
            for position, (chunk_id, vector) in enumerate(zip(ids, vectors, strict=True)):
                if not np.isnan(vector[0]):
                    copy.write_row((corpus, position, chunk_id, Vector(vector)))

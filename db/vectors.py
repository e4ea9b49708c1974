"""A corpus's vectors in our own database, for pgvector over sources that have none stored."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine, func, select

from db.tables import chunk_vector


def corpus_name(model: str, ids: Sequence[str], texts: Sequence[str]) -> str:
    """A name for the vectors of these chunks by this model."""
    digest = hashlib.sha256(model.encode())
    for part in (*ids, *texts):
        digest.update(hashlib.sha256(part.encode()).digest())
    return digest.hexdigest()[:16]


def index_vectors(engine: Engine, corpus: str, ids: Sequence[str], vectors: NDArray[np.float32]) -> None:
    """Stores the vectors under the corpus's name, if they are not there yet."""
    with engine.begin() as connection:
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(corpus))))
        if connection.scalar(select(chunk_vector.c.corpus).where(chunk_vector.c.corpus == corpus).limit(1)):
            return
        rows = [
            {"corpus": corpus, "position": position, "chunk_id": chunk_id, "vector": vector}
            for position, (chunk_id, vector) in enumerate(zip(ids, vectors, strict=True))
            if not np.isnan(vector[0])
        ]
        connection.execute(chunk_vector.insert(), rows)

"""What is worth keeping between evaluations: vectors of texts that were embedded before."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ARRAY, Engine, LargeBinary, any_, literal, select
from sqlalchemy.dialects.postgresql import insert

from yarus.db.tables import embedding

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
    rows: list[dict[str, Any]] = [
        {"model": model, "text_hash": text_hash, "vector": vector} for text_hash, vector in sorted(vectors.items())
    ]
    if rows:
        with engine.begin() as connection:
            connection.execute(insert(embedding).on_conflict_do_nothing(), rows)

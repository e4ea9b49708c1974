"""Retrievers in PostgreSQL: pgvector's cosine distance as production runs it, and text search."""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Column, ColumnElement, Connection, Engine, Text, cast, select, text

from yarus.db.engine import reaching
from yarus.db.errors import ModelUnavailable
from yarus.db.stores.fulltext import search
from yarus.tasks.models.embedding.embedders import Embedder
from yarus.tasks.models.embedding.parts import Vectors
from yarus.tasks.systems.retrievers.protocol import Ranking

DEEP = text("""
    SELECT set_config('hnsw.iterative_scan', 'strict_order', true) FROM pg_extension
    WHERE extname = 'vector' AND string_to_array(extversion, '.')::integer[] >= '{0,8}'
""")
"""Lets an HNSW index go on beyond the 40 rows of its default search; the first 40 stay the same."""


class Pgvector:
    """Ranks the vectors of a table by cosine distance to the question, one query a question."""

    def __init__(
        self,
        engine: Engine,
        questions: Embedder,
        *,
        chunk_id: Column[Any],
        vector: Column[Any],
        tie: Column[Any],
        where: ColumnElement[bool],
        check: Callable[[Connection], None] = lambda connection: None,
    ) -> None:
        """Takes the columns of one table: the chunk's id, its vector, what decides ties, and which rows are meant.

        The check raises where the table is no longer what it was; it is asked after the last question of a batch.
        """
        self._check = check
        self._engine, self._questions = engine, questions
        self._id, self._vector, self._tie, self._where = cast(chunk_id, Text), vector, tie, where

    def retrieve(self, questions: Sequence[str], vectors: Vectors | None, k: int, *, timed: int) -> list[Ranking]:
        """See `Retriever`."""
        if vectors is None:
            raise ValueError("the pgvector retriever needs the vectors of the questions")
        with reaching(self._engine), self._engine.connect() as connection:
            connection.execute(DEEP)
            rankings = [
                self._timed(connection, question, vector, k) if number < timed else self._nearest(connection, vector, k)
                for number, (question, vector) in enumerate(zip(questions, vectors, strict=True))
            ]
            self._check(connection)
            return rankings

    def _timed(self, connection: Connection, question: str, vector: NDArray[np.float32], k: int) -> Ranking:
        """What one user would wait: embedding the question, and the search; None where the embedder fails this time."""
        start = time.perf_counter()
        try:
            self._questions.encode([question])
        except ModelUnavailable:
            return self._nearest(connection, vector, k)
        found = self._nearest(connection, vector, k)
        return Ranking(found.ids, found.distances, (time.perf_counter() - start) * 1_000)

    def _nearest(self, connection: Connection, vector: NDArray[np.float32], k: int) -> Ranking:
        if not vector.any():  # a question that the embedder sees nothing in is near to nothing
            return Ranking([], [])
        # An index orders by distance alone: with the tie beside it PostgreSQL 16 sorts the whole table instead.
        distance = self._vector.cosine_distance(vector).label("distance")
        columns = self._id.label("id"), self._tie.label("tie"), distance
        near = select(*columns).where(self._where).order_by(distance).fetch(k, with_ties=True).subquery()
        # A zero vector has no direction; its distance is NaN, which PostgreSQL holds to be above everything.
        there = select(near.c.id, near.c.distance).where(near.c.distance < math.inf)
        # PostgreSQL takes the index's word that they are in order; it rounds otherwise than the distance itself.
        rows = connection.execute(there.order_by(near.c.distance + 0, near.c.tie).limit(k)).all()
        return Ranking([row[0] for row in rows], [row[1] for row in rows])


class Fulltext:
    """Ranks the chunks that share a word with the question, by `ts_rank`."""

    def __init__(self, engine: Engine, ids: list[str], *, corpus: str, configuration: str) -> None:
        """Takes the chunk ids by position, and the corpus's name in the index."""
        self._engine, self._ids = engine, ids
        self._corpus, self._configuration = corpus, configuration

    def retrieve(self, questions: Sequence[str], vectors: Vectors | None, k: int, *, timed: int) -> list[Ranking]:
        """See `Retriever`. Every question is a query of its own, so every one is timed; distance is 1 - rank."""
        return [self._one(question, k) for question in questions]

    def _one(self, question: str, k: int) -> Ranking:
        start = time.perf_counter()
        found = search(self._engine, self._corpus, self._configuration, question, k)
        latency_ms = (time.perf_counter() - start) * 1_000
        return Ranking(
            ids=[self._ids[position] for position, _ in found],
            distances=[1.0 - rank for _, rank in found],
            latency_ms=latency_ms,
        )

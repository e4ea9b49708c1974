"""Retrievers in PostgreSQL: pgvector's cosine distance as in production, and full-text search."""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Column, ColumnElement, Connection, Engine, Text, cast, select, text

from yarus.db.engine import reporting_unreachable
from yarus.db.errors import ModelUnavailable
from yarus.db.stores.fulltext import search_fulltext
from yarus.tasks.models.embedding.embedders import Embedder
from yarus.tasks.models.embedding.partial_results import Vectors
from yarus.tasks.systems.retrievers.protocol import Ranking

ITERATIVE_SCAN = text("""
    SELECT set_config('hnsw.iterative_scan', 'strict_order', true) FROM pg_extension
    WHERE extname = 'vector' AND string_to_array(extversion, '.')::integer[] >= '{0,8}'
""")
"""Lets an HNSW index continue beyond the 40 rows of its default search; the first 40 stay the same."""


class PgvectorRetriever:
    """Retriever by cosine distance to the vectors of a table, one query per question."""

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
        """Take the columns of one table: the chunk's id, its vector, the order of ties, and the condition of its rows.

        The check raises if the table has changed; it runs after the last question of a batch.
        """
        self._check = check
        self._engine, self._questions = engine, questions
        self._id, self._vector, self._tie, self._where = cast(chunk_id, Text), vector, tie, where

    def retrieve(self, questions: Sequence[str], vectors: Vectors | None, k: int, *, timed: int) -> list[Ranking]:
        """See `Retriever`."""
        if vectors is None:
            raise ValueError("the pgvector retriever needs the vectors of the questions")
        with reporting_unreachable(self._engine), self._engine.connect() as connection:
            connection.execute(ITERATIVE_SCAN)
            rankings = [
                self._rank_timed(connection, question, vector, k)
                if number < timed
                else self._nearest(connection, vector, k)
                for number, (question, vector) in enumerate(zip(questions, vectors, strict=True))
            ]
            self._check(connection)
            return rankings

    def _rank_timed(self, connection: Connection, question: str, vector: NDArray[np.float32], k: int) -> Ranking:
        """Return a ranking with the time that a user would wait; untimed if the embedder fails."""
        started_at = time.perf_counter()
        try:
            self._questions.encode([question])
        except ModelUnavailable:
            return self._nearest(connection, vector, k)
        ranking = self._nearest(connection, vector, k)
        return Ranking(ranking.ids, ranking.distances, (time.perf_counter() - started_at) * 1_000)

    def _nearest(self, connection: Connection, vector: NDArray[np.float32], k: int) -> Ranking:
        if not vector.any():  # a question with a zero vector is not near to anything
            return Ranking([], [])
        # An index orders by distance alone: with the tie column, PostgreSQL 16 sorts the whole table instead.
        distance = self._vector.cosine_distance(vector).label("distance")
        columns = self._id.label("id"), self._tie.label("tie"), distance
        nearest = select(*columns).where(self._where).order_by(distance).fetch(k, with_ties=True).subquery()
        # A zero vector has no direction; its distance is NaN, which PostgreSQL sorts above all numbers.
        finite = select(nearest.c.id, nearest.c.distance).where(nearest.c.distance < math.inf)
        # PostgreSQL trusts the order of the index, whose rounding differs from that of the distance itself.
        rows = connection.execute(finite.order_by(nearest.c.distance + 0, nearest.c.tie).limit(k)).all()
        return Ranking([row[0] for row in rows], [row[1] for row in rows])


class FulltextRetriever:
    """Retriever of chunks that share a word with the question, by `ts_rank`."""

    def __init__(self, engine: Engine, ids: list[str], *, corpus: str, configuration: str) -> None:
        """Take the chunk ids by position, and the corpus's name in the index."""
        self._engine, self._ids = engine, ids
        self._corpus, self._configuration = corpus, configuration

    def retrieve(self, questions: Sequence[str], vectors: Vectors | None, k: int, *, timed: int) -> list[Ranking]:
        """See `Retriever`. Every question is a separate query, so every one is timed; distance is 1 - rank."""
        return [self._search(question, k) for question in questions]

    def _search(self, question: str, k: int) -> Ranking:
        started_at = time.perf_counter()
        matches = search_fulltext(self._engine, self._corpus, self._configuration, question, k)
        latency_ms = (time.perf_counter() - started_at) * 1_000
        return Ranking(
            ids=[self._ids[position] for position, _ in matches],
            distances=[1.0 - rank for _, rank in matches],
            latency_ms=latency_ms,
        )

"""PostgreSQL text search: words, their forms and their number; no vectors."""

import time
from collections.abc import Sequence

from sqlalchemy import Engine

from yarus.db.stores.fulltext import search
from yarus.tasks.models.embedders import Vectors
from yarus.tasks.retrievers.protocol import Ranking


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

"""What a retriever is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from yarus.tasks.models.embedders import Vectors


@dataclass(frozen=True, slots=True)
class Ranking:
    """What a retriever returned for one question; a failure is not a ranking without ids."""

    ids: list[str]
    """Chunk ids, best first."""
    distances: list[float]
    """Of each, smaller is nearer."""
    latency_ms: float | None = None
    """What a user would have waited; None where the question was not timed alone."""
    error: str | None = None
    """Why there is no ranking."""


class Retriever(Protocol):
    """Finds the chunks nearest to questions."""

    def retrieve(self, questions: Sequence[str], vectors: Vectors | None, k: int, *, timed: int) -> list[Ranking]:
        """One ranking of at most k chunks a question, in the order of the questions.

        Args:
            questions: n texts.
            vectors: their (n, d) embeddings, or None for a retriever that needs none.
            k: depth of the ranking.
            timed: how many of the questions have to be timed alone, where a batch is faster than its questions.
        """

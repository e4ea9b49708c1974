"""Fusion of the rankings of several retrievers by reciprocal rank."""

from collections import defaultdict
from collections.abc import Sequence

from yarus.tasks.models.embedding.partial_results import Vectors
from yarus.tasks.systems.retrievers.protocol import Ranking, Retriever

RANK_CONSTANT = 60
MIN_DEPTH = 50
"""Least number of ranks of each part that are fused."""


class HybridRetriever:
    """Retriever that adds up 1 / (60 + rank) over its parts.

    Reference: Cormack, Clarke and Büttcher 2009, Reciprocal rank fusion outperforms Condorcet and individual rank
    learning methods.
    """

    def __init__(self, parts: Sequence[Retriever]) -> None:
        """Take the retrievers to fuse."""
        self._parts = parts

    def retrieve(self, questions: Sequence[str], vectors: Vectors | None, k: int, *, timed: int) -> list[Ranking]:
        """See `Retriever`. The latency is the sum of the parts'; a question fails if one part fails at it."""
        depth = max(k, MIN_DEPTH)
        rankings = [part.retrieve(questions, vectors, depth, timed=timed) for part in self._parts]
        return [fuse_rankings(parts, k) for parts in zip(*rankings, strict=True)]


def fuse_rankings(parts: Sequence[Ranking], k: int) -> Ranking:
    """Return one ranking from several of the same question; its distance is minus the sum of 1 / (60 + rank)."""
    if (error := next((part.error for part in parts if part.error is not None), None)) is not None:
        return Ranking([], [], error=error)
    scores: dict[str, float] = defaultdict(float)
    for part in parts:
        for rank, chunk in enumerate(part.ids, start=1):
            scores[chunk] += 1 / (RANK_CONSTANT + rank)
    best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]
    latencies = [part.latency_ms for part in parts if part.latency_ms is not None]
    latency_ms = sum(latencies) if len(latencies) == len(parts) else None
    return Ranking([chunk for chunk, _ in best], [-score for _, score in best], latency_ms)

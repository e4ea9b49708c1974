"""Protocol of retrievers, and rankings that the evaluations of one sweep share."""

from collections.abc import Callable, Hashable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from yarus.tasks.models.embedding.partial_results import Vectors


@dataclass(frozen=True, slots=True)
class Ranking:
    """Result of a retriever for one question; a failure is not a ranking without ids."""

    ids: list[str]
    """Chunk ids, best first."""
    distances: list[float]
    """Distance of each; smaller is nearer."""
    latency_ms: float | None = None
    """Time that a user would have waited; None if the question was not timed alone."""
    error: str | None = None
    """Reason of a missing ranking."""


class Retriever(Protocol):
    """Finder of the chunks nearest to questions."""

    def retrieve(self, questions: Sequence[str], vectors: Vectors | None, k: int, *, timed: int) -> list[Ranking]:
        """Return one ranking of at most k chunks per question, in the order of the questions.

        Args:
            questions: n texts.
            vectors: their (n, d) embeddings, or None for a retriever that needs none.
            k: depth of the ranking.
            timed: number of questions to time alone, if a batch is faster than single questions.
        """


KnownRankings = MutableMapping[tuple[Hashable, str], Ranking]


def reuse_rankings(
    shared: KnownRankings | None,
    run_key: Hashable,
    questions: Sequence[str],
    rank: Callable[[Sequence[str]], list[Ranking]],
) -> list[Ranking]:
    """Return rankings of the questions: known ones, and new ones of the others; failures are computed again.

    Args:
        shared: the rankings that evaluations share; None to share nothing.
        run_key: everything that decides a ranking but the question.
        questions: n texts.
        rank: returns one ranking per question.

    Returns:
        n rankings, in the order of the questions.
    """
    if shared is None:
        return rank(questions)
    missing = list(dict.fromkeys(question for question in questions if (run_key, question) not in shared))
    fresh = dict(zip(missing, rank(missing) if missing else [], strict=True))
    shared.update({(run_key, question): ranking for question, ranking in fresh.items() if ranking.error is None})
    return [fresh[question] if question in fresh else shared[run_key, question] for question in questions]

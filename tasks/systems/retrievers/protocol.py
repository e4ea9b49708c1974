"""The protocol of a retriever, and rankings that the evaluations of one sweep share."""

from collections.abc import Callable, Hashable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from yarus.tasks.models.embedding.parts import Vectors


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


Known = MutableMapping[tuple[Hashable, str], Ranking]


def reuse_rankings(
    known: Known | None, place: Hashable, questions: Sequence[str], rank: Callable[[Sequence[str]], list[Ranking]]
) -> list[Ranking]:
    """Rankings of the questions: those that are known, and fresh ones of the others; a failure is asked for again.

    Args:
        known: the rankings that evaluations share; None: nothing is shared.
        place: everything that decides a ranking but the question.
        questions: n texts.
        rank: gives one ranking a question.

    Returns:
        n rankings, in the order of the questions.
    """
    if known is None:
        return rank(questions)
    missing = list(dict.fromkeys(question for question in questions if (place, question) not in known))
    fresh = dict(zip(missing, rank(missing) if missing else [], strict=True))
    known.update({(place, question): ranking for question, ranking in fresh.items() if ranking.error is None})
    return [fresh[question] if question in fresh else known[place, question] for question in questions]

"""Rankings that several evaluations of one sweep share: each question is asked once of each retriever."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from yarus.tasks.retrievers.protocol import Ranking

Known = dict[tuple[Hashable, str], Ranking]
_KNOWN: ContextVar[Known | None] = ContextVar("rankings of this sweep", default=None)


@contextmanager
def rankings_shared() -> Iterator[None]:
    """While it lasts, evaluations of this process that retrieve alike take each other's rankings."""
    token = _KNOWN.set({})
    try:
        yield
    finally:
        _KNOWN.reset(token)


def shared(place: Hashable, questions: Sequence[str], rank: Callable[[Sequence[str]], list[Ranking]]) -> list[Ranking]:
    """Rankings of the questions: those that are known, and fresh ones of the others; a failure is asked for again.

    Args:
        place: everything that decides a ranking but the question.
        questions: n texts.
        rank: gives one ranking a question.

    Returns:
        n rankings, in the order of the questions.
    """
    known = _KNOWN.get()
    if known is None:
        return rank(questions)
    missing = list(dict.fromkeys(question for question in questions if (place, question) not in known))
    fresh = dict(zip(missing, rank(missing) if missing else [], strict=True))
    known.update({(place, question): ranking for question, ranking in fresh.items() if ranking.error is None})
    return [fresh[question] if question in fresh else known[place, question] for question in questions]

"""Passages of other pages, and in what order they stand with those that answer the question."""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from yarus.db.source_rows import Corpus
from yarus.tasks.cases.text import BETWEEN, normalised, words

MOST, LEAST = 4, 2
"""Passages of other pages beside the right ones: of five passages four, RGB's noisiest ratio; with fewer than two the
right ones cannot stand in the middle.
"""
DRAWN = 64
"""Passages that are drawn for a question; those with most of its words are taken, as a retriever would."""
SAME = 0.9
"""Share of a passage's words that the right ones have from which on it says the same, and is no distractor."""


class Arranged(NamedTuple):
    """A context's passages in their order."""

    texts: list[str]
    distractors: list[int]
    """Which of them are of other pages."""


class Distractors:
    """The passages of a corpus, to draw some that do not answer a question."""

    def __init__(self, corpus: Corpus, pages: Mapping[str, str | None]) -> None:
        self._texts = corpus.texts
        self._pages = [pages[chunk] or chunk for chunk in corpus.ids]
        self._read: dict[int, tuple[set[str], str]] = {}

    def drawn(
        self,
        chance: random.Random,
        question: str,
        reference: str | None,
        right: Sequence[str],
        own: Iterable[str],
        room: int,
    ) -> list[str]:
        """Up to `MOST` passages of other pages that fit; none where fewer than `LEAST` are left.

        Args:
            chance: seeded by the case, so that every kind of context gets the same passages.
            question: those with most of its words come first.
            reference: a passage that has it answers the question.
            right: the passages that do.
            own: pages, or chunks without a page, from which nothing is taken.
            room: characters that they may take, with what parts them.
        """
        asked, said = words(question), set().union(*map(words, right))
        answer, known = f" {normalised(reference or '')} ", set(own)
        candidates = []
        for place in chance.sample(range(len(self._texts)), min(DRAWN, len(self._texts))):
            found, plain = self._said(place)
            beside = found and self._pages[place] not in known and len(found & said) < SAME * len(found)
            if beside and (not answer.strip() or answer not in plain):
                candidates.append((-len(found & asked), place))
        taken: list[str] = []
        for _, place in sorted(candidates, key=lambda one: one[0]):  # equal ones as they were drawn
            length = len(self._texts[place]) + len(BETWEEN)
            if length <= room and len(taken) < MOST and self._texts[place] not in taken:
                taken.append(self._texts[place])
                room -= length
        return taken if len(taken) >= LEAST else []

    def _said(self, place: int) -> tuple[set[str], str]:
        """The words of a passage as a set, and in a row."""
        if place not in self._read:
            text = self._texts[place]
            self._read[place] = words(text), f" {normalised(text)} "
        return self._read[place]


def arranged(kind: str, right: Sequence[str], others: Sequence[str], chance: random.Random) -> Arranged:
    """The right passages, in their order, and the others.

    Args:
        kind: `gold_removed`, `gold_first`, `gold_middle`, `gold_last`; `distractors`: anywhere among the others.
        right: passages that answer the question.
        others: passages that do not.
        chance: where the right ones stand among the others.

    Example:
        >>> import random
        >>> from yarus.tasks.cases.contexts.passages import arranged
        >>> arranged("gold_middle", ["right"], ["a", "b", "c"], random.Random(0))
        Arranged(texts=['a', 'right', 'b', 'c'], distractors=[0, 2, 3])
    """
    n, before = len(right) + len(others), {"gold_first": 0, "gold_middle": len(others) // 2, "gold_last": len(others)}
    if kind == "gold_removed":
        return Arranged(list(others), list(range(len(others))))
    first = before.get(kind, 0)
    places = sorted(chance.sample(range(n), len(right))) if kind not in before else range(first, first + len(right))
    ours, theirs = iter(right), iter(others)
    texts = [next(ours) if place in places else next(theirs) for place in range(n)]
    return Arranged(texts, [place for place in range(n) if place not in places])

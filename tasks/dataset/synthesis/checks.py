"""What a made question must pass before a judge is asked: its language, words of its own, and that it is new."""

import re
from collections.abc import Iterable

from rapidfuzz import fuzz, process

from yarus.tasks.cases.text import normalised
from yarus.tasks.dataset.near_duplicates import SIMILAR, alike

RUN = 8
"""Consecutive words in common with the passage from which on a question is a copy."""
GRAM, CONTAINED = 3, 0.8
"""Share of a question's triples of words that the passage has, from which on it is a copy."""
OWN_LETTERS = 0.5
CYRILLIC, LATIN = re.compile("[а-яё]", re.IGNORECASE), re.compile("[a-z]", re.IGNORECASE)
CANDIDATES = 20


class Known:
    """The questions that are there already."""

    def __init__(self, questions: Iterable[str]) -> None:
        self._keys: list[str] = []
        self._bags: set[str] = set()
        for question in questions:
            self.add(question)

    def add(self, question: str) -> None:
        """One more."""
        key = normalised(question)
        self._keys.append(key)
        self._bags.add(_bag(key))

    def has(self, question: str) -> bool:
        """Whether the same or almost the same is known, also with its words in another order."""
        key = normalised(question)
        if _bag(key) in self._bags:
            return True
        near = process.extract(key, self._keys, scorer=fuzz.ratio, score_cutoff=100 * SIMILAR, limit=CANDIDATES)
        return any(alike(key, other) for other, _, _ in near)


def wrong_language(text: str, language: str) -> bool:
    """Whether most of a text's letters are of another alphabet; a text without letters is of none.

    Languages of one alphabet are not told apart.
    """
    own, other = len(CYRILLIC.findall(text)), len(LATIN.findall(text))
    own, other = (own, other) if language == "ru" else (other, own)
    return own + other == 0 or own / (own + other) < OWN_LETTERS


def copied(question: str, passage: str) -> bool:
    """Whether a question is a piece of the passage: a long run of its words, or nearly all of its triples of words."""
    asked, said = normalised(question).split(), normalised(passage).split()
    if longest_run(asked, said) >= RUN:
        return True
    triples = _grams(asked)
    return len(asked) > GRAM and len(triples & _grams(said)) >= CONTAINED * len(triples)


def longest_run(one: list[str], other: list[str]) -> int:
    """Length of the longest sequence of words that both have."""
    best, before = 0, [0] * (len(other) + 1)
    for word in one:
        row = [0] * (len(other) + 1)
        for place, said in enumerate(other, start=1):
            if word == said:
                row[place] = before[place - 1] + 1
        best, before = max(best, *row), row
    return best


def _grams(words: list[str]) -> set[tuple[str, ...]]:
    return set(zip(*(words[start:] for start in range(GRAM)), strict=False))


def _bag(key: str) -> str:
    return " ".join(sorted(key.split()))

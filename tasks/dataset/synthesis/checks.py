"""Passages that questions are made from, and checks that a made question must pass before a judge is asked."""

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from rapidfuzz import fuzz, process

from yarus.db.source_rows import Corpus, Row
from yarus.tasks.cases.labels import pages_of
from yarus.tasks.cases.sampling import sampled
from yarus.tasks.cases.text import WORD, normalised
from yarus.tasks.dataset.duplicates import SIMILAR, alike
from yarus.tasks.dataset.synthesis.generator import LONGEST_QUESTION, Kind

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
    return SequenceMatcher(None, one, other, autojunk=False).find_longest_match().size


def _grams(words: list[str]) -> set[tuple[str, ...]]:
    return set(zip(*(words[start:] for start in range(GRAM)), strict=False))


def _bag(key: str) -> str:
    return " ".join(sorted(key.split()))


LEAST_WORDS = 5
"""A chunk with fewer has nothing to ask about."""
TRIES = 4
"""Passages that are tried for one question, before fewer are made than asked for."""
EXAMPLES = 5


@dataclass(frozen=True)
class Plan:
    """One question to be made: of which kind, from which chunks (their positions), which try with them."""

    kind: Kind
    chunks: tuple[int, ...]
    repeat: int
    examples: tuple[str, ...]


def quotas(kinds: Sequence[Kind], n: int) -> dict[Kind, int]:
    """How many of each kind: as even as n allows, earlier kinds first."""
    return {kind: n // len(kinds) + (number < n % len(kinds)) for number, kind in enumerate(kinds)}


def plans(kind: Kind, n: int, corpus: Corpus, questions: Sequence[Row], seed: int) -> list[Plan]:
    """Up to `TRIES` plans for each of n questions, in the order in which they are tried.

    The first n are a sample in which every page and every third of the lengths keeps its share; the same chunks come
    again, with other examples, only when all have been tried.
    """
    chance = random.Random(f"{seed}|{kind}")
    units, strata = _units(kind, corpus)
    if not units:
        return []
    first = sampled(["|".join(corpus.ids[place] for place in unit) for unit in units], strata, n, seed, off=0.5)
    rest = [number for number in range(len(units)) if number not in set(first)]
    chance.shuffle(first)
    chance.shuffle(rest)
    order = [*first, *rest]
    voices = voice(questions)
    return [
        Plan(
            kind,
            units[order[number % len(order)]],
            number // len(order),
            tuple(chance.sample(voices, min(EXAMPLES, len(voices)))),
        )
        for number in range(TRIES * n)
    ]


def usable(corpus: Corpus) -> list[int]:
    """Positions of the chunks that have something to ask about."""
    return [place for place, text in enumerate(corpus.texts) if len(WORD.findall(text[:2_000])) >= LEAST_WORDS]


def voice(questions: Sequence[Row]) -> list[str]:
    """Real questions that show how users ask."""
    asked = dict.fromkeys(row["question"].strip() for row in questions if row.get("origin") != "synthetic")
    return [text for text in asked if len(WORD.findall(text)) > 1 and len(text) <= LONGEST_QUESTION]


def _units(kind: Kind, corpus: Corpus) -> tuple[list[tuple[int, ...]], list[str]]:
    """What one question is made from (a chunk, or two that follow each other on a page), and the stratum of each."""
    places = usable(corpus)
    pages = list(pages_of(corpus).values())
    lengths = sorted(len(corpus.texts[place]) for place in places)
    thirds = [lengths[len(lengths) // 3], lengths[2 * len(lengths) // 3]] if lengths else []
    if kind != "multi":
        strata = [f"{pages[place]}|{sum(len(corpus.texts[place]) >= edge for edge in thirds)}" for place in places]
        return [(place,) for place in places], strata
    of_page: dict[str, list[int]] = defaultdict(list)
    for place in places:
        if pages[place] is not None:
            of_page[str(pages[place])].append(place)
    pairs = [(page, pair) for page, on in of_page.items() for pair in pairwise(on)]
    return [pair for _, pair in pairs], [page for page, _ in pairs]

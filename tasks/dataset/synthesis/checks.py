"""Sampling of passages for synthetic questions, and checks of the questions before the judge is called."""

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from rapidfuzz import fuzz, process

from yarus.db.source_rows import Corpus, QuestionRow
from yarus.tasks.cases.labels import page_by_chunk
from yarus.tasks.cases.sampling import stratified_sample
from yarus.tasks.cases.text import WORD_PATTERN, normalise_question
from yarus.tasks.dataset.duplicates import MIN_SIMILARITY, are_near_duplicates
from yarus.tasks.dataset.synthesis.generator import MAX_QUESTION_CHARS, QuestionKind

MAX_COMMON_RUN = 8
"""Number of consecutive words in common with the passage from which a question is a copy."""
NGRAM_SIZE, MAX_CONTAINED_SHARE = 3, 0.8
"""Length of n-grams, and share of a question's n-grams in the passage from which it is a copy."""
MIN_OWN_LETTERS = 0.5
CYRILLIC, LATIN = re.compile("[а-яё]", re.IGNORECASE), re.compile("[a-z]", re.IGNORECASE)
MAX_CANDIDATES = 20


class KnownQuestions:
    """Questions that already exist."""

    def __init__(self, questions: Iterable[str]) -> None:
        self._keys: list[str] = []
        self._bags: set[str] = set()
        for question in questions:
            self.add(question)

    def add(self, question: str) -> None:
        """Add a question."""
        key = normalise_question(question)
        self._keys.append(key)
        self._bags.add(_sorted_words(key))

    def has(self, question: str) -> bool:
        """Return whether the question or a near-duplicate is known, in any word order."""
        key = normalise_question(question)
        if _sorted_words(key) in self._bags:
            return True
        candidates = process.extract(
            key, self._keys, scorer=fuzz.ratio, score_cutoff=100 * MIN_SIMILARITY, limit=MAX_CANDIDATES
        )
        return any(are_near_duplicates(key, candidate) for candidate, _, _ in candidates)


def is_wrong_language(text: str, language: str) -> bool:
    """Return whether most letters of a text are of another alphabet, or the text has no letters.

    Languages with the same alphabet are not distinguished.
    """
    own_letters, other_letters = len(CYRILLIC.findall(text)), len(LATIN.findall(text))
    own_letters, other_letters = (own_letters, other_letters) if language == "ru" else (other_letters, own_letters)
    return own_letters + other_letters == 0 or own_letters / (own_letters + other_letters) < MIN_OWN_LETTERS


def is_copied(question: str, passage: str) -> bool:
    """Return whether a question copies the passage: a long run of its words, or most of its n-grams."""
    words, passage_words = normalise_question(question).split(), normalise_question(passage).split()
    if longest_common_run(words, passage_words) >= MAX_COMMON_RUN:
        return True
    grams = _word_ngrams(words)
    return len(words) > NGRAM_SIZE and len(grams & _word_ngrams(passage_words)) >= MAX_CONTAINED_SHARE * len(grams)


def longest_common_run(first: list[str], second: list[str]) -> int:
    """Return the length of the longest sequence of words that both lists have."""
    return SequenceMatcher(None, first, second, autojunk=False).find_longest_match().size


def _word_ngrams(words: list[str]) -> set[tuple[str, ...]]:
    return set(zip(*(words[start:] for start in range(NGRAM_SIZE)), strict=False))


def _sorted_words(key: str) -> str:
    return " ".join(sorted(key.split()))


MIN_CHUNK_WORDS = 5
"""Minimum words of a chunk that questions are generated from."""
MAX_TRIES = 4
"""Maximum number of passages that are tried per question."""
EXAMPLES = 5


@dataclass(frozen=True)
class SynthesisPlan:
    """A question to generate: its kind, the positions of its chunks, and the number of the try with them."""

    kind: QuestionKind
    chunks: tuple[int, ...]
    repeat: int
    examples: tuple[str, ...]


def split_by_kind(kinds: Sequence[QuestionKind], n: int) -> dict[QuestionKind, int]:
    """Return the number of questions per kind, as even as n allows, with more for earlier kinds."""
    return {kind: n // len(kinds) + (index < n % len(kinds)) for index, kind in enumerate(kinds)}


def plan_questions(
    kind: QuestionKind, n: int, corpus: Corpus, questions: Sequence[QuestionRow], seed: int
) -> list[SynthesisPlan]:
    """Return up to `MAX_TRIES` plans per question, in the order in which they are tried.

    The first n are a sample stratified by page and by thirds of the length. Chunks are repeated, with other examples,
    only when all chunks have been tried.
    """
    generator = random.Random(f"{seed}|{kind}")
    units, strata = _chunks_per_question(kind, corpus)
    if not units:
        return []
    sampled = stratified_sample(["|".join(corpus.ids[i] for i in unit) for unit in units], strata, n, seed, off=0.5)
    other_units = [index for index in range(len(units)) if index not in set(sampled)]
    generator.shuffle(sampled)
    generator.shuffle(other_units)
    order = [*sampled, *other_units]
    style_examples = style_questions(questions)
    return [
        SynthesisPlan(
            kind,
            units[order[index % len(order)]],
            index // len(order),
            tuple(generator.sample(style_examples, min(EXAMPLES, len(style_examples)))),
        )
        for index in range(MAX_TRIES * n)
    ]


def usable_chunks(corpus: Corpus) -> list[int]:
    """Return the positions of the chunks that are long enough for a question."""
    return [i for i, text in enumerate(corpus.texts) if len(WORD_PATTERN.findall(text[:2_000])) >= MIN_CHUNK_WORDS]


def style_questions(questions: Sequence[QuestionRow]) -> list[str]:
    """Return real questions that show the users' style."""
    real_questions = dict.fromkeys(row["question"].strip() for row in questions if row.get("origin") != "synthetic")
    return [text for text in real_questions if len(WORD_PATTERN.findall(text)) > 1 and len(text) <= MAX_QUESTION_CHARS]


def _chunks_per_question(kind: QuestionKind, corpus: Corpus) -> tuple[list[tuple[int, ...]], list[str]]:
    """Return the chunks for each question (one, or two consecutive ones of a page), and the stratum of each."""
    positions = usable_chunks(corpus)
    pages = list(page_by_chunk(corpus).values())
    lengths = sorted(len(corpus.texts[position]) for position in positions)
    thirds = [lengths[len(lengths) // 3], lengths[2 * len(lengths) // 3]] if lengths else []
    if kind != "multi":
        strata = [f"{pages[i]}|{sum(len(corpus.texts[i]) >= edge for edge in thirds)}" for i in positions]
        return [(position,) for position in positions], strata
    positions_by_page: dict[str, list[int]] = defaultdict(list)
    for position in positions:
        if pages[position] is not None:
            positions_by_page[str(pages[position])].append(position)
    pairs = [(page, pair) for page, page_positions in positions_by_page.items() for pair in pairwise(page_positions)]
    return [pair for _, pair in pairs], [page for page, _ in pairs]

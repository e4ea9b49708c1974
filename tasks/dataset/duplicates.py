"""Texts that say almost the same: MinHash finds candidates, the edit distance decides.

Two texts are near-duplicates if they are not equal once normalised (case, ё, punctuation, white space), have an Indel
similarity of at least `SIMILAR` (their words as they stand, or in the order of letters), the same digits and negations,
no other question word, and if the words that only one of them has are alike too: «зимняя сессия» is no «летняя сессия»,
however many letters they share. Pairs that share no band of their MinHash signatures (24 bands of 3 values over sets of
character trigrams) are not looked at: of pairs with a Jaccard similarity of 0.7 that is one in 24,000, of pairs
with 0.5 one in 25. Of passages the sets are of three words in a row, of which other texts share few, so that there
are few pairs to look at.

Reference: Broder 1997, On the resemblance and containment of documents.
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz
from rapidfuzz.process import cpdist

from yarus.db.source_rows import Corpus
from yarus.tasks.cases.labels import pages_of
from yarus.tasks.cases.text import COMMON, normalised
from yarus.tasks.cases.vocabulary import Twins, Unit

SIMILAR = 0.8
SHARED = 0.5
"""Least share of equal values of two passages' signatures, which is about that of their words in a row."""
ALIKE = 0.7
"""Least similarity of what two texts do not share."""
BANDS, ROWS = 24, 3
GRAM = 3
CROWD = 30
"""A bucket with more texts than this is a common phrase: each is compared with as many that follow by their letters."""
BLOCK = 1_000_000
"""Letters whose signatures are computed at a time, and pairs that are looked at."""
DIGITS = re.compile(r"\d+")
DENIALS = {"не", "нет", "ни", "без", "not", "no", "without"}
ASKING = {"где", "как", "когда", "кто", "куда", "откуда", "почему", "зачем", "сколько"}
ASKING |= {"where", "how", "when", "who", "whom", "why", "which", "what"}
Units = Literal["letters", "words"]
"""What three in a row make a member of a text's set."""
IDLE = COMMON - DENIALS
"""Words that change nothing when they are left out."""


def near_duplicates(
    texts: Sequence[str], *, similar: float = SIMILAR, units: Units = "letters"
) -> list[tuple[int, int, float]]:
    """Pairs of texts that are almost the same.

    Args:
        texts: n normalised texts; equal ones, and those of fewer than three units, are in no pair.
        similar: least Indel similarity, 0..1.
        units: letters for questions; words for passages, where they are faster.

    Returns:
        (first, second, similarity) with first < second, most similar first.
    """
    first_at: dict[str, int] = {}
    for number, text in enumerate(texts):
        if (len(text) if units == "letters" else text.count(" ") + 1) >= GRAM:
            first_at.setdefault(text, number)
    unique = list(first_at)
    if len(unique) < 2:
        return []
    pairs = _candidates(unique, units)
    scores = _similarities(unique, pairs)
    near = scores >= similar
    found = []
    for pair, score in zip(pairs[near].tolist(), scores[near].tolist(), strict=True):
        one, other = (unique[number] for number in pair)
        if _same_rest(one, other):
            first, second = sorted((first_at[one], first_at[other]))
            found.append((first, second, score))
    return sorted(found, key=lambda pair: (-pair[2], pair[0], pair[1]))


def alike(one: str, other: str) -> bool:
    """Whether two normalised texts are equal or near-duplicates."""
    if one == other:
        return True
    score = max(fuzz.ratio(one, other), fuzz.token_sort_ratio(one, other)) / 100
    return score >= SIMILAR and _same_rest(one, other)


def _similarities(texts: Sequence[str], pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """0..1 each, of the texts as they are or with their words in the order of letters, whichever is more."""
    left, right = ([texts[number] for number in side] for side in pairs.T)
    scores = (cpdist(left, right, scorer=scorer, dtype=np.float32) for scorer in (fuzz.ratio, fuzz.token_sort_ratio))
    return np.asarray(np.maximum(*scores), dtype=np.float64) / 100


def _same_rest(one: str, other: str) -> bool:
    """Whether the words that only one of the texts has differ by spelling, not by meaning, as far as letters tell."""
    if sorted(DIGITS.findall(one)) != sorted(DIGITS.findall(other)):
        return False
    left, right = one.split(), other.split()
    if DENIALS & set(left) != DENIALS & set(right):
        return False
    asked = ASKING & set(left), ASKING & set(right)
    if all(asked) and asked[0] != asked[1]:
        return False
    rest = ["".join(w for w in words if w not in others and w not in IDLE)
            for words, others in ((left, right), (right, left))]  # fmt: skip
    return rest == ["", ""] or fuzz.ratio(*rest) >= 100 * ALIKE


def _candidates(texts: Sequence[str], units: Units) -> NDArray[np.int64]:
    """Pairs that share a band of their signatures, (m, 2), each once."""
    signatures = _signatures(texts, units)
    pairs: list[NDArray[np.int64]] = [np.empty((0, 2), dtype=np.int64)]
    order_of_letters = np.argsort(np.argsort(np.asarray(texts, dtype=object)))
    for band in range(BANDS):
        rows = np.ascontiguousarray(signatures[:, band * ROWS : (band + 1) * ROWS])
        keys = _mixed(rows)
        order = np.lexsort((order_of_letters, keys))
        edges = np.flatnonzero(np.diff(keys[order])) + 1
        found = [pair for bucket in np.split(order, edges) if len(bucket) > 1 for pair in _within(bucket)]
        if found:
            some = np.unique(np.sort(np.array(found, dtype=np.int64), axis=1), axis=0)
            pairs.append(_worth_a_look(some, signatures) if units == "words" else some)
    return np.unique(np.concatenate(pairs), axis=0)


def _worth_a_look(pairs: NDArray[np.int64], signatures: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Those that share much, and not only a sentence: an edit distance of passages takes long."""
    parts = np.array_split(pairs, len(pairs) // BLOCK + 1)
    shared = [(signatures[part[:, 0]] == signatures[part[:, 1]]).mean(axis=1) >= SHARED for part in parts]
    found: NDArray[np.int64] = pairs[np.concatenate(shared)]
    return found


def _within(bucket: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    members = bucket.tolist()
    if len(members) <= CROWD:
        yield from combinations(members, 2)
        return
    for number, one in enumerate(members):
        for other in members[number + 1 : number + 1 + CROWD]:
            yield one, other


def _mixed(rows: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """One number of the values of a band."""
    key = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:
        key = (key ^ column) * np.uint64(0x9E3779B97F4A7C15)
    return key


def _signatures(texts: Sequence[str], units: Units) -> NDArray[np.uint32]:
    """(n, BANDS * ROWS): the least hash of a text's trigrams, by so many hash functions a x + b of 64 bits."""
    generator = np.random.default_rng(0)
    factors = generator.integers(1, 2**63, BANDS * ROWS, dtype=np.uint64) | np.uint64(1)
    shifts = generator.integers(0, 2**63, BANDS * ROWS, dtype=np.uint64)
    signatures = np.empty((len(texts), BANDS * ROWS), dtype=np.uint32)
    known: dict[str, int] = {}
    for block in _blocks(texts):
        codes, lengths = _codes([texts[number] for number in block], units, known)
        begins = np.concatenate(([0], np.cumsum(lengths)[:-1]))
        grams = (codes[:-2] << np.uint64(42)) ^ (codes[1:-1] << np.uint64(21)) ^ codes[2:]
        inside = np.ones(len(grams), dtype=bool)
        inside[np.concatenate((begins[1:] - 2, begins[1:] - 1))] = False  # these reach into the next text
        kept = grams[inside]
        bounds = np.concatenate(([0], np.cumsum(lengths - 2)[:-1]))
        for column, (factor, shift) in enumerate(zip(factors, shifts, strict=True)):
            hashed = ((kept * factor + shift) >> np.uint64(32)).astype(np.uint32)
            signatures[block, column] = np.minimum.reduceat(hashed, bounds)
    return signatures


def _blocks(texts: Sequence[str]) -> list[NDArray[np.intp]]:
    """The numbers of texts that come to about as many letters together."""
    until = np.cumsum([len(text) for text in texts]) // BLOCK
    return np.split(np.arange(len(texts)), np.flatnonzero(np.diff(until)) + 1)


def _codes(texts: Sequence[str], units: Units, known: dict[str, int]) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
    """A number below 2^21 for every unit of the texts, one after another, and how many each text has.

    Args:
        texts: of a block.
        units: letters have their Unicode numbers; words are numbered as they come.
        known: the numbers of words, which is added to. Beyond two million words some share a number.
    """
    if units == "letters":
        letters = "".join(texts).encode("utf-32-le", "surrogatepass")
        return np.frombuffer(letters, dtype=np.uint32).astype(np.uint64), np.array([len(text) for text in texts])
    words = [text.split(" ") for text in texts]
    numbers = [known.setdefault(word, len(known)) % 2**21 for of in words for word in of]
    return np.array(numbers, dtype=np.uint64), np.array([len(of) for of in words])


DUPLICATE_SIMILARITY = 0.95
"""Least similarity of two chunks that say the same."""


def twins_of(corpus: Corpus, unit: Unit) -> Twins:
    """What stands for each chunk or page that has twins: the first of them.

    Args:
        corpus: the chunks.
        unit: `chunk`, or `page`: a page is a twin where all of its chunks have twins on one other page.

    Returns:
        Id -> id of the first of its twins, also its own; what has no twin is not in it.
    """
    same = _same_texts([normalised(text) for text in corpus.texts])
    if unit == "chunk":
        return _named(corpus.ids, same)
    said: dict[str, set[int]] = defaultdict(set)
    for page, number in zip(pages_of(corpus).values(), same, strict=True):
        if page is not None:
            said[page].add(number)
    return _named(list(said), _same_pages(list(said.values())))


def _named(ids: Sequence[str], first: Sequence[int]) -> Twins:
    crowded = {one for number, one in enumerate(first) if one != number}
    return {name: ids[one] for name, one in zip(ids, first, strict=True) if one in crowded}


def _same_texts(keys: Sequence[str]) -> list[int]:
    """Of each text, the number of the first that says the same; a text without words has none but itself."""
    first: dict[str, int] = {}
    joined = [first.setdefault(key, number) if key else number for number, key in enumerate(keys)]
    return _joined(
        joined, ((one, other) for one, other, _ in near_duplicates(keys, similar=DUPLICATE_SIMILARITY, units="words"))
    )


def _joined(first: list[int], pairs: Iterable[tuple[int, int]]) -> list[int]:
    """The numbers of the first of each group, after groups have been joined by pairs."""

    def root(number: int) -> int:
        while first[number] != number:
            first[number] = first[first[number]]
            number = first[number]
        return number

    for pair in pairs:
        one, other = sorted(map(root, pair))
        first[other] = one
    return [root(number) for number in range(len(first))]


def _same_pages(said: Sequence[set[int]]) -> list[int]:
    """Of each page, the number of the first that says the same, or of the one that says all that it says.

    A page whose chunks stand on several pages that say different things is none of them: boilerplate, or a list.
    """
    alike: dict[Hashable, int] = {}
    first = [alike.setdefault(frozenset(chunks), number) for number, chunks in enumerate(said)]
    on: dict[int, set[int]] = defaultdict(set)
    for number in alike.values():
        for chunk in said[number]:
            on[chunk].add(number)
    pairs = []
    for number in alike.values():
        wider = set.intersection(*(on[chunk] for chunk in said[number])) - {number}
        widest = [one for one in wider if not any(said[one] < said[other] for other in wider)]
        if len(widest) == 1:
            pairs.append((number, widest[0]))
    return _joined(first, pairs)

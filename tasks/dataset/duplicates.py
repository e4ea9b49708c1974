"""Near-duplicate texts: MinHash finds candidates, the edit distance decides.

Two texts are near-duplicates if they differ after normalisation (case, ё, punctuation, white space) and:
- their Indel similarity is at least `MIN_SIMILARITY`, with words in text order or sorted;
- they have the same digits, negations and question words;
- the words that only one of them has are similar too: «зимняя сессия» does not match «летняя сессия».

Pairs that share no band of their MinHash signatures (24 bands of 3 values over sets of character trigrams) are not
compared. This skips one in 24,000 pairs with a Jaccard similarity of 0.7, and one in 25 pairs with 0.5. Sets of
passages contain three consecutive words. Other texts share few of them, so that few pairs are compared.

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
from yarus.tasks.cases.labels import page_by_chunk
from yarus.tasks.cases.text import STOP_WORDS, normalise_question
from yarus.tasks.cases.vocabulary import Duplicates, Unit

MIN_SIMILARITY = 0.8
MIN_SHARED_SIGNATURE = 0.5
"""Minimum share of equal signature values of two passages; it estimates the share of common word trigrams."""
MIN_REST_SIMILARITY = 0.7
"""Minimum similarity of the words that two texts do not share."""
BANDS, ROWS = 24, 3
NGRAM_SIZE = 3
MAX_BUCKET_SIZE = 30
"""Texts per bucket that are compared in all pairs; in larger buckets each is compared with this many neighbours."""
BLOCK_SIZE = 1_000_000
"""Letters whose signatures are computed at a time, and pairs that are compared at a time."""
DIGITS = re.compile(r"\d+")
NEGATIONS = {"не", "нет", "ни", "без", "not", "no", "without"}
QUESTION_WORDS = {"где", "как", "когда", "кто", "куда", "откуда", "почему", "зачем", "сколько"}
QUESTION_WORDS |= {"where", "how", "when", "who", "whom", "why", "which", "what"}
Units = Literal["letters", "words"]
"""Units of which three consecutive ones form an n-gram."""
FILLER_WORDS = STOP_WORDS - NEGATIONS
"""Words that do not change the meaning if they are removed."""


def find_near_duplicates(
    texts: Sequence[str], *, similar: float = MIN_SIMILARITY, units: Units = "letters"
) -> list[tuple[int, int, float]]:
    """Return pairs of texts that are almost the same.

    Args:
        texts: n normalised texts. Equal texts and texts of fewer than three units are in no pair.
        similar: minimum Indel similarity, 0..1.
        units: letters for questions; words for passages, because they are faster.

    Returns:
        (first, second, similarity) with first < second, most similar first.
    """
    first_index: dict[str, int] = {}
    for index, text in enumerate(texts):
        if (len(text) if units == "letters" else text.count(" ") + 1) >= NGRAM_SIZE:
            first_index.setdefault(text, index)
    unique = list(first_index)
    if len(unique) < 2:
        return []
    pairs = _candidate_pairs(unique, units)
    scores = _pair_similarities(unique, pairs)
    is_similar = scores >= similar
    near_duplicate_pairs = []
    for pair, score in zip(pairs[is_similar].tolist(), scores[is_similar].tolist(), strict=True):
        left, right = (unique[index] for index in pair)
        if _has_similar_rest(left, right):
            first, second = sorted((first_index[left], first_index[right]))
            near_duplicate_pairs.append((first, second, score))
    return sorted(near_duplicate_pairs, key=lambda pair: (-pair[2], pair[0], pair[1]))


def are_near_duplicates(left: str, right: str) -> bool:
    """Return whether two normalised texts are equal or near-duplicates."""
    if left == right:
        return True
    score = max(fuzz.ratio(left, right), fuzz.token_sort_ratio(left, right)) / 100
    return score >= MIN_SIMILARITY and _has_similar_rest(left, right)


def _pair_similarities(texts: Sequence[str], pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the similarity of each pair, 0..1: the larger value of both word orders."""
    left, right = ([texts[index] for index in indices] for indices in pairs.T)
    scores = (cpdist(left, right, scorer=scorer, dtype=np.float32) for scorer in (fuzz.ratio, fuzz.token_sort_ratio))
    return np.asarray(np.maximum(*scores), dtype=np.float64) / 100


def _has_similar_rest(first: str, second: str) -> bool:
    """Return whether the words that only one of the texts has differ by spelling rather than by meaning."""
    if sorted(DIGITS.findall(first)) != sorted(DIGITS.findall(second)):
        return False
    left_words, right_words = first.split(), second.split()
    if NEGATIONS & set(left_words) != NEGATIONS & set(right_words):
        return False
    question_words = QUESTION_WORDS & set(left_words), QUESTION_WORDS & set(right_words)
    if all(question_words) and question_words[0] != question_words[1]:
        return False
    rest = ["".join(w for w in words if w not in other_words and w not in FILLER_WORDS)
            for words, other_words in ((left_words, right_words), (right_words, left_words))]  # fmt: skip
    return rest == ["", ""] or fuzz.ratio(*rest) >= 100 * MIN_REST_SIMILARITY


def _candidate_pairs(texts: Sequence[str], units: Units) -> NDArray[np.int64]:
    """Return unique pairs that share a band of their signatures, (m, 2)."""
    signatures = _minhash_signatures(texts, units)
    pairs: list[NDArray[np.int64]] = [np.empty((0, 2), dtype=np.int64)]
    alphabetical_rank = np.argsort(np.argsort(np.asarray(texts, dtype=object)))
    for band in range(BANDS):
        rows = np.ascontiguousarray(signatures[:, band * ROWS : (band + 1) * ROWS])
        keys = _hash_band(rows)
        order = np.lexsort((alphabetical_rank, keys))
        edges = np.flatnonzero(np.diff(keys[order])) + 1
        band_pairs = [pair for bucket in np.split(order, edges) if len(bucket) > 1 for pair in _bucket_pairs(bucket)]
        if band_pairs:
            unique_pairs = np.unique(np.sort(np.array(band_pairs, dtype=np.int64), axis=1), axis=0)
            pairs.append(_filter_candidates(unique_pairs, signatures) if units == "words" else unique_pairs)
    return np.unique(np.concatenate(pairs), axis=0)


def _filter_candidates(pairs: NDArray[np.int64], signatures: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return pairs with similar signatures; the edit distance of passages is slow."""
    parts = np.array_split(pairs, len(pairs) // BLOCK_SIZE + 1)
    shared = [(signatures[part[:, 0]] == signatures[part[:, 1]]).mean(axis=1) >= MIN_SHARED_SIGNATURE for part in parts]
    candidates: NDArray[np.int64] = pairs[np.concatenate(shared)]
    return candidates


def _bucket_pairs(bucket: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    members = bucket.tolist()
    if len(members) <= MAX_BUCKET_SIZE:
        yield from combinations(members, 2)
        return
    for index, member in enumerate(members):
        for neighbour in members[index + 1 : index + 1 + MAX_BUCKET_SIZE]:
            yield member, neighbour


def _hash_band(rows: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Hash the values of a band to one number per row."""
    key = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:
        key = (key ^ column) * np.uint64(0x9E3779B97F4A7C15)
    return key


def _minhash_signatures(texts: Sequence[str], units: Units) -> NDArray[np.uint32]:
    """Return MinHash signatures, (n, BANDS * ROWS): the minimum trigram hash per hash function a x + b of 64 bits."""
    generator = np.random.default_rng(0)
    factors = generator.integers(1, 2**63, BANDS * ROWS, dtype=np.uint64) | np.uint64(1)
    shifts = generator.integers(0, 2**63, BANDS * ROWS, dtype=np.uint64)
    signatures = np.empty((len(texts), BANDS * ROWS), dtype=np.uint32)
    word_ids: dict[str, int] = {}
    for block in _split_blocks(texts):
        codes, lengths = _codes([texts[index] for index in block], units, word_ids)
        starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
        grams = (codes[:-2] << np.uint64(42)) ^ (codes[1:-1] << np.uint64(21)) ^ codes[2:]
        is_within_text = np.ones(len(grams), dtype=bool)
        is_within_text[np.concatenate((starts[1:] - 2, starts[1:] - 1))] = False  # these overlap the next text
        text_grams = grams[is_within_text]
        bounds = np.concatenate(([0], np.cumsum(lengths - 2)[:-1]))
        for column, (factor, shift) in enumerate(zip(factors, shifts, strict=True)):
            hashed = ((text_grams * factor + shift) >> np.uint64(32)).astype(np.uint32)
            signatures[block, column] = np.minimum.reduceat(hashed, bounds)
    return signatures


def _split_blocks(texts: Sequence[str]) -> list[NDArray[np.intp]]:
    """Return the indices of texts in blocks of about the same number of letters."""
    block_numbers = np.cumsum([len(text) for text in texts]) // BLOCK_SIZE
    return np.split(np.arange(len(texts)), np.flatnonzero(np.diff(block_numbers)) + 1)


def _codes(texts: Sequence[str], units: Units, word_ids: dict[str, int]) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
    """Return a number below 2^21 per unit of all texts, and the number of units per text.

    Args:
        texts: texts of a block.
        units: letters have their code points; words are numbered in order of appearance.
        word_ids: word -> number; new words are added. Beyond two million words, some share a number.
    """
    if units == "letters":
        letters = "".join(texts).encode("utf-32-le", "surrogatepass")
        return np.frombuffer(letters, dtype=np.uint32).astype(np.uint64), np.array([len(text) for text in texts])
    words = [text.split(" ") for text in texts]
    numbers = [word_ids.setdefault(word, len(word_ids)) % 2**21 for text_words in words for word in text_words]
    return np.array(numbers, dtype=np.uint64), np.array([len(text_words) for text_words in words])


DUPLICATE_SIMILARITY = 0.95
"""Minimum similarity of duplicate chunks."""


def duplicate_representatives(corpus: Corpus, unit: Unit) -> Duplicates:
    """Return the first duplicate for each chunk or page that has duplicates.

    Args:
        corpus: the chunks of the source.
        unit: `chunk`, or `page`: a page is a duplicate if all of its chunks have duplicates on one other page.

    Returns:
        Id -> id of its first duplicate, which may be itself. Units without duplicates are absent.
    """
    first_indices = _first_same_text([normalise_question(text) for text in corpus.texts])
    if unit == "chunk":
        return _representative_ids(corpus.ids, first_indices)
    page_texts: dict[str, set[int]] = defaultdict(set)
    for page, index in zip(page_by_chunk(corpus).values(), first_indices, strict=True):
        if page is not None:
            page_texts[page].add(index)
    return _representative_ids(list(page_texts), _first_same_page(list(page_texts.values())))


def _representative_ids(ids: Sequence[str], first_indices: Sequence[int]) -> Duplicates:
    has_duplicates = {first for index, first in enumerate(first_indices) if first != index}
    return {name: ids[first] for name, first in zip(ids, first_indices, strict=True) if first in has_duplicates}


def _first_same_text(keys: Sequence[str]) -> list[int]:
    """Return for each text the index of its first duplicate, or its own; a text without words is unique."""
    first_index: dict[str, int] = {}
    firsts = [first_index.setdefault(key, index) if key else index for index, key in enumerate(keys)]
    return _merge_groups(
        firsts, ((a, b) for a, b, _ in find_near_duplicates(keys, similar=DUPLICATE_SIMILARITY, units="words"))
    )


def _merge_groups(parents: list[int], pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return the first index of each group after the groups are merged by pairs."""

    def find_root(index: int) -> int:
        while parents[index] != index:
            parents[index] = parents[parents[index]]
            index = parents[index]
        return index

    for pair in pairs:
        low, high = sorted(map(find_root, pair))
        parents[high] = low
    return [find_root(index) for index in range(len(parents))]


def _first_same_page(page_chunks: Sequence[set[int]]) -> list[int]:
    """Return for each page the index of its first duplicate, or of the page that contains all of its texts.

    A page is unique if several different pages contain all of its chunks: boilerplate, or a list.
    """
    first_by_content: dict[Hashable, int] = {}
    first_indices = [first_by_content.setdefault(frozenset(chunks), index) for index, chunks in enumerate(page_chunks)]
    pages_by_chunk: dict[int, set[int]] = defaultdict(set)
    for index in first_by_content.values():
        for chunk in page_chunks[index]:
            pages_by_chunk[chunk].add(index)
    pairs = []
    for index in first_by_content.values():
        supersets = set.intersection(*(pages_by_chunk[chunk] for chunk in page_chunks[index])) - {index}
        largest = [page for page in supersets if not any(page_chunks[page] < page_chunks[other] for other in supersets)]
        if len(largest) == 1:
            pairs.append((index, largest[0]))
    return _merge_groups(first_indices, pairs)

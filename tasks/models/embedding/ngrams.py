"""Texts as counts of hashed character n-grams, equal to scikit-learn's HashingVectorizer, whose import takes 2 s."""

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SIZES = (3, 4)
AT_ONCE = 1_000
"""Texts whose n-grams are in memory."""


def ngram_counts(texts: Sequence[str], features: int) -> NDArray[np.float32]:
    """How often each n-gram of 3 and 4 characters stands in each text, counted where its hash falls.

    Texts are lower-cased and parted at white space; every word has a blank before and behind it. Half of the n-grams
    count as -1, so that those that fall on one place cancel each other on average.

    Args:
        texts: n texts that UTF-8 can hold.
        features: places.

    Returns:
        (n, features) float32, as `HashingVectorizer(analyzer="char_wb", ngram_range=(3, 4), norm=None)` has them.

    Reference:
        Weinberger et al., Feature hashing for large scale multitask learning, 2009.
    """
    counts = np.zeros((len(texts), features), dtype=np.float32)
    for start in range(0, len(texts), AT_ONCE):
        _count(texts[start : start + AT_ONCE], counts[start : start + AT_ONCE])
    return counts


def _count(texts: Sequence[str], counts: NDArray[np.float32]) -> None:
    numbers: dict[str, int] = {}
    by_word: dict[str, array[int]] = {}
    found, lengths = array("i"), []
    for text in texts:
        before = len(found)
        for word in text.lower().split():
            if word not in by_word:
                spaced = f" {word} "
                grams = (spaced[at : at + n] for n in SIZES for at in range(len(spaced) + 1 - n))
                by_word[word] = array("i", [numbers.setdefault(gram, len(numbers)) for gram in grams])
            found.extend(by_word[word])
        lengths.append(len(found) - before)
    hashes = murmur3([gram.encode() for gram in numbers])[np.frombuffer(found, dtype=np.int32)]
    rows = np.repeat(np.arange(len(texts)), lengths)
    signs = np.where(hashes < 0, np.float32(-1), np.float32(1))
    np.add.at(counts.reshape(-1), rows * counts.shape[1] + np.abs(hashes) % counts.shape[1], signs)


def murmur3(keys: Sequence[bytes]) -> NDArray[np.int64]:
    """MurmurHash3 (32 bits, seed 0) of each key, as a signed number.

    Reference:
        Appleby, MurmurHash3_x86_32, 2011.
    """
    lengths = np.array([len(key) for key in keys], dtype=np.uint32)
    width = 4 * (int(lengths.max(initial=0)) // 4 + 1)
    words = np.frombuffer(b"".join(key.ljust(width, b"\0") for key in keys), dtype="<u4").reshape(len(keys), width // 4)
    hashed = np.zeros(len(keys), dtype=np.uint32)
    for place in range(width // 4):
        mixed = _rotated(words[:, place] * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593) ^ hashed
        whole = _rotated(mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        # A word of four bytes is mixed in whole; the last few bytes once; behind them there is nothing.
        hashed = np.where(lengths >= 4 * place + 4, whole, np.where(lengths > 4 * place, mixed, hashed))
    hashed ^= lengths
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashed = (hashed ^ hashed >> np.uint32(shift)) * np.uint32(factor)
    return np.asarray((hashed ^ hashed >> np.uint32(16)).view(np.int32), dtype=np.int64)


def _rotated(words: NDArray[np.uint32], by: int) -> NDArray[np.uint32]:
    return words << np.uint32(by) | words >> np.uint32(32 - by)

"""Counts of hashed character n-grams, equal to scikit-learn's HashingVectorizer, whose import takes 2 s."""

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

NGRAM_SIZES = (3, 4)
BLOCK_TEXTS = 1_000
"""Texts whose n-grams are in memory at once."""


def hash_ngrams(texts: Sequence[str], features: int) -> NDArray[np.float32]:
    """Count the n-grams of 3 and 4 characters of each text, at the positions of their hashes.

    Texts are lower-cased and split at white space; every word gets a blank on both sides. Half of the n-grams count as
    -1, so that n-grams with equal positions cancel each other on average.

    Args:
        texts: n texts that UTF-8 can hold.
        features: number of positions.

    Returns:
        (n, features) float32, as `HashingVectorizer(analyzer="char_wb", ngram_range=(3, 4), norm=None)` has them.

    Reference:
        Weinberger et al., Feature hashing for large scale multitask learning, 2009.
    """
    counts = np.zeros((len(texts), features), dtype=np.float32)
    for start in range(0, len(texts), BLOCK_TEXTS):
        _count(texts[start : start + BLOCK_TEXTS], counts[start : start + BLOCK_TEXTS])
    return counts


def _count(texts: Sequence[str], counts: NDArray[np.float32]) -> None:
    gram_indices: dict[str, int] = {}
    indices_by_word: dict[str, array[int]] = {}
    indices, lengths = array("i"), []
    for text in texts:
        n_before = len(indices)
        for word in text.lower().split():
            if word not in indices_by_word:
                padded = f" {word} "
                grams = (padded[start : start + n] for n in NGRAM_SIZES for start in range(len(padded) + 1 - n))
                indices_by_word[word] = array("i", [gram_indices.setdefault(gram, len(gram_indices)) for gram in grams])
            indices.extend(indices_by_word[word])
        lengths.append(len(indices) - n_before)
    hashes = murmur3([gram.encode() for gram in gram_indices])[np.frombuffer(indices, dtype=np.int32)]
    rows = np.repeat(np.arange(len(texts)), lengths)
    signs = np.where(hashes < 0, np.float32(-1), np.float32(1))
    np.add.at(counts.reshape(-1), rows * counts.shape[1] + np.abs(hashes) % counts.shape[1], signs)


def murmur3(keys: Sequence[bytes]) -> NDArray[np.int64]:
    """Return MurmurHash3 (32 bits, seed 0) of each key, as a signed number.

    Reference:
        Appleby, MurmurHash3_x86_32, 2011.
    """
    lengths = np.array([len(key) for key in keys], dtype=np.uint32)
    width = 4 * (int(lengths.max(initial=0)) // 4 + 1)
    words = np.frombuffer(b"".join(key.ljust(width, b"\0") for key in keys), dtype="<u4").reshape(len(keys), width // 4)
    hashed = np.zeros(len(keys), dtype=np.uint32)
    for position in range(width // 4):
        mixed = _rotate_left(words[:, position] * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593) ^ hashed
        full_step = _rotate_left(mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        # A full word of four bytes is mixed twice, the last bytes once, and padding not at all.
        hashed = np.where(lengths >= 4 * position + 4, full_step, np.where(lengths > 4 * position, mixed, hashed))
    hashed ^= lengths
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashed = (hashed ^ hashed >> np.uint32(shift)) * np.uint32(factor)
    return np.asarray((hashed ^ hashed >> np.uint32(16)).view(np.int32), dtype=np.int64)


def _rotate_left(words: NDArray[np.uint32], n_bits: int) -> NDArray[np.uint32]:
    return words << np.uint32(n_bits) | words >> np.uint32(32 - n_bits)

"""How many n-grams texts share, for a whole block of cases at once.

All n-grams of the longest order of a block are packed into one integer each - case, tokens, side - and sorted once.
N-grams of a lower order are prefixes of these, so the one sorted array counts them all: equal n-grams of a case stand
in one run, and a run says how often each side has it.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, count

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq, Levenshtein
from rapidfuzz.process import cpdist

from metrics.text_cases import IntArray

Keys = NDArray[np.uint64]
_KEY_BITS = 64
_FIRST_SURROGATE, _SURROGATES = 0xD800, 0x800  # code points that stand for no character, and how many there are


@dataclass(frozen=True, slots=True)
class Encoded:
    """Texts as integers that are equal where tokens are: all codes in a row, and each text's number of tokens."""

    codes: IntArray
    lengths: IntArray

    def __getitem__(self, texts: slice) -> "Encoded":
        """These texts of them."""
        ends = np.cumsum(self.lengths)[texts]
        lengths = self.lengths[texts]
        return Encoded(self.codes[ends[0] - lengths[0] : ends[-1]] if len(ends) else self.codes[:0], lengths)


def encode_tokens(texts: Iterable[Sequence[str]]) -> Encoded:
    """Number the distinct tokens of these texts in order of appearance."""
    tokenized = list(texts)
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    lengths = np.fromiter(map(len, tokenized), np.int64, len(tokenized))
    codes = map(numbers.__getitem__, chain.from_iterable(tokenized))
    return Encoded(np.fromiter(codes, np.int64, int(lengths.sum())), lengths)


def encode_characters(texts: Sequence[str]) -> Encoded:
    """Number the distinct characters of these texts in order of code point."""
    points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype="<u4")
    seen = np.zeros(int(points.max(initial=0)) + 1, dtype=bool)
    seen[points] = True
    alphabet = np.flatnonzero(seen)
    rank = np.empty(len(seen), dtype=np.int64)
    rank[alphabet] = np.arange(len(alphabet))
    return Encoded(rank[points], np.fromiter(map(len, texts), np.int64, len(texts)))


def shared_ngrams(hypotheses: Encoded, references: Encoded, owner: IntArray, *, order: int) -> IntArray:
    """The n-grams that each hypothesis shares with its references: for each n-gram the smaller of its counts, added up.

    Args:
        hypotheses: m texts, encoded together with the references.
        references: one or more texts for each hypothesis; of several, the one with most of an n-gram counts.
        owner: ascending; for each reference the position of its hypothesis.
        order: the longest n-gram.

    Returns:
        (m, order) counts; column n - 1 is for n-grams of n tokens.

    Reference:
        Papineni et al., BLEU: a Method for Automatic Evaluation of Machine Translation, ACL 2002 (clipped counts).
    """
    m = len(hypotheses.lengths)
    if m == 0:
        return np.zeros((0, order), dtype=np.int64)
    rows = np.concatenate([np.arange(m), owner])
    sides = np.concatenate([np.zeros(m, np.int64), 1 + np.arange(len(owner)) - np.searchsorted(owner, owner)])
    lengths = np.concatenate([hypotheses.lengths, references.lengths])
    codes = np.concatenate([hypotheses.codes, references.codes])
    tokens = _with_ends(codes, lengths, sides > 0, padding=order)
    return _count(tokens, lengths + 1, rows, sides, order=order)


def _with_ends(codes: IntArray, lengths: IntArray, is_reference: NDArray[np.bool_], *, padding: int) -> Keys:
    """Codes from 1 up with an end after each text, which is another number on each side.

    So an n-gram that runs over the end of its text matches nothing on the other side, and needs no special care.
    """
    highest = int(codes.max(initial=0)) + 1
    ends = np.cumsum(lengths + 1) - 1
    tokens = np.zeros(len(codes) + len(lengths) + padding, dtype=np.uint64)
    inside = np.ones(len(codes) + len(lengths), dtype=bool)
    inside[ends] = False
    tokens[: len(inside)][inside] = codes + 1
    tokens[ends] = np.where(is_reference, highest + 1, 0)
    return tokens


def _count(tokens: Keys, sizes: IntArray, rows: IntArray, sides: IntArray, *, order: int) -> IntArray:
    """Pack, sort and count. Where the tokens of an n-gram do not fit into one key, its first part becomes its rank."""
    n = int(sizes.sum())
    width, side_bits = int(tokens.max()).bit_length(), int(sides.max()).bit_length()
    per_row = np.bincount(rows, weights=sizes).astype(np.int64)
    row_starts = np.cumsum(per_row) - per_row
    side = np.repeat(sides, sizes).astype(np.uint64)
    key, key_bits = np.repeat(rows, sizes).astype(np.uint64), int(rows.max()).bit_length()
    counts = np.zeros((len(per_row), order), dtype=np.int64)
    done = 0
    while done < order:
        upto = min(order, done + (_KEY_BITS - side_bits - key_bits) // width)
        for k in range(done, upto):
            key = (key << np.uint64(width)) | tokens[k : k + n]
        ordered = np.sort((key << np.uint64(side_bits)) | side)
        counts[:, done:upto] = _count_prefixes(ordered, row_starts, upto - done, width, side_bits, int(sides.max()))
        done = upto
        if done < order:
            key = np.unique(key, return_inverse=True)[1].astype(np.uint64)
            key_bits = int(key.max()).bit_length()
    return counts


def _count_prefixes(
    ordered: Keys, row_starts: IntArray, orders: int, width: int, side_bits: int, n_sides: int
) -> IntArray:
    """Shared n-grams of each row for each of the `orders` tokens that end the sorted keys, longest first."""
    n = len(ordered)
    side = ordered & np.uint64((1 << side_bits) - 1)
    before = [np.concatenate([[0], np.cumsum(side == s)]) for s in range(n_sides + 1)]
    # The highest bit in which a key differs from the one before it says which orders begin a new run there.
    change = np.empty(n, dtype=np.uint64)
    change[0] = np.iinfo(np.uint64).max
    np.bitwise_xor(ordered[1:], ordered[:-1], out=change[1:])
    starts = np.arange(n)
    counts = np.empty((len(row_starts), orders), dtype=np.int64)
    for column in reversed(range(orders)):
        new = change >= np.uint64(1 << (side_bits + width * (orders - 1 - column)))
        starts, change = starts[new], change[new]
        bounds = np.append(starts, n)
        in_hypothesis, *in_references = (np.diff(cumulated[bounds]) for cumulated in before)
        shared = np.minimum(in_hypothesis, np.maximum.reduce(in_references))
        counts[:, column] = np.add.reduceat(shared, np.searchsorted(starts, row_starts))
    return counts


def longest_common_subsequence(first: Encoded, second: Encoded) -> IntArray:
    """The length of the longest sequence of tokens that stands in both texts in the same order, pair by pair."""
    return cpdist(_sequences(first), _sequences(second), scorer=LCSseq.similarity, dtype=np.int64)


def word_edits(first: Encoded, second: Encoded) -> IntArray:
    """The fewest tokens to replace, delete or insert to make one text the other, pair by pair."""
    return cpdist(_sequences(first), _sequences(second), scorer=Levenshtein.distance, dtype=np.int64)


def _sequences(texts: Encoded) -> list[str] | list[list[int]]:
    """Texts as RapidFuzz takes them: a character for each token, which is fastest, or numbers if there are too many."""
    characters = texts.codes + _SURROGATES * (texts.codes >= _FIRST_SURROGATE)
    fits = int(characters.max(initial=0)) <= sys.maxunicode
    whole = characters.astype("<u4").tobytes().decode("utf-32-le") if fits else characters.tolist()
    ends = np.cumsum(texts.lengths)
    return [whole[start:end] for start, end in zip((ends - texts.lengths).tolist(), ends.tolist(), strict=True)]

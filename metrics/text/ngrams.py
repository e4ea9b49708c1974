"""Counts of n-grams that texts share, for a whole block of cases at once.

All n-grams of the longest order of a block are packed into one integer each - case, tokens, side - and sorted once.
N-grams of a lower order are prefixes of these, so the one sorted array counts them all: equal n-grams of a case form
one run, and the run gives the count of each side. `_count_prefixes` has an example.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq, Levenshtein
from rapidfuzz.process import cpdist

from yarus.metrics.text.text_pairs import IntArray
from yarus.metrics.text.tokenizers import TEXT_END

Keys = NDArray[np.uint64]
_KEY_BITS = 64
_FIRST_SURROGATE, _SURROGATES = 0xD800, 0x800  # code points that are not characters, and their number


class EncodedTexts(NamedTuple):
    """Texts as integers that are equal if and only if tokens are.

    `codes` contains the codes of all texts in a row, each text followed by one separator slot; `lengths` the number of
    tokens of each text, without the slot.
    """

    codes: IntArray
    lengths: IntArray

    @property
    def slots(self) -> IntArray:
        """Return the positions in `codes` of the slot after each text."""
        return np.cumsum(self.lengths + 1) - 1


def encode_tokens(tokens: Sequence[str]) -> EncodedTexts:
    """Encode the distinct tokens of some texts, each text's followed by TEXT_END, in order of appearance.

    Example:
        >>> from yarus.metrics.text.ngrams import encode_tokens
        >>> from yarus.metrics.text.tokenizers import TEXT_END
        >>> encode_tokens(["кот", "и", "кот", TEXT_END, "и", TEXT_END])
        EncodedTexts(codes=array([ 0,  1,  0, -1,  1, -1]), lengths=array([3, 1]))
    """
    numbers: defaultdict[str, int] = defaultdict(count().__next__, {TEXT_END: -1})
    codes = np.fromiter(map(numbers.__getitem__, tokens), np.int64, len(tokens))
    return EncodedTexts(codes, np.diff(np.flatnonzero(codes < 0), prepend=-1) - 1)


def encode_characters(texts: Sequence[str]) -> EncodedTexts:
    """Encode the distinct characters of these texts in order of code point.

    Example:
        >>> from yarus.metrics.text.ngrams import encode_characters
        >>> encode_characters(["аба", "б"])
        EncodedTexts(codes=array([2, 3, 2, 1, 3, 1]), lengths=array([3, 1]))
    """
    points = np.frombuffer("\n".join([*texts, ""]).encode("utf-32-le", "surrogatepass"), dtype="<u4")
    seen = np.zeros(int(points.max(initial=0)) + 1, dtype=bool)
    seen[points] = True
    return EncodedTexts(np.cumsum(seen)[points], np.fromiter(map(len, texts), np.int64, len(texts)))


def shared_ngrams(texts: EncodedTexts, owner: IntArray, *, order: int) -> IntArray:
    """Return the number of n-grams that each hypothesis shares with its references: the sum of the smaller counts.

    Args:
        texts: m hypotheses, then their references, one or more for each; of several, the one with the most occurrences
            of an n-gram counts.
        owner: ascending; for each reference the position of its hypothesis.
        order: the longest n-gram.

    Returns:
        (m, order) counts; column n - 1 is for n-grams of n tokens.

    Reference:
        Papineni et al., BLEU: a Method for Automatic Evaluation of Machine Translation, ACL 2002 (clipped counts).

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.text.ngrams import encode_tokens, shared_ngrams
        >>> from yarus.metrics.text.tokenizers import TEXT_END
        >>> texts = encode_tokens(["а", "б", "а", TEXT_END, "а", "б", "в", TEXT_END])  # «а б а», its reference «а б в»
        >>> shared_ngrams(texts, np.array([0]), order=2)
        array([[2, 1]])
    """
    m = len(texts.lengths) - len(owner)
    counts = np.zeros((m, order), dtype=np.int64)
    if counts.size == 0:
        return counts
    rows = np.concatenate([np.arange(m), owner])
    sides = np.concatenate([np.zeros(m, np.int64), 1 + np.arange(len(owner)) - np.searchsorted(owner, owner)])
    sizes = texts.lengths + 1
    tokens = _with_separators(texts, sides, order)
    width, side_bits = int(tokens.max()).bit_length(), int(sides.max()).bit_length()
    per_row = np.bincount(rows, weights=sizes).astype(np.int64)
    row_starts = np.cumsum(per_row) - per_row
    side = np.repeat(sides.astype(np.uint64), sizes)
    key, key_bits = np.repeat(rows.astype(np.uint64), sizes), m.bit_length()
    done = 0
    while done < order:
        if done:  # too long for one key: the packed prefix is replaced by its rank
            key = np.unique(key, return_inverse=True)[1].astype(np.uint64)
            key_bits = int(key.max()).bit_length()
        upto = min(order, done + (_KEY_BITS - side_bits - key_bits) // width)
        for k in range(done, upto):
            key <<= np.uint64(width)
            key |= tokens[k : k + len(key)]
        ordered = np.sort((key << np.uint64(side_bits)) | side)
        counts[:, done:upto] = _count_prefixes(ordered, row_starts, upto - done, width, side_bits, int(sides.max()))
        done = upto
    return counts


def _with_separators(texts: EncodedTexts, sides: IntArray, order: int) -> Keys:
    """Return codes from 1 up, with separators after each text that differ between hypotheses and references.

    So an n-gram that runs over the end of its text matches nothing on the other side, and needs no special treatment.
    """
    tokens = np.zeros(len(texts.codes) + order, dtype=np.uint64)
    tokens[: len(texts.codes)] = texts.codes + 1
    tokens[texts.slots] = np.where(sides > 0, tokens.max() + np.uint64(1), np.uint64(0))
    return tokens


def _count_prefixes(
    ordered: Keys, row_starts: IntArray, orders: int, width: int, side_bits: int, n_sides: int
) -> IntArray:
    """Return shared n-grams of each row for each of the `orders` tokens that end the sorted keys, longest first.

    Example: the hypothesis «а б а» and its reference «а б в», with а = 1, б = 2, в = 3, the ends of texts 0 and 4. A
    key is the pair that begins at a token (and the side: h, r), first token first. After sorting, equal pairs are
    neighbours, and so are pairs with the same beginning:

        key       01h   10h   12h 12r   21h   23r   34r   40r
        pairs     1     1     2         1     1     1     1       12 is on both sides: 1 shared pair
        tokens    1     3---------      2--------   1     1       1 twice and once, 2 once and once: 2 shared tokens

    A run of pairs begins where a key differs from the one before in any token, a run of tokens where it differs in the
    first: the highest bit that differs (`change`) shows both.
    """
    n = len(ordered)
    side = ordered & np.uint64((1 << side_bits) - 1)
    before = [_running_count(side == s) for s in range(n_sides + 1)]
    # The highest bit in which a key differs from the one before it shows which orders begin a new run there. The first
    # key begins none: it is the end of a hypothesis, which is never shared.
    change = np.zeros(n, dtype=np.uint64)
    np.bitwise_xor(ordered[1:], ordered[:-1], out=change[1:])
    starts = np.arange(n, dtype=np.int32)
    counts = np.empty((len(row_starts), orders), dtype=np.int64)
    for column in reversed(range(orders)):
        begins_run = change >= np.uint64(1 << (side_bits + width * (orders - 1 - column)))
        starts, change = starts[begins_run], change[begins_run]
        bounds = np.append(starts, np.int32(n))
        in_hypothesis, *in_references = (np.diff(running[bounds]) for running in before)
        shared = np.minimum(in_hypothesis, np.maximum.reduce(in_references))
        counts[:, column] = np.add.reduceat(shared, np.searchsorted(starts, row_starts))
    return counts


def _running_count(marked: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return how many are marked before each position, and in all."""
    running = np.zeros(len(marked) + 1, dtype=np.int32)
    np.cumsum(marked, out=running[1:])
    return running


def longest_common_subsequence(texts: EncodedTexts) -> IntArray:
    """Return the length of the longest sequence of tokens that occurs in the same order in both texts of each pair.

    Example:
        >>> from yarus.metrics.text.ngrams import encode_tokens, longest_common_subsequence
        >>> from yarus.metrics.text.tokenizers import TEXT_END
        >>> longest_common_subsequence(encode_tokens(["а", "в", "б", TEXT_END, "а", "б", TEXT_END])).tolist()
        [2]
    """
    return _compare(texts, LCSseq.similarity)


def word_edits(texts: EncodedTexts) -> IntArray:
    """Return the least number of tokens to replace, delete or insert to turn one text of each pair into the other.

    Example:
        >>> from yarus.metrics.text.ngrams import encode_tokens, word_edits
        >>> from yarus.metrics.text.tokenizers import TEXT_END
        >>> word_edits(encode_tokens(["а", "в", "б", TEXT_END, "а", "б", TEXT_END])).tolist()
        [1]
    """
    return _compare(texts, Levenshtein.distance)


def _compare(texts: EncodedTexts, scorer: Callable[..., int]) -> IntArray:
    """Return one number per pair of the first half (hypotheses) and the second half (references) of the texts."""
    # A character for each token is fastest; numbers are used if there are more tokens than characters.
    codes = np.maximum(texts.codes, 0)
    codes += _SURROGATES * (codes >= _FIRST_SURROGATE)
    fits = int(codes.max(initial=0)) <= sys.maxunicode
    all_codes = codes.astype("<u4").tobytes().decode("utf-32-le") if fits else codes.tolist()
    stops = texts.slots.tolist()
    parts = [all_codes[stop - length : stop] for stop, length in zip(stops, texts.lengths.tolist(), strict=True)]
    pairs = len(parts) // 2
    return cpdist(parts[:pairs], parts[pairs:], scorer=scorer, dtype=np.int64)

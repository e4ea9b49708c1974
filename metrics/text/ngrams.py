"""How many n-grams texts share, for a whole block of cases at once.

All n-grams of the longest order of a block are packed into one integer each - case, tokens, side - and sorted once.
N-grams of a lower order are prefixes of these, so the one sorted array counts them all: equal n-grams of a case stand
in one run, and a run says how often each side has it. `_count_prefixes` has an example.
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

from yarus.metrics.text.cases import IntArray
from yarus.metrics.text.tokenizers import END

Keys = NDArray[np.uint64]
_KEY_BITS = 64
_FIRST_SURROGATE, _SURROGATES = 0xD800, 0x800  # code points that stand for no character, and how many there are


class Encoded(NamedTuple):
    """Texts as integers that are equal where tokens are.

    `codes` holds the codes of all texts in a row, each text followed by one slot without a meaning; `lengths` the
    number of tokens of each text, the slot not counted.
    """

    codes: IntArray
    lengths: IntArray

    @property
    def slots(self) -> IntArray:
        """Where in `codes` the slot after each text is."""
        return np.cumsum(self.lengths + 1) - 1


def encode_tokens(tokens: Sequence[str]) -> Encoded:
    """Number the distinct tokens of some texts, each text's followed by END, in order of appearance.

    Example:
        >>> from yarus.metrics.text.ngrams import encode_tokens
        >>> from yarus.metrics.text.tokenizers import END
        >>> encode_tokens(["кот", "и", "кот", END, "и", END])
        Encoded(codes=array([ 0,  1,  0, -1,  1, -1]), lengths=array([3, 1]))
    """
    numbers: defaultdict[str, int] = defaultdict(count().__next__, {END: -1})
    codes = np.fromiter(map(numbers.__getitem__, tokens), np.int64, len(tokens))
    return Encoded(codes, np.diff(np.flatnonzero(codes < 0), prepend=-1) - 1)


def encode_characters(texts: Sequence[str]) -> Encoded:
    """Number the distinct characters of these texts in order of code point.

    Example:
        >>> from yarus.metrics.text.ngrams import encode_characters
        >>> encode_characters(["аба", "б"])
        Encoded(codes=array([2, 3, 2, 1, 3, 1]), lengths=array([3, 1]))
    """
    points = np.frombuffer("\n".join([*texts, ""]).encode("utf-32-le", "surrogatepass"), dtype="<u4")
    seen = np.zeros(int(points.max(initial=0)) + 1, dtype=bool)
    seen[points] = True
    return Encoded(np.cumsum(seen)[points], np.fromiter(map(len, texts), np.int64, len(texts)))


def shared_ngrams(texts: Encoded, owner: IntArray, *, order: int) -> IntArray:
    """The n-grams that each hypothesis shares with its references: for each n-gram the smaller of its counts, added up.

    Args:
        texts: m hypotheses, then their references, one or more for each; of several, the one that has most of an n-gram
            counts.
        owner: ascending; for each reference the position of its hypothesis.
        order: the longest n-gram.

    Returns:
        (m, order) counts; column n - 1 is for n-grams of n tokens.

    Reference:
        Papineni et al., BLEU: a Method for Automatic Evaluation of Machine Translation, ACL 2002 (clipped counts).

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.text.ngrams import encode_tokens, shared_ngrams
        >>> from yarus.metrics.text.tokenizers import END
        >>> texts = encode_tokens(["а", "б", "а", END, "а", "б", "в", END])  # «а б а», its reference «а б в»
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
    tokens = _with_ends(texts, sides, order)
    width, side_bits = int(tokens.max()).bit_length(), int(sides.max()).bit_length()
    per_row = np.bincount(rows, weights=sizes).astype(np.int64)
    row_starts = np.cumsum(per_row) - per_row
    side = np.repeat(sides.astype(np.uint64), sizes)
    key, key_bits = np.repeat(rows.astype(np.uint64), sizes), m.bit_length()
    done = 0
    while done < order:
        if done:  # too long for one key: what is packed so far becomes its rank
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


def _with_ends(texts: Encoded, sides: IntArray, order: int) -> Keys:
    """Codes from 1 up, with an end in the slot after each text that is one number for hypotheses, another for others.

    So an n-gram that runs over the end of its text matches nothing on the other side, and needs no special care.
    """
    tokens = np.zeros(len(texts.codes) + order, dtype=np.uint64)
    tokens[: len(texts.codes)] = texts.codes + 1
    tokens[texts.slots] = np.where(sides > 0, tokens.max() + np.uint64(1), np.uint64(0))
    return tokens


def _count_prefixes(
    ordered: Keys, row_starts: IntArray, orders: int, width: int, side_bits: int, n_sides: int
) -> IntArray:
    """Shared n-grams of each row for each of the `orders` tokens that end the sorted keys, longest first.

    The hypothesis «а б а» and its reference «а б в», with а = 1, б = 2, в = 3, the ends of texts 0 and 4. A key is the
    pair that begins at a token (and the side: h, r), first token first; sorted, equal pairs are neighbours, and so are
    pairs that begin alike:

        key       01h   10h   12h 12r   21h   23r   34r   40r
        pairs     1     1     2         1     1     1     1       12 stands on both sides: 1 shared pair
        tokens    1     3---------      2--------   1     1       1 twice and once, 2 once and once: 2 shared tokens

    A run of pairs begins where a key differs from the one before in any token, a run of tokens where it differs in the
    first: one look at the highest bit that differs (`change`) tells both.
    """
    n = len(ordered)
    side = ordered & np.uint64((1 << side_bits) - 1)
    before = [_running_count(side == s) for s in range(n_sides + 1)]
    # The highest bit in which a key differs from the one before it says which orders begin a new run there. The first
    # key begins none: it is the end of a hypothesis, which nothing shares.
    change = np.zeros(n, dtype=np.uint64)
    np.bitwise_xor(ordered[1:], ordered[:-1], out=change[1:])
    starts = np.arange(n, dtype=np.int32)
    counts = np.empty((len(row_starts), orders), dtype=np.int64)
    for column in reversed(range(orders)):
        new = change >= np.uint64(1 << (side_bits + width * (orders - 1 - column)))
        starts, change = starts[new], change[new]
        bounds = np.append(starts, np.int32(n))
        in_hypothesis, *in_references = (np.diff(running[bounds]) for running in before)
        shared = np.minimum(in_hypothesis, np.maximum.reduce(in_references))
        counts[:, column] = np.add.reduceat(shared, np.searchsorted(starts, row_starts))
    return counts


def _running_count(marked: NDArray[np.bool_]) -> NDArray[np.int32]:
    """How many are marked before each position, and in all."""
    running = np.zeros(len(marked) + 1, dtype=np.int32)
    np.cumsum(marked, out=running[1:])
    return running


def longest_common_subsequence(texts: Encoded) -> IntArray:
    """The length of the longest sequence of tokens that stands in the same order in both texts of each pair.

    Example:
        >>> from yarus.metrics.text.ngrams import encode_tokens, longest_common_subsequence
        >>> from yarus.metrics.text.tokenizers import END
        >>> longest_common_subsequence(encode_tokens(["а", "в", "б", END, "а", "б", END])).tolist()
        [2]
    """
    return _compare(texts, LCSseq.similarity)


def word_edits(texts: Encoded) -> IntArray:
    """The fewest tokens to replace, delete or insert to make one text of each pair the other.

    Example:
        >>> from yarus.metrics.text.ngrams import encode_tokens, word_edits
        >>> from yarus.metrics.text.tokenizers import END
        >>> word_edits(encode_tokens(["а", "в", "б", END, "а", "б", END])).tolist()
        [1]
    """
    return _compare(texts, Levenshtein.distance)


def _compare(texts: Encoded, scorer: Callable[..., int]) -> IntArray:
    """One number for each pair; the first half of the texts are the hypotheses, the second half the references."""
    # A character for each token is fastest; numbers do where there are more tokens than characters.
    codes = np.maximum(texts.codes, 0)
    codes += _SURROGATES * (codes >= _FIRST_SURROGATE)
    fits = int(codes.max(initial=0)) <= sys.maxunicode
    whole = codes.astype("<u4").tobytes().decode("utf-32-le") if fits else codes.tolist()
    stops = texts.slots.tolist()
    parts = [whole[stop - length : stop] for stop, length in zip(stops, texts.lengths.tolist(), strict=True)]
    pairs = len(parts) // 2
    return cpdist(parts[:pairs], parts[pairs:], scorer=scorer, dtype=np.int64)

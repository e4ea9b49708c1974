"""chrF: shared character n-grams, robust to word endings and typos."""

from collections.abc import Sequence

import numpy as np

from yarus.metrics.text.ngrams import EncodedTexts, encode_characters, encode_tokens, shared_ngrams
from yarus.metrics.text.text_pairs import (
    CHARACTER_BLOCK,
    FloatArray,
    IntArray,
    References,
    Text,
    TextPairs,
    divide_where,
    read_text_pairs,
)
from yarus.metrics.text.tokenizers import chrf_words
from yarus.metrics.validation import check_at_least


def chrf(
    hypotheses: Sequence[Text],
    references: References,
    *,
    char_order: int = 6,
    word_order: int = 0,
    beta: float = 2.0,
    whitespace: bool = False,
    fold_yo: bool = False,
) -> FloatArray:
    """Return chrF: the F score of the mean precision and the mean recall over character n-grams of all orders.

    Equal to sacreBLEU's sentence score (divided by 100), except that sacreBLEU gives 0 for a reference without a
    character. Upper and lower case differ, punctuation counts. With `word_order=2` it is chrF++.

    Args:
        hypotheses: n texts.
        references: n texts, or sequences of several each: the best one counts.
        char_order: the longest character n-gram, at least 1.
        word_order: the longest word n-gram, 0 for none.
        beta: weight of recall relative to precision, 0 or more.
        whitespace: count white space as characters.
        fold_yo: read «ё» as «е».

    Returns:
        n values from 0 to 1, higher is better; NaN if undefined, also if the reference is only white space (and white
        space is not counted).

    Raises:
        ValueError: different lengths, char_order below 1, word_order or beta below 0.
        TypeError: something that is not a text.

    Reference:
        Popović, chrF: character n-gram F-score for automatic MT evaluation, WMT 2015; chrF++: words helping character
        n-grams, WMT 2017.

    Stored as: `avg_chrf` (metrics/table/overlap.py).

    Example:
        >>> from yarus.metrics.text import chrf
        >>> chrf(["студентам", "окно"], ["студентами", "дверь"]).round(3)
        array([0.884, 0.   ])
    """
    check_at_least("char_order", char_order, 1)
    check_at_least("word_order", word_order, 0)
    check_at_least("beta", beta, 0)
    cases = read_text_pairs(hypotheses, references, fold_yo=fold_yo, several=True)
    scores = np.full(cases.n, np.nan)
    for block in cases.blocks(CHARACTER_BLOCK):
        values = _score_references(block, char_order, word_order, beta, whitespace)
        scores[block.index] = values[block.best(values)]
    return scores


def _score_references(cases: TextPairs, char_order: int, word_order: int, beta: float, whitespace: bool) -> FloatArray:
    """Return one value for each reference."""
    texts = cases.paired() + cases.references
    words = [text.split() for text in texts]
    characters = encode_characters(texts if whitespace else ["".join(parts) for parts in words])
    counts = _count(characters, char_order)
    if word_order:
        word_counts = _count(encode_tokens(chrf_words(words)), word_order)
        counts = tuple(np.hstack(pair) for pair in zip(counts, word_counts, strict=True))
    shared, in_hypothesis, in_reference = counts
    is_defined = (in_hypothesis > 0) & (in_reference > 0)
    orders = np.maximum(is_defined.sum(axis=1), 1)
    precision = divide_where(shared, in_hypothesis, where=is_defined, otherwise=0).sum(axis=1) / orders
    recall = divide_where(shared, in_reference, where=is_defined, otherwise=0).sum(axis=1) / orders
    weighted = beta**2 * precision + recall
    score = divide_where((1 + beta**2) * precision * recall, weighted, where=weighted > 0, otherwise=0)
    return np.where(in_reference[:, 0] > 0, score, np.nan)


def _count(texts: EncodedTexts, order: int) -> tuple[IntArray, ...]:
    """Return (pairs, order) n-grams shared, of the hypothesis, of the reference, for texts h1 h2 … r1 r2 …"""
    pairs = len(texts.lengths) // 2
    shared = shared_ngrams(texts, np.arange(pairs), order=order)
    totals = texts.lengths[:, None] - np.arange(order)  # below 1 for a text that is too short
    return shared, totals[:pairs], totals[pairs:]

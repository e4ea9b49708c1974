"""BLEU of sentences and of a corpus: counts of each case, which add up over cases, then the score of the counts."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from yarus.metrics.text.ngrams import encode_tokens, shared_ngrams
from yarus.metrics.text.signature import format_signature
from yarus.metrics.text.text_pairs import FloatArray, IntArray, References, Text, TextPairs, read_text_pairs
from yarus.metrics.text.tokenizers import Tokenizer, get_tokenizer
from yarus.metrics.validation import check_at_least


class BLEUScore(NamedTuple):
    """BLEU and its parts, with sacreBLEU's names: of one row of counts, or arrays of many."""

    score: FloatArray
    """0 to 1: bp times the geometric mean of the precisions; NaN without a reference."""
    counts: FloatArray
    """(..., N) n-grams found in the reference, by n from 1; with smoothing 1 more from n = 2 on."""
    totals: FloatArray
    """(..., N) all n-grams, with the same smoothing."""
    precisions: FloatArray
    """(..., N) counts / totals, 0 to 1; NaN for an n that is longer than the text: it is left out of the mean."""
    bp: FloatArray
    """The brevity penalty, 0 to 1: exp(1 - ref_len / sys_len) if the hypotheses are shorter, else 1."""
    sys_len: IntArray | FloatArray
    """Tokens of the hypotheses."""
    ref_len: IntArray | FloatArray
    """Tokens of their references."""


def bleu(
    hypotheses: Sequence[Text],
    references: References,
    *,
    max_ngram: int = 4,
    smoothing: bool = True,
    tokenizer: str = "words",
    fold_yo: bool = False,
) -> FloatArray:
    """Return sentence BLEU: the geometric mean of the shares of n-grams in the reference, times a brevity penalty.

    Equal to sacreBLEU's sentence score with `effective_order` and, smoothed, `add-k` with k = 1 (divided by 100).

    Args:
        hypotheses: n texts.
        references: n texts, or sequences of several each: an n-gram then counts as often as in the reference that has
            most of it, and the reference nearest in length decides on brevity.
        max_ngram: the longest n-gram, at least 1.
        smoothing: add 1 to both counts of every order above the first, so that one order without a match does not make
            the score 0; orders longer than the text then count as 1. Without it they are left out.
        tokenizer: `words`, `13a`, `whitespace` or `char`.
        fold_yo: read «ё» as «е».

    Returns:
        n values from 0 to 1, higher is better; NaN where undefined.

    Raises:
        ValueError: different lengths, an unknown tokenizer, max_ngram below 1.
        TypeError: something that is not a text.

    Reference:
        Papineni et al., BLEU: a Method for Automatic Evaluation of Machine Translation, ACL 2002; smoothing: Lin and
        Och, ORANGE, COLING 2004.

    Stored as: `avg_bleu` (metrics/table/overlap.py).

    Example:
        >>> from yarus.metrics.text import bleu
        >>> bleu(["Кошка сидела на коврике."], ["Кошка сидит на коврике."])
        array([0.5])
        >>> bleu(["Кошка сидела на коврике."], ["Кошка сидит на коврике."], smoothing=False)  # no run of three
        array([0.])
    """
    counts = bleu_counts(hypotheses, references, max_ngram=max_ngram, tokenizer=tokenizer, fold_yo=fold_yo)
    return score_bleu(counts, smoothing=smoothing).score


def corpus_bleu(
    hypotheses: Sequence[Text],
    references: References,
    *,
    max_ngram: int = 4,
    smoothing: bool = True,
    tokenizer: str = "words",
    fold_yo: bool = False,
) -> tuple[float, str]:
    """Return BLEU of all cases as one text: counts and lengths are added up before the score is computed.

    Its parts (`bp`, `precisions` and so on) are those of `score_bleu(bleu_counts(hypotheses, references).sum(axis=0))`.

    Equal to sacreBLEU's corpus score with `effective_order` and, smoothed, `add-k` with k = 1 (divided by 100). Without
    smoothing it is also sacreBLEU's default score if every order has a match.

    Args:
        hypotheses: n texts; cases that cannot be measured are left out.
        references: n texts, or sequences of several each.
        max_ngram: the longest n-gram, at least 1.
        smoothing: as in `bleu`, on the sums.
        tokenizer: `words`, `13a`, `whitespace` or `char`.
        fold_yo: read «ё» as «е».

    Returns:
        The value from 0 to 1 (NaN if no case could be measured) and the signature that makes it reproducible.

    Raises:
        ValueError: different lengths, an unknown tokenizer, max_ngram below 1.
        TypeError: something that is not a text.

    Reference:
        Papineni et al. 2002; Post, A Call for Clarity in Reporting BLEU Scores, WMT 2018.

    Stored as: `corpus_bleu` (metrics/table/overlap.py).

    Example:
        >>> from yarus.metrics.text import corpus_bleu
        >>> value, signature = corpus_bleu(["Кошка сидела на коврике.", "Да."], ["Кошка сидит на коврике.", "Да."])
        >>> round(value, 3), signature
        (0.508, 'corpus_bleu|max_ngram:4|smoothing:add-1|tok:words|norm:NFC|v:1')
    """
    counts = bleu_counts(hypotheses, references, max_ngram=max_ngram, tokenizer=tokenizer, fold_yo=fold_yo)
    value = float(score_bleu(counts.sum(axis=0), smoothing=smoothing).score)
    parameters = {"max_ngram": max_ngram, "smoothing": smoothing, "tokenizer": tokenizer, "fold_yo": fold_yo}
    return value, format_signature("corpus_bleu", parameters)


def bleu_counts(
    hypotheses: Sequence[Text],
    references: References,
    *,
    max_ngram: int = 4,
    tokenizer: str = "words",
    fold_yo: bool = False,
) -> IntArray:
    """Return the counts of BLEU. They add up: a bootstrap of corpus BLEU resamples their rows.

    Args:
        hypotheses: n texts.
        references: n texts, or sequences of several each.
        max_ngram: N, the longest n-gram, at least 1.
        tokenizer: `words`, `13a`, `whitespace` or `char`.
        fold_yo: read «ё» as «е».

    Returns:
        (n, 2 + 2 N): tokens of the hypothesis and of its nearest reference, N counts of n-grams found, N counts of all
        n-grams. All 0 for a case that cannot be measured.

    Raises:
        ValueError: different lengths, an unknown tokenizer, max_ngram below 1.
        TypeError: something that is not a text.

    Example:
        >>> from yarus.metrics.text import bleu_counts
        >>> bleu_counts(["Кошка сидела на коврике."], ["Кошка сидит на коврике."], max_ngram=2)
        array([[4, 4, 3, 1, 4, 3]])
    """
    check_at_least("max_ngram", max_ngram, 1)
    tokenize = get_tokenizer(tokenizer)
    cases = read_text_pairs(hypotheses, references, fold_yo=fold_yo, several=True)
    counts = np.zeros((cases.n, 2 + 2 * max_ngram), dtype=np.int64)
    for block in cases.blocks():
        counts[block.index] = _count(block, max_ngram, tokenize)
    return counts


def score_bleu(counts: IntArray | FloatArray, *, smoothing: bool = True) -> BLEUScore:
    """Return BLEU and its parts, from counts of `bleu_counts` or from sums of them: a corpus, a resample of one.

    Equal, part by part, to sacreBLEU's score object (score and precisions divided by 100).

    Args:
        counts: (..., 2 + 2 N).
        smoothing: as in `bleu`.

    Returns:
        The score and its parts; NaN if the counts have no reference.

    Example:
        >>> from yarus.metrics.text import bleu_counts, score_bleu
        >>> hypotheses, references = ["Кошка сидела на коврике.", "Да."], ["Кошка сидит на коврике.", "Да, конечно."]
        >>> parts = score_bleu(bleu_counts(hypotheses, references, max_ngram=2).sum(axis=0), smoothing=False)
        >>> parts.precisions.tolist(), round(float(parts.bp), 3), int(parts.sys_len), int(parts.ref_len)
        ([0.8, 0.3333333333333333], 0.819, 5, 6)
        >>> round(float(parts.score), 3)
        0.423
    """
    orders = counts.shape[-1] // 2 - 1
    sys_len, ref_len = counts[..., 0][()], counts[..., 1][()]
    matches, totals = counts[..., 2 : 2 + orders].astype(float), counts[..., 2 + orders :].astype(float)
    if smoothing:
        matches[..., 1:] += 1
        totals[..., 1:] += 1
    has_ngrams, has_match = totals > 0, matches > 0
    precisions = np.divide(matches, totals, out=np.full_like(matches, np.nan), where=has_ngrams)
    logs = np.log(np.where(has_ngrams & has_match, precisions, 1.0))
    mean_log = logs.sum(axis=-1) / np.maximum(has_ngrams.sum(axis=-1), 1)
    brevity = np.minimum(0, (sys_len - ref_len) / np.maximum(sys_len, 1))
    is_zero = ~has_match[..., 0] | (has_ngrams & ~has_match).any(axis=-1)
    score = np.where(is_zero, 0.0, np.exp(mean_log + brevity))
    return BLEUScore(
        score=np.where(ref_len > 0, score, np.nan)[()],
        counts=matches,
        totals=totals,
        precisions=precisions,
        bp=np.where(sys_len > 0, np.exp(brevity), 0.0)[()],
        sys_len=sys_len,
        ref_len=ref_len,
    )


def _count(cases: TextPairs, max_ngram: int, tokenize: Tokenizer) -> IntArray:
    m = len(cases.hypotheses)
    texts = encode_tokens(tokenize(cases.hypotheses + cases.references))
    lengths = texts.lengths[:m]
    nearest = _nearest_length(lengths, texts.lengths[m:], cases.owner)
    shared = shared_ngrams(texts, cases.owner, order=max_ngram)
    totals = np.maximum(lengths[:, None] - np.arange(max_ngram), 0)
    counts = np.column_stack([lengths, nearest, shared, totals])
    return np.where(nearest[:, None] > 0, counts, 0)


def _nearest_length(lengths: IntArray, reference_lengths: IntArray, owner: IntArray) -> IntArray:
    """Return the length of the reference nearest in length, the shorter of two; 0 only if no reference has a token."""
    distance = np.abs(reference_lengths - lengths[owner])
    order = np.lexsort((reference_lengths, distance, reference_lengths == 0, owner))
    return reference_lengths[order[np.searchsorted(owner, np.arange(len(lengths)))]]

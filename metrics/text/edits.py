"""Edit distances between two texts: of words (WER) and of characters (string similarities)."""

from collections.abc import Callable, Sequence

import numpy as np
from rapidfuzz.distance import Hamming, Jaro, JaroWinkler, Levenshtein
from rapidfuzz.process import cpdist

from yarus.metrics.text.ngrams import encode_tokens, word_edits
from yarus.metrics.text.text_pairs import FloatArray, Text, divide_where, read_text_pairs
from yarus.metrics.text.tokenizers import get_tokenizer
from yarus.metrics.validation import check_one_of

_MEASURES: dict[str, Callable[..., float]] = {
    "levenshtein": Levenshtein.normalized_similarity,
    "hamming": Hamming.normalized_similarity,
    "jaro": Jaro.normalized_similarity,
    "jaro_winkler": JaroWinkler.normalized_similarity,
}


def string_similarity(
    hypotheses: Sequence[Text],
    references: Sequence[Text],
    *,
    measure: str = "jaro_winkler",
    case_sensitive: bool = False,
    fold_yo: bool = False,
) -> FloatArray:
    """Return the similarity of two texts, character by character. Equal to RapidFuzz's normalized_similarity.

    Args:
        hypotheses: n texts.
        references: n texts, one per case.
        measure: `levenshtein` (1 - edits / length of the longer), `hamming` (share of equal positions), `jaro`
            (common characters at nearby positions) or `jaro_winkler` (the same, but a common beginning counts more:
            for names).
        case_sensitive: if False, both are lower-cased first.
        fold_yo: read «ё» as «е».

    Returns:
        n values from 0 to 1, higher is better; NaN if undefined. Hamming is undefined for texts of different length,
        because it compares position by position; only the empty hypothesis, which shares no position with anything, is
        0 as in all measures.

    Raises:
        ValueError: different lengths, an unknown measure.
        TypeError: something that is not a text, several references for one case.

    Reference:
        Levenshtein 1966; Hamming 1950; Jaro 1989; Winkler, String Comparator Metrics and Enhanced Decision Rules in the
        Fellegi-Sunter Model of Record Linkage, 1990.

    Stored as: `avg_string_similarity` (metrics/table/overlap.py).

    Example:
        >>> from yarus.metrics.text import string_similarity
        >>> string_similarity(["МАРТА"], ["МАРФА"]).round(3)
        array([0.907])
        >>> string_similarity(["котёнок"], ["котенок"], measure="levenshtein", fold_yo=True)
        array([1.])
    """
    check_one_of("measure", measure, _MEASURES)
    cases = read_text_pairs(hypotheses, references, fold_yo=fold_yo)
    pair = cases.hypotheses, cases.references
    hypothesis_texts, reference_texts = pair if case_sensitive else ([text.lower() for text in texts] for texts in pair)
    values = cpdist(hypothesis_texts, reference_texts, scorer=_MEASURES[measure], dtype=np.float64)
    if measure == "hamming":
        undefined = [len(a) not in (0, len(b)) for a, b in zip(hypothesis_texts, reference_texts, strict=True)]
        values[undefined] = np.nan
    return cases.spread(values)


def wer(
    hypotheses: Sequence[Text], references: Sequence[Text], *, tokenizer: str = "words", fold_yo: bool = False
) -> FloatArray:
    """Return the word error rate: substitutions, deletions and insertions per word of the reference.

    Equal to jiwer's on the same words; jiwer's own default splits at spaces and keeps punctuation and case, which is
    `tokenizer="whitespace"` here.

    Args:
        hypotheses: n texts.
        references: n texts, one per case.
        tokenizer: `words`, `13a`, `whitespace` or `char` (which gives the character error rate).
        fold_yo: read «ё» as «е».

    Returns:
        n values from 0, lower is better; may exceed 1 if a hypothesis is longer than its reference. NaN if undefined.

    Raises:
        ValueError: different lengths, an unknown tokenizer.
        TypeError: something that is not a text, several references for one case.

    Reference:
        Levenshtein, Binary Codes Capable of Correcting Deletions, Insertions and Reversals, 1966.

    Stored as: `avg_wer` (metrics/table/overlap.py).

    Example:
        >>> from yarus.metrics.text import wer
        >>> wer(["в лесу тихо"], ["в доме очень тихо"])  # one word replaced, one missing
        array([0.5])
    """
    tokenize = get_tokenizer(tokenizer)
    cases = read_text_pairs(hypotheses, references, fold_yo=fold_yo)
    rates = np.full(cases.n, np.nan)
    for block in cases.blocks():
        texts = encode_tokens(tokenize(block.hypotheses + block.references))
        reference_lengths = texts.lengths[len(block.index) :]
        rates[block.index] = divide_where(word_edits(texts), reference_lengths, where=reference_lengths > 0)
    return rates

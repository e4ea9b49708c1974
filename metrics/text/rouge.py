"""ROUGE: shared n-grams or the longest common subsequence, as a share of the hypothesis, of the reference, or both."""

from collections.abc import Sequence

import numpy as np

from yarus.metrics.text.ngrams import encode_tokens, longest_common_subsequence, shared_ngrams
from yarus.metrics.text.text_pairs import FloatArray, References, Text, TextPairs, divide_where, read_text_pairs
from yarus.metrics.text.tokenizers import Tokenizer, get_tokenizer
from yarus.metrics.validation import check_one_of

ROUGE_VARIANTS = ("rouge1", "rouge2", "rougeL")
_NGRAMS = {"rouge1": 1, "rouge2": 2}
ROUGE_MODES = ("precision", "recall", "fmeasure")


def rouge(
    hypotheses: Sequence[Text],
    references: References,
    *,
    variant: str = "rougeL",
    mode: str = "fmeasure",
    tokenizer: str = "words",
    fold_yo: bool = False,
) -> FloatArray:
    """Return ROUGE: the share of n-grams (ROUGE-1, ROUGE-2) or of the longest common subsequence (ROUGE-L) in common.

    Equal to rouge-score's with the same tokenizer, which has to be passed to it: its own default drops every letter
    that is not ASCII and gives 0 for two identical Russian sentences. It gives 0 for
    undefined cases, which are NaN here.

    Args:
        hypotheses: n texts.
        references: n texts, or sequences of several each: the one with the best F counts, in every mode.
        variant: `rouge1`, `rouge2` or `rougeL`.
        mode: `precision` (share of the hypothesis), `recall` (share of the reference) or `fmeasure`, 2 P R / (P + R).
        tokenizer: `words`, `13a`, `whitespace` or `char`.
        fold_yo: read «ё» as «е».

    Returns:
        n values from 0 to 1, higher is better. NaN if undefined, also if the reference is too short to have an n-gram
        (ROUGE-2 of one word): in every mode, so that all three are over the same cases. A hypothesis that is too short
        gives 0.

    Raises:
        ValueError: different lengths, an unknown variant, mode or tokenizer.
        TypeError: something that is not a text.

    Reference:
        Lin, ROUGE: A Package for Automatic Evaluation of Summaries, ACL workshop 2004.

    Example:
        >>> from yarus.metrics.text import rouge
        >>> hypothesis, reference = ["собаку прыгает через лиса"], ["лиса прыгает через собаку"]
        >>> rouge(hypothesis, reference, variant="rouge1"), rouge(hypothesis, reference)  # in another order
        (array([1.]), array([0.5]))
    """
    check_one_of("ROUGE variant", variant, ROUGE_VARIANTS)
    return _compute_rouge(hypotheses, references, (variant,), mode, tokenizer, fold_yo)[variant]


def rouge_all(
    hypotheses: Sequence[Text],
    references: References,
    *,
    mode: str = "fmeasure",
    tokenizer: str = "words",
    fold_yo: bool = False,
) -> dict[str, FloatArray]:
    """Return all three variants at once, in little more than the time of one.

    The result is `{"rouge1": …, "rouge2": …, "rougeL": …}`.

    Arguments, values and errors are those of `rouge`.

    Example:
        >>> from yarus.metrics.text import rouge_all
        >>> rouge_all(["лиса прыгает"], ["лиса прыгает высоко"], mode="recall")
        {'rouge1': array([0.66666667]), 'rouge2': array([0.5]), 'rougeL': array([0.66666667])}
    """
    return _compute_rouge(hypotheses, references, ROUGE_VARIANTS, mode, tokenizer, fold_yo)


def rouge1(
    hypotheses: Sequence[Text],
    references: References,
    *,
    mode: str = "fmeasure",
    tokenizer: str = "words",
    fold_yo: bool = False,
) -> FloatArray:
    """Return ROUGE-1, shared words: `rouge` with `variant="rouge1"`.

    Stored as: `avg_rouge1_f` (metrics/table/overlap.py).

    Example:
        >>> from yarus.metrics.text import rouge1
        >>> rouge1(["тихо в доме"], ["в доме тихо"])
        array([1.])
    """
    return rouge(hypotheses, references, variant="rouge1", mode=mode, tokenizer=tokenizer, fold_yo=fold_yo)


def rouge2(
    hypotheses: Sequence[Text],
    references: References,
    *,
    mode: str = "fmeasure",
    tokenizer: str = "words",
    fold_yo: bool = False,
) -> FloatArray:
    """Return ROUGE-2, shared pairs of neighbouring words: `rouge` with `variant="rouge2"`.

    Stored as: `avg_rouge2_f` (metrics/table/overlap.py).

    Example:
        >>> from yarus.metrics.text import rouge2
        >>> rouge2(["тихо в доме"], ["в доме тихо"])
        array([0.5])
    """
    return rouge(hypotheses, references, variant="rouge2", mode=mode, tokenizer=tokenizer, fold_yo=fold_yo)


def rougeL(  # noqa: N802  # the established name
    hypotheses: Sequence[Text],
    references: References,
    *,
    mode: str = "fmeasure",
    tokenizer: str = "words",
    fold_yo: bool = False,
) -> FloatArray:
    """Return ROUGE-L, the longest common subsequence of words: `rouge` with `variant="rougeL"`.

    Stored as: `avg_rougeL_f` (metrics/table/overlap.py).

    Example:
        >>> from yarus.metrics.text import rougeL
        >>> rougeL(["тихо в доме"], ["в доме тихо"]).round(3)
        array([0.667])
    """
    return rouge(hypotheses, references, variant="rougeL", mode=mode, tokenizer=tokenizer, fold_yo=fold_yo)


def _compute_rouge(
    hypotheses: Sequence[Text],
    references: References,
    variants: tuple[str, ...],
    mode: str,
    tokenizer: str,
    fold_yo: bool,
) -> dict[str, FloatArray]:
    check_one_of("ROUGE mode", mode, ROUGE_MODES)
    tokenize = get_tokenizer(tokenizer)
    cases = read_text_pairs(hypotheses, references, fold_yo=fold_yo, several=True)
    scores = {variant: np.full(cases.n, np.nan) for variant in variants}
    for block in cases.blocks():
        for variant, values in _score_pairs(block, variants, mode, tokenize).items():
            scores[variant][block.index] = values
    return scores


def _score_pairs(cases: TextPairs, variants: tuple[str, ...], mode: str, tokenize: Tokenizer) -> dict[str, FloatArray]:
    pairs = len(cases.references)
    texts = encode_tokens(tokenize(cases.paired() + cases.references))
    hypotheses, references = texts.lengths[:pairs], texts.lengths[pairs:]
    shared = shared_ngrams(texts, np.arange(pairs), order=max(_NGRAMS.get(variant, 0) for variant in variants))
    scores = {}
    for variant in variants:
        order = _NGRAMS.get(variant, 1)
        common = longest_common_subsequence(texts) if variant == "rougeL" else shared[:, order - 1]
        in_hypothesis = np.maximum(hypotheses - order + 1, 0)
        in_reference = np.maximum(references - order + 1, 0)
        best = cases.best(divide_where(2 * common, in_hypothesis + in_reference, where=in_reference > 0))
        denominator = {
            "precision": np.maximum(in_hypothesis, 1),
            "recall": in_reference,
            "fmeasure": (in_hypothesis + in_reference) / 2,
        }[mode]
        scores[variant] = divide_where(common, denominator, where=in_reference > 0)[best]
    return scores

"""Text metrics: similarity of a hypothesis (the generated text) to a reference. Hypotheses always come first.

All texts are normalised to Unicode form C first. A value is NaN if the metric is undefined: without a hypothesis
(None), without a reference (None or ''), and if the tokenizer finds no tokens in the reference. An empty hypothesis
for a reference is the worst answer, not a missing one: 0, or 1 for WER.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from yarus.metrics.text.bleu import BLEUScore, bleu, bleu_counts, corpus_bleu, score_bleu
from yarus.metrics.text.chrf import chrf
from yarus.metrics.text.edits import string_similarity, wer
from yarus.metrics.text.rouge import rouge, rouge1, rouge2, rouge_all, rougeL
from yarus.metrics.text.signature import format_signature
from yarus.metrics.text.text_pairs import FloatArray
from yarus.metrics.text.tokenizers import tokenize
from yarus.metrics.validation import check_one_of

__all__ = [
    "BLEUScore",
    "bleu",
    "bleu_counts",
    "chrf",
    "corpus_bleu",
    "perplexity",
    "rouge",
    "rouge1",
    "rouge2",
    "rougeL",
    "rouge_all",
    "score_bleu",
    "signature",
    "string_similarity",
    "tokenize",
    "wer",
]


def perplexity(token_logprobs: Sequence[ArrayLike | None]) -> FloatArray:
    """Return the perplexity of generated texts: the mean number of equally likely tokens that the generator chose from.

    Args:
        token_logprobs: for each of n cases the natural logarithms of its tokens' probabilities, 0 or below; None or
            empty if there are none.

    Returns:
        n values exp(-mean), from 1, lower is better; NaN without tokens. A token of probability 0 (-inf) makes it
        infinite, as does a mean too low for a float.

    Raises:
        ValueError: a logarithm above 0 or NaN; names the case and the value.
        TypeError: something that is not a sequence of numbers.

    Reference:
        Jelinek et al., Perplexity: a measure of the difficulty of speech recognition tasks, 1977.

    Stored as: `avg_perplexity` (metrics/table/generation.py).

    Example:
        >>> from math import log
        >>> from yarus.metrics.text import perplexity
        >>> perplexity([[log(0.1), log(0.1)], None]).round(6)
        array([10., nan])
    """
    if isinstance(token_logprobs, str | bytes):
        raise TypeError(f"token_logprobs must hold one sequence of numbers a case, not {token_logprobs!r}")
    means = [_mean_logprob(logprobs, case) for case, logprobs in enumerate(token_logprobs)]
    with np.errstate(over="ignore"):
        return np.exp(-np.array(means, dtype=np.float64))


def _mean_logprob(logprobs: ArrayLike | None, case: int) -> float:
    values = np.asarray([] if logprobs is None else logprobs)
    if values.ndim != 1 or (values.size and values.dtype.kind not in "fiu"):
        raise TypeError(f"token_logprobs[{case}] is {logprobs!r}, not a sequence of numbers")
    if (invalid := np.flatnonzero(~(values <= 0))).size:
        token = int(invalid[0])
        raise ValueError(
            f"token_logprobs[{case}][{token}] is {values[token]}: the logarithm of a probability is 0 or below; "
            "give natural logarithms, not probabilities"
        )
    return float(values.mean(dtype=np.float64)) if values.size else np.nan


_METRICS: dict[str, Callable[..., Any]] = {
    metric.__name__: metric
    for metric in (bleu, corpus_bleu, rouge, rouge1, rouge2, rougeL, chrf, string_similarity, wer, perplexity)
}


def signature(metric: str, **parameters: object) -> str:
    """Return everything that changes a metric's value, in one line to print beside it.

    Args:
        metric: the name of a function of this module.
        parameters: its parameters that differ from the defaults.

    Returns:
        Such as `bleu|max_ngram:4|smoothing:add-1|tok:words|norm:NFC|v:1`.

    Raises:
        ValueError: an unknown metric or parameter; the message names the nearest one.

    Example:
        >>> from yarus.metrics.text import signature
        >>> signature("bleu", tokenizer="13a")
        'bleu|max_ngram:4|smoothing:add-1|tok:13a|norm:NFC|v:1'
    """
    check_one_of("text metric", metric, _METRICS)
    keywords = inspect.signature(_METRICS[metric]).parameters.values()
    defaults = {keyword.name: keyword.default for keyword in keywords if keyword.kind is keyword.KEYWORD_ONLY}
    for name in parameters:
        check_one_of(f"parameter of {metric}", name, defaults)
    return format_signature(metric, defaults | parameters)

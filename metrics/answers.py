"""Answer-level metrics: similarity in meaning to the reference, and equality of repeated answers."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias
from unicodedata import normalize

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]


def semantic_similarity(hypotheses: ArrayLike, references: ArrayLike) -> Floats:
    """Return the cosine of the embeddings of each answer and its reference.

    Args:
        hypotheses: (n, d) embedded answers; a row of NaN for a missing answer.
        references: (n, d) embedded references of the same cases.

    Returns:
        float64 (n,), -1 to 1, higher is better; NaN if a vector is NaN or zero, which has no direction.

    Raises:
        ValueError: different shapes, an infinite number.

    Stored as: `avg_semantic_similarity` (metrics/table/generation.py).

    Example:
        >>> from yarus.metrics.answers import semantic_similarity
        >>> semantic_similarity([[3.0, 4.0], [1.0, 0.0]], [[4.0, 3.0], [0.0, 2.0]])
        array([0.96, 0.  ])
    """
    actual, expected = _to_floats(hypotheses), _to_floats(references)
    if actual.shape != expected.shape or actual.ndim != 2:
        raise ValueError(
            f"hypotheses are {actual.shape} but references {expected.shape}; give one vector a case of each"
        )
    if np.isinf(actual).any() or np.isinf(expected).any():
        raise ValueError("vectors must be finite, or NaN where there is none; got an infinite number")
    lengths = np.sqrt(_row_products(actual, actual) * _row_products(expected, expected))
    cosines = _row_products(actual, expected) / np.where(lengths > 0, lengths, np.nan)
    return np.asarray(np.clip(cosines, -1.0, 1.0))


def exact_match(answers: Sequence[Sequence[str | None]]) -> Floats:
    """Return the share of equal pairs among the repeated answers to each question.

    Texts are compared in Unicode normal form C; case and punctuation count.

    Args:
        answers: for each of n questions its answers, None if the system failed.

    Returns:
        float64 (n,), 0 to 1, higher is more consistent; NaN below two answers.

    Raises:
        TypeError: one text instead of a list of answers.

    Stored as: `response_exact_match_rate` (metrics/table/generation.py).

    Example:
        >>> from yarus.metrics.answers import exact_match
        >>> exact_match([["Да.", "Да.", "Нет."], ["Не знаю."]])
        array([0.33333333,        nan])
    """
    for question, repeats in enumerate(answers):
        if isinstance(repeats, str):
            raise TypeError(f"answers[{question}] is one text, {repeats!r}; give a list of answers")
    return np.array([_equal_pairs([text for text in repeats if text is not None]) for repeats in answers], np.float64)


def _to_floats(series: ArrayLike) -> NDArray[Any]:
    vectors = np.asarray(series)
    return vectors if vectors.dtype.kind == "f" else vectors.astype(np.float64)


def _row_products(first: NDArray[Any], second: NDArray[Any]) -> Floats:
    """Return the inner product of each pair of rows, summed in float64 without a float64 copy of them."""
    return np.asarray(np.einsum("ij,ij->i", first, second, dtype=np.float64))


def _equal_pairs(texts: list[str]) -> float:
    pairs = len(texts) * (len(texts) - 1)
    counts = Counter(normalize("NFC", text) for text in texts).values()
    return sum(count * (count - 1) for count in counts) / pairs if pairs else np.nan

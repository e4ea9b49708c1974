"""Yes/no decisions against the truth: four counts, and ratios of the counts.

Counts may be single numbers or arrays of them (one entry a bootstrap resample); a ratio has the shape of its counts.
Where its denominator is 0 it is undefined: NaN, not scikit-learn's 0.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ratio: TypeAlias = Any  # a float of single counts, float64 of arrays of counts
Integers: TypeAlias = NDArray[np.int64]


class Counts(NamedTuple):
    """How often what was decided met what is true; positive = yes."""

    true_positives: int | Integers | Floats
    false_positives: int | Integers | Floats
    true_negatives: int | Integers | Floats
    false_negatives: int | Integers | Floats


OUTCOMES = ("true_positives", "true_negatives", "false_positives", "false_negatives")
"""The four counts in the order of a table of outcomes: right decisions, then wrong ones."""


def confusion(predicted: Sequence[bool], actual: Sequence[bool]) -> Counts:
    """Counts of the four outcomes.

    Args:
        predicted: n decisions, True = yes. What could not be read as a decision is left out beforehand, never False.
        actual: n truths, True = yes.

    Returns:
        Four ints, 0 or more, that add up to n.

    Raises:
        ValueError: different lengths, None or anything else that is not a boolean (0 and 1 are taken as such).

    Stored as: `true_positives`, `true_negatives`, `false_positives`, `false_negatives`
    (metrics/table/judge_pipeline.py).

    Example:
        >>> from yarus.metrics.classification import confusion
        >>> confusion([True, True, False, False], [True, False, False, True])
        Counts(true_positives=1, false_positives=1, true_negatives=1, false_negatives=1)
    """
    yes, true = _decisions(predicted, actual)
    tn, fn, fp, tp = np.bincount(2 * yes + true, minlength=4).tolist()
    return Counts(true_positives=tp, false_positives=fp, true_negatives=tn, false_negatives=fn)


def outcomes(predicted: Sequence[bool], actual: Sequence[bool]) -> Floats:
    """Which outcome each case is. The rows add up to counts: a bootstrap of F1 or MCC resamples them.

    Args:
        predicted: n decisions, True = yes.
        actual: n truths, True = yes.

    Returns:
        float64 (n, 4), 1 in the column of the outcome, in the order of `OUTCOMES`; else 0.

    Raises:
        ValueError: as `confusion`.

    Example:
        >>> from yarus.metrics.classification import outcomes
        >>> outcomes([True, True, False], [True, False, False])
        array([[1., 0., 0., 0.],
               [0., 0., 1., 0.],
               [0., 1., 0., 0.]])
    """
    yes, true = _decisions(predicted, actual)
    return np.column_stack([yes & true, 1 - (yes | true), yes & (1 - true), (1 - yes) & true]).astype(np.float64)


def counts_of(totals: Floats) -> Counts:
    """The counts that sums (..., 4) over rows of `outcomes` are; fractions of them where the rows have weights.

    Example:
        >>> from yarus.metrics.classification import counts_of, outcomes, precision
        >>> totals = outcomes([True, True, False], [True, False, False]).sum(axis=0)
        >>> float(precision(counts_of(totals)))
        0.5
    """
    return Counts(**{name: totals[..., place] for place, name in enumerate(OUTCOMES)})


def accuracy(counts: Counts) -> Ratio:
    """Share of decisions that are right: (TP + TN) / n; 0 to 1, higher is better, NaN without cases.

    Stored as: `accuracy` (metrics/table/judge_pipeline.py).

    Example:
        >>> from yarus.metrics.classification import Counts, accuracy
        >>> float(accuracy(Counts(3, 1, 4, 2)))  # TP, FP, TN, FN
        0.7
    """
    tp, fp, tn, fn = _floats(counts)
    return _ratio(tp + tn, tp + fp + tn + fn)


def precision(counts: Counts) -> Ratio:
    """Share of the yes decisions that are right: TP / (TP + FP); 0 to 1, higher is better, NaN without any.

    Stored as: `precision` (metrics/table/judge_pipeline.py).

    Example:
        >>> from yarus.metrics.classification import Counts, precision
        >>> float(precision(Counts(3, 1, 4, 2)))  # TP, FP, TN, FN
        0.75
    """
    tp, fp, _, _ = _floats(counts)
    return _ratio(tp, tp + fp)


def recall(counts: Counts) -> Ratio:
    """Share of the true ones that were found: TP / (TP + FN); 0 to 1, higher is better, NaN where nothing is true.

    Stored as: `recall` (metrics/table/judge_pipeline.py).

    Example:
        >>> from yarus.metrics.classification import Counts, recall
        >>> float(recall(Counts(3, 1, 4, 2)))  # TP, FP, TN, FN
        0.6
    """
    tp, _, _, fn = _floats(counts)
    return _ratio(tp, tp + fn)


def specificity(counts: Counts) -> Ratio:
    """Share of the false ones that were refused: TN / (TN + FP); 0 to 1, higher is better, NaN where all are true.

    Stored as: `specificity` (metrics/table/judge_pipeline.py).

    Example:
        >>> from yarus.metrics.classification import Counts, specificity
        >>> float(specificity(Counts(3, 1, 4, 2)))  # TP, FP, TN, FN
        0.8
    """
    _, fp, tn, _ = _floats(counts)
    return _ratio(tn, tn + fp)


def f1(counts: Counts) -> Ratio:
    """Harmonic mean of precision and recall: 2 TP / (2 TP + FP + FN); 0 to 1, higher is better.

    NaN where nothing is true and nothing was called so; 0 where only one of the two is undefined.

    Reference: van Rijsbergen 1979, Information Retrieval, chapter 7.

    Stored as: `f1_score` (metrics/table/judge_pipeline.py).

    Example:
        >>> from yarus.metrics.classification import Counts, f1
        >>> round(float(f1(Counts(3, 1, 4, 2))), 3)  # TP, FP, TN, FN
        0.667
    """
    tp, fp, _, fn = _floats(counts)
    return _ratio(2 * tp, 2 * tp + fp + fn)


def mcc(counts: Counts) -> Ratio:
    """Correlation of decision and truth: (TP TN - FP FN) / sqrt((TP + FP)(TP + FN)(TN + FP)(TN + FN)).

    Returns:
        -1 to 1, higher is better, 0 is chance; NaN where all decisions, or all truths, are the same.

    Reference: Matthews 1975, Comparison of the predicted and observed secondary structure of T4 phage lysozyme.

    Stored as: `mcc` (metrics/table/judge_pipeline.py).

    Example:
        >>> from yarus.metrics.classification import Counts, mcc
        >>> round(float(mcc(Counts(3, 1, 4, 2))), 3)  # TP, FP, TN, FN
        0.408
        >>> float(mcc(Counts(8, 2, 0, 0)))  # always yes: undefined, whatever is true
        nan
    """
    tp, fp, tn, fn = _floats(counts)
    margins = np.sqrt(tp + fp) * np.sqrt(tp + fn) * np.sqrt(tn + fp) * np.sqrt(tn + fn)
    return np.clip(_ratio(tp * tn - fp * fn, margins), -1, 1)


def _decisions(predicted: Sequence[bool], actual: Sequence[bool]) -> tuple[Integers, Integers]:
    """Both as 0 and 1."""
    if len(predicted) != len(actual):
        raise ValueError(f"{len(predicted)} predicted but {len(actual)} actual values; give one of each per case")
    return _booleans("predicted", predicted), _booleans("actual", actual)


def _booleans(name: str, values: Sequence[bool]) -> Integers:
    """0 and 1; anything that is neither is an error, lest None count as no."""
    for place, value in enumerate(values):
        if value not in (0, 1):
            raise ValueError(f"{name} {place} is {value!r}, neither True nor False; leave the case out and count it")
    return np.fromiter(values, np.int64, len(values))


def _floats(counts: Counts) -> tuple[Floats, ...]:
    """The counts as floats, whose products do not overflow."""
    return tuple(np.asarray(count, dtype=np.float64) for count in counts)


def _ratio(numerator: Floats, denominator: Floats) -> Ratio:
    """NaN where the denominator is 0."""
    return (numerator / np.where(denominator > 0, denominator, np.nan))[()]

"""Yes/no decisions compared with the truth: four counts, and ratios of the counts.

Counts may be single numbers or arrays (one entry per bootstrap resample); a ratio has the shape of its counts. If its
denominator is 0 it is undefined: NaN, not scikit-learn's 0.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ratio: TypeAlias = Any  # a float of single counts, float64 of arrays of counts
Integers: TypeAlias = NDArray[np.int64]


class ConfusionCounts(NamedTuple):
    """Numbers of decisions by outcome; positive = yes."""

    true_positives: int | Integers | Floats
    false_positives: int | Integers | Floats
    true_negatives: int | Integers | Floats
    false_negatives: int | Integers | Floats


OUTCOMES = ("true_positives", "true_negatives", "false_positives", "false_negatives")
"""The four outcomes in the order of a table: right decisions, then wrong ones."""


def confusion(predicted: Sequence[bool], actual: Sequence[bool]) -> ConfusionCounts:
    """Return the counts of the four outcomes.

    Args:
        predicted: n decisions, True = yes. Leave out unreadable decisions beforehand; do not pass them as False.
        actual: n truths, True = yes.

    Returns:
        Four ints, 0 or more, that add up to n.

    Raises:
        ValueError: different lengths, None or anything else that is not a boolean (0 and 1 are accepted).

    Stored as: `true_positives`, `true_negatives`, `false_positives`, `false_negatives`
    (metrics/table/judge_pipeline.py).

    Example:
        >>> from yarus.metrics.classification import confusion
        >>> confusion([True, True, False, False], [True, False, False, True])
        ConfusionCounts(true_positives=1, false_positives=1, true_negatives=1, false_negatives=1)
    """
    yes, true = _check_decisions(predicted, actual)
    tn, fn, fp, tp = np.bincount(2 * yes + true, minlength=4).tolist()
    return ConfusionCounts(true_positives=tp, false_positives=fp, true_negatives=tn, false_negatives=fn)


def outcome_indicators(predicted: Sequence[bool], actual: Sequence[bool]) -> Floats:
    """Return the outcome of each case. The rows add up to counts: a bootstrap of F1 or MCC resamples them.

    Args:
        predicted: n decisions, True = yes.
        actual: n truths, True = yes.

    Returns:
        float64 (n, 4), 1 in the column of the outcome, in the order of `OUTCOMES`; else 0.

    Raises:
        ValueError: as in `confusion`.

    Example:
        >>> from yarus.metrics.classification import outcome_indicators
        >>> outcome_indicators([True, True, False], [True, False, False])
        array([[1., 0., 0., 0.],
               [0., 0., 1., 0.],
               [0., 1., 0., 0.]])
    """
    yes, true = _check_decisions(predicted, actual)
    return np.column_stack([yes & true, 1 - (yes | true), yes & (1 - true), (1 - yes) & true]).astype(np.float64)


def counts_from_totals(totals: Floats) -> ConfusionCounts:
    """Return the counts from sums (..., 4) over rows of `outcome_indicators`; fractional if the rows have weights.

    Example:
        >>> from yarus.metrics.classification import counts_from_totals, outcome_indicators, precision
        >>> totals = outcome_indicators([True, True, False], [True, False, False]).sum(axis=0)
        >>> float(precision(counts_from_totals(totals)))
        0.5
    """
    return ConfusionCounts(**{name: totals[..., column] for column, name in enumerate(OUTCOMES)})


def accuracy(counts: ConfusionCounts) -> Ratio:
    """Return the share of right decisions: (TP + TN) / n; 0 to 1, higher is better, NaN without cases.

    Stored as: `accuracy` (metrics/table/judge_pipeline.py).

    Example:
        >>> from yarus.metrics.classification import ConfusionCounts, accuracy
        >>> float(accuracy(ConfusionCounts(3, 1, 4, 2)))  # TP, FP, TN, FN
        0.7
    """
    tp, fp, tn, fn = _to_floats(counts)
    return _ratio(tp + tn, tp + fp + tn + fn)


def precision(counts: ConfusionCounts) -> Ratio:
    """Return the share of right decisions among yes decisions: TP / (TP + FP); 0 to 1, higher is better, NaN if none.

    Stored as: `precision` (metrics/table/judge_pipeline.py).

    Example:
        >>> from yarus.metrics.classification import ConfusionCounts, precision
        >>> float(precision(ConfusionCounts(3, 1, 4, 2)))  # TP, FP, TN, FN
        0.75
    """
    tp, fp, _, _ = _to_floats(counts)
    return _ratio(tp, tp + fp)


def recall(counts: ConfusionCounts) -> Ratio:
    """Return the share of true cases with a yes: TP / (TP + FN); 0 to 1, higher is better, NaN without true cases.

    Stored as: `recall` (metrics/table/judge_pipeline.py).

    Example:
        >>> from yarus.metrics.classification import ConfusionCounts, recall
        >>> float(recall(ConfusionCounts(3, 1, 4, 2)))  # TP, FP, TN, FN
        0.6
    """
    tp, _, _, fn = _to_floats(counts)
    return _ratio(tp, tp + fn)


def specificity(counts: ConfusionCounts) -> Ratio:
    """Return the share of false cases with a no: TN / (TN + FP); 0 to 1, higher is better, NaN without false cases.

    Stored as: `specificity` (metrics/table/judge_pipeline.py).

    Example:
        >>> from yarus.metrics.classification import ConfusionCounts, specificity
        >>> float(specificity(ConfusionCounts(3, 1, 4, 2)))  # TP, FP, TN, FN
        0.8
    """
    _, fp, tn, _ = _to_floats(counts)
    return _ratio(tn, tn + fp)


def f1(counts: ConfusionCounts) -> Ratio:
    """Return the harmonic mean of precision and recall: 2 TP / (2 TP + FP + FN); 0 to 1, higher is better.

    NaN if there are no true cases and no yes decisions; 0 if only one of the two is undefined.

    Reference: van Rijsbergen 1979, Information Retrieval, chapter 7.

    Stored as: `f1_score` (metrics/table/judge_pipeline.py).

    Example:
        >>> from yarus.metrics.classification import ConfusionCounts, f1
        >>> round(float(f1(ConfusionCounts(3, 1, 4, 2))), 3)  # TP, FP, TN, FN
        0.667
    """
    tp, fp, _, fn = _to_floats(counts)
    return _ratio(2 * tp, 2 * tp + fp + fn)


def mcc(counts: ConfusionCounts) -> Ratio:
    """Return the correlation of decision and truth: (TP TN - FP FN) / sqrt((TP + FP)(TP + FN)(TN + FP)(TN + FN)).

    Returns:
        -1 to 1, higher is better, 0 is chance; NaN if all decisions, or all truths, are the same.

    Reference: Matthews 1975, Comparison of the predicted and observed secondary structure of T4 phage lysozyme.

    Stored as: `mcc` (metrics/table/judge_pipeline.py).

    Example:
        >>> from yarus.metrics.classification import ConfusionCounts, mcc
        >>> round(float(mcc(ConfusionCounts(3, 1, 4, 2))), 3)  # TP, FP, TN, FN
        0.408
        >>> float(mcc(ConfusionCounts(8, 2, 0, 0)))  # always yes: undefined, whatever the truth
        nan
    """
    tp, fp, tn, fn = _to_floats(counts)
    margins = np.sqrt(tp + fp) * np.sqrt(tp + fn) * np.sqrt(tn + fp) * np.sqrt(tn + fn)
    return np.clip(_ratio(tp * tn - fp * fn, margins), -1, 1)


def _check_decisions(predicted: Sequence[bool], actual: Sequence[bool]) -> tuple[Integers, Integers]:
    """Return both series as 0 and 1."""
    if len(predicted) != len(actual):
        raise ValueError(f"{len(predicted)} predicted but {len(actual)} actual values; give one of each per case")
    return _check_booleans("predicted", predicted), _check_booleans("actual", actual)


def _check_booleans(name: str, values: Sequence[bool]) -> Integers:
    """Return the values as 0 and 1; other values are errors, so that None does not count as no."""
    for index, value in enumerate(values):
        if value not in (0, 1):
            raise ValueError(f"{name} {index} is {value!r}, neither True nor False; leave the case out and count it")
    return np.fromiter(values, np.int64, len(values))


def _to_floats(counts: ConfusionCounts) -> tuple[Floats, ...]:
    """Return the counts as floats, whose products do not overflow."""
    return tuple(np.asarray(count, dtype=np.float64) for count in counts)


def _ratio(numerator: Floats, denominator: Floats) -> Ratio:
    """Return the ratio; NaN if the denominator is 0."""
    return (numerator / np.where(denominator > 0, denominator, np.nan))[()]

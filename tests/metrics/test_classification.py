"""Yes/no metrics: values worked out by hand, scikit-learn's values, resamples at once, bad input."""

import math
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.metrics.classification import (
    ConfusionCounts,
    accuracy,
    confusion,
    counts_from_totals,
    f1,
    mcc,
    outcome_indicators,
    precision,
    recall,
    specificity,
)

NAN = math.nan
RATIOS = (accuracy, precision, recall, specificity, f1, mcc)
CASES = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30)


def test_confusion_counts_outcomes() -> None:
    predicted = [True] * 3 + [True] * 2 + [False] * 4 + [False]
    actual = [True] * 3 + [False] * 2 + [False] * 4 + [True]
    counts = ConfusionCounts(true_positives=3, false_positives=2, true_negatives=4, false_negatives=1)
    assert confusion(predicted, actual) == counts
    assert confusion(np.array(predicted), np.array(actual, dtype=int)) == counts  # type: ignore[arg-type]
    assert confusion([], []) == ConfusionCounts(0, 0, 0, 0)
    assert all(type(count) is int for count in confusion(predicted, actual))


# accuracy, precision, recall, specificity, F1, MCC
@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # TP 3, FP 2, TN 4, FN 1: MCC = (12 - 2) / sqrt(5 * 4 * 6 * 5) = 10 / sqrt(600)
        ((3, 2, 4, 1), (7 / 10, 3 / 5, 3 / 4, 4 / 6, 6 / 9, 10 / math.sqrt(600))),
        ((5, 0, 5, 0), (1, 1, 1, 1, 1, 1)),
        ((0, 5, 0, 5), (0, 0, 0, 0, 0, -1)),
        ((0, 0, 0, 0), (NAN,) * 6),  # no cases
        ((4, 0, 0, 0), (1, 1, 1, NAN, 1, NAN)),  # all true, all yes
        ((0, 0, 4, 0), (1, NAN, NAN, 1, NAN, NAN)),  # nothing true, nothing yes
        ((0, 0, 3, 1), (3 / 4, NAN, 0, 1, 0, NAN)),  # always no
        ((0, 3, 0, 0), (0, 0, NAN, 0, 0, NAN)),  # always yes, nothing true
    ],
)
def test_golden_values(counts: tuple[int, int, int, int], expected: tuple[float, ...]) -> None:
    values = [ratio(ConfusionCounts(*counts)) for ratio in RATIOS]
    assert values == pytest.approx(expected, abs=1e-15, nan_ok=True)
    assert all(isinstance(value, float) for value in values)


@pytest.mark.slow("breadth: golden values agree, these are generated")
@pytest.mark.parametrize(
    ("ours", "theirs", "keywords"),
    [
        (accuracy, "accuracy_score", {}),
        (precision, "precision_score", {"zero_division": NAN}),
        (recall, "recall_score", {"zero_division": NAN}),
        (specificity, "recall_score", {"zero_division": NAN, "pos_label": False}),
        (f1, "f1_score", {"zero_division": NAN}),
        (mcc, "matthews_corrcoef", {}),
    ],
)
def test_equals_scikit_learn(ours: Callable[[ConfusionCounts], Any], theirs: str, keywords: dict[str, Any]) -> None:
    from sklearn import metrics as peer

    @given(CASES)
    def check(cases: list[tuple[bool, bool]]) -> None:
        predicted, actual = map(list, zip(*cases, strict=True))
        value = ours(confusion(predicted, actual))
        if ours is mcc and math.isnan(value):  # scikit-learn gives 0 for it
            assert len(set(predicted)) == 1 or len(set(actual)) == 1
        else:
            with warnings.catch_warnings(action="ignore"):  # it warns of a single class
                assert value == pytest.approx(
                    getattr(peer, theirs)(actual, predicted, **keywords), abs=1e-12, nan_ok=True
                )

    check()


@given(CASES)
def test_classification_range_and_order(cases: list[tuple[bool, bool]]) -> None:
    predicted, actual = map(list, zip(*cases, strict=True))
    counts = confusion(predicted, actual)
    assert confusion(predicted[::-1], actual[::-1]) == counts
    assert sum(counts) == len(cases)
    for ratio in RATIOS:
        value, best = ratio(counts), ratio(confusion(actual, actual))
        assert math.isnan(value) or (-1 if ratio is mcc else 0) <= value <= 1
        assert math.isnan(best) or best == pytest.approx(1, abs=1e-15)


def test_classification_of_arrays_of_counts() -> None:
    rng = np.random.default_rng(0)
    resamples = rng.multinomial(6, [0.25] * 4, size=200).T
    for ratio in RATIOS:
        ratios = ratio(ConfusionCounts(*resamples))
        assert ratios.shape == (200,)
        one_by_one = [ratio(ConfusionCounts(*map(int, counts))) for counts in resamples.T]
        np.testing.assert_array_equal(ratios, one_by_one)


def test_classification_without_overflow() -> None:
    assert mcc(ConfusionCounts(10**12, 0, 10**12, 0)) == pytest.approx(1, abs=1e-12)
    assert mcc(ConfusionCounts(*np.full((4, 1), 2**40))) == 0


@pytest.mark.parametrize(
    ("predicted", "actual", "message"),
    [
        ([True], [True, False], "1 predicted but 2 actual values"),
        ([True, None], [True, False], "predicted 1 is None, neither True nor False"),
        ([True, False], [None, False], "actual 0 is None, neither True nor False"),
        ([True, NAN], [True, False], "predicted 1 is nan"),
        (["да"], [True], "predicted 0 is 'да'"),
        ([2], [True], "predicted 0 is 2"),
    ],
)
def test_bad_input_is_refused(predicted: Any, actual: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        confusion(predicted, actual)


@given(st.lists(st.tuples(st.booleans(), st.booleans())))
def test_outcomes_sum_to_counts(pairs: list[tuple[bool, bool]]) -> None:
    predicted, actual = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    table = outcome_indicators(predicted, actual)
    assert (table.sum(axis=1) == 1).all()
    assert counts_from_totals(table.sum(axis=0)) == confusion(predicted, actual)
    assert counts_from_totals(np.zeros((3, 4))).true_negatives.tolist() == [0, 0, 0]


def test_outcomes_refuse_bad_input() -> None:
    with pytest.raises(ValueError, match="1 predicted but 0 actual"):
        outcome_indicators([True], [])
    with pytest.raises(ValueError, match="actual 0 is None"):
        outcome_indicators([True], [None])  # type: ignore[list-item]

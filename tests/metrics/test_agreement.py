"""Agreement: values worked out by hand, scikit-learn's and scipy's values, missing scores, bad input."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import for_all
from yarus.metrics.agreement import (
    chance_consistency,
    complete_pairs,
    consistency,
    is_within_delta,
    kappa_from_totals,
    kappa_parts,
    mean_abs_difference,
    score_differences,
    spearman,
    weighted_kappa,
)

NAN = math.nan
SCALE = st.integers(0, 4)
SCORE = st.sampled_from([0.0, 0.3, 0.5, 0.75, 1.0, NAN])
PAIRS = st.lists(st.tuples(SCALE, SCALE), min_size=1, max_size=30)
ALL = (consistency, chance_consistency, mean_abs_difference, weighted_kappa, spearman)


@for_all(
    "value, expected",
    [
        # differences 0.5, 0.6, 0, 0.25
        (consistency([0.9, 0.9, 0.2, 0.5], [0.4, 0.3, 0.2, 0.75]), 3 / 4),
        (consistency([0.9, 0.9, 0.2, 0.5], [0.4, 0.3, 0.2, 0.75], delta=0.125), 1 / 4),
        (mean_abs_difference([0.9, 0.9, 0.2, 0.5], [0.4, 0.3, 0.2, 0.75]), 1.35 / 4),
        (consistency([0.5, 0.25], [0.5, 0.5], delta=0), 1 / 2),
        # exactly the limit in decimals, a little more in binary
        (consistency([0.4, 1.1], [0.3, 0.6], delta=0.1), 1 / 2),
        (consistency([1.1], [0.6]), 1),
        (consistency([0.6], [1.1]), 1),
        (consistency([0.500001], [0]), 0),
        (consistency([0.125], [0], delta=0.125), 1),
        # all combinations of (0, 1) with (0, 0.5): 0-0, 0-0.5, 1-0.5 of four
        (chance_consistency([0, 1], [0, 0.5]), 3 / 4),
        (chance_consistency([0, 1], [0, 0.5], delta=0.125), 1 / 4),
        (chance_consistency([0.4, 1.1], [0.3, 0.6], delta=0.1), 1 / 4),
        (chance_consistency([0.3, 0.9], [0.4, 1.5], delta=0.1), 1 / 4),
        # squared differences 1, 0, 1: mean 2/3; over all nine (0, 1, 2) x (1, 1, 1): 1 0 1 each: mean 2/3
        (weighted_kappa([0, 1, 2], [1, 1, 1]), 0),
        # 0, 0, 1: mean 1/3; all nine of (0, 1, 2) x (0, 1, 1): 0 1 1, 1 0 0, 4 1 1: mean 1
        (weighted_kappa([0, 1, 2], [0, 1, 1]), 2 / 3),
        (weighted_kappa([0, 1], [1, 0]), -1),
        (weighted_kappa([0.5, 0.5], [0.25, 0.25]), 0),
    ],
)
def test_golden_values(value: float, expected: float) -> None:
    assert value == pytest.approx(expected, abs=1e-14)


def test_golden_values_of_ranks() -> None:
    # ranks 1 2 3 4 against 2 1 4 3: 1 - 6 * 4 / (4 * 15)
    assert spearman([1, 2, 3, 4], [20, 10, 40, 30]) == pytest.approx(0.6, abs=1e-14)
    assert spearman([1, 2, 3], [8, 4, 2]) == pytest.approx(-1, abs=1e-14)


def test_agreement_leaves_out_incomplete_pairs() -> None:
    first, second = [0.9, NAN, 0.2, 0.7, 0.5], [0.4, 0.3, NAN, 0.7, 0.6]
    first_complete, second_complete = complete_pairs(first, second)
    assert first_complete.tolist() == [0.9, 0.7, 0.5]
    assert second_complete.tolist() == [0.4, 0.7, 0.6]
    for function in ALL:
        assert function(first, second) == function(first_complete, second_complete)
    np.testing.assert_allclose(score_differences(first, second), [0.5, NAN, NAN, 0, 0.1], atol=1e-15)


@for_all("function", ALL)
@for_all("first, second", [([], []), ([NAN], [1.0]), ([NAN, 0.5], [0.5, NAN])])
def test_agreement_undefined_without_complete_pairs(
    function: Callable[..., float], first: list[float], second: list[float]
) -> None:
    assert math.isnan(function(first, second))


def test_agreement_undefined_for_constant_scores() -> None:
    assert math.isnan(weighted_kappa([0.1] * 3, [0.1] * 3))
    assert math.isnan(weighted_kappa([0.5], [0.5]))
    assert weighted_kappa([0.5], [0.75]) == 0
    assert math.isnan(spearman([0.1] * 3, [0.1, 0.2, 0.3]))
    assert math.isnan(spearman([0.1, 0.2, 0.3], [0.1] * 3))
    assert math.isnan(spearman([0.5], [0.75]))
    assert consistency([0.1] * 3, [0.1] * 3) == 1


@given(PAIRS)
def test_kappa_equals_scikit_learn_on_a_shared_scale(pairs: list[tuple[int, int]]) -> None:
    from sklearn.metrics import cohen_kappa_score

    first, second = map(list, zip(*pairs, strict=True))
    value = weighted_kappa(np.array(first) / 4, np.array(second) / 4)
    if len(set(first) | set(second)) == 1:
        assert math.isnan(value)
    else:
        expected = cohen_kappa_score(first, second, labels=[0, 1, 2, 3, 4], weights="quadratic")
        assert value == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.tuples(st.floats(0, 1, width=16), st.floats(0, 1, width=16)), min_size=1, max_size=20))
def test_closed_forms_equal_all_combinations(pairs: list[tuple[float, float]]) -> None:
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    distances = np.abs(first[:, None] - second)
    for delta in (0.5, 0.125):
        assert chance_consistency(first, second, delta=delta) == pytest.approx(np.mean(distances <= delta + 1e-9))
    if np.ptp([*first, *second]) > 1e-3:
        expected = 1 - np.mean((first - second) ** 2) / np.mean(distances**2)
        assert weighted_kappa(first, second) == pytest.approx(expected, abs=1e-9)


@given(PAIRS)
def test_spearman_equals_scipy(pairs: list[tuple[int, int]]) -> None:
    from scipy.stats import spearmanr

    first, second = map(list, zip(*pairs, strict=True))
    value = spearman(first, second)
    if len(set(first)) > 1 and len(set(second)) > 1:
        assert value == pytest.approx(spearmanr(first, second).statistic, abs=1e-12)
    else:
        assert math.isnan(value)


@given(PAIRS)
def test_agreement_range_symmetry_and_order(pairs: list[tuple[int, int]]) -> None:
    first, second = (np.array(side) / 4 for side in zip(*pairs, strict=True))
    for function in ALL:
        value = function(first, second)
        low = -1 - 1e-12 if function in (weighted_kappa, spearman) else 0
        assert math.isnan(value) or low <= value <= 1 + 1e-12
        assert function(second, first) == pytest.approx(value, abs=1e-12, nan_ok=True)
        assert function(first[::-1], second[::-1]) == pytest.approx(value, abs=1e-12, nan_ok=True)
    assert consistency(first, first, delta=0) == 1
    assert mean_abs_difference(first, first) == 0
    if np.ptp(first) > 0:
        assert weighted_kappa(first, first) == 1
        assert spearman(first, first) == pytest.approx(1, abs=1e-12)


def test_consistency_of_random_judge() -> None:
    """P(|x - y| <= 1/2) of two uniform scores is 3/4; on the scale 0, 0.25, ..., 1 it is 19/25."""
    rng = np.random.default_rng(0)
    first, second = rng.random((2, 20_000))
    assert consistency(first, second) == pytest.approx(0.75, abs=0.01)
    assert chance_consistency(first, second) == pytest.approx(0.75, abs=0.01)
    assert chance_consistency(np.arange(5) / 4, np.arange(5) / 4) == 19 / 25
    assert weighted_kappa(first, second) == pytest.approx(0, abs=0.02)


@for_all("function", [*ALL, score_differences])
@for_all(
    "first, second, message",
    [
        ([0.5], [0.5, 0.5], "(1,) first but (2,) second scores"),
        ([[0.5]], [[0.5]], "(1, 1) first but (1, 1) second scores"),
        ([0.5, math.inf], [0.5, 0.5], "first score 1 is infinite"),
        ([0.5, 0.5], [-math.inf, 0.5], "second score 0 is infinite"),
    ],
)
def test_bad_input_is_refused(function: Callable[..., Any], first: Any, second: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        function(first, second)


@pytest.mark.parametrize("delta", [-0.1, NAN])
def test_delta_below_0_is_refused(delta: float) -> None:
    for function in (consistency, chance_consistency):
        with pytest.raises(ValueError, match=f"delta = {delta} is below 0"):
            function([0.5], [0.5], delta=delta)


def test_kappa_in_range_despite_rounding() -> None:
    """Opposite scores around the same mean; without care a tenth of these are -1.0000000000000002."""
    for seed in range(200):
        scores = np.random.default_rng(seed).random(4)
        assert weighted_kappa(scores, 2 * scores.mean() - scores) == pytest.approx(-1)
        assert weighted_kappa(scores, 2 * scores.mean() - scores) >= -1


@given(st.lists(st.tuples(SCORE, SCORE), max_size=12))
def test_kappa_follows_from_totals(pairs: list[tuple[float, float]]) -> None:
    first, second = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
    parts = kappa_parts(first, second)
    assert parts.shape == (len(pairs), 6)
    is_complete = ~np.isnan(first + second)
    assert (np.isnan(parts) == ~is_complete[:, None]).all()
    totals = np.stack([np.nansum(parts, axis=0), 2 * np.nansum(parts, axis=0)])
    assert kappa_from_totals(totals) == pytest.approx([weighted_kappa(first, second)] * 2, abs=1e-9, nan_ok=True)


def test_within_delta() -> None:
    np.testing.assert_array_equal(is_within_delta([[0.4 - 0.3, 0.11], [np.nan, 0]], delta=0.1), [[1, 0], [np.nan, 1]])

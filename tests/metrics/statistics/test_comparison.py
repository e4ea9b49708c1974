"""Paired comparison: agreement with scipy and statsmodels, published values, error rates, and bad input."""

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from metrics.statistics import (
    bootstrap_interval,
    compare_paired,
    holm,
    mcnemar_exact,
    newcombe_paired_interval,
    permutation_p,
    smallest_detectable_difference,
    wilson_interval,
)

NAN = math.nan


def mean_difference(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
    return (x - y).mean(axis=axis)


def scipys_p(differences: np.ndarray, resamples: int = 10_000) -> float:
    sides = (differences, np.zeros_like(differences))
    return float(
        stats.permutation_test(
            sides, mean_difference, permutation_type="samples", n_resamples=resamples, rng=3, batch=1_000
        ).pvalue
    )


@given(st.lists(st.integers(-4, 4).map(lambda quarter: quarter / 4), min_size=2, max_size=9))
@settings(deadline=None)
def test_few_pairs_are_enumerated_as_in_scipy(differences: list[float]) -> None:
    assert permutation_p(differences, seed=1) == pytest.approx(scipys_p(np.array(differences)), abs=1e-12)


@pytest.mark.parametrize("n", [15, 60, 203])  # 203: eight signs a byte leave a rest of three
@pytest.mark.parametrize("shift", [0.0, 0.15, 0.3])
def test_many_pairs_agree_with_scipy_up_to_chance(n: int, shift: float) -> None:
    differences = np.random.default_rng(n).normal(shift, 1, n)
    ours, peer = permutation_p(differences, seed=1, resamples=40_000), scipys_p(differences, 40_000)
    assert ours == pytest.approx(peer, abs=4 * math.sqrt(peer * (1 - peer) / 20_000) + 1e-4)


def test_p_is_never_zero_and_counts_the_observed_signs() -> None:
    assert permutation_p(np.ones(40), seed=1, resamples=999) == 1 / 1_000
    assert permutation_p(np.ones(5), seed=1) == 2 / 32
    assert permutation_p(np.ones(13), seed=1) == 2 / 2**13  # 8,192 patterns are tried, 16,384 would be drawn
    assert permutation_p(np.ones(14), seed=1, resamples=2**14) == 2 / 2**14
    assert permutation_p(np.ones(14), seed=1, resamples=2**14 - 1) == pytest.approx(2 / 2**14, abs=5e-4)


def test_ten_thousand_draws_unless_told_otherwise() -> None:
    assert permutation_p(np.ones(40), seed=1) == 1 / 10_001
    assert permutation_p(np.ones(40), seed=1, resamples=1) == 1 / 2
    many = np.linspace(0.1, 0.9, 40)
    assert compare_paired(np.zeros(40), many, seed=1).p == 1 / 10_001


def test_every_pattern_of_signs_is_drawn() -> None:
    """Eight large differences that agree and eight small ones that cancel: all or none of the large must turn."""
    differences = [1.0] * 8 + [1e-6, -1e-6] * 4
    exact = permutation_p(differences, seed=1, resamples=2**16)
    drawn = permutation_p(differences, seed=1, resamples=2**16 - 1)
    assert exact == pytest.approx(
        2 / 2**8 * (2**8 + 70) / 2**9
    )  # of 2 ** 8 small sums 70 are 0, half of the rest above
    assert drawn == pytest.approx(exact, abs=4 * math.sqrt(exact / 2**16))


def test_unchanged_pairs_do_not_alter_p() -> None:
    assert permutation_p([0.5, 0.25, 0.0, 0.0], seed=1) == permutation_p([0.5, 0.25], seed=1) == 0.5
    assert permutation_p([0.0, 0.0], seed=1) == 1.0
    assert math.isnan(permutation_p([], seed=1))


def test_equal_sums_in_another_order_count_as_equal() -> None:
    """Thirty steps of 0.1: with 15 of each sign the sum is 0 up to rounding, and every pattern is at least as large."""
    assert permutation_p([0.1, -0.1] * 15, seed=1) == 1.0
    assert permutation_p([0.1] * 9, seed=1) == 2 / 2**9


def test_groups_change_sign_together() -> None:
    differences = [0.3, 0.2, 0.4, 0.1, 0.5, 0.2]
    assert permutation_p(differences, seed=1, groups=["a", "a", "b", "b", "c", "c"]) == permutation_p(
        [0.5, 0.5, 0.7], seed=1
    )
    assert permutation_p([1.0, -1.0, 0.5], seed=1, groups=["a", "a", "b"]) == 1.0  # a cancels, b alone says nothing
    with pytest.raises(ValueError, match="3 cases but 2 groups"):
        permutation_p([1.0, 2.0, 3.0], seed=1, groups=["a", "b"])


@pytest.mark.parametrize(("differences", "resamples"), [([1.0, NAN], 10), ([math.inf], 10), ([1.0], 0)])
def test_permutation_refuses(differences: list[float], resamples: int) -> None:
    with pytest.raises(ValueError, match=f"finite and resamples at least 1, got {resamples}"):
        permutation_p(differences, seed=1, resamples=resamples)


def test_permutation_needs_little_memory() -> None:
    """10,000 x 10,000 signs held at once would be 800 MB, 12.5 MB as bits."""
    differences = np.random.default_rng(1).normal(size=10_000)
    tracemalloc.start()
    permutation_p(differences, seed=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2e6


@given(st.integers(0, 300), st.integers(0, 300))
def test_mcnemar_equals_statsmodels(only_a: int, only_b: int) -> None:
    peer = mcnemar([[7, only_a], [only_b, 5]], exact=True).pvalue if only_a + only_b else 1.0
    assert mcnemar_exact(only_a, only_b) == pytest.approx(peer, rel=1e-9)
    assert mcnemar_exact(only_a, only_b) == mcnemar_exact(only_b, only_a)


# Fagerland, Lydersen and Laake 2017, Statistical analysis of contingency tables, chapter 8 (their difference is a - b):
# complete response before and after consolidation; airway hyper-responsiveness before and after transplantation.
@pytest.mark.parametrize(
    ("counts", "low", "high"), [((59, 6, 16, 80), 0.0046, 0.1186), ((1, 1, 7, 12), 0.0256, 0.5069)]
)
def test_newcombe_has_the_published_values(counts: tuple[int, int, int, int], low: float, high: float) -> None:
    assert newcombe_paired_interval(*counts) == pytest.approx((low, high), abs=5e-5)


@given(st.tuples(*[st.integers(0, 60)] * 4).filter(any), st.floats(0.5, 0.999))
def test_newcombe_holds_the_difference_and_mirrors(counts: tuple[int, int, int, int], confidence: float) -> None:
    both, only_a, only_b, neither = counts
    low, high = newcombe_paired_interval(*counts, confidence=confidence)
    assert -1 - 1e-12 <= low <= (only_b - only_a) / sum(counts) + 1e-12
    assert (only_b - only_a) / sum(counts) - 1e-12 <= high <= 1 + 1e-12
    mirrored = pytest.approx((-high, -low), abs=1e-12)
    assert newcombe_paired_interval(both, only_b, only_a, neither, confidence=confidence) == mirrored
    assert newcombe_paired_interval(neither, only_b, only_a, both, confidence=confidence) == mirrored


def test_newcombe_corrects_the_correlation_only_where_it_is_positive() -> None:
    """By the formula: phi = (together - n / 2) / sqrt(product of margins), 0 below n / 2, as it is if negative."""
    independent = newcombe_paired_interval(25, 25, 25, 25)
    slightly = newcombe_paired_interval(26, 24, 25, 25)  # together = 50 = n / 2: pulled to 0
    assert slightly[1] - slightly[0] == pytest.approx(independent[1] - independent[0], abs=1e-4)
    opposed = newcombe_paired_interval(10, 40, 40, 10)
    assert opposed.high == pytest.approx((2 * (1 + 0.6)) ** 0.5 * (0.5 - 0.4038315), abs=1e-6)  # Wilson of 50 in 100
    assert all(math.isnan(bound) for bound in newcombe_paired_interval(0, 0, 0, 0))


def test_newcombe_takes_no_correlation_where_one_side_never_varies() -> None:
    low_b, high_a = wilson_interval(8, 8).low, wilson_interval(5, 8).high
    assert newcombe_paired_interval(5, 0, 3, 0).low == pytest.approx(3 / 8 - math.hypot(1 - low_b, high_a - 5 / 8))


@pytest.mark.parametrize("counts", [(-1, 1, 1, 1), (1, -1, 1, 1), (1, 1, -1, 1), (1, 1, 1, -1)])
def test_counts_below_zero_are_refused(counts: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="at least 0"):
        newcombe_paired_interval(*counts)
    if min(counts[1:3]) < 0:
        with pytest.raises(ValueError, match="at least 0"):
            mcnemar_exact(*counts[1:3])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
@settings(max_examples=20, deadline=None)  # statsmodels collects all garbage at every call
def test_holm_equals_statsmodels(p_values: list[float]) -> None:
    np.testing.assert_allclose(holm(p_values), multipletests(p_values, method="holm")[1], rtol=0, atol=1e-12)


def test_holm_leaves_out_what_was_not_tested() -> None:
    np.testing.assert_allclose(holm([0.02, NAN, 0.01]), [0.02, NAN, 0.02])
    assert holm([]).tolist() == []
    for wrong in (-0.1, 1.5):
        with pytest.raises(ValueError, match=f"got .*{wrong}"):
            holm([0.5, wrong])


UP = np.tile([0.2, 0.5, 0.9, 0.4], 10)


@pytest.mark.parametrize(
    ("a", "b", "options", "verdict"),
    [
        (UP, UP + 0.1, {}, "improved"),
        (UP, UP + 0.1, {"better": "lower"}, "regressed"),
        (UP, UP + 0.1, {"better": "neither"}, "changed"),
        (UP, UP - 0.1, {}, "regressed"),
        (UP, UP - 0.1, {"better": "lower"}, "improved"),
        (UP, UP, {}, "no difference shown"),
        (UP, UP, {"margin": 0.0}, "no difference shown"),  # an interval on its bounds lies within them
        (UP, UP + np.tile([0.01, -0.01], 20), {}, "no difference shown"),
        (UP, UP + np.tile([0.5, -0.5], 20), {}, "inconclusive"),
        (UP, UP + np.tile([0.5, -0.5], 20), {"margin": 0.5}, "no difference shown"),
        (UP, UP + np.tile([0.01, -0.01], 20), {"margin": 0.0}, "inconclusive"),
        ([0, 1] * 100, [0, 1] * 100, {}, "no difference shown"),
        ([0, 1] * 10, [0, 1] * 10, {}, "inconclusive"),  # twenty cases cannot exclude five points
        ([0] * 20, [1] * 10 + [0] * 10, {}, "improved"),
        ([0.5], [0.7], {}, "inconclusive"),
        ([0.5, NAN, 0.1], [0.7, 0.3, NAN], {}, "inconclusive"),
        ([], [], {}, "inconclusive"),
        ([NAN], [NAN], {"binary": False}, "inconclusive"),
        ([1, 0, 1], [1, 1, 0], {"groups": ["a", "a", "a"]}, "inconclusive"),
    ],
)
def test_verdicts(a: Any, b: Any, options: dict[str, Any], verdict: str) -> None:
    assert compare_paired(a, b, seed=1, **options).verdict == verdict


def test_one_pair_says_nothing() -> None:
    for found in (
        compare_paired([0.5], [0.7], seed=1),
        compare_paired([0], [1], seed=1),
        compare_paired([], [], seed=1),
    ):
        assert math.isnan(found.p) and math.isnan(found.interval.low) and math.isnan(found.interval.high)
        assert found.method == "none: fewer than two pairs"
    assert compare_paired([0, 0], [1, 1], seed=1).p == 0.5


def test_a_comparison_is_a_value() -> None:
    found = compare_paired([0, 0], [1, 1], seed=1)
    with pytest.raises(AttributeError):
        found.p = 0.01  # type: ignore[misc]


def test_yes_no_values_go_by_mcnemar_and_newcombe() -> None:
    a, b = [1, 1, 1, 1, 0, 0, 0, NAN, 0, 1], [1, 1, 1, 0, 1, 1, 0, 1, NAN, 1]
    found = compare_paired(a, b, seed=1)
    assert (found.n, found.n_missing, found.method) == (8, 2, "exact McNemar, Newcombe 10")
    assert found.difference == pytest.approx(1 / 8)
    assert found.p == mcnemar_exact(1, 2)
    assert found.interval == newcombe_paired_interval(4, 1, 2, 1)
    assert found.margin == 0.05
    assert found.alpha == 0.05
    assert found == compare_paired(a, b, seed=2, binary=True)
    assert compare_paired(a, b, seed=1, binary=False).method == "paired permutation, BCa"


def test_other_values_go_by_permutation_and_bootstrap() -> None:
    generator = np.random.default_rng(5)
    a = generator.random(50)
    b = a + generator.normal(0.05, 0.2, 50)
    found = compare_paired(a, b, seed=8, confidence=0.9, resamples=2_000)
    assert found.p == permutation_p(b - a, seed=8, resamples=2_000)
    assert found.interval == bootstrap_interval(b - a, seed=8, confidence=0.9, resamples=2_000)
    assert found.alpha == 0.1
    assert found.margin == pytest.approx(0.2 * np.concatenate([a, b]).std())
    assert found.smallest_detectable == smallest_detectable_difference(b - a, alpha=0.1)
    assert found.difference == pytest.approx((b - a).mean())
    assert found == compare_paired(a, b, seed=8, confidence=0.9, resamples=2_000)
    assert found.p != compare_paired(a, b, seed=9, confidence=0.9, resamples=2_000).p


def test_cases_of_one_user_count_together() -> None:
    """Twelve cases of three users who each gain: three signs cannot give a p below 1/4, twelve can."""
    a, b = [0, 0, 0, 1] * 3, [1, 1, 1, 1] * 3
    users = ["u"] * 4 + ["v"] * 4 + ["w"] * 4
    by_user = compare_paired(a, b, seed=1, groups=users)
    assert by_user.p == 0.25
    assert by_user.method == "paired permutation, BCa (by group)"
    assert compare_paired(a, b, seed=1).p == mcnemar_exact(0, 9) < 0.05
    missing = compare_paired([NAN, *a], [1.0, *b], seed=1, groups=["u", *users])
    assert (missing.p, missing.n, missing.n_missing) == (0.25, 12, 1)


def test_a_corrected_p_brings_a_corrected_verdict() -> None:
    found = compare_paired(UP, UP + np.tile([0.1, -0.02], 20), seed=1)
    assert found.verdict == "improved"
    corrected = found.adjusted(0.2)
    assert (corrected.p, corrected.verdict) == (0.2, "inconclusive")
    assert found.adjusted(0.05).verdict == "inconclusive"  # below the level, not on it
    assert corrected.adjusted(found.p) == found


@pytest.mark.parametrize(
    ("a", "b", "options", "message"),
    [
        ([0.1, 0.2], [0.1], {}, "the same cases, got 2 and 1 values"),
        ([[0.1]], [[0.1]], {}, "the same cases"),
        ([0.1, math.inf], [0.1, 0.2], {}, "finite"),
        ([0.1, 0.2], [0.1, -math.inf], {}, "finite"),
        ([0.5, 1], [1, 0], {"binary": True}, "binary values must be 0, 1 or NaN"),
        ([0.5, 1], [1, 0], {"margin": -0.1}, "margin must be at least 0, got -0.1"),
        ([0.5, 1], [1, 0], {"margin": NAN}, "margin must be at least 0, got nan"),
        ([0.5, 1], [1, 0], {"groups": ["a"]}, "2 cases but 1 groups"),
        ([0.5, 1], [1, 0], {"confidence": 1.5}, "confidence must lie between 0 and 1"),
        ([0.5, 1], [1, 0], {"resamples": 0}, "resamples at least 1"),
    ],
)
def test_comparison_refuses(a: Any, b: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare_paired(a, b, seed=1, **options)


def test_a_comparison_of_equals_rarely_cries_wolf() -> None:
    """300 pairs that differ by chance only, 10 % of cases changed: at most 5 % are significant (29 at 99.9 %)."""
    generator = np.random.default_rng(13)

    def false_alarms(yes_no: bool) -> tuple[int, int]:
        alarms = missed = 0
        for seed in range(300):
            a = generator.random(80) < 0.7 if yes_no else generator.normal(size=80)
            noise = ~a if yes_no else a + generator.normal(size=80)
            b = np.where(generator.random(80) < 0.1, noise, a)
            # Where a flips with equal chance the true difference is 0.1 * (0.3 - 0.7).
            truth = -0.04 if yes_no else 0.0
            found = compare_paired(a, b, seed=seed, resamples=500)
            alarms += found.p < 0.05 if not yes_no else 0
            missed += not found.interval.low <= truth <= found.interval.high
        return alarms, missed

    assert false_alarms(yes_no=False)[0] <= 29
    assert false_alarms(yes_no=True)[1] <= 29


def test_importing_the_statistics_is_cheap() -> None:
    """The slow libraries are imported where a comparison needs them, not by every command."""
    import subprocess
    import sys

    code = "import sys, metrics.statistics; print([m for m in ('scipy', 'statsmodels', 'pandas') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_too_few_pairs_for_the_test_to_find_anything_are_inconclusive() -> None:
    assert compare_paired([0.1, 0.2], [0.1, 0.2], seed=0).verdict == "inconclusive"
    assert compare_paired([1, 0] * 4, [1, 0] * 4, seed=0, groups=["u"] * 4 + ["v"] * 4).verdict == "inconclusive"


def test_groups_that_nobody_shares_are_no_groups() -> None:
    a, b = [1.0] * 30, [1.0] * 29 + [0.0]
    assert compare_paired(a, b, seed=0, groups=[None] * 30) == compare_paired(a, b, seed=0)
    assert compare_paired(a, b, seed=0, groups=list(range(30))).method == compare_paired(a, b, seed=0).method


def test_no_p_is_0() -> None:
    assert 0 < mcnemar_exact(1_100, 0) < 1e-300

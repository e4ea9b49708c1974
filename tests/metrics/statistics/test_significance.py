"""The tests of significance: agreement with scipy and statsmodels, published values, and bad input."""

import gc
import math
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import get_example_count
from yarus.metrics.statistics import (
    compare_paired,
    holm,
    mcnemar_exact,
    min_detectable_effect,
    newcombe_paired_interval,
    permutation_p,
    wilson_interval,
)

NAN = math.nan


def mean_difference(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
    return (x - y).mean(axis=axis)


def scipys_p(differences: np.ndarray, resamples: int = 10_000) -> float:
    from scipy import stats

    sides = (differences, np.zeros_like(differences))
    return float(
        stats.permutation_test(
            sides, mean_difference, permutation_type="samples", n_resamples=resamples, rng=3, batch=1_000
        ).pvalue
    )


@given(st.lists(st.integers(-4, 4).map(lambda quarter: quarter / 4), min_size=2, max_size=9))
def test_permutation_p_enumerates_few_pairs(differences: list[float]) -> None:
    assert permutation_p(differences, seed=1) == pytest.approx(scipys_p(np.array(differences)), abs=1e-12)


@pytest.mark.slow("breadth: few pairs agree exactly, these up to chance")
@pytest.mark.parametrize("n", [15, 60, 203])  # 203: eight signs a byte leave a rest of three
@pytest.mark.parametrize("shift", [0.0, 0.15, 0.3])
def test_permutation_p_agrees_with_scipy(n: int, shift: float) -> None:
    differences = np.random.default_rng(n).normal(shift, 1, n)
    ours, peer = permutation_p(differences, seed=1, resamples=40_000), scipys_p(differences, 40_000)
    assert ours == pytest.approx(peer, abs=4 * math.sqrt(peer * (1 - peer) / 20_000) + 1e-4)


def test_permutation_p_above_zero() -> None:
    assert permutation_p(np.ones(40), seed=1, resamples=999) == 1 / 1_000
    assert permutation_p(np.ones(5), seed=1) == 2 / 32
    assert permutation_p(np.ones(13), seed=1) == 2 / 2**13  # 8,192 patterns are tried, 16,384 would be drawn
    assert permutation_p(np.ones(14), seed=1, resamples=2**14) == 2 / 2**14
    assert permutation_p(np.ones(14), seed=1, resamples=2**14 - 1) == pytest.approx(2 / 2**14, abs=5e-4)


def test_default_is_ten_thousand_draws() -> None:
    assert permutation_p(np.ones(40), seed=1) == 1 / 10_001
    assert permutation_p(np.ones(40), seed=1, resamples=1) == 1 / 2
    many = np.linspace(0.1, 0.9, 40)
    assert compare_paired(np.zeros(40), many, seed=1).p == 1 / 10_001


def test_permutation_p_draws_all_sign_patterns() -> None:
    """Eight large differences that agree and eight small ones that cancel: all or none of the large must turn."""
    differences = [1.0] * 8 + [1e-6, -1e-6] * 4
    exact = permutation_p(differences, seed=1, resamples=2**16)
    drawn = permutation_p(differences, seed=1, resamples=2**16 - 1)
    assert exact == pytest.approx(
        2 / 2**8 * (2**8 + 70) / 2**9
    )  # of 2 ** 8 small sums 70 are 0, half of the rest above
    assert drawn == pytest.approx(exact, abs=4 * math.sqrt(exact / 2**16))


def test_permutation_p_ignores_unchanged_pairs() -> None:
    assert permutation_p([0.5, 0.25, 0.0, 0.0], seed=1) == permutation_p([0.5, 0.25], seed=1) == 0.5
    assert permutation_p([0.0, 0.0], seed=1) == 1.0
    assert math.isnan(permutation_p([], seed=1))


def test_permutation_p_ignores_rounding_of_sums() -> None:
    """Thirty steps of 0.1: with 15 of each sign the sum is 0 up to rounding, and every pattern is at least as large."""
    assert permutation_p([0.1, -0.1] * 15, seed=1) == 1.0
    assert permutation_p([0.1] * 9, seed=1) == 2 / 2**9


def test_permutation_p_with_groups() -> None:
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
    from statsmodels.stats.contingency_tables import mcnemar

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
def test_newcombe_contains_difference_and_mirrors(counts: tuple[int, int, int, int], confidence: float) -> None:
    both, only_a, only_b, neither = counts
    low, high = newcombe_paired_interval(*counts, confidence=confidence)
    assert -1 - 1e-12 <= low <= (only_b - only_a) / sum(counts) + 1e-12
    assert (only_b - only_a) / sum(counts) - 1e-12 <= high <= 1 + 1e-12
    mirrored = pytest.approx((-high, -low), abs=1e-12)
    assert newcombe_paired_interval(both, only_b, only_a, neither, confidence=confidence) == mirrored
    assert newcombe_paired_interval(neither, only_b, only_a, both, confidence=confidence) == mirrored


def test_newcombe_corrects_positive_correlation() -> None:
    """By the formula: phi = (together - n / 2) / sqrt(product of margins), 0 below n / 2, as it is if negative."""
    independent = newcombe_paired_interval(25, 25, 25, 25)
    slightly = newcombe_paired_interval(26, 24, 25, 25)  # together = 50 = n / 2: pulled to 0
    assert slightly[1] - slightly[0] == pytest.approx(independent[1] - independent[0], abs=1e-4)
    opposed = newcombe_paired_interval(10, 40, 40, 10)
    assert opposed.high == pytest.approx((2 * (1 + 0.6)) ** 0.5 * (0.5 - 0.4038315), abs=1e-6)  # Wilson of 50 in 100
    assert all(math.isnan(bound) for bound in newcombe_paired_interval(0, 0, 0, 0))


def test_newcombe_without_variation_on_one_side() -> None:
    low_b, high_a = wilson_interval(8, 8).low, wilson_interval(5, 8).high
    assert newcombe_paired_interval(5, 0, 3, 0).low == pytest.approx(3 / 8 - math.hypot(1 - low_b, high_a - 5 / 8))


@pytest.mark.parametrize("counts", [(-1, 1, 1, 1), (1, -1, 1, 1), (1, 1, -1, 1), (1, 1, 1, -1)])
def test_paired_tests_refuse_negative_counts(counts: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="at least 0"):
        newcombe_paired_interval(*counts)
    if min(counts[1:3]) < 0:
        with pytest.raises(ValueError, match="at least 0"):
            mcnemar_exact(*counts[1:3])


@pytest.fixture(scope="module")
def few_collected() -> Iterator[None]:
    """Exclude existing objects from garbage collection, which statsmodels runs at every call."""
    gc.freeze()
    yield
    gc.unfreeze()


@given(p_values=st.lists(st.floats(0, 1), min_size=1, max_size=12))
@settings(max_examples=get_example_count(20))
def test_holm_equals_statsmodels(few_collected: None, p_values: list[float]) -> None:
    from statsmodels.stats.multitest import multipletests

    np.testing.assert_allclose(holm(p_values), multipletests(p_values, method="holm")[1], rtol=0, atol=1e-12)


def test_holm_leaves_out_missing_p_values() -> None:
    np.testing.assert_allclose(holm([0.02, NAN, 0.01]), [0.02, NAN, 0.02])
    assert holm([]).tolist() == []
    for wrong in (-0.1, 1.5):
        with pytest.raises(ValueError, match=f"got .*{wrong}"):
            holm([0.5, wrong])


def test_compare_paired_scores_by_permutation_and_student() -> None:
    from scipy import stats

    generator = np.random.default_rng(5)
    a = generator.random(50)
    b = a + generator.normal(0.05, 0.2, 50)
    comparison = compare_paired(a, b, seed=8, confidence=0.9, resamples=2_000)
    assert comparison.p == permutation_p(b - a, seed=8, resamples=2_000)
    assert tuple(comparison.interval) == pytest.approx(stats.ttest_1samp(b - a, 0).confidence_interval(0.9))
    assert comparison.alpha == 0.1
    assert comparison.margin == pytest.approx(0.2 * np.concatenate([a, b]).std())
    assert comparison.smallest_detectable == min_detectable_effect(b - a, alpha=0.1)
    assert comparison.difference == pytest.approx((b - a).mean())
    assert comparison == compare_paired(a, b, seed=8, confidence=0.9, resamples=2_000)
    assert comparison.p != compare_paired(a, b, seed=9, confidence=0.9, resamples=2_000).p


def test_p_values_above_zero() -> None:
    assert 0 < mcnemar_exact(1_100, 0) < 1e-300

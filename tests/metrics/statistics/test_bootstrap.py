"""The bootstrap: golden values, agreement with scipy, coverage of the truth, groups, and bad input."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import for_all, get_example_count
from yarus.metrics.statistics import (
    Interval,
    bootstrap_interval,
    bootstrap_statistic,
    bootstrap_totals,
    quantile_interval,
    wilson_interval,
)

NAN = math.nan


def same(interval: Interval, expected: tuple[float, float], tolerance: float = 1e-12) -> bool:
    return interval == pytest.approx(expected, rel=0, abs=tolerance, nan_ok=True)


SAMPLES = {
    "skewed": np.random.default_rng(1).exponential(size=60),
    "symmetric": np.random.default_rng(2).normal(size=200),
    "few levels": np.random.default_rng(3).choice([0, 0.25, 0.5, 1], size=300),  # drawn by multinomial
    "one outlier": np.array([0.0] * 39 + [40.0]),
}


@pytest.mark.parametrize("method", ["bca", "percentile"])
@pytest.mark.parametrize("name", SAMPLES)
def test_bootstrap_equals_scipy_up_to_chance(name: str, method: str) -> None:
    from scipy import stats

    values = SAMPLES[name]
    ours = bootstrap_interval(values, seed=1, method=method, resamples=40_000)  # type: ignore[arg-type]
    peer = stats.bootstrap((values,), np.mean, n_resamples=40_000, method=method, rng=2, batch=1_000)
    spread = values.std() / len(values) ** 0.5
    assert same(ours, tuple(peer.confidence_interval), 0.06 * spread)


def test_bca_corrects_for_skew() -> None:
    percentile, bca = (bootstrap_interval(SAMPLES["skewed"], seed=1, method=method) for method in ("percentile", "bca"))  # type: ignore[arg-type]
    assert bca.low > percentile.low
    assert bca.high > percentile.high + 0.02  # the tail on the right is longer than the sample shows


@for_all(
    "values, groups, expected",
    [
        ([], None, (NAN, NAN)),
        ([0.3], None, (NAN, NAN)),
        ([0.3, NAN], None, (NAN, NAN)),
        ([NAN, NAN], None, (NAN, NAN)),
        ([0.1, 0.1, 0.1], None, (0.1, 0.1)),
        ([0.1, NAN, 0.1, 0.1], None, (0.1, 0.1)),
        ([0.1, 0.1], ["a", "b"], (0.1, 0.1)),
        ([0.1, 0.1, NAN], ["a", "a", "b"], (NAN, NAN)),  # one group left
        ([0.1, 0.7], ["a", "a"], (NAN, NAN)),
        ([0.0, 1.0], None, (0.0, 1.0)),
    ],
)
def test_bootstrap_of_few_values(values: list[float], groups: list[str] | None, expected: tuple[float, float]) -> None:
    assert bootstrap_interval(values, seed=1, groups=groups) == pytest.approx(expected, rel=0, abs=0, nan_ok=True)


@for_all(
    "values, options, message",
    [
        ([1.0, math.inf], {}, "infinite"),
        ([[1.0, 2.0]], {}, r"shape \(1, 2\)"),
        ([1.0, 2.0], {"groups": ["a"]}, "2 values but 1 groups"),
        ([1.0, 2.0], {"confidence": 1.0}, "confidence must lie between 0 and 1, got 1.0"),
        ([1.0, 2.0], {"confidence": 0.0}, "confidence must lie between 0 and 1, got 0.0"),
        ([1.0, 1.0], {"confidence": 95}, "confidence must lie between 0 and 1, got 95"),
        ([1.0, 2.0], {"resamples": 0}, "resamples must be at least 1, got 0"),
        ([1.0, 2.0], {"method": "basic"}, "no bootstrap method 'basic'"),
    ],
)
def test_bootstrap_refuses(values: list[float], options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bootstrap_interval(values, seed=1, **options)  # type: ignore[arg-type]


def test_bootstrap_reproducible_with_seed() -> None:
    values = SAMPLES["skewed"]
    assert bootstrap_interval(values, seed=5) == bootstrap_interval(values, seed=5)
    assert bootstrap_interval(values, seed=5) != bootstrap_interval(values, seed=6)
    assert bootstrap_interval(values, seed=5, resamples=1).low == bootstrap_interval(values, seed=5, resamples=1).high


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=40), st.floats(0.5, 0.99))
@settings(max_examples=get_example_count(60))
def test_bootstrap_bounds_within_values_and_by_confidence(values: list[float], confidence: float) -> None:
    narrow = bootstrap_interval(values, seed=1, resamples=300, confidence=confidence)
    wide = bootstrap_interval(values, seed=1, resamples=300, confidence=(1 + confidence) / 2)
    slack = 1e-9
    assert min(values) - slack <= wide.low <= narrow.low + slack <= narrow.high + 2 * slack
    assert narrow.high - slack <= wide.high <= max(values) + slack


def test_bootstrap_default_is_ten_thousand_resamples() -> None:
    values = SAMPLES["skewed"]
    assert bootstrap_interval(values, seed=5) == bootstrap_interval(values, seed=5, resamples=10_000)
    parts = np.column_stack([values, values**2])
    ratio = [
        bootstrap_totals(parts, lambda t: t[..., 0] / t[..., 1], seed=5, **more) for more in ({}, {"resamples": 10_000})
    ]
    assert ratio[0] == ratio[1]


def test_bootstrap_keeps_input() -> None:
    values = np.array([0.2, NAN, 0.9, 0.4])
    bootstrap_interval(values, seed=1)
    np.testing.assert_array_equal(values, [0.2, NAN, 0.9, 0.4])


def test_bootstrap_with_single_case_groups() -> None:
    values = SAMPLES["symmetric"]
    ungrouped = bootstrap_interval(values, seed=1)
    assert same(bootstrap_interval(values, seed=1, groups=list(range(200))), ungrouped)
    assert same(bootstrap_interval(values, seed=1, groups=[None] * 200), ungrouped)
    assert same(bootstrap_interval(values, seed=1, groups=[NAN] * 200), ungrouped)


def test_bootstrap_duplicated_groups_add_no_precision() -> None:
    users = np.random.default_rng(4).normal(size=30)
    parts = np.column_stack([users, np.ones(30)])
    once = bootstrap_totals(parts, mean_of_totals, seed=1)
    tenfold = bootstrap_totals(
        np.repeat(parts, 10, axis=0), mean_of_totals, seed=1, groups=np.repeat(np.arange(30), 10).tolist()
    )
    assert same(tenfold, once, 1e-9)
    ignored = bootstrap_interval(np.repeat(users, 10), seed=1)
    grouped = bootstrap_interval(np.repeat(users, 10), seed=1, groups=np.repeat(np.arange(30), 10).tolist())
    assert ignored.high < once.high - 0.1 and ignored.high < grouped.high - 0.1


def test_bootstrap_weights_groups_by_cases() -> None:
    """The interval is around the mean over cases, 0.9, not the mean over groups, 0.5."""
    values, groups = [1.0] * 90 + [0.0] * 10, ["big"] * 90 + ["small"] * 10
    parts = np.column_stack([values, np.ones(100)])
    draws = bootstrap_totals(parts, mean_of_totals, seed=1, groups=groups, confidence=0.4)
    # Of the four equally likely resamples of two groups, two give 0.9, one 1 and one 0.
    assert same(draws, (0.9, 0.9))
    low, high = bootstrap_interval(values, seed=1, groups=groups)
    assert (low + high) / 2 == pytest.approx(0.9)


def mean_of_totals(totals: np.ndarray) -> np.ndarray:
    return totals[..., 0] / totals[..., 1]


def f1_of_totals(totals: np.ndarray) -> np.ndarray:
    return 2 * totals[..., 0] / (2 * totals[..., 0] + totals[..., 1] + totals[..., 2])


def test_bootstrap_totals_equal_bootstrap_statistic() -> None:
    """F1 from the totals of TP, FP, FN against F1 computed from the resampled rows."""
    generator = np.random.default_rng(7)
    parts = np.eye(4)[generator.choice(4, size=150, p=[0.4, 0.1, 0.2, 0.3])][:, :3]
    fast = bootstrap_totals(parts, f1_of_totals, seed=1)
    slow = bootstrap_statistic(lambda rows: float(f1_of_totals(parts[rows].sum(axis=0))), 150, seed=2, resamples=4_000)
    assert same(fast, slow, 0.01)
    value = f1_of_totals(parts.sum(axis=0))
    assert fast.low < value - 0.04 < value + 0.04 < fast.high


def test_bootstrap_leaves_out_undefined_resamples() -> None:
    """With one positive among ten cases, a third of the resamples have no F1; the others do."""
    parts = np.array([[1.0, 0, 0]] + [[0.0, 0, 0]] * 9)
    assert bootstrap_totals(parts, f1_of_totals, seed=1) == (1.0, 1.0)
    assert same(bootstrap_totals(np.zeros((5, 3)), f1_of_totals, seed=1), (NAN, NAN))


@pytest.mark.parametrize("parts", [[1.0, 2.0], [[1.0], [NAN]], [[1.0], [math.inf]]])
def test_bootstrap_totals_refuse_bad_tables(parts: object) -> None:
    with pytest.raises(ValueError, match="finite table"):
        bootstrap_totals(parts, lambda totals: totals[..., 0], seed=1)  # type: ignore[arg-type]


def test_bootstrap_statistic_by_group() -> None:
    values, groups = np.arange(6.0), ["a", "b", "a", "b", "a", "b"]
    seen: list[list[int]] = []

    def record(rows: np.ndarray) -> float:
        seen.append(sorted(rows.tolist()))
        return float(values[rows].mean())

    bootstrap_statistic(record, 6, seed=1, groups=groups, resamples=50)
    assert {tuple(rows) for rows in seen} == {(0, 0, 2, 2, 4, 4), (1, 1, 3, 3, 5, 5), (0, 1, 2, 3, 4, 5)}


def test_bootstrap_statistic_number_of_resamples() -> None:
    calls: list[int] = []
    bootstrap_statistic(lambda rows: float(calls.append(len(rows)) or 0), 7, seed=1)
    assert calls == [7] * 2_001  # and once for all rows


@pytest.mark.parametrize(("n", "groups"), [(0, None), (1, None), (2, ["a", "a"])])
def test_bootstrap_statistic_of_few_rows(n: int, groups: list[str] | None) -> None:
    assert same(bootstrap_statistic(lambda rows: 1.0, n, seed=1, groups=groups), (NAN, NAN))


def test_bootstrap_statistic_undefined() -> None:
    assert same(bootstrap_statistic(lambda rows: NAN, 5, seed=1, resamples=10), (NAN, NAN))
    with pytest.raises(ValueError, match="resamples must be at least 1"):
        bootstrap_statistic(lambda rows: 1.0, 5, seed=1, resamples=0)
    with pytest.raises(ValueError, match="confidence must lie"):
        bootstrap_statistic(lambda rows: 1.0, 5, seed=1, confidence=2)


def test_bootstrap_coverage() -> None:
    """400 samples of 60: a 95 % interval misses the true value in about 20 of them (binomial: 8 to 33 at 99.9 %)."""

    from scipy import stats

    generator = np.random.default_rng(11)
    yes_no = [wilson_interval(int(generator.binomial(60, 0.8)), 60) for _ in range(400)]
    skewed = [bootstrap_interval(generator.gamma(2, size=60), seed=i, resamples=1_000) for i in range(400)]
    medians = [quantile_interval(generator.gamma(2, size=60), 0.5) for i in range(400)]
    truth = {0.8: yes_no, 2.0: skewed, float(stats.gamma.median(2)): medians}
    missed = {value: sum(not low <= value <= high for low, high in intervals) for value, intervals in truth.items()}
    assert all(8 <= count <= 33 for count in missed.values()), missed


def test_bootstrap_memory_independent_of_cases() -> None:
    """2,000 cases x 5,000 resamples in memory would be 80 MB."""
    values = np.random.default_rng(1).normal(size=2_000)
    tracemalloc.start()
    bootstrap_interval(values, seed=1, resamples=5_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3e6


@pytest.mark.slow("breadth: many cases")
def test_bootstrap_memory_of_multinomial_draws() -> None:
    """10,000 x 1,000 counts in memory would be 80 MB."""
    values = np.arange(20_000) % 1_000
    tracemalloc.start()
    bootstrap_interval(values, seed=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6

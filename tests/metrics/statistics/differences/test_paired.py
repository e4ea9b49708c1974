"""Many statistics from the same resamples: equal to single comparisons, to scipy, and to values by hand."""

import math
from typing import Any

import numpy as np
import pytest

from yarus.metrics.statistics import compare_paired
from yarus.metrics.statistics.bootstrap import resampled_interval
from yarus.metrics.statistics.differences.compared_statistics import SampleStatistic, StatisticComparison
from yarus.metrics.statistics.differences.draws import draw_resamples, draw_swaps
from yarus.metrics.statistics.differences.intervals import difference_interval
from yarus.metrics.statistics.differences.paired import compare_statistics

NAN = math.nan
GENERATOR = np.random.default_rng(7)
BEFORE = GENERATOR.random(120)
AFTER = np.clip(BEFORE + GENERATOR.normal(0.03, 0.15, 120), 0, 1)
SLOW = GENERATOR.lognormal(3, 1, 120)
SLOWER = SLOW * GENERATOR.lognormal(0.1, 0.3, 120)
CELLS = np.eye(4)[GENERATOR.integers(0, 4, (2, 120))]  # true and false positives, true and false negatives


def f1(totals: np.ndarray) -> np.ndarray:
    hits = 2 * totals[..., 0]
    return hits / (hits + totals[..., 1] + totals[..., 3])


def compare_one(count: int = 10_000, groups: Any = None, **number: Any) -> StatisticComparison:
    return compare_statistics({"it": SampleStatistic(**number)}, seed=1, count=count, groups=groups)["it"]


def near(p: float) -> float:
    return pytest.approx(p, abs=5 * math.sqrt(max(p, 1e-3) / 10_000))


@pytest.mark.parametrize("groups", [None, (np.arange(120) // 3).tolist()])
def test_compare_statistics_mean_equals_compare_paired(groups: Any) -> None:
    ours, peer = (
        compare_one(a=BEFORE, b=AFTER, groups=groups).comparison,
        compare_paired(BEFORE, AFTER, seed=1, groups=groups),
    )
    for name in ("difference", "smallest_detectable", "margin"):
        assert getattr(ours, name) == pytest.approx(getattr(peer, name), rel=1e-9)
    assert (ours.n, ours.method, ours.verdict) == (peer.n, peer.method, peer.verdict)
    assert ours.p == near(peer.p)
    assert ours.interval == pytest.approx(peer.interval, abs=0.003)


def test_compare_statistics_yes_no_exactly() -> None:
    yes = (BEFORE > 0.4).astype(float), (AFTER > 0.4).astype(float)
    assert compare_one(a=yes[0], b=yes[1]).comparison == compare_paired(*yes, seed=1)


@pytest.mark.parametrize("quantile", [0.5, 0.95])
def test_quantiles_agree_with_scipy(quantile: float) -> None:
    from scipy import stats

    def difference(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
        return np.quantile(y, quantile, axis=axis) - np.quantile(x, quantile, axis=axis)

    compared = compare_one(a=SLOW, b=SLOWER, quantile=quantile)
    assert (compared.a, compared.b) == (np.quantile(SLOW, quantile), np.quantile(SLOWER, quantile))
    peer = stats.bootstrap((SLOW, SLOWER), difference, paired=True, vectorized=True, method="percentile", rng=2)
    assert compared.comparison.interval == pytest.approx(peer.confidence_interval, rel=0.15)
    test = stats.permutation_test((SLOW, SLOWER), difference, permutation_type="samples", vectorized=True, rng=2)
    assert compared.comparison.p == near(test.pvalue)


def test_quantiles_of_groups_agree_with_naive_draws() -> None:
    groups = (np.arange(120) // 4).tolist()
    comparison = compare_one(a=SLOW, b=SLOWER, quantile=0.5, groups=groups).comparison
    generator = np.random.default_rng(3)
    units = generator.integers(0, 30, (5_000, 30))
    rows = (np.arange(4) + 4 * units[:, :, None]).reshape(5_000, 120)
    draws = np.median(SLOWER[rows], axis=1) - np.median(SLOW[rows], axis=1)
    assert comparison.interval == pytest.approx(np.quantile(draws, [0.025, 0.975]), rel=0.1, abs=0.3)
    turned = generator.integers(0, 2, (5_000, 30)).repeat(4, axis=1).astype(bool)
    swapped = np.median(np.where(turned, SLOW, SLOWER), axis=1) - np.median(np.where(turned, SLOWER, SLOW), axis=1)
    assert comparison.p == pytest.approx(np.mean(np.abs(swapped) >= abs(comparison.difference) - 1e-9), abs=0.03)


def test_f1_agrees_with_scipy() -> None:
    from scipy import stats

    def difference_of_f1(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
        return np.asarray(f1(CELLS[1][rows_of(y)].sum(axis=-2)) - f1(CELLS[0][rows_of(x)].sum(axis=-2)))

    def rows_of(values: np.ndarray) -> np.ndarray:
        return values.astype(int)

    compared = compare_one(a=CELLS[0], b=CELLS[1], statistic=f1, margin=0.05)
    rows = np.arange(120.0)
    peer = stats.bootstrap(
        (rows, rows), difference_of_f1, paired=True, vectorized=True, method="percentile", rng=2, batch=500, axis=-1
    )
    assert compared.comparison.interval == pytest.approx(peer.confidence_interval, abs=0.01)
    generator = np.random.default_rng(4)
    turned = generator.integers(0, 2, (5_000, 120, 1)).astype(bool)
    swapped = f1(np.where(turned, CELLS[0], CELLS[1]).sum(axis=1)) - f1(
        np.where(turned, CELLS[1], CELLS[0]).sum(axis=1)
    )
    peer_p = np.mean(np.abs(swapped) >= abs(compared.comparison.difference) - 1e-9)
    assert compared.comparison.p == pytest.approx(peer_p, abs=0.03)


NUMBERS: dict[str, tuple[dict[str, Any], Any]] = {
    "mean": ({"a": BEFORE[:40], "b": AFTER[:40]}, np.mean),
    "quantile": ({"a": SLOW[:40], "b": SLOWER[:40], "quantile": 0.8}, lambda values: np.quantile(values, 0.8)),
    "f1": ({"a": CELLS[0][:40], "b": CELLS[1][:40], "statistic": f1}, lambda cells: f1(cells.sum(axis=0))),
}


@pytest.mark.parametrize("each", [1, 3, 5])
@pytest.mark.parametrize("name", NUMBERS)
def test_compare_statistics_equals_naive_draws(name: str, each: int) -> None:
    """Cases 2 and 3 were measured on one side only; with five cases per group all 256 swaps are tried."""

    from scipy import stats

    number, naive = NUMBERS[name]
    a, b, codes = number["a"].copy(), number["b"].copy(), np.arange(40) // each
    a[2], b[3] = NAN, NAN
    kept, units = np.delete(np.arange(40), [2, 3]), int(codes.max()) + 1

    def compute_difference(rows: np.ndarray, swapped: np.ndarray | None = None) -> float:
        turned = np.zeros(40, dtype=bool) if swapped is None else swapped[codes] > 0
        shape = (-1, *[1] * (a.ndim - 1))
        after, before = np.where(turned.reshape(shape), a, b)[rows], np.where(turned.reshape(shape), b, a)[rows]
        return float(naive(after) - naive(before))

    groups = None if each == 1 else codes.tolist()
    numbers = {"it": SampleStatistic(**number | {"a": a, "b": b})}
    ours = compare_statistics(numbers, seed=1, groups=groups, confidence=0.9, count=300)["it"].comparison
    resampled = np.array(
        [
            compute_difference(np.repeat(kept, row[codes[kept]].astype(int)))
            for _, rows in draw_resamples(units, 300, 1)
            for row in rows
        ]
    )
    difference = compute_difference(kept)
    if name == "mean":
        interval = difference_interval((b - a)[kept], np.unique(codes[kept], return_inverse=True)[1], 1.0)(0.9)
    else:  # as far in as Student's quantile of the effective units is further out than the normal one
        sizes = np.bincount(codes[kept])
        n_effective = sizes.sum() ** 2 / (sizes**2).sum()
        tail = stats.norm.cdf(stats.t(n_effective - 1).ppf(0.05) * math.sqrt(n_effective / (n_effective - 1)))
        interval = resampled_interval(difference, resampled, None, 1 - 2 * tail)
    swapped_differences = np.abs(
        [compute_difference(kept, row) for _, rows in draw_swaps(units, 300, seed=2) for row in rows]
    )
    larger = int((swapped_differences >= abs(difference) - 1e-9).sum())
    assert ours.difference == pytest.approx(difference)
    if ours.p >= 0.1:  # it holds 0
        interval = min(interval[0], 0.0), max(interval[1], 0.0)
    assert tuple(ours.interval) == pytest.approx(tuple(interval))
    assert ours.p == pytest.approx(larger / 256 if each == 5 else (larger + 1) / 301)
    assert (ours.n, ours.n_missing, ours.alpha) == (38, 2, 0.1)
    if name != "mean":
        assert ours.smallest_detectable == pytest.approx((1.6448536 + 0.8416212) * resampled.std())
        assert ours.margin == pytest.approx(0.05 * naive(a[kept]))


@pytest.mark.parametrize("n", [5, 6])
def test_compare_statistics_needs_six_pairs(n: int) -> None:
    for number in ({}, {"quantile": 0.5}):
        same = compare_one(a=BEFORE[:n], b=BEFORE[:n], margin=1.0, **number).comparison
        assert same.verdict == ("no difference shown" if n == 6 else "inconclusive")
        changed = compare_one(a=BEFORE[:n], b=AFTER[:n], **number).comparison
        assert math.isnan(changed.smallest_detectable) == (n == 5)


def test_compare_statistics_equal_differences_without_rounding() -> None:
    comparison = compare_one(a=np.zeros(40), b=np.full(40, 0.1)).comparison
    assert (comparison.difference, comparison.interval) == (pytest.approx(0.1), (0.1, 0.1))
    assert comparison.verdict == "improved"


def test_compare_statistics_margin_default_and_given() -> None:
    assert compare_one(a=-SLOW, b=-SLOWER, quantile=0.5).comparison.margin == pytest.approx(0.05 * np.median(SLOW))
    assert compare_one(a=SLOW, b=SLOWER, quantile=0.5, margin=7.0).comparison.margin == 7


def test_numbers_and_comparisons_are_immutable() -> None:
    with pytest.raises(AttributeError):
        SampleStatistic(BEFORE, AFTER).margin = 0.1  # type: ignore[misc]
    with pytest.raises(AttributeError):
        compare_one(a=BEFORE, b=AFTER).comparison.p = 0.01  # type: ignore[misc]


def test_default_is_ten_thousand_draws() -> None:
    p = compare_statistics({"it": SampleStatistic(BEFORE, AFTER)}, seed=1)["it"].comparison.p
    assert p * 10_001 == pytest.approx(round(p * 10_001), abs=1e-9)


def test_compare_statistics_of_two_pairs() -> None:
    from scipy import stats

    comparison = compare_one(a=np.array([0.1, 0.2]), b=np.array([0.3, 0.5])).comparison
    assert comparison.p == 0.5
    assert tuple(comparison.interval) == pytest.approx(stats.ttest_1samp([0.2, 0.3], 0).confidence_interval())
    yes_no = compare_one(a=np.array([0.0, 0.0]), b=np.array([1.0, 1.0])).comparison
    assert (yes_no.p, yes_no.method) == (0.5, "exact McNemar, Newcombe 10")


def test_compare_statistics_enumerates_swaps_of_few_pairs() -> None:
    """Eight differences of one sign: two of the 256 patterns are as extreme."""
    assert compare_one(a=np.arange(8.0), b=np.arange(8.0) + np.linspace(0.1, 0.4, 8)).comparison.p == 2 / 256
    assert compare_one(a=np.arange(14.0), b=np.arange(14.0) + 0.5).comparison.p == pytest.approx(1 / 10_001, abs=3e-4)


def test_compare_statistics_leaves_out_missing_pairs() -> None:
    a, b = BEFORE.copy(), AFTER.copy()
    a[:3], b[2:5] = NAN, NAN
    compared, without = compare_one(a=a, b=b), compare_one(a=BEFORE[5:], b=AFTER[5:])
    assert (compared.comparison.n, compared.comparison.n_missing) == (115, 5)
    assert (compared.a, compared.b) == (pytest.approx(without.a), pytest.approx(without.b))


@pytest.mark.parametrize("n", [0, 1])
def test_compare_statistics_undefined_for_few_pairs(n: int) -> None:
    for number in ({}, {"quantile": 0.5}, {"statistic": lambda totals: totals[..., 0]}):
        table = BEFORE[:n, None] if "statistic" in number else BEFORE[:n]
        comparison = compare_one(a=table, b=table, **number).comparison
        assert math.isnan(comparison.p)
        assert math.isnan(comparison.interval.low)
        assert (comparison.verdict, comparison.n) == ("inconclusive", n)


def test_compare_statistics_of_constant_values() -> None:
    comparison = compare_one(a=np.full(40, 0.3), b=np.full(40, 0.3)).comparison
    assert (comparison.p, comparison.interval, comparison.verdict) == (1.0, (0.0, 0.0), "no difference shown")
    assert math.isnan(comparison.smallest_detectable)


def test_compare_statistics_undefined_without_value() -> None:
    never = np.zeros((40, 4)) + np.eye(4)[2]  # true negatives only: F1 is 0 / 0
    comparison = compare_one(a=CELLS[0][:40], b=never, statistic=f1).comparison
    assert math.isnan(comparison.p)
    assert comparison.method == "none: a side has no value"


def test_compare_statistics_refuses_different_cases() -> None:
    with pytest.raises(ValueError, match="it: 120 and 119 cases"):
        compare_one(a=BEFORE, b=AFTER[1:])
    with pytest.raises(ValueError, match="it: values must be finite"):
        compare_one(a=BEFORE, b=np.where(AFTER > 0.5, np.inf, AFTER))
    assert compare_statistics({}, seed=1) == {}

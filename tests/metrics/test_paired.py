"""Many numbers from one set of draws: the same as one by one, as scipy, and as worked out by hand."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep

from metrics.paired import Compared, Number, compare_numbers
from metrics.statistics import compare_paired
from metrics.unpaired import compare_independent

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


def one(count: int = 10_000, groups: Any = None, **number: Any) -> Compared:
    return compare_numbers({"it": Number(**number)}, seed=1, count=count, groups=groups)["it"]


def near(p: float) -> float:
    return pytest.approx(p, abs=5 * math.sqrt(max(p, 1e-3) / 10_000))


@pytest.mark.parametrize("groups", [None, (np.arange(120) // 3).tolist()])
def test_a_mean_is_compared_as_alone(groups: Any) -> None:
    ours, peer = one(a=BEFORE, b=AFTER, groups=groups).comparison, compare_paired(BEFORE, AFTER, seed=1, groups=groups)
    for name in ("difference", "smallest_detectable", "margin"):
        assert getattr(ours, name) == pytest.approx(getattr(peer, name), rel=1e-9)
    assert (ours.n, ours.method, ours.verdict) == (peer.n, peer.method, peer.verdict)
    assert ours.p == near(peer.p)
    assert ours.interval == pytest.approx(peer.interval, abs=0.003)


def test_yes_and_no_are_compared_exactly() -> None:
    yes = (BEFORE > 0.4).astype(float), (AFTER > 0.4).astype(float)
    assert one(a=yes[0], b=yes[1]).comparison == compare_paired(*yes, seed=1)


@pytest.mark.parametrize("quantile", [0.5, 0.95])
def test_quantiles_agree_with_scipy(quantile: float) -> None:
    def apart(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
        return np.quantile(y, quantile, axis=axis) - np.quantile(x, quantile, axis=axis)

    found = one(a=SLOW, b=SLOWER, quantile=quantile)
    assert (found.a, found.b) == (np.quantile(SLOW, quantile), np.quantile(SLOWER, quantile))
    peer = stats.bootstrap((SLOW, SLOWER), apart, paired=True, vectorized=True, method="percentile", rng=2)
    assert found.comparison.interval == pytest.approx(peer.confidence_interval, rel=0.15)
    test = stats.permutation_test((SLOW, SLOWER), apart, permutation_type="samples", vectorized=True, rng=2)
    assert found.comparison.p == near(test.pvalue)


def test_quantiles_of_groups_agree_with_naive_draws() -> None:
    groups = (np.arange(120) // 4).tolist()
    found = one(a=SLOW, b=SLOWER, quantile=0.5, groups=groups).comparison
    generator = np.random.default_rng(3)
    rows = [np.concatenate([np.arange(4) + 4 * unit for unit in generator.integers(0, 30, 30)]) for _ in range(5_000)]
    draws = [np.median(SLOWER[own]) - np.median(SLOW[own]) for own in rows]
    assert found.interval == pytest.approx(np.quantile(draws, [0.025, 0.975]), rel=0.1, abs=0.3)
    turned = generator.integers(0, 2, (5_000, 30)).repeat(4, axis=1).astype(bool)
    swapped = np.median(np.where(turned, SLOW, SLOWER), axis=1) - np.median(np.where(turned, SLOWER, SLOW), axis=1)
    assert found.p == pytest.approx(np.mean(np.abs(swapped) >= abs(found.difference) - 1e-9), abs=0.03)


def test_f1_agrees_with_scipy() -> None:
    def apart(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
        return np.asarray(f1(CELLS[1][rows_of(y)].sum(axis=-2)) - f1(CELLS[0][rows_of(x)].sum(axis=-2)))

    def rows_of(values: np.ndarray) -> np.ndarray:
        return values.astype(int)

    found = one(a=CELLS[0], b=CELLS[1], statistic=f1, margin=0.05)
    rows = np.arange(120.0)
    peer = stats.bootstrap(
        (rows, rows), apart, paired=True, vectorized=True, method="percentile", rng=2, batch=500, axis=-1
    )
    assert found.comparison.interval == pytest.approx(peer.confidence_interval, abs=0.01)
    generator = np.random.default_rng(4)
    turned = generator.integers(0, 2, (5_000, 120, 1)).astype(bool)
    swapped = f1(np.where(turned, CELLS[0], CELLS[1]).sum(axis=1)) - f1(
        np.where(turned, CELLS[1], CELLS[0]).sum(axis=1)
    )
    peer_p = np.mean(np.abs(swapped) >= abs(found.comparison.difference) - 1e-9)
    assert found.comparison.p == pytest.approx(peer_p, abs=0.03)


def test_few_pairs_have_every_swap_tried() -> None:
    """Eight differences of one sign: two of the 256 patterns are as extreme."""
    assert one(a=np.arange(8.0), b=np.arange(8.0) + np.linspace(0.1, 0.4, 8)).comparison.p == 2 / 256
    assert one(a=np.arange(14.0), b=np.arange(14.0) + 0.5).comparison.p == pytest.approx(1 / 10_001, abs=3e-4)


def test_what_one_side_did_not_measure_is_left_out() -> None:
    a, b = BEFORE.copy(), AFTER.copy()
    a[:3], b[2:5] = NAN, NAN
    found, without = one(a=a, b=b), one(a=BEFORE[5:], b=AFTER[5:])
    assert (found.comparison.n, found.comparison.n_missing) == (115, 5)
    assert (found.a, found.b) == (pytest.approx(without.a), pytest.approx(without.b))


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_pairs_have_neither_p_nor_interval(n: int) -> None:
    for number in ({}, {"quantile": 0.5}, {"statistic": lambda totals: totals[..., 0]}):
        table = BEFORE[:n, None] if "statistic" in number else BEFORE[:n]
        found = one(a=table, b=table, **number).comparison
        assert math.isnan(found.p)
        assert math.isnan(found.interval.low)
        assert (found.verdict, found.n) == ("inconclusive", n)


def test_what_never_varies_is_no_difference() -> None:
    found = one(a=np.full(40, 0.3), b=np.full(40, 0.3)).comparison
    assert (found.p, found.interval, found.verdict) == (1.0, (0.0, 0.0), "no difference shown")
    assert math.isnan(found.smallest_detectable)


def test_a_number_without_value_on_one_side_is_not_compared() -> None:
    never = np.zeros((40, 4)) + np.eye(4)[2]  # true negatives only: F1 is 0 / 0
    found = one(a=CELLS[0][:40], b=never, statistic=f1).comparison
    assert math.isnan(found.p)
    assert found.method == "none: a side has no value"


def test_numbers_over_different_cases_are_refused() -> None:
    with pytest.raises(ValueError, match="it: 120 and 119 cases"):
        one(a=BEFORE, b=AFTER[1:])
    with pytest.raises(ValueError, match="it: values must be finite"):
        one(a=BEFORE, b=np.where(AFTER > 0.5, np.inf, AFTER))
    assert compare_numbers({}, seed=1) == {}


def apart(a: Any, b: Any, groups: Any = None, **number: Any) -> Compared:
    labels = groups or ([None] * len(a), [None] * len(b))
    return compare_independent({"it": Number(a=a, b=b, **number)}, seed=1, groups=labels)["it"]


def test_different_cases_are_compared_by_welch() -> None:
    found = apart(BEFORE[:70], AFTER[50:]).comparison
    peer = stats.ttest_ind(AFTER[50:], BEFORE[:70], equal_var=False)
    assert found.p == pytest.approx(peer.pvalue, rel=1e-12)
    assert found.interval == pytest.approx(peer.confidence_interval(0.95), rel=1e-9)
    assert (found.method, found.n, found.n_missing) == ("Welch", 70, 0)


def test_different_cases_in_groups_are_bootstrapped_by_group() -> None:
    groups = ((np.arange(70) // 2).tolist(), (np.arange(70) // 2).tolist())
    found = apart(BEFORE[:70], AFTER[50:], groups).comparison
    assert found.method == "independent bootstrap, percentile (by group)"
    alone = apart(BEFORE[:70], AFTER[50:]).comparison
    assert found.interval == pytest.approx(alone.interval, abs=0.06)
    assert found.p == pytest.approx(alone.p, abs=0.15)


def test_quantiles_of_different_cases_agree_with_scipy() -> None:
    found = apart(SLOW, SLOWER[:80], quantile=0.5)
    peer = stats.bootstrap(
        (SLOW, SLOWER[:80]),
        lambda x, y, axis: np.median(y, axis=axis) - np.median(x, axis=axis),
        vectorized=True,
        method="percentile",
        rng=2,
    )
    assert found.comparison.interval == pytest.approx(peer.confidence_interval, rel=0.15, abs=0.5)


@pytest.mark.parametrize(("n", "m"), [(0, 5), (1, 5), (5, 0)])
def test_too_few_on_a_side_are_not_compared(n: int, m: int) -> None:
    found = apart(BEFORE[:n], AFTER[:m]).comparison
    assert math.isnan(found.p)
    assert found.verdict == "inconclusive"


@pytest.mark.parametrize(("yes_a", "yes_b"), [(0, 20), (3, 40), (20, 200), (40, 400)])
def test_shares_of_different_cases_are_fishers_and_newcombes(yes_a: int, yes_b: int) -> None:
    """Few and many cases a side: Welch would find 0 of 40 and 20 of 400 different (p 6e-6)."""
    a, b = np.arange(40) < yes_a, np.arange(400) < yes_b
    found = compare_independent(
        {"it": Number(a=a.astype(float), b=b.astype(float))}, seed=1, groups=([None] * 40, [None] * 400)
    )["it"].comparison
    assert found.p == pytest.approx(stats.fisher_exact([[yes_a, 40 - yes_a], [yes_b, 400 - yes_b]]).pvalue)
    low, high = confint_proportions_2indep(yes_b, 400, yes_a, 40, method="newcomb", compare="diff")
    assert found.interval == pytest.approx((low, high))
    assert found.method == "exact Fisher, Newcombe"

"""Statistics over different cases: equal to Welch, Fisher, Newcombe, scipy, and naive resamples."""

import math
from typing import Any

import numpy as np
import pytest

from yarus.metrics.statistics.differences.compared_statistics import SampleStatistic, StatisticComparison
from yarus.metrics.statistics.differences.draws import draw_resamples
from yarus.metrics.statistics.differences.unpaired import compare_independent

GENERATOR = np.random.default_rng(7)
BEFORE = GENERATOR.random(120)
AFTER = np.clip(BEFORE + GENERATOR.normal(0.03, 0.15, 120), 0, 1)
SLOW = GENERATOR.lognormal(3, 1, 120)
SLOWER = SLOW * GENERATOR.lognormal(0.1, 0.3, 120)


def compare(a: Any, b: Any, groups: Any = None, **number: Any) -> StatisticComparison:
    labels = groups or ([None] * len(a), [None] * len(b))
    return compare_independent({"it": SampleStatistic(a=a, b=b, **number)}, seed=1, groups=labels)["it"]


def test_compare_independent_by_welch() -> None:
    from scipy import stats

    comparison = compare(BEFORE[:70], AFTER[50:]).comparison
    peer = stats.ttest_ind(AFTER[50:], BEFORE[:70], equal_var=False)
    assert comparison.p == pytest.approx(peer.pvalue, rel=1e-12)
    assert comparison.interval == pytest.approx(peer.confidence_interval(0.95), rel=1e-9)
    assert (comparison.method, comparison.n, comparison.n_missing) == ("Welch", 70, 0)


def test_compare_independent_by_group() -> None:
    """Duplicates of each case add no information."""
    groups = (np.repeat(np.arange(70), 2).tolist(), np.repeat(np.arange(70), 2).tolist())
    comparison = compare(BEFORE[:70].repeat(2), AFTER[50:].repeat(2), groups).comparison
    ungrouped = compare(BEFORE[:70], AFTER[50:]).comparison
    assert comparison.method == "Welch (by group)"
    assert tuple(comparison.interval) == pytest.approx(tuple(ungrouped.interval))
    assert (comparison.p, comparison.units) == (pytest.approx(ungrouped.p), 70)


def test_compare_independent_quantiles_agree_with_scipy() -> None:
    from scipy import stats

    compared = compare(SLOW, SLOWER[:80], quantile=0.5)
    peer = stats.bootstrap(
        (SLOW, SLOWER[:80]),
        lambda x, y, axis: np.median(y, axis=axis) - np.median(x, axis=axis),
        vectorized=True,
        method="percentile",
        rng=2,
    )
    assert compared.comparison.interval == pytest.approx(peer.confidence_interval, rel=0.15, abs=0.5)


@pytest.mark.parametrize(("n", "m"), [(0, 5), (1, 5), (5, 0)])
def test_compare_independent_undefined_for_few_cases(n: int, m: int) -> None:
    comparison = compare(BEFORE[:n], AFTER[:m]).comparison
    assert math.isnan(comparison.p)
    assert comparison.verdict == "inconclusive"


@pytest.mark.parametrize(("yes_a", "yes_b"), [(0, 20), (3, 40), (20, 200), (40, 400)])
def test_compare_independent_shares_by_fisher_and_newcombe(yes_a: int, yes_b: int) -> None:
    """Few and many cases per side: Welch would find 0 of 40 and 20 of 400 different (p 6e-6)."""

    from scipy import stats
    from statsmodels.stats.proportion import confint_proportions_2indep

    a, b = np.arange(40) < yes_a, np.arange(400) < yes_b
    comparison = compare_independent(
        {"it": SampleStatistic(a=a.astype(float), b=b.astype(float))}, seed=1, groups=([None] * 40, [None] * 400)
    )["it"].comparison
    assert comparison.p == pytest.approx(stats.fisher_exact([[yes_a, 40 - yes_a], [yes_b, 400 - yes_b]]).pvalue)
    low, high = confint_proportions_2indep(yes_b, 400, yes_a, 40, method="newcomb", compare="diff")
    assert comparison.interval == pytest.approx((low, high))
    assert comparison.method == "exact Fisher, Newcombe"


def second_of_three(totals: np.ndarray) -> np.ndarray:
    return totals[..., 1] / totals.sum(axis=-1)


@pytest.mark.parametrize(
    ("number", "naive"),
    [
        ({"quantile": 0.9}, lambda values: np.quantile(values, 0.9, axis=1)),
        ({"statistic": second_of_three}, lambda values: second_of_three(values.sum(axis=1))),
    ],
)
def test_compare_independent_equals_naive_draws(number: Any, naive: Any) -> None:
    """Each side resamples its own groups, with its own seed; computed resample by resample."""

    from scipy import stats

    sides = BEFORE[:30], AFTER[50:100]
    if "statistic" in number:
        sides = np.eye(3)[np.arange(30) % 3], np.eye(3)[np.arange(50) ** 2 % 3]
    codes = np.arange(30) // 3, np.arange(50) // 2
    compared = compare(*sides, groups=(codes[0].tolist(), codes[1].tolist()), **number)
    resampled = []
    for side, units in enumerate((10, 25)):
        weights = np.concatenate([weights for _, weights in draw_resamples(units, 10_000, seed=1 + side)]).astype(int)
        n = len(sides[side])  # in every draw: the groups of a side are of one size
        rows = np.repeat(np.tile(np.arange(n), 10_000), weights[:, codes[side]].ravel()).reshape(10_000, n)
        resampled.append(naive(sides[side][rows]))
    differences = resampled[1] - resampled[0]
    assert (compared.a, compared.b) == tuple(pytest.approx(naive(side[None])[0]) for side in sides)
    assert compared.comparison.difference == compared.b - compared.a
    tail = stats.norm.cdf(stats.t(9).ppf(0.025) * math.sqrt(10 / 9))  # the smaller side has ten groups
    assert tuple(compared.comparison.interval) == pytest.approx(np.quantile(differences, [tail, 1 - tail]))
    beyond = min((differences <= 1e-12).sum(), (differences >= -1e-12).sum()) + 1
    assert compared.comparison.p == pytest.approx(2 * beyond / 10_001)
    assert compared.comparison.smallest_detectable == pytest.approx((1.959964 + 0.841621) * differences.std(), rel=1e-6)
    assert compared.comparison.n == 30


def test_compare_independent_smallest_detectable() -> None:
    comparison = compare(BEFORE[:70], AFTER[50:]).comparison
    error = math.sqrt(BEFORE[:70].var() / 70 + AFTER[50:].var() / 70)
    assert comparison.smallest_detectable == pytest.approx(2.801585 * error, rel=0.03)


def test_compare_independent_undefined_without_value() -> None:
    comparison = compare(np.eye(3), np.zeros((9, 3)), statistic=second_of_three).comparison
    assert math.isnan(comparison.p)
    assert math.isnan(comparison.smallest_detectable)
    assert comparison.method == "none: fewer than two cases a side, or no value"


def test_compare_independent_of_constant_values() -> None:
    same = compare(np.full(8, 0.3), np.full(9, 0.3)).comparison  # whose means differ in the last digit
    assert (same.p, same.interval, same.verdict) == (1.0, (0.0, 0.0), "no difference shown")
    different = compare(np.full(8, 0.25), np.full(9, 0.5)).comparison
    assert (different.p, different.interval, different.verdict) == (2 / math.comb(17, 8), (0.25, 0.25), "improved")
    assert math.isnan(same.smallest_detectable)


@pytest.mark.parametrize(("n", "verdict"), [(5, "inconclusive"), (6, "improved")])
def test_compare_independent_needs_six_cases_per_side(n: int, verdict: str) -> None:
    comparison = compare(0.001 * np.arange(n), 0.9 + 0.001 * np.arange(40)).comparison
    assert comparison.p < 1e-6
    assert comparison.verdict == verdict
    assert math.isnan(comparison.smallest_detectable) == (n < 6)


def test_compare_independent_keeps_level_and_margin() -> None:
    values = SampleStatistic(a=BEFORE, b=AFTER[:80])
    groups = ([None] * 120, [None] * 80)
    comparison = compare_independent({"it": values}, seed=1, groups=groups, confidence=0.9)["it"].comparison
    assert comparison.alpha == 0.1
    assert comparison.margin == pytest.approx(0.2 * np.concatenate([BEFORE, AFTER[:80]]).std())
    assert compare(BEFORE, AFTER, margin=0.3).comparison.margin == 0.3
    assert compare(-SLOW, -SLOWER, quantile=0.5).comparison.margin == pytest.approx(0.05 * np.median(SLOW))
    assert compare(BEFORE.round(), AFTER[:80].round()).comparison.margin == 0.05


def test_compare_independent_shares_with_scores_as_means() -> None:
    assert compare(BEFORE.round(), AFTER).comparison.method == "Welch"
    assert compare(BEFORE, AFTER.round()).comparison.method == "Welch"
    pairs = ([*range(60), *range(60)], [None] * 120)
    assert compare(BEFORE.round(), AFTER.round(), pairs).comparison.method.endswith("(by group)")


def test_compare_independent_counts_missing_on_both_sides() -> None:
    a, b = BEFORE.copy(), AFTER[:80].copy()
    a[:3], b[:5] = math.nan, math.nan
    comparison = compare(a, b).comparison
    assert (comparison.n, comparison.n_missing) == (75, 8)
    rest = compare(BEFORE[3:], AFTER[5:80]).comparison
    assert (comparison.p, comparison.interval, comparison.difference) == (rest.p, rest.interval, rest.difference)


def test_compare_independent_p_above_zero() -> None:
    noise = 1e-9 * np.arange(40)
    assert compare(noise, 1 + noise).comparison.p > 0
    assert compare(np.zeros(3_000), np.ones(3_000)).comparison.p > 0

"""Numbers over different cases: as Welch, Fisher, Newcombe and scipy have them, and as the draws worked out naively."""

import math
from typing import Any

import numpy as np
import pytest

from yarus.metrics.statistics.differences.draws import resamples
from yarus.metrics.statistics.differences.numbers import Compared, Number
from yarus.metrics.statistics.differences.unpaired import compare_independent

GENERATOR = np.random.default_rng(7)
BEFORE = GENERATOR.random(120)
AFTER = np.clip(BEFORE + GENERATOR.normal(0.03, 0.15, 120), 0, 1)
SLOW = GENERATOR.lognormal(3, 1, 120)
SLOWER = SLOW * GENERATOR.lognormal(0.1, 0.3, 120)


def apart(a: Any, b: Any, groups: Any = None, **number: Any) -> Compared:
    labels = groups or ([None] * len(a), [None] * len(b))
    return compare_independent({"it": Number(a=a, b=b, **number)}, seed=1, groups=labels)["it"]


def test_different_cases_are_compared_by_welch() -> None:
    from scipy import stats

    found = apart(BEFORE[:70], AFTER[50:]).comparison
    peer = stats.ttest_ind(AFTER[50:], BEFORE[:70], equal_var=False)
    assert found.p == pytest.approx(peer.pvalue, rel=1e-12)
    assert found.interval == pytest.approx(peer.confidence_interval(0.95), rel=1e-9)
    assert (found.method, found.n, found.n_missing) == ("Welch", 70, 0)


def test_of_different_cases_in_groups_the_groups_are_compared() -> None:
    """Twins of each case say nothing new."""
    groups = (np.repeat(np.arange(70), 2).tolist(), np.repeat(np.arange(70), 2).tolist())
    found = apart(BEFORE[:70].repeat(2), AFTER[50:].repeat(2), groups).comparison
    alone = apart(BEFORE[:70], AFTER[50:]).comparison
    assert found.method == "Welch (by group)"
    assert tuple(found.interval) == pytest.approx(tuple(alone.interval))
    assert (found.p, found.units) == (pytest.approx(alone.p), 70)


def test_quantiles_of_different_cases_agree_with_scipy() -> None:
    from scipy import stats

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

    from scipy import stats
    from statsmodels.stats.proportion import confint_proportions_2indep

    a, b = np.arange(40) < yes_a, np.arange(400) < yes_b
    found = compare_independent(
        {"it": Number(a=a.astype(float), b=b.astype(float))}, seed=1, groups=([None] * 40, [None] * 400)
    )["it"].comparison
    assert found.p == pytest.approx(stats.fisher_exact([[yes_a, 40 - yes_a], [yes_b, 400 - yes_b]]).pvalue)
    low, high = confint_proportions_2indep(yes_b, 400, yes_a, 40, method="newcomb", compare="diff")
    assert found.interval == pytest.approx((low, high))
    assert found.method == "exact Fisher, Newcombe"


def second_of_three(totals: np.ndarray) -> np.ndarray:
    return totals[..., 1] / totals.sum(axis=-1)


@pytest.mark.parametrize(
    ("number", "naive"),
    [
        ({"quantile": 0.9}, lambda values: np.quantile(values, 0.9, axis=1)),
        ({"statistic": second_of_three}, lambda values: second_of_three(values.sum(axis=1))),
    ],
)
def test_interval_p_and_detectable_difference_follow_from_the_draws_of_both_sides(number: Any, naive: Any) -> None:
    """Each side draws its own groups, from a seed of its own; worked out draw by draw."""

    from scipy import stats

    sides = BEFORE[:30], AFTER[50:100]
    if "statistic" in number:
        sides = np.eye(3)[np.arange(30) % 3], np.eye(3)[np.arange(50) ** 2 % 3]
    codes = np.arange(30) // 3, np.arange(50) // 2
    found = apart(*sides, groups=(codes[0].tolist(), codes[1].tolist()), **number)
    drawn = []
    for which, units in enumerate((10, 25)):
        weights = np.concatenate([weights for _, weights in resamples(units, 10_000, seed=1 + which)]).astype(int)
        n = len(sides[which])  # in every draw: the groups of a side are of one size
        rows = np.repeat(np.tile(np.arange(n), 10_000), weights[:, codes[which]].ravel()).reshape(10_000, n)
        drawn.append(naive(sides[which][rows]))
    differences = drawn[1] - drawn[0]
    assert (found.a, found.b) == tuple(pytest.approx(naive(side[None])[0]) for side in sides)
    assert found.comparison.difference == found.b - found.a
    tail = stats.norm.cdf(stats.t(9).ppf(0.025) * math.sqrt(10 / 9))  # the smaller side has ten groups
    assert tuple(found.comparison.interval) == pytest.approx(np.quantile(differences, [tail, 1 - tail]))
    beyond = min((differences <= 1e-12).sum(), (differences >= -1e-12).sum()) + 1
    assert found.comparison.p == pytest.approx(2 * beyond / 10_001)
    assert found.comparison.smallest_detectable == pytest.approx((1.959964 + 0.841621) * differences.std(), rel=1e-6)
    assert found.comparison.n == 30


def test_what_welch_would_find_four_times_in_five() -> None:
    found = apart(BEFORE[:70], AFTER[50:]).comparison
    error = math.sqrt(BEFORE[:70].var() / 70 + AFTER[50:].var() / 70)
    assert found.smallest_detectable == pytest.approx(2.801585 * error, rel=0.03)


def test_a_number_without_a_value_on_one_side_is_not_compared() -> None:
    found = apart(np.eye(3), np.zeros((9, 3)), statistic=second_of_three).comparison
    assert math.isnan(found.p)
    assert math.isnan(found.smallest_detectable)
    assert found.method == "none: fewer than two cases a side, or no value"


def test_values_that_never_vary_are_told_apart_by_how_chance_would_part_them() -> None:
    same = apart(np.full(8, 0.3), np.full(9, 0.3)).comparison  # whose means differ in the last digit
    assert (same.p, same.interval, same.verdict) == (1.0, (0.0, 0.0), "no difference shown")
    other = apart(np.full(8, 0.25), np.full(9, 0.5)).comparison
    assert (other.p, other.interval, other.verdict) == (2 / math.comb(17, 8), (0.25, 0.25), "improved")
    assert math.isnan(same.smallest_detectable)


@pytest.mark.parametrize(("n", "verdict"), [(5, "inconclusive"), (6, "improved")])
def test_six_cases_a_side_are_the_fewest(n: int, verdict: str) -> None:
    found = apart(0.001 * np.arange(n), 0.9 + 0.001 * np.arange(40)).comparison
    assert found.p < 1e-6
    assert found.verdict == verdict
    assert math.isnan(found.smallest_detectable) == (n < 6)


def test_a_level_and_a_margin_are_kept() -> None:
    values = Number(a=BEFORE, b=AFTER[:80])
    groups = ([None] * 120, [None] * 80)
    found = compare_independent({"it": values}, seed=1, groups=groups, confidence=0.9)["it"].comparison
    assert found.alpha == 0.1
    assert found.margin == pytest.approx(0.2 * np.concatenate([BEFORE, AFTER[:80]]).std())
    assert apart(BEFORE, AFTER, margin=0.3).comparison.margin == 0.3
    assert apart(-SLOW, -SLOWER, quantile=0.5).comparison.margin == pytest.approx(0.05 * np.median(SLOW))
    assert apart(BEFORE.round(), AFTER[:80].round()).comparison.margin == 0.05


def test_shares_against_values_between_are_compared_as_means() -> None:
    assert apart(BEFORE.round(), AFTER).comparison.method == "Welch"
    assert apart(BEFORE, AFTER.round()).comparison.method == "Welch"
    pairs = ([*range(60), *range(60)], [None] * 120)
    assert apart(BEFORE.round(), AFTER.round(), pairs).comparison.method.endswith("(by group)")


def test_unmeasured_cases_are_counted_on_both_sides() -> None:
    a, b = BEFORE.copy(), AFTER[:80].copy()
    a[:3], b[:5] = math.nan, math.nan
    found = apart(a, b).comparison
    assert (found.n, found.n_missing) == (75, 8)
    without = apart(BEFORE[3:], AFTER[5:80]).comparison
    assert (found.p, found.interval, found.difference) == (without.p, without.interval, without.difference)


def test_no_p_is_nought() -> None:
    noise = 1e-9 * np.arange(40)
    assert apart(noise, 1 + noise).comparison.p > 0
    assert apart(np.zeros(3_000), np.ones(3_000)).comparison.p > 0

"""Paired comparison: agreement with scipy and statsmodels, published values, error rates, and bad input."""

import math
from typing import Any

import numpy as np
import pytest

from tests.support.examples import for_all
from yarus.metrics.statistics import compare_paired, mcnemar_exact, newcombe_paired_interval, permutation_p
from yarus.metrics.statistics.differences.comparison import adjust_for_multiple_tests

NAN = math.nan
UP = np.tile([0.2, 0.5, 0.9, 0.4], 10)


@for_all(
    "a, b, options, verdict",
    [
        (UP, UP + 0.1, {}, "improved"),
        (UP, UP + 0.1, {"better": "lower"}, "regressed"),
        (UP, UP + 0.1, {"better": "neither"}, "changed"),
        (UP, UP - 0.1, {}, "regressed"),
        (UP, UP - 0.1, {"better": "lower"}, "improved"),
        (UP, UP, {}, "inconclusive"),  # that none of forty changed does not exclude that one in twenty does
        (np.tile(UP, 5), np.tile(UP, 5), {}, "no difference shown"),
        (np.full(40, 0.4), np.full(40, 0.4), {"margin": 0.0}, "no difference shown"),  # on its bounds, and within them
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


def test_compare_paired_undefined_for_one_pair() -> None:
    for comparison in (
        compare_paired([0.5], [0.7], seed=1),
        compare_paired([0], [1], seed=1),
        compare_paired([], [], seed=1),
    ):
        assert math.isnan(comparison.p) and math.isnan(comparison.interval.low) and math.isnan(comparison.interval.high)
        assert comparison.method == "none: fewer than two pairs"
    assert compare_paired([0, 0], [1, 1], seed=1).p == 0.5


def test_comparison_is_immutable() -> None:
    comparison = compare_paired([0, 0], [1, 1], seed=1)
    with pytest.raises(AttributeError):
        comparison.p = 0.01  # type: ignore[misc]


def test_compare_paired_yes_no_by_mcnemar_and_newcombe() -> None:
    a, b = [1, 1, 1, 1, 0, 0, 0, NAN, 0, 1], [1, 1, 1, 0, 1, 1, 0, 1, NAN, 1]
    comparison = compare_paired(a, b, seed=1)
    assert (comparison.n, comparison.n_missing, comparison.method) == (8, 2, "exact McNemar, Newcombe 10")
    assert comparison.difference == pytest.approx(1 / 8)
    assert comparison.p == mcnemar_exact(1, 2)
    assert comparison.interval == newcombe_paired_interval(4, 1, 2, 1)
    assert comparison.units == 8
    assert comparison.margin == 0.05
    assert comparison.alpha == 0.05
    assert comparison == compare_paired(a, b, seed=2, binary=True)
    assert compare_paired(a, b, seed=1, binary=False).method == "paired permutation, score"


def test_compare_paired_by_user() -> None:
    """Twelve cases of three users who each gain: three signs cannot give a p below 1/4, twelve can."""
    a, b = [0, 0, 0, 1] * 3, [1, 1, 1, 1] * 3
    users = ["u"] * 4 + ["v"] * 4 + ["w"] * 4
    by_user = compare_paired(a, b, seed=1, groups=users)
    assert by_user.p == 0.25
    assert by_user.method == "paired permutation, Student's t (by group)"
    assert (by_user.n, by_user.units) == (12, 3)
    assert compare_paired(a, b, seed=1).p == mcnemar_exact(0, 9) < 0.05
    missing = compare_paired([NAN, *a], [1.0, *b], seed=1, groups=["u", *users])
    assert (missing.p, missing.n, missing.n_missing) == (0.25, 12, 1)


def test_adjusted_changes_p_and_verdict() -> None:
    comparison = compare_paired(UP, UP + np.tile([0.1, -0.02], 20), seed=1)
    assert comparison.verdict == "improved"
    several = adjust_for_multiple_tests(dict.fromkeys(range(math.ceil(0.05 / comparison.p)), comparison))
    corrected = several[0]
    assert (corrected.p, corrected.verdict) == (pytest.approx(len(several) * comparison.p), "inconclusive")
    assert corrected.smallest_detectable > comparison.smallest_detectable
    assert adjust_for_multiple_tests({"alone": comparison})["alone"] == comparison


@for_all("n", [6, 30, 200])
@for_all("kind", ["yes/no", "sparse", "dense", "groups"])
def test_p_and_interval_are_consistent(kind: str, n: int) -> None:
    generator = np.random.default_rng(n)
    groups = (np.arange(n) // 3).tolist() if kind == "groups" and n > 6 else None
    n_significant = 0
    for seed in range(60):
        a = generator.random(n).round() if kind == "yes/no" else generator.random(n)
        moved = generator.random(n) < (1 if kind == "dense" else 0.2)
        b = np.where(moved, 0 if kind != "dense" else a - generator.normal(0.1, 0.3, n), a)
        comparison = compare_paired(a, b, seed=seed, resamples=500, groups=groups)
        holds = comparison.interval.low <= 0 <= comparison.interval.high
        assert holds == (comparison.p >= 0.05), (comparison.p, comparison.interval)
        n_significant += not holds
    assert n_significant < 60 if n < 200 else n_significant > 0


def test_p_is_raised_to_that_of_interval() -> None:
    """Six pairs that all lose a little: p is 2 / 64 by their signs, but Student's interval of such pairs contains 0."""

    from scipy import stats

    comparison = compare_paired(np.zeros(6), [-0.01, -0.01, -0.01, -0.01, -0.01, -9], seed=0)
    assert permutation_p([-0.01, -0.01, -0.01, -0.01, -0.01, -9], seed=0) < 0.05 <= comparison.p
    assert comparison.interval.low < 0 < comparison.interval.high
    assert comparison.p == pytest.approx(stats.ttest_1samp([-0.01] * 5 + [-9], 0).pvalue)
    assert comparison.verdict == "inconclusive"


def test_p_of_loss_within_margin_equals_t_test() -> None:
    from scipy import stats

    generator = np.random.default_rng(3)
    a = generator.random(50)
    b = a - 0.1 + generator.normal(0, 0.2, 50)
    for better, sides in (("higher", (a, b)), ("lower", (b, a))):
        comparison = compare_paired(*sides, seed=0, better=better)  # type: ignore[arg-type]
        for margin in (0.0, 0.05, 0.2):
            peer = stats.ttest_1samp(a - b, margin, alternative="greater").pvalue
            assert comparison.p_of_loss_within(margin) == pytest.approx(peer, rel=1e-6)
    assert math.isnan(compare_paired([0.1], [0.2], seed=0).p_of_loss_within(0.0))


@for_all(
    "a, b, options, message",
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
def test_compare_paired_refuses(a: Any, b: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare_paired(a, b, seed=1, **options)


def test_compare_paired_false_alarm_rate() -> None:
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
            comparison = compare_paired(a, b, seed=seed, resamples=500)
            alarms += comparison.p < 0.05 if not yes_no else 0
            missed += not comparison.interval.low <= truth <= comparison.interval.high
        return alarms, missed

    assert false_alarms(yes_no=False)[0] <= 29
    assert false_alarms(yes_no=True)[1] <= 29


def test_statistics_import_without_slow_libraries() -> None:
    """The slow libraries are imported where a comparison needs them, not by every command."""
    import subprocess
    import sys

    code = "import sys, yarus.metrics.statistics; print({'scipy', 'statsmodels', 'pandas'} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_compare_paired_inconclusive_for_few_pairs() -> None:
    assert compare_paired([0.1, 0.2], [0.1, 0.2], seed=0).verdict == "inconclusive"
    assert compare_paired([1, 0] * 4, [1, 0] * 4, seed=0, groups=["u"] * 4 + ["v"] * 4).verdict == "inconclusive"


def test_compare_paired_with_single_case_groups() -> None:
    a, b = [1.0] * 30, [1.0] * 29 + [0.0]
    assert compare_paired(a, b, seed=0, groups=[None] * 30) == compare_paired(a, b, seed=0)
    assert compare_paired(a, b, seed=0, groups=list(range(30))).method == compare_paired(a, b, seed=0).method

"""Intervals: golden values, agreement with statsmodels and scipy, coverage of the truth, groups, and bad input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.metrics.statistics import Interval, share_interval, wilson_interval
from yarus.metrics.statistics.intervals import grouped_mean_interval

NAN = math.nan


def same(interval: Interval, expected: tuple[float, float], tolerance: float = 1e-12) -> bool:
    return interval == pytest.approx(expected, rel=0, abs=tolerance, nan_ok=True)


# Newcombe 1998, Two-sided confidence intervals for the single proportion, table I, method 3.
@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_has_the_published_values(successes: int, n: int, low: float, high: float) -> None:
    assert same(wilson_interval(successes, n), (low, high), 5e-5)


@given(st.integers(1, 5_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.999))
def test_wilson_equals_statsmodels(counts: tuple[int, int], confidence: float) -> None:
    from statsmodels.stats.proportion import proportion_confint

    interval = wilson_interval(*counts, confidence=confidence)
    assert same(interval, proportion_confint(*counts, alpha=1 - confidence, method="wilson"), 1e-9)
    assert 0 <= interval.low <= counts[0] / counts[1] <= interval.high <= 1


def test_wilson_at_the_ends_is_exact() -> None:
    assert wilson_interval(0, 7).low == 0.0
    assert wilson_interval(7, 7).high == 1.0
    assert same(wilson_interval(0, 0), (NAN, NAN))


@pytest.mark.parametrize(("successes", "n"), [(-1, 5), (6, 5), (1, 0), (NAN, 3)])
def test_wilson_refuses_impossible_counts(successes: float, n: int) -> None:
    with pytest.raises(ValueError, match=f"between 0 and n = {n}, got {successes}"):
        wilson_interval(successes, n)


def test_share_interval_without_groups_equals_wilson() -> None:
    values = [1, 1, 0, 1, NAN, 0]
    assert share_interval(values) == wilson_interval(3, 5)
    assert share_interval(values, groups=list("abcdef")) == wilson_interval(3, 5)
    assert share_interval(values, groups=[None] * 6) == wilson_interval(3, 5)
    assert same(share_interval([NAN, NAN]), (NAN, NAN))


def test_share_interval_counts_duplicated_groups_once() -> None:
    # 20 groups of 50 equal cases, half of them 1: worth 20 cases, by m / (m - 1) a little less, and by (t / z)^2 for
    # a variance that 20 groups estimate: t(19) is 2.093.
    values = np.repeat([0.0, 1.0] * 10, 50)
    groups = np.repeat(np.arange(20), 50).tolist()
    n_effective = 19 * (1.959964 / 2.093024) ** 2
    assert same(share_interval(values, groups=groups), wilson_interval(n_effective / 2, n_effective), 1e-6)


def test_share_interval_of_constant_groups() -> None:
    assert share_interval(np.ones(40), groups=[n % 8 for n in range(40)]) == wilson_interval(8, 8)
    assert share_interval(np.zeros(6), groups=["one"] * 6) == wilson_interval(0, 1)


def test_share_interval_with_groups_not_narrower() -> None:
    values = [1.0, 0.0] * 30  # every group has one of each: less variance between groups than by chance
    assert share_interval(values, groups=[n // 2 for n in range(60)]) == wilson_interval(30, 60)


def test_share_interval_coverage_with_groups() -> None:
    generator = np.random.default_rng(7)
    groups = np.repeat(np.arange(60), 5).tolist()
    hits = 0
    for _ in range(400):
        chances = generator.beta(2, 2, 60)  # groups differ: mean 0.5
        values = (generator.random(300) < np.repeat(chances, 5)).astype(float)
        low, high = share_interval(values, groups=groups)
        hits += low <= 0.5 <= high
    assert 0.92 <= hits / 400 <= 0.98


def test_share_interval_refuses() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        share_interval([0.5, 2.0])
    with pytest.raises(ValueError, match="3 values but 2 groups"):
        share_interval([1, 0, 1], groups=["a", "b"])


def test_share_interval_allows_for_unseen_failures() -> None:
    """20 scores of 0.9 and 1: the t interval ends at 0.93; a failure in fifty, not seen yet, makes the mean 0.95."""
    values = [0.9, 1.0] * 10
    low, high = share_interval(values)
    assert low < 0.87 and 0.95 < high <= 1
    assert share_interval([0.9] * 20).low < 0.82  # equal scores do not say that all are
    assert share_interval([0.5] * 3).low > wilson_interval(1.5, 3).low  # but vary less than a yes and no would


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.9, 1.0]), st.sampled_from([None, "a", "b", "c"])), min_size=1),
    st.floats(0.5, 0.999),
)
def test_share_interval_of_grouped_scores_in_range(cases: list[tuple[float, str | None]], level: float) -> None:
    values, groups = ([case[side] for case in cases] for side in (0, 1))
    low, high = share_interval(values, groups=groups, confidence=level)  # type: ignore[arg-type]
    mean = float(np.mean(values))  # type: ignore[arg-type]
    assert 0 <= low <= mean + 1e-12 and mean - 1e-12 <= high <= 1
    assert high - low > 1e-3


def test_effective_sample_size_with_one_large_group() -> None:
    values, groups = [1.0, 0.0] * 50, ["big"] * 50 + list(range(50))
    width = np.ptp(share_interval(values, groups=groups))
    assert np.ptp(share_interval(values)) < width < np.ptp(wilson_interval(1, 2))


def test_grouped_mean_interval_equals_student() -> None:
    from scipy import stats

    users = np.random.default_rng(4).normal(size=30)
    interval = grouped_mean_interval(np.repeat(users, 10), np.repeat(np.arange(30), 10).tolist())
    peer = stats.t.interval(0.95, 29, users.mean(), stats.sem(users))
    assert same(interval, peer, 1e-9)
    assert same(grouped_mean_interval([0.1, 0.5, NAN], ["a", "a", "b"]), (NAN, NAN))
    assert same(grouped_mean_interval([], []), (NAN, NAN))

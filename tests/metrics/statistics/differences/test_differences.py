"""Intervals of paired differences: Student's if most change, a score interval if few do, and odd groups."""

import math

import numpy as np
import pytest

from yarus.metrics.statistics import newcombe_paired_interval, wilson_interval
from yarus.metrics.statistics.differences.intervals import (
    clustered_mean,
    difference_interval,
    p_value_at,
    reconcile_p_and_interval,
)
from yarus.metrics.statistics.intervals import Interval

NAN = math.nan


def find_interval(
    differences: object, groups: object = None, span: float = 1.0, confidence: float = 0.95
) -> tuple[float, float]:
    series = np.asarray(differences, dtype=float)
    codes = np.arange(len(series)) if groups is None else np.unique(groups, return_inverse=True)[1]
    return tuple(difference_interval(series, codes, span)(confidence))  # type: ignore[return-value]


def test_difference_interval_is_students_if_most_change() -> None:
    from scipy import stats

    differences = np.random.default_rng(1).normal(0.1, 0.3, 25)
    peer = stats.ttest_1samp(differences, 0).confidence_interval(0.9)
    assert find_interval(differences, confidence=0.9) == pytest.approx(tuple(peer))


def test_clustered_mean_error_equals_jackknife() -> None:
    """Compared with the spread of the means that leave out one group each, times (m - 1) / m."""
    generator = np.random.default_rng(2)
    codes = np.repeat(np.arange(7), [1, 2, 3, 4, 5, 20, 2])
    values = generator.normal(size=len(codes)) + generator.normal(size=7)[codes]
    n, mean = len(values), values.mean()
    squares = [(values[codes != group].mean() - mean) ** 2 for group in range(7)]
    clustered = clustered_mean(values, codes)
    assert (clustered.value, clustered.error) == (pytest.approx(mean), pytest.approx(math.sqrt(6 / 7 * sum(squares))))
    assert clustered.degrees == pytest.approx(n**2 / (np.bincount(codes) ** 2).sum() - 1)
    plain = clustered_mean(values, np.arange(n))
    assert (plain.error, plain.degrees) == (pytest.approx(values.std(ddof=1) / math.sqrt(n)), pytest.approx(n - 1))


def test_difference_interval_of_losses_equals_wilson() -> None:
    """If some of many pairs lose 1 and none gains, the loss is a share, whose jump is 1."""
    differences = np.zeros(100_000)
    differences[:300] = -1
    low, high = wilson_interval(300, 100_000)
    assert find_interval(differences)[0] == pytest.approx(-high, abs=2e-6)
    # And no more than a few gains are left possible.
    assert find_interval(differences)[1] == pytest.approx(-low, abs=2e-5)


def test_difference_interval_of_yes_no_near_newcombe() -> None:
    differences = np.array([-1.0] * 20 + [1.0] * 10 + [0.0] * 370)
    peer = newcombe_paired_interval(300, 20, 10, 70)
    assert find_interval(differences) == pytest.approx(tuple(peer), abs=0.004)


def test_difference_interval_allows_for_unseen_changes() -> None:
    """One pair of fifty lost a hundredth: the next change may be larger."""
    low, high = find_interval([-0.01] + [0.0] * 49)
    assert low < -0.02 and high > 0.02


@pytest.mark.parametrize(
    ("differences", "groups"),
    [
        ([-1, 0], None),
        ([-1, 0, 0], None),
        ([1, 0, 0, 0, 0, 0], None),
        ([-1] * 10 + [0] * 10, ["a"] * 10 + list("bcdefghijk")),  # one group has half of all cases, and all the losses
        ([0] * 50, None),
        ([0] * 50, ["a"] * 25 + list(range(25))),
        ([0.5, -0.5] * 3, [1, 1, 1, 2, 2, 2]),
    ],
)
def test_difference_interval_of_odd_pairs(differences: object, groups: object) -> None:
    low, high = find_interval(differences, groups)
    mean = float(np.mean(np.asarray(differences, dtype=float)))
    assert low <= mean <= high
    assert high - low > 0.01
    if np.count_nonzero(differences) * 2 < len(np.atleast_1d(differences)):  # type: ignore[call-overload]
        assert low >= -1 and high <= 1


def test_difference_interval_without_width() -> None:
    assert find_interval([0.0] * 9, span=0.0) == (0, 0)
    assert find_interval([0.3] * 9) == (0.3, 0.3)


def test_difference_interval_with_single_case_groups() -> None:
    differences = np.where(np.arange(60) % 7 == 0, -0.4, 0.0)
    assert find_interval(differences, list(range(60))) == find_interval(differences)


def test_difference_interval_units_are_groups() -> None:
    """Each case repeated five times."""
    differences = np.where(np.arange(60) % 7 == 0, -0.4, 0.0)
    assert find_interval(differences.repeat(5), np.arange(60).repeat(5)) == pytest.approx(find_interval(differences))


def test_reconcile_p_with_interval() -> None:
    from scipy import stats

    def interval_at(confidence: float) -> Interval:
        half_width = stats.norm.ppf((1 + confidence) / 2)
        return Interval(1 - half_width, 1 + half_width)

    assert p_value_at(interval_at, 0.0) == pytest.approx(2 * stats.norm.sf(1), rel=1e-9)
    assert reconcile_p_and_interval(0.01, interval_at, 0.95) == (pytest.approx(2 * stats.norm.sf(1)), interval_at(0.95))
    assert reconcile_p_and_interval(0.4, interval_at, 0.95) == (0.4, interval_at(0.95))
    p, interval = reconcile_p_and_interval(0.4, interval_at, 0.5)
    assert (p, interval) == (0.4, interval_at(0.5))
    assert reconcile_p_and_interval(0.6, interval_at, 0.5)[1] == Interval(0.0, interval_at(0.5).high)
    assert all(math.isnan(end) for end in reconcile_p_and_interval(NAN, interval_at, 0.95)[1])

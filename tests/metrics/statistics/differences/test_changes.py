"""A change on common cases: the difference, and the variance estimated from these cases."""

from typing import Any

import numpy as np
import pytest

from yarus.metrics import classification
from yarus.metrics.statistics.differences.changes import estimate_change
from yarus.metrics.statistics.differences.compared_statistics import SampleStatistic


def f1(totals: np.ndarray) -> Any:
    return classification.f1(classification.counts_from_totals(totals))


CHANCE = np.random.default_rng(3)


def test_change_of_mean_by_hand() -> None:
    before, after = np.array([1.0, 0, 1, 1, np.nan]), np.array([0.0, 0, 1, 1, 1])
    measured = estimate_change(SampleStatistic(before, after), np.arange(5))
    assert measured is not None
    assert (measured.difference, measured.n) == (pytest.approx(-0.25), 4)
    # -1 and three times 0, each about the mean of -1/4, over n.
    assert measured.variance == pytest.approx((0.75**2 + 3 * 0.25**2) / 16)
    # What a hit and a miss add to the mean of four lie 1/4 apart, on each side about its own mean.
    assert measured.step == pytest.approx(1 / 4 + 1 / 16)


def test_change_variance_with_groups() -> None:
    before, after = np.array([1.0, 1, 1, 1, 0, 0]), np.array([0.0, 0, 1, 1, 0, 0])
    ungrouped, grouped = (
        estimate_change(SampleStatistic(before, after), np.array(codes))
        for codes in ([0, 1, 2, 3, 4, 5], [0, 0, 1, 2, 3, 4])
    )
    assert ungrouped is not None
    assert grouped is not None
    assert grouped.variance > 1.5 * ungrouped.variance


def test_change_variance_equals_jackknife() -> None:
    actual = CHANCE.random(400) < 0.6
    sides = [classification.outcome_indicators(actual ^ (CHANCE.random(400) < 0.2), actual) for _ in range(2)]
    measured = estimate_change(SampleStatistic(*sides, statistic=f1), np.arange(400))
    assert measured is not None
    assert measured.difference == pytest.approx(f1(sides[1].sum(axis=0)) - f1(sides[0].sum(axis=0)))
    without = [
        f1(sides[1].sum(axis=0) - sides[1][case]) - f1(sides[0].sum(axis=0) - sides[0][case]) for case in range(400)
    ]
    assert measured.variance == pytest.approx(399**2 / 400 * np.var(without), rel=0.02)


def test_change_variance_zero_without_change() -> None:
    values = CHANCE.random(50)
    measured = estimate_change(SampleStatistic(values, values.copy()), np.arange(50))
    assert measured is not None
    assert (measured.difference, measured.variance) == (0, 0)


def test_change_none_for_quantile_or_missing_values() -> None:
    values = np.array([0.1, 0.2, 0.3])
    assert estimate_change(SampleStatistic(values, np.full(3, np.nan)), np.arange(3)) is None
    assert estimate_change(SampleStatistic(values, values, quantile=0.95), np.arange(3)) is None

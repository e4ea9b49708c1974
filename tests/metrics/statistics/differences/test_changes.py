"""A change on common cases: the difference, and the variance that its cases tell."""

from typing import Any

import numpy as np
import pytest

from yarus.metrics import classification
from yarus.metrics.statistics.differences.changes import change
from yarus.metrics.statistics.differences.numbers import Number


def f1(totals: np.ndarray) -> Any:
    return classification.f1(classification.counts_of(totals))


CHANCE = np.random.default_rng(3)


def test_of_a_mean_by_hand() -> None:
    before, after = np.array([1.0, 0, 1, 1, np.nan]), np.array([0.0, 0, 1, 1, 1])
    found = change(Number(before, after), np.arange(5))
    assert found is not None
    assert (found.difference, found.n) == (pytest.approx(-0.25), 4)
    # -1 and three times 0, each about the mean of -1/4, over n.
    assert found.variance == pytest.approx((0.75**2 + 3 * 0.25**2) / 16)
    # What a hit and a miss add to the mean of four lie 1/4 apart, on each side about its own mean.
    assert found.step == pytest.approx(1 / 4 + 1 / 16)


def test_cases_of_one_group_change_together() -> None:
    before, after = np.array([1.0, 1, 1, 1, 0, 0]), np.array([0.0, 0, 1, 1, 0, 0])
    alone, grouped = (
        change(Number(before, after), np.array(codes)) for codes in ([0, 1, 2, 3, 4, 5], [0, 0, 1, 2, 3, 4])
    )
    assert alone is not None
    assert grouped is not None
    assert grouped.variance > 1.5 * alone.variance


def test_what_is_no_mean_has_the_variance_of_its_jackknife() -> None:
    actual = CHANCE.random(400) < 0.6
    sides = [classification.outcomes(actual ^ (CHANCE.random(400) < 0.2), actual) for _ in range(2)]
    found = change(Number(*sides, statistic=f1), np.arange(400))
    assert found is not None
    assert found.difference == pytest.approx(f1(sides[1].sum(axis=0)) - f1(sides[0].sum(axis=0)))
    without = [
        f1(sides[1].sum(axis=0) - sides[1][case]) - f1(sides[0].sum(axis=0) - sides[0][case]) for case in range(400)
    ]
    assert found.variance == pytest.approx(399**2 / 400 * np.var(without), rel=0.02)


def test_nothing_changed_has_no_variance() -> None:
    values = CHANCE.random(50)
    found = change(Number(values, values.copy()), np.arange(50))
    assert found is not None
    assert (found.difference, found.variance) == (0, 0)


def test_of_nothing_measured_and_of_a_quantile_there_is_none() -> None:
    values = np.array([0.1, 0.2, 0.3])
    assert change(Number(values, np.full(3, np.nan)), np.arange(3)) is None
    assert change(Number(values, values, quantile=0.95), np.arange(3)) is None

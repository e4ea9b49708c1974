"""Intervals of F1, MCC and kappa: unseen outcomes, groups, and bad input."""

import math

import numpy as np
import pytest

from yarus.metrics.statistics import posterior_interval

NAN = math.nan


def first(totals: np.ndarray) -> np.ndarray:
    return np.asarray(totals[..., 0] / totals.sum(axis=-1))


def rows(*counts: int) -> np.ndarray:
    return np.eye(len(counts)).repeat(counts, axis=0)


def test_posterior_interval_of_two_outcomes_is_jeffreys() -> None:
    from scipy import stats

    interval = posterior_interval(rows(8, 12), first, unseen=np.eye(2), seed=1, draws=100_000)
    assert interval == pytest.approx(stats.beta.ppf([0.025, 0.975], 8.5, 12.5), abs=0.003)


def test_posterior_interval_allows_for_unseen_outcomes() -> None:
    low, high = posterior_interval(rows(20, 0), first, unseen=np.eye(2), seed=1)
    assert 0.85 < low < 0.95 and high == 1.0
    assert posterior_interval(rows(20, 0), first, unseen=np.eye(2), seed=1, prior=2).low < low


def test_posterior_interval_with_groups() -> None:
    table = rows(60, 40)
    ungrouped = posterior_interval(table, first, unseen=np.eye(2), seed=1)
    assert posterior_interval(table, first, unseen=np.eye(2), seed=1, groups=list(range(100))) == ungrouped
    users = [n // 10 for n in range(100)]
    assert np.ptp(posterior_interval(table, first, unseen=np.eye(2), seed=1, groups=users)) > 2 * np.ptp(ungrouped)
    by_one_user = posterior_interval(table, first, unseen=np.eye(2), seed=1, groups=["one"] * 100)
    assert 0 <= by_one_user.low < 0.1 and 0.9 < by_one_user.high <= 1


def test_posterior_interval_undefined_without_value() -> None:
    for table in (np.zeros((0, 2)), np.zeros((3, 2))):
        assert posterior_interval(table, lambda t: np.asarray(np.nan * t[..., 0]), unseen=np.eye(2), seed=1) == (
            pytest.approx((NAN, NAN), nan_ok=True)
        )

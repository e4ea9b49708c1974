"""The method of the interval of a mean, and that it stays in the metric's range."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.metrics.statistics import bootstrap_interval, mean_interval, share_interval, wilson_interval
from yarus.metrics.statistics.intervals import grouped_mean_interval

NAN = math.nan
CONTINUOUS = np.random.default_rng(1).beta(8, 2, 30)


def test_mean_interval_of_few_levels_equals_share_interval() -> None:
    assert mean_interval([1, 1, 0, 1, NAN], seed=1, low=0, high=1) == wilson_interval(3, 4)
    levels = [0.0, 0.9, 1.0, 1.0] * 5
    assert mean_interval(levels, seed=1, low=0, high=1) == share_interval(levels)
    scaled = mean_interval([2 * value - 1 for value in levels], seed=1, low=-1, high=1)
    assert scaled == pytest.approx([2 * bound - 1 for bound in share_interval(levels)])


def test_mean_interval_of_few_values_is_wider_bootstrap() -> None:
    bootstrapped, interval = bootstrap_interval(CONTINUOUS, seed=1), mean_interval(CONTINUOUS, seed=1, low=0, high=1)
    assert interval.low < bootstrapped.low < bootstrapped.high < interval.high
    assert np.ptp(interval) < 1.1 * np.ptp(bootstrapped)
    many = np.random.default_rng(1).gamma(2, size=3_000)
    assert mean_interval(many, seed=1, low=0) == pytest.approx(bootstrap_interval(many, seed=1), rel=1e-3)


def test_mean_interval_with_single_case_groups() -> None:
    ungrouped = mean_interval(CONTINUOUS, seed=1, low=0, high=1)
    assert mean_interval(CONTINUOUS, seed=1, low=0, high=1, groups=list(range(30))) == ungrouped
    assert mean_interval(CONTINUOUS, seed=1, low=0, high=1, groups=[None] * 30) == ungrouped


def test_mean_interval_with_groups_in_range() -> None:
    groups = [n % 6 for n in range(30)]
    assert mean_interval(CONTINUOUS, seed=1, low=0, high=1, groups=groups) == grouped_mean_interval(CONTINUOUS, groups)
    high = mean_interval([0.99, 0.9, 0.4, 0.97, 0.2, 0.98], seed=1, low=0, high=1, groups=[0, 0, 1, 1, 2, 2]).high
    assert high == 1.0


@given(st.lists(st.floats(-1, 1), max_size=6), st.booleans())
def test_mean_interval_of_few_values(values: list[float], grouped: bool) -> None:
    groups = [n // 2 for n in range(len(values))] if grouped else None
    low, high = mean_interval(values, seed=1, low=-1, high=1, groups=groups)
    assert math.isnan(low) == math.isnan(high)
    assert math.isnan(low) or -1 <= low <= float(np.mean(values)) + 1e-9 <= high + 2e-9 <= 1 + 2e-9


def test_mean_interval_of_equal_scores_has_width() -> None:
    assert np.ptp(mean_interval([0.8] * 20, seed=1, low=0, high=1)) > 0.05
    assert mean_interval([3.0] * 20, seed=1, low=0) == (3.0, 3.0)

"""The interval of a quantile: order statistics, open intervals, groups, and bad input."""

import math

import numpy as np
import pytest

from yarus.metrics.statistics import Interval, quantile_interval

NAN = math.nan


def same(interval: Interval, expected: tuple[float, float]) -> bool:
    return interval == pytest.approx(expected, rel=1e-9, nan_ok=True)


def test_quantile_interval_equals_published_tables() -> None:
    """Conover 1999, Practical nonparametric statistics: of 20 values the 6th and 15th bound the median at 95.9 %."""
    low, high = quantile_interval(np.arange(1, 21), 0.5)
    assert 6 <= low < 7 and 14 < high <= 15
    assert low + high == pytest.approx(21)


def test_quantile_interval_open_for_few_values() -> None:
    too_few, enough = (quantile_interval(np.arange(n), 0.95) for n in (71, 72))
    assert too_few.high == math.inf and too_few.low < 0.95 * 71
    assert enough.high <= 71
    assert quantile_interval(np.arange(40), 0.05).low == -math.inf
    assert too_few.low / 71 > enough.low / 72  # it has the whole level for itself


@pytest.mark.parametrize(
    ("values", "quantile", "expected"),
    [
        ([], 0.5, (NAN, NAN)),
        ([3.0, NAN], 0.5, (NAN, NAN)),
        ([1.0, 2.0, 3.0, 4.0, 5.0], 0.5, (NAN, NAN)),  # open at both ends
        ([3.0] * 6, 0.5, (3.0, 3.0)),
        ([3.0, 3.0], 0.95, (3.0, math.inf)),
        ([1.0, 2.0], 1.0, (NAN, NAN)),
    ],
)
def test_quantile_interval_of_few_values(values: list[float], quantile: float, expected: tuple[float, float]) -> None:
    assert same(quantile_interval(values, quantile), expected)


def test_quantile_interval_refuses() -> None:
    for quantile in (-0.1, 1.1, 95):
        with pytest.raises(ValueError, match=f"quantile must lie between 0 and 1, got {quantile}"):
            quantile_interval([1.0, 2.0], quantile)
    with pytest.raises(ValueError, match="2 values but 1 groups"):
        quantile_interval([1.0, 2.0], 0.5, groups=["a"])
    with pytest.raises(ValueError, match="confidence must lie"):
        quantile_interval([1.0, 2.0], 0.5, confidence=2)


def test_quantile_interval_order_and_range() -> None:
    values = np.random.default_rng(1).lognormal(size=100)
    for quantile in (0.05, 0.5, 0.95):
        interval = quantile_interval(values, quantile)
        assert interval == quantile_interval(values[::-1], quantile)
        assert interval.low < np.quantile(values, quantile) < interval.high


def test_quantile_interval_with_trivial_groups() -> None:
    values = np.random.default_rng(1).lognormal(size=100)
    ungrouped = quantile_interval(values, 0.5)
    assert quantile_interval(values, 0.5, groups=list(range(100))) == ungrouped
    assert quantile_interval(values, 0.5, groups=[None] * 100) == ungrouped
    assert same(quantile_interval(values, 0.5, groups=["one"] * 100), (NAN, NAN))


def test_quantile_interval_counts_duplicated_groups_once() -> None:
    values, groups = np.repeat(np.arange(20.0), 50), np.repeat(np.arange(20), 50).tolist()
    wide, narrow = quantile_interval(values, 0.5, groups=groups), quantile_interval(values, 0.5)
    assert wide.low < 6 < narrow.low < narrow.high < 13 < wide.high

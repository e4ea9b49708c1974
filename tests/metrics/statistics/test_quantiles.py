"""The interval of a quantile: what order statistics say, where it is open, groups, and bad input."""

import math

import numpy as np
import pytest

from yarus.metrics.statistics import Interval, quantile_interval

NAN = math.nan


def same(interval: Interval, expected: tuple[float, float]) -> bool:
    return interval == pytest.approx(expected, rel=1e-9, nan_ok=True)


def test_bounds_lie_between_the_order_statistics_of_the_tables() -> None:
    """Conover 1999, Practical nonparametric statistics: of 20 values the 6th and 15th bound the median at 95.9 %."""
    low, high = quantile_interval(np.arange(1, 21), 0.5)
    assert 6 <= low < 7 and 14 < high <= 15
    assert low + high == pytest.approx(21)


def test_an_interval_without_a_surely_larger_value_is_open() -> None:
    few, enough = (quantile_interval(np.arange(n), 0.95) for n in (71, 72))
    assert few.high == math.inf and few.low < 0.95 * 71
    assert enough.high <= 71
    assert quantile_interval(np.arange(40), 0.05).low == -math.inf
    assert few.low / 71 > enough.low / 72  # it has the whole level for itself


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
def test_quantiles_of_too_little(values: list[float], quantile: float, expected: tuple[float, float]) -> None:
    assert same(quantile_interval(values, quantile), expected)


def test_quantiles_of_nonsense() -> None:
    for quantile in (-0.1, 1.1, 95):
        with pytest.raises(ValueError, match=f"quantile must lie between 0 and 1, got {quantile}"):
            quantile_interval([1.0, 2.0], quantile)
    with pytest.raises(ValueError, match="2 values but 1 groups"):
        quantile_interval([1.0, 2.0], 0.5, groups=["a"])
    with pytest.raises(ValueError, match="confidence must lie"):
        quantile_interval([1.0, 2.0], 0.5, confidence=2)


def test_the_order_of_the_values_does_not_matter_and_the_value_is_inside() -> None:
    values = np.random.default_rng(1).lognormal(size=100)
    for quantile in (0.05, 0.5, 0.95):
        found = quantile_interval(values, quantile)
        assert found == quantile_interval(values[::-1], quantile)
        assert found.low < np.quantile(values, quantile) < found.high


def test_groups_of_one_are_none_and_one_group_tells_nothing() -> None:
    values = np.random.default_rng(1).lognormal(size=100)
    alone = quantile_interval(values, 0.5)
    assert quantile_interval(values, 0.5, groups=list(range(100))) == alone
    assert quantile_interval(values, 0.5, groups=[None] * 100) == alone
    assert same(quantile_interval(values, 0.5, groups=["one"] * 100), (NAN, NAN))


def test_cases_that_repeat_their_group_are_worth_the_groups() -> None:
    values, groups = np.repeat(np.arange(20.0), 50), np.repeat(np.arange(20), 50).tolist()
    wide, narrow = quantile_interval(values, 0.5, groups=groups), quantile_interval(values, 0.5)
    assert wide.low < 6 < narrow.low < narrow.high < 13 < wide.high

"""The control chart: detected shifts, false alarms, and no use of later nights."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.metrics.statistics.ewma import MAX_HISTORY, WARM_UP, biweight_deviation, ewma_chart

HISTORIES = st.lists(st.floats(-1, 1, width=32), min_size=0, max_size=30)


def calm(n: int, seed: int) -> np.ndarray:
    return 0.7 + 0.02 * np.random.default_rng(seed).normal(size=n)


def test_deviation_by_hand() -> None:
    # Median 3, median of |x - 3| = 1, u = (x - 3) / 9: -2/9, -1/9, 0, 1/9, and 10/9, which counts for nothing.
    inner = [(d, (d / 9) ** 2) for d in (-2, -1, 0, 1)]
    above = sum(d * d * (1 - u) ** 4 for d, u in inner)
    below = sum((1 - u) * (1 - 5 * u) for _, u in inner)
    assert biweight_deviation([1, 2, 3, 4, 13]) == pytest.approx(math.sqrt(5 * above) / below)


def test_deviation_of_normal_values() -> None:
    assert biweight_deviation(3 * np.random.default_rng(0).normal(size=20_000)) == pytest.approx(3, rel=0.03)


def test_deviation_ordinary_if_most_values_equal() -> None:
    assert biweight_deviation([1.0, 1, 1, 1, 2]) == pytest.approx(np.std([1, 1, 1, 1, 2], ddof=1))
    assert biweight_deviation([0.3] * 9) == biweight_deviation([0.0] * 9) == 0


def test_deviation_scales_with_values() -> None:
    values = calm(20, 6)
    for unit in (1e-15, 1e9):
        assert biweight_deviation(unit * values) == pytest.approx(unit * biweight_deviation(values))


def test_chart_smoothed_by_hand() -> None:
    result = ewma_chart([1.0, 2.0, 0.0])
    assert result.smoothed == pytest.approx([1, 1.2, 0.96])
    assert np.isnan(result.low).all()
    assert not result.side.any()


def test_chart_without_band_before_eight_nights() -> None:
    result = ewma_chart(calm(12, 0))
    assert np.isnan(result.low).tolist() == [True] * WARM_UP + [False] * 4
    assert (result.low[WARM_UP:] < result.high[WARM_UP:]).all()


@pytest.mark.parametrize(("shift", "side", "within"), [(-0.1, -1, 3), (0.1, 1, 3), (-0.05, -1, 10)])
def test_chart_detects_shift_and_direction(shift: float, side: int, within: int) -> None:
    values = calm(40, 1)
    values[25:] += shift
    result = ewma_chart(values)
    first = int(np.flatnonzero(result.side)[0])
    assert 25 <= first < 25 + within
    assert result.side[first] == side


@pytest.mark.slow("simulation: many years")
def test_chart_false_alarm_rate() -> None:
    alarms = [bool(ewma_chart(calm(60, seed)).side.any()) for seed in range(200)]
    assert sum(alarms) / len(alarms) <= 0.2  # 52 nights at 0.27 %, had they nothing in common: 0.13


def test_chart_band_robust_to_one_bad_night() -> None:
    values = calm(30, 2)
    without = ewma_chart(values)
    values[20] = 0.0
    result = ewma_chart(values)
    assert result.side[20] == -1
    before, after = (width.high[-1] - width.low[-1] for width in (without, result))
    assert after == pytest.approx(before, rel=0.25)


def test_chart_of_constant_nights() -> None:
    result = ewma_chart([0.1 + 0.2] * 10 + [0.3, 0.31])
    assert result.low[9] == result.high[9]
    assert result.side.tolist() == [0] * 11 + [1]


def test_chart_skips_missing_nights() -> None:
    values = calm(20, 3)
    gaps = np.insert(values, [4, 12], np.nan)
    result, complete = ewma_chart(gaps), ewma_chart(values)
    is_measured = ~np.isnan(gaps)
    assert np.isnan(result.smoothed[~is_measured]).all()
    for ours, expected in zip(result, complete, strict=True):
        np.testing.assert_array_equal(ours[is_measured], expected)


@given(HISTORIES, HISTORIES)
def test_chart_does_not_use_later_nights(history: list[float], future: list[float]) -> None:
    n = len(history)
    for full, part in zip(ewma_chart(history + future), ewma_chart(history), strict=True):
        np.testing.assert_array_equal(full[:n], part)


@given(HISTORIES)
def test_chart_mirrors_negated_history(history: list[float]) -> None:
    upright, negated = ewma_chart(history), ewma_chart([-value for value in history])
    np.testing.assert_allclose(upright.low, -negated.high, atol=1e-12)
    np.testing.assert_array_equal(upright.side, -negated.side)


@pytest.mark.parametrize("values", [[math.inf], [[0.1]]])
def test_chart_refuses(values: list) -> None:
    with pytest.raises(ValueError, match="values must be"):
        ewma_chart(values)


def test_deviation_needs_two_values() -> None:
    # Median 1, both 1 away from it, u = 1/9.
    u = 1 / 81
    assert biweight_deviation([0.0, 2.0]) == pytest.approx(
        math.sqrt(2 * 2 * (1 - u) ** 4) / (2 * (1 - u) * (1 - 5 * u))
    )
    with pytest.raises(ValueError, match="at least 2 values, got 1"):
        biweight_deviation([1.0])


def test_chart_band_excludes_newest_nights() -> None:
    values = calm(30, 4)
    low, high = ewma_chart(values).low[-1], ewma_chart(values).high[-1]
    values[-5:-1] += 1
    assert (ewma_chart(values).low[-1], ewma_chart(values).high[-1]) == (low, high)
    values[-6] += 1
    assert ewma_chart(values).high[-1] != high


@pytest.mark.parametrize("nights", [41, 60])
def test_chart_band_width_by_simulation(nights: int) -> None:
    """By simulation: the spread of the smoothed value minus the earlier median, in deviations of a night."""

    from scipy import stats

    history = np.random.default_rng(5).normal(size=(20_000, nights))
    smoothed = history[:, 0]
    for night in history.T:
        smoothed = 0.2 * night + 0.8 * smoothed
    before = history[:, : nights - 5]
    wander = np.std(smoothed - np.median(before, axis=1))
    result = ewma_chart(history[0])
    half = (result.high[-1] - result.low[-1]) / 2
    quantile = stats.t.ppf(stats.norm.cdf(3), nights - 6)
    assert half / (quantile * biweight_deviation(before[0])) == pytest.approx(wander, rel=0.02)
    assert (result.high[-1] + result.low[-1]) / 2 == pytest.approx(np.median(before[0]))


@pytest.mark.parametrize(("nights", "n"), [(9, 8), (13, 8), (14, 9), (41, 36)])
def test_chart_band_width_by_formula(nights: int, n: int) -> None:
    """Variance of z, that of a median of n normal values, and twice their covariance, night by night."""

    from scipy import stats

    values = calm(nights, 7)
    weights = np.array([0.8 ** (nights - 1), *(0.2 * 0.8 ** (nights - night) for night in range(2, nights + 1))])
    share = (weights**2).sum() + math.pi / 2 / n - 2 * weights[:n].sum() / n
    result = ewma_chart(values)
    half = stats.t.ppf(stats.norm.cdf(3), n - 1) * biweight_deviation(values[:n]) * math.sqrt(share)
    assert (result.high[-1] - result.low[-1]) / 2 == pytest.approx(half)


def test_chart_band_uses_at_most_a_year() -> None:
    values = calm(MAX_HISTORY + 40, 8)
    result = ewma_chart(values)
    values[:30] += 1  # longer ago than the newest band goes back
    later = ewma_chart(values)
    for ours, expected in zip(result[:3], later[:3], strict=True):
        assert ours[-1] == pytest.approx(expected[-1], rel=1e-12)
    assert later.low[MAX_HISTORY] != result.low[MAX_HISTORY]

"""The control chart: what it finds, what it leaves in peace, and that no night sees the future."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.metrics.statistics.ewma import HISTORY, WARM_UP, chart, deviation

HISTORIES = st.lists(st.floats(-1, 1, width=32), min_size=0, max_size=30)


def calm(n: int, seed: int) -> np.ndarray:
    return 0.7 + 0.02 * np.random.default_rng(seed).normal(size=n)


def test_the_deviation_by_hand() -> None:
    # Median 3, median of |x - 3| = 1, u = (x - 3) / 9: -2/9, -1/9, 0, 1/9, and 10/9, which counts for nothing.
    inner = [(d, (d / 9) ** 2) for d in (-2, -1, 0, 1)]
    above = sum(d * d * (1 - u) ** 4 for d, u in inner)
    below = sum((1 - u) * (1 - 5 * u) for _, u in inner)
    assert deviation([1, 2, 3, 4, 13]) == pytest.approx(math.sqrt(5 * above) / below)


def test_the_deviation_of_many_normal_values_is_theirs() -> None:
    assert deviation(3 * np.random.default_rng(0).normal(size=20_000)) == pytest.approx(3, rel=0.03)


def test_where_most_values_are_equal_it_is_the_ordinary_one() -> None:
    assert deviation([1.0, 1, 1, 1, 2]) == pytest.approx(np.std([1, 1, 1, 1, 2], ddof=1))
    assert deviation([0.3] * 9) == deviation([0.0] * 9) == 0


def test_the_deviation_has_the_unit_of_the_values() -> None:
    values = calm(20, 6)
    for unit in (1e-15, 1e9):
        assert deviation(unit * values) == pytest.approx(unit * deviation(values))


def test_the_smoothed_history_by_hand() -> None:
    found = chart([1.0, 2.0, 0.0])
    assert found.smoothed == pytest.approx([1, 1.2, 0.96])
    assert np.isnan(found.low).all()
    assert not found.side.any()


def test_there_is_no_band_before_eight_nights() -> None:
    found = chart(calm(12, 0))
    assert np.isnan(found.low).tolist() == [True] * WARM_UP + [False] * 4
    assert (found.low[WARM_UP:] < found.high[WARM_UP:]).all()


@pytest.mark.parametrize(("shift", "side", "within"), [(-0.1, -1, 3), (0.1, 1, 3), (-0.05, -1, 10)])
def test_a_planted_shift_is_found_and_its_direction(shift: float, side: int, within: int) -> None:
    values = calm(40, 1)
    values[25:] += shift
    found = chart(values)
    first = int(np.flatnonzero(found.side)[0])
    assert 25 <= first < 25 + within
    assert found.side[first] == side


@pytest.mark.slow("simulation: many years")
def test_calm_histories_stay_within_the_band() -> None:
    alarms = [bool(chart(calm(60, seed)).side.any()) for seed in range(200)]
    assert sum(alarms) / len(alarms) <= 0.2  # 52 nights at 0.27 %, had they nothing in common: 0.13


def test_one_bad_night_does_not_widen_the_band() -> None:
    values = calm(30, 2)
    without = chart(values)
    values[20] = 0.0
    found = chart(values)
    assert found.side[20] == -1
    before, after = (width.high[-1] - width.low[-1] for width in (without, found))
    assert after == pytest.approx(before, rel=0.25)


def test_nights_that_never_vary_have_a_band_without_width_and_any_change_leaves_it() -> None:
    found = chart([0.1 + 0.2] * 10 + [0.3, 0.31])
    assert found.low[9] == found.high[9]
    assert found.side.tolist() == [0] * 11 + [1]


def test_a_night_without_a_value_is_passed_over() -> None:
    values = calm(20, 3)
    gaps = np.insert(values, [4, 12], np.nan)
    found, whole = chart(gaps), chart(values)
    kept = ~np.isnan(gaps)
    assert np.isnan(found.smoothed[~kept]).all()
    for ours, theirs in zip(found, whole, strict=True):
        np.testing.assert_array_equal(ours[kept], theirs)


@given(HISTORIES, HISTORIES)
def test_no_night_sees_the_future(history: list[float], future: list[float]) -> None:
    n = len(history)
    for whole, part in zip(chart(history + future), chart(history), strict=True):
        np.testing.assert_array_equal(whole[:n], part)


@given(HISTORIES)
def test_a_history_upside_down_has_its_band_upside_down(history: list[float]) -> None:
    one, other = chart(history), chart([-value for value in history])
    np.testing.assert_allclose(one.low, -other.high, atol=1e-12)
    np.testing.assert_array_equal(one.side, -other.side)


@pytest.mark.parametrize("values", [[math.inf], [[0.1]]])
def test_what_makes_no_chart(values: list) -> None:
    with pytest.raises(ValueError, match="values must be"):
        chart(values)


def test_two_values_have_a_deviation_and_one_has_none() -> None:
    # Median 1, both 1 away from it, u = 1/9.
    u = 1 / 81
    assert deviation([0.0, 2.0]) == pytest.approx(math.sqrt(2 * 2 * (1 - u) ** 4) / (2 * (1 - u) * (1 - 5 * u)))
    with pytest.raises(ValueError, match="at least 2 values, got 1"):
        deviation([1.0])


def test_the_newest_four_nights_have_no_part_in_the_band() -> None:
    values = calm(30, 4)
    low, high = chart(values).low[-1], chart(values).high[-1]
    values[-5:-1] += 1
    assert (chart(values).low[-1], chart(values).high[-1]) == (low, high)
    values[-6] += 1
    assert chart(values).high[-1] != high


@pytest.mark.parametrize("nights", [41, 60])
def test_the_band_is_as_wide_as_calm_nights_wander(nights: int) -> None:
    """Simulated: how far the smoothed value and the median before it lie apart, in deviations of a night."""

    from scipy import stats

    history = np.random.default_rng(5).normal(size=(20_000, nights))
    smoothed = history[:, 0]
    for night in history.T:
        smoothed = 0.2 * night + 0.8 * smoothed
    before = history[:, : nights - 5]
    wander = np.std(smoothed - np.median(before, axis=1))
    found = chart(history[0])
    half = (found.high[-1] - found.low[-1]) / 2
    quantile = stats.t.ppf(stats.norm.cdf(3), nights - 6)
    assert half / (quantile * deviation(before[0])) == pytest.approx(wander, rel=0.02)
    assert (found.high[-1] + found.low[-1]) / 2 == pytest.approx(np.median(before[0]))


@pytest.mark.parametrize(("nights", "n"), [(9, 8), (13, 8), (14, 9), (41, 36)])
def test_the_band_follows_from_the_weights_of_the_nights(nights: int, n: int) -> None:
    """Variance of z, that of a median of n normal values, and twice what the two share, night by night."""

    from scipy import stats

    values = calm(nights, 7)
    weights = np.array([0.8 ** (nights - 1), *(0.2 * 0.8 ** (nights - night) for night in range(2, nights + 1))])
    share = (weights**2).sum() + math.pi / 2 / n - 2 * weights[:n].sum() / n
    found = chart(values)
    half = stats.t.ppf(stats.norm.cdf(3), n - 1) * deviation(values[:n]) * math.sqrt(share)
    assert (found.high[-1] - found.low[-1]) / 2 == pytest.approx(half)


def test_a_band_is_made_of_a_year_of_nights_at_most() -> None:
    values = calm(HISTORY + 40, 8)
    found = chart(values)
    values[:30] += 1  # longer ago than the newest band goes back
    later = chart(values)
    for ours, theirs in zip(found[:3], later[:3], strict=True):
        assert ours[-1] == pytest.approx(theirs[-1], rel=1e-12)
    assert later.low[HISTORY] != found.low[HISTORY]

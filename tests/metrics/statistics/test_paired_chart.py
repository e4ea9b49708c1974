"""The control chart of nights that share their cases: what it finds, what it leaves in peace, how wide it is."""

import math

import numpy as np
import pytest

from yarus.metrics.statistics.ewma import WARM_UP
from yarus.metrics.statistics.paired_chart import SHORTEST, NightChange, paired_chart

STEP = 0.004
CALM = NightChange(0.0, 0.0, 0.0, 8, STEP)
NOISE = 0.01
"""Standard deviation of a night's level, all of it taken back the night after."""


def noisy(n: int, seed: int = 0) -> list[NightChange]:
    levels = NOISE * np.random.default_rng(seed).normal(size=n + 1)
    return [NightChange(difference, 2 * NOISE**2, 2 * NOISE**2, 8, STEP) for difference in np.diff(levels)]


def width(changes: list[NightChange]) -> float:
    chart = paired_chart(changes)
    return float(chart.high[-1] - chart.low[-1]) / 2


def test_there_is_no_band_before_eight_nights() -> None:
    found = paired_chart([CALM] * 11)
    assert np.isnan(found.low).tolist() == [True] * WARM_UP + [False] * 4
    assert len(paired_chart([]).side) == 1


def test_where_nothing_ever_changed_one_case_does_not_leave_the_band_and_a_loss_does() -> None:
    one_case = CALM._replace(difference=-STEP, variance=STEP**2)
    assert not paired_chart([CALM] * 30 + [one_case] + [CALM] * 30).side.any()
    loss = CALM._replace(difference=-0.05, variance=0.05 * STEP)
    found = paired_chart([CALM] * 30 + [loss] + [CALM] * 5)
    assert found.side[31] == -1
    assert not found.side[:31].any()
    gain = paired_chart([CALM] * 30 + [loss._replace(difference=0.05)])
    assert gain.side[-1] == 1


def test_a_band_is_never_narrower_than_one_case() -> None:
    assert width([CALM] * 400) >= STEP


def test_the_band_stands_around_the_level_of_each_night() -> None:
    """In which the level is 0: what a night lost lies above it until the smoothed level has followed."""
    found = paired_chart([CALM] * 30 + [CALM._replace(difference=-0.05)])
    assert found.smoothed[-1] == pytest.approx(0.04)
    assert (found.low[-1] + found.high[-1]) / 2 == pytest.approx(0.05)


def test_noise_that_is_taken_back_is_as_wide_as_calm_nights_wander() -> None:
    """Of the smoothed level and a median of `n` nights of deviation NOISE."""

    from scipy import stats

    n = 300
    found = width([change._replace(step=1e-6) for change in noisy(n)])
    middle = n - 4  # the newest four have no part in it
    expected = stats.t.ppf(stats.norm.cdf(3), middle) * NOISE * math.sqrt(1 / 9 + math.pi / 2 / middle)
    assert found == pytest.approx(expected, rel=0.1)


def test_changes_that_last_let_the_level_wander_and_shorten_the_window() -> None:
    lasting = [change._replace(far_variance=8 * change.variance) for change in noisy(200)]
    assert width(lasting) > 2 * width(noisy(200))
    levels = [CALM._replace(difference=0.01, variance=1e-4, far_variance=8e-4)] * 60
    # The middle follows a rising level within the shortest window: a longer one would be further behind.
    chart = paired_chart(levels)
    assert -(chart.low[-1] + chart.high[-1]) / 2 == pytest.approx(0.01 * (5 + (SHORTEST - 1) / 2))


def test_nights_that_move_as_a_whole_count_as_noise() -> None:
    """A judge with a mood moves every case a little: cases alone would promise too narrow a band."""
    blind = [change._replace(variance=1e-8, far_variance=1e-8) for change in noisy(200)]
    assert width(blind) == pytest.approx(width(noisy(200)), rel=0.25)
    assert not paired_chart(blind).side.any()


def test_no_night_sees_the_future() -> None:
    whole, part = paired_chart(noisy(60)), paired_chart(noisy(60)[:40])
    for one, other in zip(whole, part, strict=True):
        np.testing.assert_array_equal(one[:41], other)

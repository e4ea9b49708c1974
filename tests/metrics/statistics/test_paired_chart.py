"""The control chart of nights with common cases: detected losses, false alarms, and the width of the band."""

import math

import numpy as np
import pytest

from yarus.metrics.statistics.ewma import WARM_UP
from yarus.metrics.statistics.paired_chart import MIN_WINDOW, NightChange, paired_chart

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


def test_chart_without_band_before_eight_nights() -> None:
    chart = paired_chart([CALM] * 11)
    assert np.isnan(chart.low).tolist() == [True] * WARM_UP + [False] * 4
    assert len(paired_chart([]).side) == 1


def test_paired_chart_detects_loss_but_not_one_case() -> None:
    one_case = CALM._replace(difference=-STEP, variance=STEP**2)
    assert not paired_chart([CALM] * 30 + [one_case] + [CALM] * 30).side.any()
    loss = CALM._replace(difference=-0.05, variance=0.05 * STEP)
    chart = paired_chart([CALM] * 30 + [loss] + [CALM] * 5)
    assert chart.side[31] == -1
    assert not chart.side[:31].any()
    gain = paired_chart([CALM] * 30 + [loss._replace(difference=0.05)])
    assert gain.side[-1] == 1


def test_paired_chart_band_at_least_one_case() -> None:
    assert width([CALM] * 400) >= STEP


def test_paired_chart_band_around_level() -> None:
    """In which the level is 0: what a night lost lies above it until the smoothed level has followed."""
    chart = paired_chart([CALM] * 30 + [CALM._replace(difference=-0.05)])
    assert chart.smoothed[-1] == pytest.approx(0.04)
    assert (chart.low[-1] + chart.high[-1]) / 2 == pytest.approx(0.05)


def test_paired_chart_width_of_noise() -> None:
    """Of the smoothed level and a median of `n` nights of deviation NOISE."""

    from scipy import stats

    n = 300
    simulated_width = width([change._replace(step=1e-6) for change in noisy(n)])
    middle = n - 4  # the newest four have no part in it
    expected = stats.t.ppf(stats.norm.cdf(3), middle) * NOISE * math.sqrt(1 / 9 + math.pi / 2 / middle)
    assert simulated_width == pytest.approx(expected, rel=0.1)


def test_paired_chart_shortens_window_for_lasting_changes() -> None:
    lasting = [change._replace(far_variance=8 * change.variance) for change in noisy(200)]
    assert width(lasting) > 2 * width(noisy(200))
    levels = [CALM._replace(difference=0.01, variance=1e-4, far_variance=8e-4)] * 60
    # The middle follows a rising level within the shortest window: a longer one would be further behind.
    chart = paired_chart(levels)
    assert -(chart.low[-1] + chart.high[-1]) / 2 == pytest.approx(0.01 * (5 + (MIN_WINDOW - 1) / 2))


def test_paired_chart_counts_common_moves_as_noise() -> None:
    """A judge with a mood moves every case a little: cases alone would promise too narrow a band."""
    blind = [change._replace(variance=1e-8, far_variance=1e-8) for change in noisy(200)]
    assert width(blind) == pytest.approx(width(noisy(200)), rel=0.25)
    assert not paired_chart(blind).side.any()


def test_chart_does_not_use_later_nights() -> None:
    complete, part = paired_chart(noisy(60)), paired_chart(noisy(60)[:40])
    for full, partial in zip(complete, part, strict=True):
        np.testing.assert_array_equal(full[:41], partial)

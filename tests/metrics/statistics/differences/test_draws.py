"""Resamples of cases: fair, complete, and quantiles equal to sorting."""

from typing import Any

import numpy as np
import pytest

from tests.support.examples import for_all
from yarus.metrics.statistics.differences.draws import (
    ResampledQuantile,
    count_swap_patterns,
    draw_resamples,
    draw_swaps,
)


@for_all("quantile", [0.0, 0.05, 0.5, 0.95, 1.0])
@for_all("m, each", [(2, 1), (3, 1), (8, 1), (9, 3), (40, 1), (40, 4), (400, 1), (400, 5)])
def test_resampled_quantile_equals_numpy(m: int, each: int, quantile: float) -> None:
    values = np.random.default_rng(m).lognormal(size=m)
    codes = np.arange(m) // each
    units = int(codes.max()) + 1
    ours = ResampledQuantile(values, codes, units, quantile)
    for _, weights in draw_resamples(units, 500, seed=1):
        naive = np.quantile([np.repeat(values, row[codes]) for row in weights.astype(int)], quantile, axis=1)
        assert ours(weights, weights @ ours.columns) == pytest.approx(naive)


@for_all("quantile", [0.2, 0.5, 0.9])
@for_all("units, each", [(3, 1), (8, 2), (30, 3), (200, 1)])
def test_swapped_quantile_equals_numpy(units: int, each: int, quantile: float) -> None:
    """Half of the values are present unless their unit is swapped, the other half if it is."""
    values, codes = np.random.default_rng(units).normal(size=(2, units * each)), np.arange(units * each) // each
    own = np.repeat([1.0, 0.0], units * each)
    ours = ResampledQuantile(values.ravel(), np.tile(codes, 2), units, quantile, inverted=own)
    for _, swapped in draw_swaps(units, 500, seed=1):
        naive = np.quantile(np.where(swapped[:, codes] > 0, values[1], values[0]), quantile, axis=1)
        assert ours(swapped, swapped @ ours.columns) == pytest.approx(naive)


def test_resampled_quantile_nan_for_empty_resample() -> None:
    ours = ResampledQuantile(np.array([5.0, 7.0]), np.array([0, 0]), 3, 0.5)  # the units 1 and 2 were not measured
    weights = np.array([[0.0, 2, 1], [1, 1, 1], [3, 0, 0]])
    np.testing.assert_array_equal(ours(weights, weights @ ours.columns), [np.nan, 6, 6])


def test_resampled_quantile_exact_on_value() -> None:
    """0.29 of 100 steps is a little less than 29 in floats: the result is the 30th value, not the large next one."""
    values = np.where(np.arange(101) > 29, 1e12, np.arange(101))
    ours, once = ResampledQuantile(values, np.arange(101), 101, 0.29), np.ones((1, 101))
    assert ours(once, once @ ours.columns).tolist() == [29.0]


@pytest.mark.parametrize(("units", "count"), [(1, 5), (7, 100), (3_000, 2_000)])
def test_draw_resamples_equal_size_and_chances(units: int, count: int) -> None:
    blocks = list(draw_resamples(units, count, seed=1))
    assert [row for rows, _ in blocks for row in range(rows.start, rows.stop)] == list(range(count))
    weights = np.concatenate([weights for _, weights in blocks])
    assert (weights.sum(axis=1) == units).all()
    assert weights.min() >= 0
    # The count of a unit over all draws is binomial: six standard deviations.
    assert np.abs(weights.mean(axis=0) - 1).max() <= 6 / np.sqrt(count) * (units > 1)
    assert weights.var() == pytest.approx(1 - 1 / units, rel=0.15)


def test_draw_swaps_enumerates_patterns_of_few_units() -> None:
    assert count_swap_patterns(8, 256) == 256
    assert count_swap_patterns(8, 255) == count_swap_patterns(5_000, 10_000) == 0
    patterns = np.concatenate([swapped for _, swapped in draw_swaps(8, 256, seed=1)])
    assert len(np.unique(patterns, axis=0)) == len(patterns) == 256
    assert set(patterns.ravel()) == {0, 1}


def test_draw_swaps_at_random_for_many_units() -> None:
    patterns = np.concatenate([swapped for _, swapped in draw_swaps(75, 4_000, seed=1)])
    assert patterns.shape == (4_000, 75)
    assert np.abs(patterns.mean(axis=0) - 0.5).max() < 6 * 0.5 / np.sqrt(4_000)
    correlations = np.corrcoef(patterns.T) - np.eye(75)
    assert np.abs(correlations).max() < 6 / np.sqrt(4_000)


def test_draw_swaps_uniform_over_patterns() -> None:
    drawn = [swapped @ 2 ** np.arange(8.0) for seed in range(100) for _, swapped in draw_swaps(8, 255, seed)]
    counts: Any = np.bincount(np.concatenate(drawn).astype(int), minlength=256)
    expected = 25_500 / 256
    assert ((counts - expected) ** 2 / expected).sum() == pytest.approx(255, abs=6 * np.sqrt(2 * 255))
    assert counts.min() > 0

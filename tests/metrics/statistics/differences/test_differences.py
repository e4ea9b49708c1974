"""Intervals of paired differences: Student's where most change, a score interval where few do, and odd groups."""

import math

import numpy as np
import pytest

from yarus.metrics.statistics import newcombe_paired_interval, wilson_interval
from yarus.metrics.statistics.differences.intervals import agreed, interval_of_differences, level_at, mean_of
from yarus.metrics.statistics.intervals import Interval

NAN = math.nan


def of(differences: object, groups: object = None, span: float = 1.0, confidence: float = 0.95) -> tuple[float, float]:
    given = np.asarray(differences, dtype=float)
    codes = np.arange(len(given)) if groups is None else np.unique(groups, return_inverse=True)[1]
    return tuple(interval_of_differences(given, codes, span)(confidence))  # type: ignore[return-value]


def test_where_most_pairs_change_it_is_students() -> None:
    from scipy import stats

    differences = np.random.default_rng(1).normal(0.1, 0.3, 25)
    peer = stats.ttest_1samp(differences, 0).confidence_interval(0.9)
    assert of(differences, confidence=0.9) == pytest.approx(tuple(peer))


def test_the_error_of_groups_is_the_jackknifes_written_out() -> None:
    """The spread of the means that leave out one group each, times (m - 1) / m."""
    generator = np.random.default_rng(2)
    codes = np.repeat(np.arange(7), [1, 2, 3, 4, 5, 20, 2])
    values = generator.normal(size=len(codes)) + generator.normal(size=7)[codes]
    n, mean = len(values), values.mean()
    squares = [(values[codes != group].mean() - mean) ** 2 for group in range(7)]
    found = mean_of(values, codes)
    assert (found.value, found.error) == (pytest.approx(mean), pytest.approx(math.sqrt(6 / 7 * sum(squares))))
    assert found.degrees == pytest.approx(n**2 / (np.bincount(codes) ** 2).sum() - 1)
    alone = mean_of(values, np.arange(n))
    assert (alone.error, alone.degrees) == (pytest.approx(values.std(ddof=1) / math.sqrt(n)), pytest.approx(n - 1))


def test_losses_alone_are_wilsons_share_of_them() -> None:
    """Of many pairs some lose 1 and none gains: the loss is a share, whose jump is 1."""
    differences = np.zeros(100_000)
    differences[:300] = -1
    low, high = wilson_interval(300, 100_000)
    assert of(differences)[0] == pytest.approx(-high, abs=2e-6)
    assert of(differences)[1] == pytest.approx(-low, abs=2e-5)  # and no more than a few gains are left possible


def test_of_yes_and_no_it_is_close_to_newcombes() -> None:
    differences = np.array([-1.0] * 20 + [1.0] * 10 + [0.0] * 370)
    peer = newcombe_paired_interval(300, 20, 10, 70)
    assert of(differences) == pytest.approx(tuple(peer), abs=0.004)


def test_few_changes_are_not_taken_for_the_size_of_all() -> None:
    """One pair of fifty lost a hundredth: that says little of what the next change will be."""
    low, high = of([-0.01] + [0.0] * 49)
    assert low < -0.02 and high > 0.02


@pytest.mark.parametrize(
    ("differences", "groups"),
    [
        ([-1, 0], None),
        ([-1, 0, 0], None),
        ([1, 0, 0, 0, 0, 0], None),
        ([-1] * 10 + [0] * 10, ["a"] * 10 + list("bcdefghijk")),  # one group has half of all cases, and all the losses
        ([0] * 50, None),
        ([0] * 50, ["a"] * 25 + list(range(25))),
        ([0.5, -0.5] * 3, [1, 1, 1, 2, 2, 2]),
    ],
)
def test_odd_pairs_have_an_interval_with_a_width_within_what_is_possible(differences: object, groups: object) -> None:
    low, high = of(differences, groups)
    mean = float(np.mean(np.asarray(differences, dtype=float)))
    assert low <= mean <= high
    assert high - low > 0.01
    if np.count_nonzero(differences) * 2 < len(np.atleast_1d(differences)):  # type: ignore[call-overload]
        assert low >= -1 and high <= 1


def test_nothing_that_could_have_changed_has_no_width() -> None:
    assert of([0.0] * 9, span=0.0) == (0, 0)
    assert of([0.3] * 9) == (0.3, 0.3)


def test_groups_that_nobody_shares_change_nothing() -> None:
    differences = np.where(np.arange(60) % 7 == 0, -0.4, 0.0)
    assert of(differences, list(range(60))) == of(differences)


def test_whole_groups_are_the_units() -> None:
    """Each case told five times over."""
    differences = np.where(np.arange(60) % 7 == 0, -0.4, 0.0)
    assert of(differences.repeat(5), np.arange(60).repeat(5)) == pytest.approx(of(differences))


def test_a_p_that_shows_more_than_the_interval_is_the_intervals() -> None:
    from scipy import stats

    def at(confidence: float) -> Interval:
        reach = stats.norm.ppf((1 + confidence) / 2)
        return Interval(1 - reach, 1 + reach)

    assert level_at(at, 0.0) == pytest.approx(2 * stats.norm.sf(1), rel=1e-9)
    assert agreed(0.01, at, 0.95) == (pytest.approx(2 * stats.norm.sf(1)), at(0.95))
    assert agreed(0.4, at, 0.95) == (0.4, at(0.95))
    p, interval = agreed(0.4, at, 0.5)
    assert (p, interval) == (0.4, at(0.5))
    assert agreed(0.6, at, 0.5)[1] == Interval(0.0, at(0.5).high)
    assert all(math.isnan(end) for end in agreed(NAN, at, 0.95)[1])

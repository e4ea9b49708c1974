"""The smallest detectable difference for users with very different numbers of questions: its power is about 0.8."""

import math

import numpy as np
import pytest

from yarus.metrics.statistics.differences.compared_statistics import SampleStatistic
from yarus.metrics.statistics.differences.paired import compare_statistics
from yarus.metrics.statistics.groups import Floats, Ints
from yarus.metrics.statistics.power import min_detectable_effect
from yarus.metrics.statistics.power_in_groups import min_detectable_effect_in_groups

MORE = pytest.mark.slow("simulation: larger logs")


def draw_users(generator: np.random.Generator, n: int, most: int) -> Ints:
    """Return the user of each of n questions; everybody asks 1 to `most`, log-uniform."""
    sizes = np.exp(generator.uniform(0, np.log(most + 1), n)).astype(np.intp)
    return np.repeat(np.arange(n), sizes)[:n]


def lose(generator: np.random.Generator, n: int, loss: float) -> tuple[Floats, Floats]:
    """Return hits before and after: one in twenty-five changes by itself, and so many more are lost."""
    before = generator.random(n) < 0.8
    changes = generator.random(n) < np.where(before, (loss + 0.02) / 0.8, 0.02 / 0.2)
    return before.astype(np.float64), (before ^ changes).astype(np.float64)


@pytest.mark.slow("simulation: logs of many users")
@pytest.mark.parametrize(
    ("n", "most"), [(60, 10), *(pytest.param(n, most, marks=MORE) for n, most in ((200, 10), (200, 50), (1_000, 50)))]
)
def test_detectable_loss_in_groups_has_power(n: int, most: int) -> None:
    is_detected = []
    for seed in range(100):
        generator = np.random.default_rng(seed)
        users = draw_users(generator, n, most)
        before, after = lose(generator, n, 0.0)
        detectable = min_detectable_effect_in_groups(after - before, users, alpha=0.05, span=1.0)
        if not math.isnan(detectable):
            lost = SampleStatistic(*lose(generator, n, min(detectable, 0.75)))
            compared = compare_statistics({"hit_rate@1": lost}, seed=seed, groups=users.tolist(), count=500)
            is_detected.append(compared["hit_rate@1"].comparison.verdict == "regressed")
    assert len(is_detected) >= 90
    assert 0.68 <= np.mean(is_detected) <= 0.92  # 0.8, binomial, 99.7 %


def test_detectable_loss_without_groups() -> None:
    differences = np.random.default_rng(0).normal(0, 0.2, 300)
    ungrouped = min_detectable_effect(differences, span=1.0)
    assert min_detectable_effect_in_groups(differences, np.arange(300), alpha=0.05, span=1.0) == pytest.approx(
        ungrouped, rel=0.1
    )


def test_detectable_loss_larger_for_unequal_users() -> None:
    generator = np.random.default_rng(0)
    differences = generator.normal(0, 0.2, 300)
    alike, unlike = np.repeat(np.arange(30), 10), np.repeat(np.arange(30), [155] + [5] * 29)
    losses = [min_detectable_effect_in_groups(differences, users, alpha=0.05, span=1.0) for users in (alike, unlike)]
    assert losses[0] < losses[1] or math.isnan(losses[1])


@pytest.mark.parametrize("sizes", [[100, 100], [25] * 4, [300] + [5] * 20])
def test_detectable_loss_undefined_for_few_users(sizes: list[int]) -> None:
    users = np.repeat(np.arange(len(sizes)), sizes)
    differences = np.random.default_rng(0).normal(0, 0.2, len(users))
    assert math.isnan(min_detectable_effect_in_groups(differences, users, alpha=0.05, span=1.0))


def test_detectable_loss_beyond_margin() -> None:
    generator = np.random.default_rng(1)
    users = draw_users(generator, 300, 10)
    before, after = lose(generator, 300, 0.0)
    options = {"alpha": 0.1, "span": 1.0}
    without_margin = min_detectable_effect_in_groups(after - before, users, **options)
    assert min_detectable_effect_in_groups(after - before, users, margin=0.03, **options) > without_margin


def test_detectable_loss_undefined_without_variation() -> None:
    assert math.isnan(min_detectable_effect_in_groups(np.zeros(60), np.repeat(np.arange(20), 3), alpha=0.05, span=0.0))


@pytest.mark.parametrize("unchanged", [0.0, 0.06, 0.3])
def test_detectable_loss_if_most_answers_change(unchanged: float) -> None:
    """A hundred users of two questions each; few questions stay as they were, which may all be lost."""
    generator = np.random.default_rng(2)
    differences = np.where(generator.random(200) < unchanged, 0.0, generator.normal(0, 0.25, 200))
    detectable = min_detectable_effect_in_groups(differences, np.repeat(np.arange(100), 2), alpha=0.05, span=1.0)
    assert 0.03 <= detectable <= 0.1

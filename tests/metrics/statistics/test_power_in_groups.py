"""The smallest detectable difference of users who ask very differently much: it is found about four times in five."""

import math

import numpy as np
import pytest

from yarus.metrics.statistics.differences.numbers import Number
from yarus.metrics.statistics.differences.paired import compare_numbers
from yarus.metrics.statistics.groups import Floats, Ints
from yarus.metrics.statistics.power import smallest_detectable_difference
from yarus.metrics.statistics.power_in_groups import smallest_detectable_in_groups

MORE = pytest.mark.slow("simulation: larger logs")


def draw_users(generator: np.random.Generator, n: int, most: int) -> Ints:
    """Who asked each of n questions; everybody asks 1 to `most`, log-uniform."""
    sizes = np.exp(generator.uniform(0, np.log(most + 1), n)).astype(np.intp)
    return np.repeat(np.arange(n), sizes)[:n]


def lose(generator: np.random.Generator, n: int, loss: float) -> tuple[Floats, Floats]:
    """Hits before and after: one in twenty-five changes by itself, and so many more are lost."""
    before = generator.random(n) < 0.8
    changes = generator.random(n) < np.where(before, (loss + 0.02) / 0.8, 0.02 / 0.2)
    return before.astype(np.float64), (before ^ changes).astype(np.float64)


@pytest.mark.slow("simulation: logs of many users")
@pytest.mark.parametrize(
    ("n", "most"), [(60, 10), *(pytest.param(n, most, marks=MORE) for n, most in ((200, 10), (200, 50), (1_000, 50)))]
)
def test_a_loss_of_this_size_is_found_four_times_in_five(n: int, most: int) -> None:
    found = []
    for seed in range(100):
        generator = np.random.default_rng(seed)
        users = draw_users(generator, n, most)
        before, after = lose(generator, n, 0.0)
        told = smallest_detectable_in_groups(after - before, users, alpha=0.05, span=1.0)
        if not math.isnan(told):
            lost = Number(*lose(generator, n, min(told, 0.75)))
            compared = compare_numbers({"hit_rate@1": lost}, seed=seed, groups=users.tolist(), count=500)
            found.append(compared["hit_rate@1"].comparison.verdict == "regressed")
    assert len(found) >= 90
    assert 0.68 <= np.mean(found) <= 0.92  # 0.8, binomial, 99.7 %


def test_of_cases_that_stand_alone_it_is_as_without_groups() -> None:
    differences = np.random.default_rng(0).normal(0, 0.2, 300)
    alone = smallest_detectable_difference(differences, span=1.0)
    assert smallest_detectable_in_groups(differences, np.arange(300), alpha=0.05, span=1.0) == pytest.approx(
        alone, rel=0.1
    )


def test_users_who_ask_much_are_worth_few() -> None:
    generator = np.random.default_rng(0)
    differences = generator.normal(0, 0.2, 300)
    alike, unlike = np.repeat(np.arange(30), 10), np.repeat(np.arange(30), [155] + [5] * 29)
    found = [smallest_detectable_in_groups(differences, users, alpha=0.05, span=1.0) for users in (alike, unlike)]
    assert found[0] < found[1] or math.isnan(found[1])


@pytest.mark.parametrize("sizes", [[100, 100], [25] * 4, [300] + [5] * 20])
def test_fewer_than_five_users_or_one_who_asked_nearly_all_promise_nothing(sizes: list[int]) -> None:
    users = np.repeat(np.arange(len(sizes)), sizes)
    differences = np.random.default_rng(0).normal(0, 0.2, len(users))
    assert math.isnan(smallest_detectable_in_groups(differences, users, alpha=0.05, span=1.0))


def test_beyond_a_margin_a_loss_has_to_be_larger() -> None:
    generator = np.random.default_rng(1)
    users = draw_users(generator, 300, 10)
    before, after = lose(generator, 300, 0.0)
    options = {"alpha": 0.1, "span": 1.0}
    plain = smallest_detectable_in_groups(after - before, users, **options)
    assert smallest_detectable_in_groups(after - before, users, margin=0.03, **options) > plain


def test_where_nothing_varies_nothing_can_be_found() -> None:
    assert math.isnan(smallest_detectable_in_groups(np.zeros(60), np.repeat(np.arange(20), 3), alpha=0.05, span=0.0))


@pytest.mark.parametrize("unchanged", [0.0, 0.06, 0.3])
def test_users_whose_answers_nearly_all_change_are_promised_something(unchanged: float) -> None:
    """A hundred users of two questions each; few questions stay as they were, which may all be lost."""
    generator = np.random.default_rng(2)
    differences = np.where(generator.random(200) < unchanged, 0.0, generator.normal(0, 0.25, 200))
    found = smallest_detectable_in_groups(differences, np.repeat(np.arange(100), 2), alpha=0.05, span=1.0)
    assert 0.03 <= found <= 0.1

"""What alarms leave out: which questions were asked, and on which day of the week."""

from itertools import pairwise

import numpy as np
import pytest

from metrics.statistics.alarms.mix import WEEK, remove_mix, remove_weekdays
from metrics.statistics.alarms.noise import Cells, Night

EASY, HARD = 0.9, 0.5


def mixed(easy: int, hard: int, *, lost: float = 0.0) -> Night:
    """A night that asked so many easy and hard questions."""
    cells = {"easy": (easy, easy * (EASY - lost)), "hard": (hard, hard * (HARD - lost))}
    value = sum(total for _, total in cells.values()) / (easy + hard)
    return Night(value, 0.2 / (easy + hard), easy + hard, cells=cells)


def test_harder_questions_are_no_loss_and_a_loss_at_the_same_questions_is() -> None:
    nights = [*[mixed(150, 150)] * 5, mixed(60, 240), mixed(60, 240, lost=0.05), mixed(150, 150, lost=0.05)]
    found = [night.value for night in remove_mix(nights)]
    assert found[:5] == pytest.approx([0.7] * 5)
    assert found[5:] == pytest.approx([0.7, 0.65, 0.65], abs=0.005)
    assert remove_mix(nights)[5].mix == pytest.approx(60 / 300 * EASY + 240 / 300 * HARD - 0.7, abs=0.005)


def test_what_a_night_was_found_to_be_does_not_change_later() -> None:
    nights = [mixed(150, 150), mixed(100, 200), mixed(200, 100, lost=0.1), mixed(50, 250)]
    assert remove_mix(nights[:3]) == remove_mix(nights)[:3]


def test_a_kind_that_nobody_has_asked_about_is_told_from_the_others_of_its_night() -> None:
    new = mixed(150, 50)
    cells = new.cells | {"new": (100, 30.0)}
    both = remove_mix([mixed(150, 50), Night((EASY * 150 + HARD * 50 + 30) / 300, 0.2 / 300, 300, cells=cells)])
    assert both[1].value == pytest.approx(both[0].value, abs=0.02)
    assert both[1].sampling > 1.3 * 0.2 / 300


def test_where_the_mix_stays_nothing_is_changed() -> None:
    nights = [mixed(150, 150), mixed(150, 150, lost=0.1)]
    for before, after in zip(nights, remove_mix(nights), strict=True):
        assert (after.value, after.sampling, after.mix) == pytest.approx((before.value, before.sampling, 0.0))
    bare = Night(0.7, 0.001, 300)
    assert remove_mix([bare, bare]) == [bare, bare]
    assert remove_mix([bare, *nights])[0] == bare


def test_the_new_cases_of_a_followed_night_have_a_mix_of_their_own() -> None:
    new: Cells = {"hard": (60, 60 * HARD)}
    night = mixed(120, 180)._replace(change=0.0, n=240, n_new=60, new_value=HARD, new_cells=new)
    first, then = remove_mix([mixed(150, 150), night])
    assert then.change == 0.0
    assert then.new_value == pytest.approx(first.value, abs=0.02)


def weeks(count: int, *, lower: float, noise: float, lost: float = 0.0) -> list[Night]:
    """A frozen set whose weekends are lower, and of whose level something is lost in the middle."""
    chance, days = np.random.default_rng(0), np.arange(WEEK * count)
    values = (
        0.8
        - lower * (days % WEEK >= WEEK - 2)
        - lost * (days >= WEEK * count / 2)
        + noise * chance.normal(size=len(days))
    )
    changes = [None, *np.diff(values).tolist()]
    return [
        Night(value, 0.0005, 300, change, 300, day=day)
        for day, value, change in zip(days.tolist(), values.tolist(), changes, strict=True)
    ]


def test_weekends_that_are_lower_are_none_of_the_level_after_a_month() -> None:
    raw = weeks(12, lower=0.02, noise=0.004)
    found = remove_weekdays(raw)
    assert found[: 4 * WEEK - 1] == raw[: 4 * WEEK - 1]
    late = slice(8 * WEEK, None)
    before, after = (np.std([night.value for night in of[late]]) for of in (raw, found))
    assert before > 0.009
    assert after < 0.006
    for earlier, later in pairwise(found):
        assert later.change == pytest.approx(later.value - earlier.value)


def test_a_loss_is_no_weekday() -> None:
    found = remove_weekdays(weeks(12, lower=0.0, noise=0.004, lost=0.05))
    levels = [night.value for night in found]
    assert np.mean(levels[: 6 * WEEK]) - np.mean(levels[6 * WEEK :]) == pytest.approx(0.05, abs=0.003)


def test_without_weekdays_or_with_nights_missed_nothing_is_made_up() -> None:
    raw = weeks(12, lower=0.02, noise=0.0)[::2]
    assert remove_weekdays(raw) == raw

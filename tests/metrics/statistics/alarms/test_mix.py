"""What alarms leave out: which questions were asked, and on which day of the week."""

from itertools import pairwise

import numpy as np
import pytest

from yarus.metrics.statistics.alarms.level import Level
from yarus.metrics.statistics.alarms.mix import WEEK, remove_mix, remove_weekdays
from yarus.metrics.statistics.alarms.noise import Cells, Night
from yarus.metrics.statistics.alarms.watch import Watch

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
    assert [night.value for night in found[: 4 * WEEK]] == [night.value for night in raw[: 4 * WEEK]]
    late = slice(8 * WEEK, None)
    before, after = (np.std([night.value for night in of[late]]) for of in (raw, found))
    assert before > 0.009
    assert after < 0.006
    for earlier, later in pairwise(found):
        assert later.change == pytest.approx(later.value - earlier.value)


def test_in_the_first_weeks_a_weekday_other_than_the_first_is_uncertain() -> None:
    found = remove_weekdays(weeks(6, lower=0.0, noise=0.0), best=2.0)
    uncertain = [night.day for night in found if night.unknown == pytest.approx(0.02**2)]
    assert uncertain == [day for day in range(4 * WEEK) if day % WEEK]
    assert not any(night.unknown for night in found if night.day not in uncertain)


def test_first_weekends_that_are_lower_ring_less_and_a_loss_rings() -> None:
    def rung(lower: float, lost: float) -> bool:
        watch = Watch({"mrr": Level(0.005)})
        nights = remove_weekdays(weeks(4, lower=lower, noise=0.0, lost=lost))
        return any(watch.look({"mrr": night}, looks=3_000) for night in nights)

    assert not rung(0.02, 0.0)
    assert rung(0.0, 0.05)


def test_a_loss_is_no_weekday() -> None:
    found = remove_weekdays(weeks(12, lower=0.0, noise=0.004, lost=0.05))
    levels = [night.value for night in found]
    assert np.mean(levels[: 6 * WEEK]) - np.mean(levels[6 * WEEK :]) == pytest.approx(0.05, abs=0.003)


def test_weekdays_are_told_where_nights_are_missing_or_doubled() -> None:
    whole = weeks(12, lower=0.02, noise=0.002)
    chosen = [night for night in whole if night.day % WEEK != 2 and night.day != 33]  # no Wednesdays
    twice = [*chosen[:20], chosen[19], *chosen[20:]]
    for nights in (chosen, twice):
        values = [night.value for night in remove_weekdays([night._replace(change=None) for night in nights])]
        assert np.std(values[6 * WEEK :]) < 0.005 < 0.008 < np.std([night.value for night in nights[6 * WEEK :]])
    few = whole[::9]
    assert [night.value for night in remove_weekdays(few)] == [night.value for night in few]


def test_weekdays_that_begin_late_are_told_within_a_quarter() -> None:
    late = [
        night._replace(value=night.value - (0.03 if night.day % WEEK >= 5 and night.day > 140 else 0.0), change=None)
        for night in weeks(40, lower=0.0, noise=0.002)
    ]
    assert np.std([night.value for night in remove_weekdays(late)[35 * WEEK :]]) < 0.004


def test_what_one_night_adds_by_chance_inflates_nothing() -> None:
    """Of 36 kinds each night asks some more and some fewer, and the first one has few questions."""
    chance, nights = np.random.default_rng(0), []
    for number in range(90):
        counts = chance.multinomial(300 if number else 20, np.full(36, 1 / 36)).tolist()
        cells = {str(kind): (n, 0.8 * n) for kind, n in enumerate(counts) if n}
        nights.append(Night(0.8, 0.16 / sum(counts), sum(counts), cells=cells))
    found = remove_mix(nights)
    assert np.median([after.sampling / before.sampling for after, before in zip(found, nights, strict=True)]) < 1.2

"""Corrections of alarms for the mix of questions and for the day of the week."""

from itertools import pairwise

import numpy as np
import pytest

from yarus.metrics.statistics.change_detection.level import LevelDetector
from yarus.metrics.statistics.change_detection.mix import WEEK, remove_mix, remove_weekdays
from yarus.metrics.statistics.change_detection.noise import NightlyValue, QuestionCells
from yarus.metrics.statistics.change_detection.watch import ChangeMonitor

EASY, HARD = 0.9, 0.5


def make_night(easy: int, hard: int, *, lost: float = 0.0) -> NightlyValue:
    """Return a night that asked so many easy and hard questions."""
    cells = {"easy": (easy, easy * (EASY - lost)), "hard": (hard, hard * (HARD - lost))}
    value = sum(total for _, total in cells.values()) / (easy + hard)
    return NightlyValue(value, 0.2 / (easy + hard), easy + hard, cells=cells)


def test_remove_mix_separates_hard_questions_from_loss() -> None:
    nights = [
        *[make_night(150, 150)] * 5,
        make_night(60, 240),
        make_night(60, 240, lost=0.05),
        make_night(150, 150, lost=0.05),
    ]
    values = [night.value for night in remove_mix(nights)]
    assert values[:5] == pytest.approx([0.7] * 5)
    assert values[5:] == pytest.approx([0.7, 0.65, 0.65], abs=0.005)
    assert remove_mix(nights)[5].mix == pytest.approx(60 / 300 * EASY + 240 / 300 * HARD - 0.7, abs=0.005)


def test_remove_mix_keeps_earlier_nights() -> None:
    nights = [make_night(150, 150), make_night(100, 200), make_night(200, 100, lost=0.1), make_night(50, 250)]
    assert remove_mix(nights[:3]) == remove_mix(nights)[:3]


def test_remove_mix_with_new_kind_of_question() -> None:
    new = make_night(150, 50)
    cells = new.cells | {"new": (100, 30.0)}
    both = remove_mix(
        [make_night(150, 50), NightlyValue((EASY * 150 + HARD * 50 + 30) / 300, 0.2 / 300, 300, cells=cells)]
    )
    assert both[1].value == pytest.approx(both[0].value, abs=0.02)
    assert both[1].sampling > 1.3 * 0.2 / 300


def test_remove_mix_without_change_of_mix() -> None:
    nights = [make_night(150, 150), make_night(150, 150, lost=0.1)]
    for before, after in zip(nights, remove_mix(nights), strict=True):
        assert (after.value, after.sampling, after.mix) == pytest.approx((before.value, before.sampling, 0.0))
    bare = NightlyValue(0.7, 0.001, 300)
    assert remove_mix([bare, bare]) == [bare, bare]
    assert remove_mix([bare, *nights])[0] == bare


def test_remove_mix_of_new_cases() -> None:
    new: QuestionCells = {"hard": (60, 60 * HARD)}
    night = make_night(120, 180)._replace(change=0.0, n=240, n_new=60, new_value=HARD, new_cells=new)
    first, then = remove_mix([make_night(150, 150), night])
    assert then.change == 0.0
    assert then.new_value == pytest.approx(first.value, abs=0.02)


def make_weeks(count: int, *, lower: float, noise: float, lost: float = 0.0) -> list[NightlyValue]:
    """Return nights of a frozen set with lower weekends, and a loss in the middle."""
    chance, days = np.random.default_rng(0), np.arange(WEEK * count)
    values = (
        0.8
        - lower * (days % WEEK >= WEEK - 2)
        - lost * (days >= WEEK * count / 2)
        + noise * chance.normal(size=len(days))
    )
    changes = [None, *np.diff(values).tolist()]
    return [
        NightlyValue(value, 0.0005, 300, change, 300, day=day)
        for day, value, change in zip(days.tolist(), values.tolist(), changes, strict=True)
    ]


def test_remove_weekdays_after_a_month() -> None:
    raw = make_weeks(12, lower=0.02, noise=0.004)
    corrected = remove_weekdays(raw)
    assert [night.value for night in corrected[: 4 * WEEK]] == [night.value for night in raw[: 4 * WEEK]]
    late = slice(8 * WEEK, None)
    before, after = (np.std([night.value for night in nights[late]]) for nights in (raw, corrected))
    assert before > 0.009
    assert after < 0.006
    for earlier, later in pairwise(corrected):
        assert later.change == pytest.approx(later.value - earlier.value)


def test_remove_weekdays_uncertain_in_first_weeks() -> None:
    corrected = remove_weekdays(make_weeks(6, lower=0.0, noise=0.0), best=2.0)
    uncertain = [night.day for night in corrected if night.unknown == pytest.approx(0.02**2)]
    assert uncertain == [day for day in range(4 * WEEK) if day % WEEK]
    assert not any(night.unknown for night in corrected if night.day not in uncertain)


def test_first_low_weekends_do_not_alarm_but_loss_does() -> None:
    def rung(lower: float, lost: float) -> bool:
        watch = ChangeMonitor({"mrr": LevelDetector(0.005)})
        nights = remove_weekdays(make_weeks(4, lower=lower, noise=0.0, lost=lost))
        return any(watch.look({"mrr": night}, looks=3_000) for night in nights)

    assert not rung(0.02, 0.0)
    assert rung(0.0, 0.05)


def test_remove_weekdays_keeps_loss() -> None:
    corrected = remove_weekdays(make_weeks(12, lower=0.0, noise=0.004, lost=0.05))
    levels = [night.value for night in corrected]
    assert np.mean(levels[: 6 * WEEK]) - np.mean(levels[6 * WEEK :]) == pytest.approx(0.05, abs=0.003)


def test_remove_weekdays_with_missing_or_double_nights() -> None:
    all_nights = make_weeks(12, lower=0.02, noise=0.002)
    chosen = [night for night in all_nights if night.day % WEEK != 2 and night.day != 33]  # no Wednesdays
    with_double_night = [*chosen[:20], chosen[19], *chosen[20:]]
    for nights in (chosen, with_double_night):
        values = [night.value for night in remove_weekdays([night._replace(change=None) for night in nights])]
        assert np.std(values[6 * WEEK :]) < 0.005 < 0.008 < np.std([night.value for night in nights[6 * WEEK :]])
    sparse_nights = all_nights[::9]
    assert [night.value for night in remove_weekdays(sparse_nights)] == [night.value for night in sparse_nights]


def test_remove_weekdays_that_begin_late() -> None:
    late = [
        night._replace(value=night.value - (0.03 if night.day % WEEK >= 5 and night.day > 140 else 0.0), change=None)
        for night in make_weeks(40, lower=0.0, noise=0.002)
    ]
    assert np.std([night.value for night in remove_weekdays(late)[35 * WEEK :]]) < 0.004


def test_remove_mix_does_not_inflate_sampling_variance() -> None:
    """Each night asks some of 36 kinds more and some less often, and the first one has few questions."""
    chance, nights = np.random.default_rng(0), []
    for number in range(90):
        counts = chance.multinomial(300 if number else 20, np.full(36, 1 / 36)).tolist()
        cells = {str(kind): (n, 0.8 * n) for kind, n in enumerate(counts) if n}
        nights.append(NightlyValue(0.8, 0.16 / sum(counts), sum(counts), cells=cells))
    corrected = remove_mix(nights)
    assert np.median([after.sampling / before.sampling for after, before in zip(corrected, nights, strict=True)]) < 1.2

"""A level that is watched: what counts as evidence of a loss, what does not, and when it is over."""

from itertools import pairwise

import numpy as np
import pytest

from yarus.metrics.statistics.alarms.level import Level, Loss
from yarus.metrics.statistics.alarms.local_level import (
    FOLLOWED,
    LEVEL,
    LocalLevel,
    Observation,
    evidence,
    mixed_evidence,
)
from yarus.metrics.statistics.alarms.noise import Night, Noises, of_cases
from yarus.metrics.statistics.alarms.watch import Watch

N, NOISE = 400, 0.02
"""Variance of a case in a night."""
LOOKS = 2920.0


def night(value: float, change: float | None, *, n: int = N, noise: float = NOISE, lasting: float = 0.0) -> Night:
    """A night whose cases changed as much as noise makes them."""
    near, far = (2 * noise + nights * lasting for nights in (1, 8))
    if change is None:
        return Night(value, 0.16 / n, n)
    return Night(value, 0.16 / n, n, change, n, near / n, far / n, 8, 1 / n)


def line(values: list[float], **more: float) -> list[Night]:
    """Nights of the same cases with these values."""
    changes = [None, *np.diff(values).tolist()]
    return [night(value, change, **more) for value, change in zip(values, changes, strict=True)]  # type: ignore[arg-type]


def calm(count: int, seed: int = 0) -> list[float]:
    return (0.8 + (NOISE / N) ** 0.5 * np.random.default_rng(seed).normal(size=count)).tolist()  # type: ignore[no-any-return]


def watched(nights: list[Night], *, least: float = 0.005, better: int = 1) -> tuple[list[int], list[int], Watch]:
    """The nights in which it rang, and in which that was over."""
    watch = Watch({"m": Level(least, better=better)})
    told = [watch.look({"m": one}, LOOKS) for one in nights]
    rung, over = ([number for number, what in enumerate(told) if what == kind] for kind in ("rings", "over"))
    return rung, over, watch


def test_the_filter_is_least_squares() -> None:
    """A step at night 20 of a level that wanders: its weight and its sum are those of the whole covariance matrix."""
    n, start, spread, noise, wander = 40, 20, 0.3, 1.0, 0.1
    values = np.random.default_rng(1).normal(size=n)
    level = LocalLevel(0.0, spread, 1.0)
    for value in values:
        level.add(Observation(np.array([value]), np.array([FOLLOWED]), np.array([[noise]]), np.array([wander, 0.0])))
    since = np.arange(n)
    covariance = spread + wander * (1 + np.minimum(since[:, None], since)) + noise * np.eye(n)
    step, slope = (since >= start).astype(float), np.maximum(0, since - start + 1).astype(float)
    for kind, shape in enumerate((step, slope)):
        solved = np.linalg.solve(covariance, shape)
        assert level.weights[kind, start] == pytest.approx(shape @ solved)
        assert level.sums[kind, start] == pytest.approx(values @ solved)


def test_followed_and_new_cases_are_combined_by_least_squares() -> None:
    """Of a step at night 20, from both values of each night, whose noise is in part the same."""
    n, start, unknown, drift, walk, own, new, night = 40, 20, 4.0, 0.01, 0.05, 0.3, 1.0, 0.2
    values = np.random.default_rng(3).normal(size=(n, 2))
    spread, parts = np.diag([own, new]) + night, np.array([FOLLOWED, LEVEL])
    level = LocalLevel(0.0, own, unknown)
    for both in values:
        level.add(Observation(both, parts, spread, np.array([drift, walk])))
    moves = 1 + np.minimum.outer(np.arange(n), np.arange(n))
    of_level, of_offset = unknown + drift * moves, unknown + own + walk * moves
    of_both = [[of_level + of_offset - 2 * unknown, of_level - unknown], [of_level - unknown, of_level]]
    covariance = np.block(of_both) + np.kron(spread, np.eye(n))
    step = np.tile(np.arange(n) >= start, 2).astype(float)
    solved = np.linalg.solve(covariance, step)
    assert level.weights[0, start] == pytest.approx(step @ solved)
    assert level.sums[0, start] == pytest.approx(values.T.ravel() @ solved)


def test_a_mixed_e_value_is_1_on_average_if_nothing_is_lost() -> None:
    sums = 3.0 * np.random.default_rng(6).normal(size=400_000)  # of weight 9
    mixed = mixed_evidence(sums, np.full(len(sums), 9.0), np.full(1, 0.2))
    assert np.exp(mixed).mean() == pytest.approx(1, abs=0.02)
    sizes = np.linspace(0, 2, 20_001)
    density = np.exp(-(sizes**2) / 2 / 0.2**2)
    averaged = [(density * np.exp(evidence(np.array(one), np.array(9.0), sizes, 0.0))).sum() for one in sums[:5]]
    assert np.exp(mixed[:5]) == pytest.approx(np.array(averaged) / density.sum(), rel=1e-3)


def test_an_e_value_of_a_step_is_1_on_average_where_there_is_the_least() -> None:
    chance = np.random.default_rng(2)
    sums = 4.0 * 0.5 + 2.0 * chance.normal(size=400_000)  # of weight 4, where the step is 0.5
    assert np.exp(evidence(sums, np.full(len(sums), 4.0), 1.0, 0.5)).mean() == pytest.approx(1, abs=0.05)
    assert np.exp(evidence(sums - 2.0, np.full(len(sums), 4.0), 1.0, 0.5)).mean() < 0.5


def test_a_loss_is_told_of_with_its_night_and_size() -> None:
    rung, over, watch = watched(line([*calm(40), *(value - 0.05 for value in calm(20, 1))]))
    assert rung[0] in (40, 41, 42)
    assert over == []
    loss = watch.lost["m"]
    assert loss.since in (39, 40, 41)
    assert loss.low < 0.05 < loss.high


def test_what_is_better_when_it_is_lower_rings_when_it_rises() -> None:
    worse = [*calm(40), *(value + 0.05 for value in calm(20, 1))]
    assert watched(line(worse), better=-1)[0]
    assert not watched(line(worse))[0]


def test_a_slow_decline_is_told_of() -> None:
    falling = [value - 0.002 * max(0, number - 40) for number, value in enumerate(calm(66))]
    rung, _, _ = watched(line(falling))
    assert 42 < rung[0] <= 65


def test_a_change_that_is_smaller_than_the_least_never_rings() -> None:
    """However sure it is: cases that never change by themselves."""
    small = [0.8] * 30 + [0.797] * 300
    assert watched(line(small, noise=1e-6))[0] == []
    assert watched(line(small, noise=1e-6), least=0.001)[0]


def test_an_incident_ends_when_the_level_is_back_and_not_with_one_quiet_night() -> None:
    down = [value - 0.05 for value in calm(15, 1)]
    quiet = [*calm(40), *down, 0.8, *(value - 0.05 for value in calm(20, 2))]
    rung, over, _ = watched(line(quiet))
    assert (len(rung), over) == (1, [])
    rung, over, _ = watched(line([*calm(40), *down, *calm(30, 3)]))
    assert len(rung) == 1
    assert 55 <= over[0] <= 65
    assert len(over) == 1


def test_after_an_incident_the_next_loss_is_a_new_one_against_the_same_level() -> None:
    down = [value - 0.05 for value in calm(10, 1)]
    rung, over, watch = watched(line([*calm(40), *down, *calm(30, 3), *down]))
    assert (len(rung), len(over)) == (2, 1)
    assert watch.lost["m"].size == pytest.approx(0.05, abs=0.02)


def test_what_lasts_of_the_changes_widens_what_is_expected() -> None:
    """A level that wanders by itself may be lower after a while."""
    values = [0.8] * 40 + [0.78] * 20
    wanders, stays = (Level(0.005), Level(0.005))
    for level, lasting in ((wanders, 0.01), (stays, 0.0)):
        for one in line(values, noise=0.005, lasting=lasting):
            level.add(one)
    assert wanders.noise.lasting == pytest.approx(0.01)
    assert stays.noise.lasting == 0
    assert stays.evidence > LOOKS > wanders.evidence


def test_nights_of_other_cases_are_held_against_each_other_as_draws() -> None:
    draws = np.random.default_rng(4).binomial(N, 0.8, 60) / N
    calm_nights = [night(float(value), None) for value in draws]
    assert watched(calm_nights)[0] == []
    assert watched([*calm_nights, *(night(float(value) - 0.1, None) for value in draws[:6])])[0]


def test_new_questions_tell_of_a_loss_that_was_missed() -> None:
    """Half of the cases are new each night; those that are asked again say nothing of it."""
    chance = np.random.default_rng(7)
    nights = [night(0.8, None, n=300)]
    for lost in [0.0] * 40 + [0.1] * 20:
        scored = chance.normal(0.8 - lost, (0.16 / 150) ** 0.5)
        nights.append(night(0.8, 0.0, n=150)._replace(total=300, n_new=150, new_value=float(scored)))
    rung, over, watch = watched(nights)
    assert 42 < rung[0] <= 55
    assert over == []
    assert watch.lost["m"].since in range(34, 46)


def test_followed_cases_ring_however_hard_new_questions_are() -> None:
    """From the first night on the new ones are harder by 30 points; then all lose 10 points."""
    calm_nights = [one._replace(n_new=8, new_value=0.5) for one in line(calm(40))]
    assert watched([calm_nights[0]._replace(n_new=0), *calm_nights[1:]])[0] == []
    lost = [one._replace(n_new=8, new_value=0.4) for one in line([0.8, 0.7, 0.7])[1:]]
    assert watched([*calm_nights, *lost])[0]


def test_a_small_night_in_between_leaves_what_is_known_as_it_is() -> None:
    values = calm(40)
    small = night(0.9, 0.9 - values[-1], n=20)
    after = night(0.75, 0.75 - 0.9)._replace(skips=True)
    straight, around = (
        watched([*line(values), *between, *line([0.75, 0.75, 0.75])[1:]])[2]
        for between in ([night(0.75, 0.75 - values[-1])], [small, after])
    )
    assert straight.lost["m"].size == pytest.approx(around.lost["m"].size, abs=0.01)


def test_noise_is_known_from_repeated_evaluations_before_a_night_has_passed() -> None:
    assert Noises((2 * NOISE, 800)).told.case == pytest.approx(NOISE)
    known = Level(0.005, known=(2 * NOISE, 4000))
    unknown = Level(0.005)
    rewritten = night(0.75, -0.05, noise=0.1)  # a fifth of the cases changed
    for level in (known, unknown):
        level.add(night(0.8, None))
        level.add(rewritten)
    assert known.evidence > 10 * unknown.evidence


def test_whole_nights_that_sway_are_noise() -> None:
    sway = 0.02 * np.random.default_rng(5).normal(size=60)
    values = [value + more for value, more in zip(calm(60), sway.tolist(), strict=True)]
    told = Noises()
    nights = line(values)
    for before, one in pairwise(nights):
        told.add(one, before)
    assert told.told.night == pytest.approx(0.02**2, rel=0.6)
    assert told.told.drift < 0.1 * told.told.night


def test_one_night_tells_nothing() -> None:
    level = Level(0.005)
    assert (level.evidence, level.loss, level.back, level.nights) == (0.0, None, 0.0, 0)
    level.add(night(0.8, None))
    assert (level.evidence, level.loss, level.vague, level.nights) == (0.0, None, False, 1)


def test_a_watch_averages_what_its_metrics_tell_and_names_those_that_fell() -> None:
    watch = Watch({"falls": Level(0.005), "stays": Level(0.005)})
    for falls, stays in zip(line([*calm(40), 0.7, 0.7]), line(calm(42)), strict=True):
        watch.add({"falls": falls, "stays": stays})
    assert set(watch.rings(LOOKS)) == {"falls"}
    watch.open({"falls": Loss(40, 0.1, 0.09, 0.11)})
    assert watch.rings(LOOKS) == {}
    assert not watch.over


def test_what_was_lost_is_no_noise_of_the_level() -> None:
    """All of few cases are lost in the second night: what they do by themselves is told by the nights within."""
    n = 33
    lost, same = night(0.0, -1.0, n=n, noise=0.5), night(0.0, 0.0, n=n, noise=0.0)
    watch = Watch({"m": Level(0.005)})
    told = [
        watch.look({"m": one}, 730.0) for one in (night(1.0, None, n=n), lost, same, night(1.0, 1.0, n=n, noise=0.5))
    ]
    assert told == [None, "rings", None, "over"]


def test_noise_of_the_nights_before_a_loss_holds_within_it() -> None:
    watch = Watch({"m": (level := Level(0.005))})
    for one in line([*calm(40), *(value - 0.05 for value in calm(10, 1))]):
        watch.look({"m": one}, LOOKS)
    assert watch.lost
    assert level.noise.case == pytest.approx(NOISE)
    assert level.noise.night == 0


def test_a_night_that_is_taken_back_is_noise_and_no_loss() -> None:
    """The third night is an outlier upwards: what its cases did is all that is known of the noise."""
    n, values = 97, [0.01, 0.01, 0.36, 0.01]
    nights = [night(values[0], None, n=n)]
    for before, value in pairwise(values):
        moved = value - before
        variance = of_cases(abs(moved) / n - moved**2 / n, moved, n)
        nights.append(Night(value, 0.1 / n, n, moved, n, variance, variance, 1, 1 / n))
    watch = Watch({"m": (level := Level(0.005))})
    assert [watch.look({"m": one}, 365.0) for one in nights] == [None] * 4
    assert level.evidence < 10


def test_loss_of_late_is_no_drift_and_what_moves_for_long_is_one() -> None:
    chance, noises = np.random.default_rng(5), Noises()
    sampling = 0.16 / N
    values = 0.8 + sampling**0.5 * chance.normal(size=140) - 0.06 * (np.arange(140) >= 60)
    wandering = values + 0.01 * np.cumsum(chance.normal(size=140))
    drifts = []
    for earlier, value in pairwise(values.tolist()):
        drifts.append(noises.add(Night(value, sampling, N), Night(earlier, sampling, N)).drift)
    assert max(drifts[60:80]) == drifts[59]
    noises = Noises()
    for earlier, value in pairwise(wandering.tolist()):
        noises.add(Night(value, sampling, N), Night(earlier, sampling, N))
    assert noises.told.drift > 0.00002

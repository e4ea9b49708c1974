"""A monitored level: evidence of a loss, and the end of an incident."""

from itertools import pairwise

import numpy as np
import pytest

from yarus.metrics.statistics.change_detection.level import LevelDetector, LevelLoss
from yarus.metrics.statistics.change_detection.local_level import (
    FOLLOWED,
    LEVEL,
    LocalLevel,
    Observation,
    log_evidence,
    mixed_log_evidence,
)
from yarus.metrics.statistics.change_detection.noise import NightlyValue, NoiseEstimator, variance_around_zero
from yarus.metrics.statistics.change_detection.watch import ChangeMonitor

N, NOISE = 400, 0.02
"""Variance of a case in a night."""
LOOKS = 2920.0


def make_night(
    value: float, change: float | None, *, n: int = N, noise: float = NOISE, lasting: float = 0.0
) -> NightlyValue:
    """Return a night whose cases changed as much as noise makes them."""
    near, far = (2 * noise + nights * lasting for nights in (1, 8))
    if change is None:
        return NightlyValue(value, 0.16 / n, n)
    return NightlyValue(value, 0.16 / n, n, change, n, near / n, far / n, 8, 1 / n)


def make_nights(values: list[float], **more: float) -> list[NightlyValue]:
    """Return nights of the same cases with these values."""
    changes = [None, *np.diff(values).tolist()]
    return [make_night(value, change, **more) for value, change in zip(values, changes, strict=True)]  # type: ignore[arg-type]


def draw_calm(count: int, seed: int = 0) -> list[float]:
    return (0.8 + (NOISE / N) ** 0.5 * np.random.default_rng(seed).normal(size=count)).tolist()  # type: ignore[no-any-return]


def run_watch(
    nights: list[NightlyValue], *, least: float = 0.005, better: int = 1
) -> tuple[list[int], list[int], ChangeMonitor]:
    """Return the nights with an alarm, those in which an incident ended, and the watch."""
    watch = ChangeMonitor({"m": LevelDetector(least, better=better)})
    events = [watch.look({"m": night}, LOOKS) for night in nights]
    alarms, ends = ([number for number, event in enumerate(events) if event == kind] for kind in ("rings", "over"))
    return alarms, ends, watch


def test_local_level_equals_least_squares() -> None:
    """A step at night 20 of a level with a drift: its weight and its sum are those of the whole covariance matrix."""
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


def test_local_level_combines_followed_and_new_cases() -> None:
    """A step at night 20, from both values of each night, whose noise is partly common."""
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


def test_mixed_e_value_averages_1_without_loss() -> None:
    sums = 3.0 * np.random.default_rng(6).normal(size=400_000)  # of weight 9
    mixed = mixed_log_evidence(sums, np.full(len(sums), 9.0), np.full(1, 0.2))
    assert np.exp(mixed).mean() == pytest.approx(1, abs=0.02)
    sizes = np.linspace(0, 2, 20_001)
    density = np.exp(-(sizes**2) / 2 / 0.2**2)
    means = [(density * np.exp(log_evidence(np.array(value), np.array(9.0), sizes, 0.0))).sum() for value in sums[:5]]
    assert np.exp(mixed[:5]) == pytest.approx(np.array(means) / density.sum(), rel=1e-3)


def test_step_e_value_averages_1_at_least_size() -> None:
    chance = np.random.default_rng(2)
    sums = 4.0 * 0.5 + 2.0 * chance.normal(size=400_000)  # of weight 4, where the step is 0.5
    assert np.exp(log_evidence(sums, np.full(len(sums), 4.0), 1.0, 0.5)).mean() == pytest.approx(1, abs=0.05)
    assert np.exp(log_evidence(sums - 2.0, np.full(len(sums), 4.0), 1.0, 0.5)).mean() < 0.5


def test_watch_reports_night_and_size_of_loss() -> None:
    alarms, over, watch = run_watch(make_nights([*draw_calm(40), *(value - 0.05 for value in draw_calm(20, 1))]))
    assert alarms[0] in (40, 41, 42)
    assert over == []
    loss = watch.lost["m"]
    assert loss.since in (39, 40, 41)
    assert loss.low < 0.05 < loss.high


def test_watch_alarms_on_rise_if_lower_is_better() -> None:
    worse = [*draw_calm(40), *(value + 0.05 for value in draw_calm(20, 1))]
    assert run_watch(make_nights(worse), better=-1)[0]
    assert not run_watch(make_nights(worse))[0]


def test_watch_detects_slow_decline() -> None:
    falling = [value - 0.002 * max(0, number - 40) for number, value in enumerate(draw_calm(66))]
    alarms, _, _ = run_watch(make_nights(falling))
    assert 42 < alarms[0] <= 65


def test_watch_ignores_changes_below_least() -> None:
    """However sure it is: cases that never change by themselves."""
    small = [0.8] * 30 + [0.797] * 300
    assert run_watch(make_nights(small, noise=1e-6))[0] == []
    assert run_watch(make_nights(small, noise=1e-6), least=0.001)[0]


def test_incident_ends_with_recovery_not_one_good_night() -> None:
    down = [value - 0.05 for value in draw_calm(15, 1)]
    quiet = [*draw_calm(40), *down, 0.8, *(value - 0.05 for value in draw_calm(20, 2))]
    alarms, over, _ = run_watch(make_nights(quiet))
    assert (len(alarms), over) == (1, [])
    alarms, over, _ = run_watch(make_nights([*draw_calm(40), *down, *draw_calm(30, 3)]))
    assert len(alarms) == 1
    assert 55 <= over[0] <= 65
    assert len(over) == 1


def test_next_loss_is_new_incident_at_same_level() -> None:
    down = [value - 0.05 for value in draw_calm(10, 1)]
    alarms, over, watch = run_watch(make_nights([*draw_calm(40), *down, *draw_calm(30, 3), *down]))
    assert (len(alarms), len(over)) == (2, 1)
    assert watch.lost["m"].size == pytest.approx(0.05, abs=0.02)


def test_lasting_changes_reduce_evidence() -> None:
    """A level that drifts by itself may be lower after a while."""
    values = [0.8] * 40 + [0.78] * 20
    wanders, stays = (LevelDetector(0.005), LevelDetector(0.005))
    for level, lasting in ((wanders, 0.01), (stays, 0.0)):
        for tonight in make_nights(values, noise=0.005, lasting=lasting):
            level.add(tonight)
    assert wanders.noise.lasting == pytest.approx(0.01)
    assert stays.noise.lasting == 0
    assert stays.evidence > LOOKS > wanders.evidence


def test_nights_of_different_cases_compared_as_samples() -> None:
    draws = np.random.default_rng(4).binomial(N, 0.8, 60) / N
    calm_nights = [make_night(float(value), None) for value in draws]
    assert run_watch(calm_nights)[0] == []
    assert run_watch([*calm_nights, *(make_night(float(value) - 0.1, None) for value in draws[:6])])[0]


def test_new_questions_reveal_missed_loss() -> None:
    """Half of the cases are new each night; repeated questions do not show the loss."""
    chance = np.random.default_rng(7)
    nights = [make_night(0.8, None, n=300)]
    for lost in [0.0] * 40 + [0.1] * 20:
        scored = chance.normal(0.8 - lost, (0.16 / 150) ** 0.5)
        nights.append(make_night(0.8, 0.0, n=150)._replace(total=300, n_new=150, new_value=float(scored)))
    alarms, over, watch = run_watch(nights)
    assert 42 < alarms[0] <= 55
    assert over == []
    assert watch.lost["m"].since in range(34, 46)


def test_followed_cases_alarm_despite_hard_new_questions() -> None:
    """From the first night on the new ones are harder by 30 points; then all lose 10 points."""
    calm_nights = [tonight._replace(n_new=8, new_value=0.5) for tonight in make_nights(draw_calm(40))]
    assert run_watch([calm_nights[0]._replace(n_new=0), *calm_nights[1:]])[0] == []
    lost = [tonight._replace(n_new=8, new_value=0.4) for tonight in make_nights([0.8, 0.7, 0.7])[1:]]
    assert run_watch([*calm_nights, *lost])[0]


def test_small_night_in_between_keeps_estimate() -> None:
    values = draw_calm(40)
    small = make_night(0.9, 0.9 - values[-1], n=20)
    after = make_night(0.75, 0.75 - 0.9)._replace(skips=True)
    straight, around = (
        run_watch([*make_nights(values), *between, *make_nights([0.75, 0.75, 0.75])[1:]])[2]
        for between in ([make_night(0.75, 0.75 - values[-1])], [small, after])
    )
    assert straight.lost["m"].size == pytest.approx(around.lost["m"].size, abs=0.01)


def test_noise_from_repeats_before_first_night() -> None:
    assert NoiseEstimator((2 * NOISE, 800)).estimate.case == pytest.approx(NOISE)
    with_prior = LevelDetector(0.005, known=(2 * NOISE, 4000))
    without_prior = LevelDetector(0.005)
    rewritten = make_night(0.75, -0.05, noise=0.1)  # a fifth of the cases changed
    for level in (with_prior, without_prior):
        level.add(make_night(0.8, None))
        level.add(rewritten)
    assert with_prior.evidence > 10 * without_prior.evidence


def test_common_moves_of_nights_are_noise() -> None:
    sway = 0.02 * np.random.default_rng(5).normal(size=60)
    values = [value + more for value, more in zip(draw_calm(60), sway.tolist(), strict=True)]
    noises = NoiseEstimator()
    nights = make_nights(values)
    for before, night in pairwise(nights):
        noises.add(night, before)
    assert noises.estimate.night == pytest.approx(0.02**2, rel=0.6)
    assert noises.estimate.drift < 0.1 * noises.estimate.night


def test_level_without_evidence_after_one_night() -> None:
    level = LevelDetector(0.005)
    assert (level.evidence, level.loss, level.back, level.nights) == (0.0, None, 0.0, 0)
    level.add(make_night(0.8, None))
    assert (level.evidence, level.loss, level.vague, level.nights) == (0.0, None, False, 1)


def test_watch_averages_evidence_and_names_fallen_metrics() -> None:
    watch = ChangeMonitor({"falls": LevelDetector(0.005), "stays": LevelDetector(0.005)})
    for falls, stays in zip(make_nights([*draw_calm(40), 0.7, 0.7]), make_nights(draw_calm(42)), strict=True):
        watch.add({"falls": falls, "stays": stays})
    assert set(watch.rings(LOOKS)) == {"falls"}
    watch.open({"falls": LevelLoss(40, 0.1, 0.09, 0.11)})
    assert watch.rings(LOOKS) == {}
    assert not watch.over


def test_loss_is_not_noise() -> None:
    """All of few cases are lost in the second night: their noise is estimated from the nights within the incident."""
    n = 33
    lost, same = make_night(0.0, -1.0, n=n, noise=0.5), make_night(0.0, 0.0, n=n, noise=0.0)
    watch = ChangeMonitor({"m": LevelDetector(0.005)})
    events = [
        watch.look({"m": tonight}, 730.0)
        for tonight in (make_night(1.0, None, n=n), lost, same, make_night(1.0, 1.0, n=n, noise=0.5))
    ]
    assert events == [None, "rings", None, "over"]


def test_noise_before_loss_holds_within_incident() -> None:
    watch = ChangeMonitor({"m": (level := LevelDetector(0.005))})
    for tonight in make_nights([*draw_calm(40), *(value - 0.05 for value in draw_calm(10, 1))]):
        watch.look({"m": tonight}, LOOKS)
    assert watch.lost
    assert level.noise.case == pytest.approx(NOISE)
    assert level.noise.night == 0


def test_outlier_night_is_noise() -> None:
    """The third night is an outlier upwards: the changes of its cases are the only estimate of the noise."""
    n, values = 97, [0.01, 0.01, 0.36, 0.01]
    nights = [make_night(values[0], None, n=n)]
    for before, value in pairwise(values):
        moved = value - before
        variance = variance_around_zero(abs(moved) / n - moved**2 / n, moved, n)
        nights.append(NightlyValue(value, 0.1 / n, n, moved, n, variance, variance, 1, 1 / n))
    watch = ChangeMonitor({"m": (level := LevelDetector(0.005))})
    assert [watch.look({"m": tonight}, 365.0) for tonight in nights] == [None] * 4
    assert level.evidence < 10


def test_drift_from_long_moves_not_recent_loss() -> None:
    chance, noises = np.random.default_rng(5), NoiseEstimator()
    sampling = 0.16 / N
    values = 0.8 + sampling**0.5 * chance.normal(size=140) - 0.06 * (np.arange(140) >= 60)
    wandering = values + 0.01 * np.cumsum(chance.normal(size=140))
    drifts = []
    for earlier, value in pairwise(values.tolist()):
        drifts.append(noises.add(NightlyValue(value, sampling, N), NightlyValue(earlier, sampling, N)).drift)
    assert max(drifts[60:80]) == drifts[59]
    noises = NoiseEstimator()
    for earlier, value in pairwise(wandering.tolist()):
        noises.add(NightlyValue(value, sampling, N), NightlyValue(earlier, sampling, N))
    assert noises.estimate.drift > 0.00002

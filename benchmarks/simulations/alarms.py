"""Years of nights in each kind of log: false alarms per year, detection delays of losses, and how incidents end."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations import Claim, share_claim
from yarus.deployments.alarms.budget import LEAST_SHARE
from yarus.metrics.statistics.change_detection.level import LevelDetector
from yarus.metrics.statistics.change_detection.noise import NightlyValue, variance_around_zero
from yarus.metrics.statistics.change_detection.watch import ChangeMonitor
from yarus.metrics.statistics.differences.changes import StatisticChange, estimate_change
from yarus.metrics.statistics.differences.compared_statistics import SampleStatistic
from yarus.metrics.statistics.paired_chart import COMPARISON_LAG
from yarus.tasks.comparison.paired_changes import MIN_FOLLOWED_CASES, MIN_SHARED

TIERS, YEAR, CALM = 8, 365, 60
LOOKS = float(TIERS * YEAR)
"""Looks of a year, in which one false alarm may occur."""
N, HIT_RATE, NEW = 400, 0.8, 8
ROLLING, NEW_OF_ROLLING = 300, (0, 8, 40, 100, 140, 160, 220, 300)
"""Cases of a rolling log, and how many of them are new in a night."""
SOON, USUAL_NOISE = (10, 30), 0.02
LASTS = 120
"""Nights that a loss lasts after it began."""
Floats = NDArray[np.float64]


class NightScores(NamedTuple):
    """The scores of one night's cases, which are consecutive in the log."""

    first: int
    scores: Floats

    @property
    def last(self) -> int:
        """Return the index after the last case."""
        return self.first + len(self.scores)


class World(NamedTuple):
    """The questions of every night, and the changes that happen without a cause."""

    name: str
    noise: float = 0.0
    """Share of the answers that change in a night."""
    new: int = 0
    """New questions per night."""
    cases: int = N
    rolling: bool = False
    """Whether as many old questions leave."""
    judge: float = 0.0
    """Standard deviation of the noise of a judge's scores."""
    persistence: float = 0.0
    """Share of the changed answers that are also changed the next night."""
    sway: float = 0.0
    """Standard deviation of the common noise of a night, 70 % of which carries over to the next."""
    flips: float = 0.0
    """Cases per night whose result changes for good, as often for the better as for the worse."""
    most_alarms: float = 1.0
    """Most false alarms per year of an installation with only such tiers; of one tier, an eighth of it."""
    min_power: tuple[float, ...] = (0.9, 0.9, 0.9, 0.9)
    """Least share of losses that are detected in time, in the order of LOSSES."""


WORLDS = (
    World("frozen set, no noise"),
    World("frozen set, 2 % of answers come out otherwise", noise=0.02),
    World("frozen set, 5 %", noise=0.05, min_power=(0.9, 0.6, 0.9, 0.9)),
    World("frozen set, a judge's scores with noise of 0.1", judge=0.1),
    World(
        "frozen set, 2 %, four fifths of them the next night too",
        noise=0.02,
        persistence=0.8,
        min_power=(0.9, 0.2, 0, 0.9),
    ),
    World(
        "frozen set, 2 %, a case changes for good every 3rd night",
        noise=0.02,
        flips=1 / 3,
        min_power=(0.9, 0.5, 0.7, 0.9),
    ),
    World(
        "frozen set, 2 %, whole nights sway by 0.5 points",
        noise=0.02,
        sway=0.005,
        most_alarms=2.5,
        min_power=(0.8, 0.6, 0.7, 0.8),
    ),
    World("whole log growing by 8, 2 %", noise=0.02, new=NEW, min_power=(0.9, 0.7, 0.9, 0.9)),
    World("last 400 of a log growing by 8, 2 %", noise=0.02, new=NEW, rolling=True, min_power=(0.9, 0.1, 0.3, 0.9)),
    World("400 new questions a night, 2 %", noise=0.02, new=N, rolling=True, min_power=(0.05, 0.1, 0.4, 0.05)),
)


ROLLING_WORLDS = tuple(
    World(f"{new} of {ROLLING} questions new a night, {noise:.0%}", noise, new, ROLLING, rolling=True)
    for noise in (0.0, 0.02, 0.05)
    for new in NEW_OF_ROLLING
)


class Kind(NamedTuple):
    """A loss that lasts."""

    name: str
    within: int
    """Nights within which it must be detected."""
    at_once: float = 0.0
    a_night: float = 0.0
    rewritten: float = 0.0
    """Share of the cases that change with it, half of them for the better."""

    def loss_at(self, night: int) -> float:
        """Return the loss after so many nights, from 0."""
        return self.at_once + self.a_night * min(self.within, night + 1)


LOSSES = (
    Kind("-5 points", 3, at_once=0.05),
    Kind("-2 points", 21, at_once=0.02),
    Kind("-0.2 points a night", 25, a_night=0.002),
    Kind("-5 points, and 15 % of the answers otherwise", 3, at_once=0.05, rewritten=0.15),
)


def claims(effort: float) -> Iterator[Claim]:
    """Yield false incidents per year in each world, losses detected in time, and lasting losses that seem over."""
    years, repetitions = max(1, round(120 * effort)), max(6, round(150 * effort))
    rates = [_false_alarms(world, number, years) for number, world in enumerate(WORLDS)]
    for world, rate in zip(WORLDS, rates, strict=True):
        yield Claim(f"{world.name}: false alarms a year of a tier", 0, world.most_alarms / TIERS, rate, years)
    average = TIERS * float(np.mean(rates))
    yield Claim("all of these: false alarms a year of an installation", 0, 1, average, years * len(WORLDS), False)
    for number, world in enumerate(WORLDS):
        has_ended: list[bool] = []
        for kind, least in zip(LOSSES, world.min_power, strict=True):
            detections = [_detect(world, kind, [2, number, LOSSES.index(kind), run]) for run in range(repetitions)]
            in_time = [detected is not None and detected < kind.within for detected, _ in detections]
            yield share_claim(f"{world.name}, {kind.name}: told of within {kind.within} nights", least, 1, in_time)
            has_ended += [is_over for _, is_over in detections]
        yield share_claim(f"{world.name}, lasting: said to be over within {LASTS} nights", 0, 0.02, has_ended)
    yield from _rolling(max(1, years // 3), repetitions)


def _rolling(years: int, repetitions: int) -> Iterator[Claim]:
    """Yield claims about a log with different shares of new questions."""
    rates = [_false_alarms(world, 100 + number, years) for number, world in enumerate(ROLLING_WORLDS)]
    for world, rate in zip(ROLLING_WORLDS, rates, strict=True):
        yield Claim(f"{world.name}: false alarms a year of a tier", 0, 1 / TIERS, rate, years)
    for number, world in enumerate(ROLLING_WORLDS):
        if world.noise != USUAL_NOISE:
            continue
        detections = [
            _detect(world, LOSSES[0], [3, number, run], SOON[1] - LOSSES[0].within)[0] for run in range(repetitions)
        ]
        for nights, least in zip(SOON, (0.8, 0.95), strict=True):
            in_time = [detected is not None and detected < nights for detected in detections]
            yield share_claim(f"{world.name}, {LOSSES[0].name}: told of within {nights} nights", least, 1, in_time)


def _false_alarms(world: World, seed: int, years: int) -> float:
    """Return the false alarms per year of one tier in so many years of that world."""
    generators = [np.random.default_rng([1, seed, year]) for year in range(years)]
    return sum(len(find_incidents(simulate_nights(world, YEAR, generator))[0]) for generator in generators) / years


def _detect(world: World, kind: Kind, seed: list[int], lasts: int = LASTS) -> tuple[int | None, bool]:
    """Return the night of a loss in which it is detected, from 0, and whether it seems to be over (it never is)."""
    nights = simulate_nights(world, CALM + kind.within + lasts, np.random.default_rng(seed), kind)
    alarms, closed_nights = find_incidents(nights)
    detected = next((night for night in alarms if night >= CALM), None)
    return (None, False) if detected is None else (detected - CALM, any(night > detected for night in closed_nights))


def find_incidents(nights: list[NightlyValue]) -> tuple[list[int], list[int]]:
    """Return the nights in which an incident began, and in which one ended."""
    watch = ChangeMonitor({"metric": LevelDetector(LEAST_SHARE)})
    events = [watch.look({"metric": night}, LOOKS) for night in nights]
    opened, closed = ([night for night, event in enumerate(events) if event == kind] for kind in ("rings", "over"))
    return opened, closed


def simulate_nights(
    world: World, count: int, generator: np.random.Generator, loss: Kind | None = None
) -> list[NightlyValue]:
    """Return the stored values of so many nights, with a loss that begins after the calm ones."""
    return to_nights(list(_results(world, count, generator, loss)))


def to_nights(results: list[NightScores]) -> list[NightlyValue]:
    """Return the stored values of nights."""
    stored = []
    for index, tonight in enumerate(results):
        values = tonight.scores
        mean, spread = float(values.mean()), max(0.01, float(values.var())) / len(values)
        near = _change(results[index - 1], tonight) if index else None
        if near is None:
            stored.append(NightlyValue(mean, spread, len(values)))
            continue
        lags = range(min(COMPARISON_LAG, index), 0, -1)
        earlier = ((lag, _change(results[index - lag], tonight)) for lag in lags)
        lag, far = next((lag, change) for lag, change in earlier if change and change.n >= MIN_SHARED * near.n)
        moved, n = near.difference, near.n
        variance, far_variance = (
            variance_around_zero(change.variance * change.n / n, moved, n) for change in (near, far)
        )
        night = NightlyValue(mean, spread, len(values), moved, n, variance, far_variance, lag, 1 / n)
        if len(new := values[results[index - 1].last - tonight.first :]):
            night = night._replace(n_new=len(new), new_value=float(new.mean()))
        stored.append(night)
    return stored


def _change(before: NightScores, after: NightScores) -> StatisticChange | None:
    """Return the change between two nights; None if they have too few cases in common."""
    first, last = max(before.first, after.first), min(before.last, after.last)
    if last - first < MIN_FOLLOWED_CASES:
        return None
    then, now = (night.scores[first - night.first : last - night.first] for night in (before, after))
    return estimate_change(SampleStatistic(then, now), np.arange(last - first))


def _results(world: World, count: int, generator: np.random.Generator, loss: Kind | None) -> Iterator[NightScores]:
    """Yield the scores of each night."""
    total = world.cases + world.new * (count - 1)
    hits, order = generator.random(total) < HIT_RATE, generator.random(total)
    is_changed, sway = generator.random(total) < world.noise, 0.0
    for night in range(count):
        if generator.random() < world.flips:
            better = generator.random() < 0.5
            hits[generator.choice(np.flatnonzero(hits != better))] = better
        cases = np.arange(world.new * night if world.rolling else 0, world.cases + world.new * night)
        results = hits[cases]
        if loss and night >= CALM:
            _flip(results, order[cases], loss.loss_at(night - CALM) + loss.rewritten / 2, hit=True)
            _flip(results, -order[cases], loss.rewritten / 2, hit=False)
        is_persistent = generator.random(total) < world.persistence
        is_changed = np.where(is_persistent, is_changed, generator.random(total) < world.noise)
        results ^= is_changed[cases]
        if world.sway:
            sway = 0.7 * sway + (1 - 0.7**2) ** 0.5 * world.sway * generator.normal()
            _flip(results, generator.random(len(cases)), abs(sway), hit=sway < 0)
        yield NightScores(int(cases[0]), _score_results(results, world.judge, generator))


def _score_results(hits: NDArray[np.bool_], noise: float, generator: np.random.Generator) -> Floats:
    """Return the scores of results: 0 and 1, or those of a judge with so much noise."""
    if not noise:
        return hits.astype(np.float64)
    return np.clip(0.2 + 0.6 * hits + generator.normal(0, noise, len(hits)), 0, 1)


def _flip(hits: NDArray[np.bool_], order: Floats, share: float, *, hit: bool) -> None:
    """Flip that share of all cases, among those that are a hit or are not."""
    candidates = np.flatnonzero(hits == hit)
    hits[candidates[np.argsort(order[candidates])][: round(share * len(hits))]] = not hit

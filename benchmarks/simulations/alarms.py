"""Years of nights in each kind of log: how often somebody is woken for nothing, how soon for a loss, how it ends."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations import Claim, counted
from yarus.deployments.alarms.budget import LEAST
from yarus.metrics.statistics.alarms.level import Level
from yarus.metrics.statistics.alarms.noise import Night, of_cases
from yarus.metrics.statistics.alarms.watch import Watch
from yarus.metrics.statistics.differences.changes import Change, change
from yarus.metrics.statistics.differences.numbers import Number
from yarus.metrics.statistics.paired_chart import LAG
from yarus.tasks.comparison.paired_changes import FEWEST_FOLLOWED, SHARED

TIERS, YEAR, CALM = 8, 365, 60
LOOKS = float(TIERS * YEAR)
"""A year's, of which one false alarm may come."""
N, HIT_RATE, NEW = 400, 0.8, 8
ROLLING, NEW_OF_ROLLING = 300, (0, 8, 40, 100, 140, 160, 220, 300)
"""Cases of a log that rolls, and how many of them are new in a night."""
SOON, USUAL_NOISE = (10, 30), 0.02
LASTS = 120
"""Nights that a loss goes on after it."""
Floats = NDArray[np.float64]


class Asked(NamedTuple):
    """The scores of one night's cases, which follow one another in the log."""

    first: int
    scores: Floats

    @property
    def last(self) -> int:
        """The case after the last."""
        return self.first + len(self.scores)


class World(NamedTuple):
    """What is asked every night, and what comes out otherwise by itself."""

    name: str
    noise: float = 0.0
    """Share of the answers that come out otherwise in a night."""
    new: int = 0
    """Questions a night."""
    cases: int = N
    rolling: bool = False
    """Whether as many old ones leave."""
    judge: float = 0.0
    """Standard deviation of what a judge adds to a score."""
    stays: float = 0.0
    """Share of the answers that come out otherwise which do so the next night, too."""
    sway: float = 0.0
    """Standard deviation of what whole nights add, 70 % of which the next night has, too."""
    flips: float = 0.0
    """Cases a night whose result changes for good, as many to the better as to the worse."""
    false: float = 1.0
    """Most false alarms a year of an installation all of whose tiers are such; of one tier, an eighth of it."""
    found: tuple[float, ...] = (0.9, 0.9, 0.9, 0.9)
    """Least share of losses that are told of in time, in the order of LOSSES."""


WORLDS = (
    World("frozen set, no noise"),
    World("frozen set, 2 % of answers come out otherwise", noise=0.02),
    World("frozen set, 5 %", noise=0.05, found=(0.9, 0.6, 0.9, 0.9)),
    World("frozen set, a judge's scores with noise of 0.1", judge=0.1),
    World("frozen set, 2 %, four fifths of them the next night too", noise=0.02, stays=0.8, found=(0.9, 0.2, 0, 0.9)),
    World(
        "frozen set, 2 %, a case changes for good every 3rd night", noise=0.02, flips=1 / 3, found=(0.9, 0.5, 0.7, 0.9)
    ),
    World(
        "frozen set, 2 %, whole nights sway by 0.5 points",
        noise=0.02,
        sway=0.005,
        false=2.5,
        found=(0.8, 0.6, 0.7, 0.8),
    ),
    World("whole log growing by 8, 2 %", noise=0.02, new=NEW, found=(0.9, 0.7, 0.9, 0.9)),
    World("last 400 of a log growing by 8, 2 %", noise=0.02, new=NEW, rolling=True, found=(0.9, 0.1, 0.3, 0.9)),
    World("400 new questions a night, 2 %", noise=0.02, new=N, rolling=True, found=(0.05, 0.1, 0.4, 0.05)),
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
    """Nights within which it is to be told of."""
    at_once: float = 0.0
    a_night: float = 0.0
    rewritten: float = 0.0
    """Share of the cases that change with it, half of them to the better."""

    def lost(self, night: int) -> float:
        """After so many nights of it, from 0."""
        return self.at_once + self.a_night * min(self.within, night + 1)


LOSSES = (
    Kind("-5 points", 3, at_once=0.05),
    Kind("-2 points", 21, at_once=0.02),
    Kind("-0.2 points a night", 25, a_night=0.002),
    Kind("-5 points, and 15 % of the answers otherwise", 3, at_once=0.05, rewritten=0.15),
)


def claims(effort: float) -> Iterator[Claim]:
    """False incidents a year in each world, losses told of in time, and lasting losses that seem to be over."""
    years, repetitions = max(1, round(120 * effort)), max(6, round(150 * effort))
    rates = [_false_alarms(world, number, years) for number, world in enumerate(WORLDS)]
    for world, rate in zip(WORLDS, rates, strict=True):
        yield Claim(f"{world.name}: false alarms a year of a tier", 0, world.false / TIERS, rate, years)
    average = TIERS * float(np.mean(rates))
    yield Claim("all of these: false alarms a year of an installation", 0, 1, average, years * len(WORLDS), False)
    for number, world in enumerate(WORLDS):
        ended: list[bool] = []
        for kind, least in zip(LOSSES, world.found, strict=True):
            found = [_told(world, kind, [2, number, LOSSES.index(kind), again]) for again in range(repetitions)]
            in_time = [told is not None and told < kind.within for told, _ in found]
            yield counted(f"{world.name}, {kind.name}: told of within {kind.within} nights", least, 1, in_time)
            ended += [over for _, over in found]
        yield counted(f"{world.name}, lasting: said to be over within {LASTS} nights", 0, 0.02, ended)
    yield from _rolling(max(1, years // 3), repetitions)


def _rolling(years: int, repetitions: int) -> Iterator[Claim]:
    """A log of which more or fewer questions are new."""
    rates = [_false_alarms(world, 100 + number, years) for number, world in enumerate(ROLLING_WORLDS)]
    for world, rate in zip(ROLLING_WORLDS, rates, strict=True):
        yield Claim(f"{world.name}: false alarms a year of a tier", 0, 1 / TIERS, rate, years)
    for number, world in enumerate(ROLLING_WORLDS):
        if world.noise != USUAL_NOISE:
            continue
        found = [
            _told(world, LOSSES[0], [3, number, again], SOON[1] - LOSSES[0].within)[0] for again in range(repetitions)
        ]
        for nights, least in zip(SOON, (0.8, 0.95), strict=True):
            in_time = [told is not None and told < nights for told in found]
            yield counted(f"{world.name}, {LOSSES[0].name}: told of within {nights} nights", least, 1, in_time)


def _false_alarms(world: World, seed: int, years: int) -> float:
    """A year, of one tier in so many years of that world."""
    chances = [np.random.default_rng([1, seed, year]) for year in range(years)]
    return sum(len(watched(nights(world, YEAR, chance))[0]) for chance in chances) / years


def _told(world: World, kind: Kind, seed: list[int], lasts: int = LASTS) -> tuple[int | None, bool]:
    """In which night of a loss it is told of, from 0, and whether it is said to be over, which it never is."""
    opened, over = watched(nights(world, CALM + kind.within + lasts, np.random.default_rng(seed), kind))
    told = next((night for night in opened if night >= CALM), None)
    return (None, False) if told is None else (told - CALM, any(night > told for night in over))


def watched(nights: list[Night]) -> tuple[list[int], list[int]]:
    """The nights in which an incident began, and in which one ended."""
    watch = Watch({"metric": Level(LEAST)})
    told = [watch.look({"metric": night}, LOOKS) for night in nights]
    opened, over = ([night for night, what in enumerate(told) if what == kind] for kind in ("rings", "over"))
    return opened, over


def nights(world: World, count: int, chance: np.random.Generator, loss: Kind | None = None) -> list[Night]:
    """What evaluations keep of so many nights, of a loss that begins after the calm ones."""
    return nights_of(list(_results(world, count, chance, loss)))


def nights_of(results: list[Asked]) -> list[Night]:
    """What evaluations keep of nights."""
    found = []
    for number, tonight in enumerate(results):
        values = tonight.scores
        mean, spread = float(values.mean()), max(0.01, float(values.var())) / len(values)
        near = _change(results[number - 1], tonight) if number else None
        if near is None:
            found.append(Night(mean, spread, len(values)))
            continue
        lags = range(min(LAG, number), 0, -1)
        earlier = ((lag, _change(results[number - lag], tonight)) for lag in lags)
        lag, far = next((lag, one) for lag, one in earlier if one and one.n >= SHARED * near.n)
        moved, n = near.difference, near.n
        variance, far_variance = (of_cases(one.variance * one.n / n, moved, n) for one in (near, far))
        night = Night(mean, spread, len(values), moved, n, variance, far_variance, lag, 1 / n)
        if len(new := values[results[number - 1].last - tonight.first :]):
            night = night._replace(n_new=len(new), new_value=float(new.mean()))
        found.append(night)
    return found


def _change(before: Asked, after: Asked) -> Change | None:
    """None where the two have too few in common."""
    first, last = max(before.first, after.first), min(before.last, after.last)
    if last - first < FEWEST_FOLLOWED:
        return None
    then, now = (one.scores[first - one.first : last - one.first] for one in (before, after))
    return change(Number(then, now), np.arange(last - first))


def _results(world: World, count: int, chance: np.random.Generator, loss: Kind | None) -> Iterator[Asked]:
    """The scores of each night."""
    total = world.cases + world.new * (count - 1)
    hits, order = chance.random(total) < HIT_RATE, chance.random(total)
    other, sway = chance.random(total) < world.noise, 0.0
    for night in range(count):
        if chance.random() < world.flips:
            better = chance.random() < 0.5
            hits[chance.choice(np.flatnonzero(hits != better))] = better
        asked = np.arange(world.new * night if world.rolling else 0, world.cases + world.new * night)
        kept = hits[asked]
        if loss and night >= CALM:
            _turn(kept, order[asked], loss.lost(night - CALM) + loss.rewritten / 2, hit=True)
            _turn(kept, -order[asked], loss.rewritten / 2, hit=False)
        again = chance.random(total) < world.stays
        other = np.where(again, other, chance.random(total) < world.noise)
        kept ^= other[asked]
        if world.sway:
            sway = 0.7 * sway + (1 - 0.7**2) ** 0.5 * world.sway * chance.normal()
            _turn(kept, chance.random(len(asked)), abs(sway), hit=sway < 0)
        yield Asked(int(asked[0]), _judged(kept, world.judge, chance))


def _judged(hits: NDArray[np.bool_], noise: float, chance: np.random.Generator) -> Floats:
    """Their scores: 0 and 1, or what a judge with so much noise makes of them."""
    if not noise:
        return hits.astype(np.float64)
    return np.clip(0.2 + 0.6 * hits + chance.normal(0, noise, len(hits)), 0, 1)


def _turn(hits: NDArray[np.bool_], order: Floats, share: float, *, hit: bool) -> None:
    """Turns that share of all, of those that are a hit or are not."""
    those = np.flatnonzero(hits == hit)
    hits[those[np.argsort(order[those])][: round(share * len(hits))]] = not hit

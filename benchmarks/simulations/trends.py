"""A year of nights of an unchanged system, and of one with a loss, per kind of log: how often they leave the band."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations import Claim, share_claim
from yarus.metrics.statistics.differences.changes import StatisticChange, estimate_change
from yarus.metrics.statistics.differences.compared_statistics import SampleStatistic
from yarus.metrics.statistics.ewma import ewma_chart
from yarus.metrics.statistics.paired_chart import COMPARISON_LAG, NightChange, paired_chart

HIT_RATE = 0.8
YEAR, CALM = 365, 60
NEW = 8
"""New questions of a growing log per night."""
AT_ONCE, SOON = 0.05, 2
"""Loss at once, and within how many nights it must be detected."""
A_NIGHT, LATER = 0.002, 20
"""Loss per night, and within how many nights it must be detected."""
Loss = Callable[[int], float]
Floats = NDArray[np.float64]


class Log(NamedTuple):
    """The questions of every night."""

    name: str
    n: int
    new: int = 0
    """New questions per night."""
    rolling: bool = False
    """Whether as many old questions leave it."""
    flips: float = 0.0
    """Cases per night whose result changes for good, as often for the better as for the worse."""
    churn: float = 0.0
    """Share of cases that change in a night without a cause."""
    min_power: tuple[float, float] = (0.8, 0.8)
    """Least share of losses that are detected: at once, slow."""


LOGS = (
    Log("250 new questions a night", 250, new=250, rolling=True, min_power=(0.1, 0.1)),
    Log("whole log of 300 growing by 8", 300, new=NEW),
    Log("last 250 of a log growing by 8", 250, new=NEW, rolling=True),
    Log("frozen set of 300, a case changes every 3rd night", 300, flips=1 / 3),
    Log("frozen set of 300, a case changes every 10th night", 300, flips=1 / 10),
    Log("frozen set of 300, 2 % of answers change by themselves", 300, churn=0.02),
    Log("whole log of 300 growing by 8, 2 % change", 300, new=NEW, churn=0.02),
    Log("last 250 of a log growing by 8, 2 % change", 250, new=NEW, rolling=True, churn=0.02, min_power=(0.1, 0.1)),
)
OUT_A_YEAR = 2


def claims(effort: float) -> Iterator[Claim]:
    """Yield nights out of the band without changes, and how often a loss is detected in time."""
    repetitions = max(6, round(80 * effort))
    for log_number, log in enumerate(LOGS):
        seeds = [[log_number, repetition] for repetition in range(repetitions)]
        n_out = sum(int(np.count_nonzero(_sides(log, YEAR, [1, *seed], _no_loss))) for seed in seeds) / repetitions
        yield Claim(f"{log.name}, system unchanged: nights out a year", 0, OUT_A_YEAR, n_out, repetitions, False)
        for key, words, loss, within, least in (
            (2, f"-{100 * AT_ONCE:g} points", _sudden_loss, SOON, log.min_power[0]),
            (3, f"-{100 * A_NIGHT:g} points a night", _slow_loss, LATER, log.min_power[1]),
        ):
            sides = [_sides(log, CALM + within, [key, *seed], loss)[CALM:] for seed in seeds]
            is_detected = [(side < 0).any() for side in sides]
            yield share_claim(f"{log.name}, {words}: below its band within {within} nights", least, 1, is_detected)


def _no_loss(night: int) -> float:
    return 0.0


def _sudden_loss(night: int) -> float:
    return AT_ONCE * (night >= CALM)


def _slow_loss(night: int) -> float:
    return A_NIGHT * max(0, night - CALM + 1)


def _sides(log: Log, nights: int, seed: list[int], loss: Loss) -> NDArray[np.int64]:
    """Return (nights,) the side of the band of each night."""
    results = _results(log, nights, np.random.default_rng(seed), loss)
    if log.new >= log.n:
        return ewma_chart([float(np.nanmean(night)) for night in results], step=1 / log.n).side
    changes = []
    for index in range(1, nights):
        lag = min(COMPARISON_LAG, index)
        near, far = (_change(results[index - nights_back], results[index]) for nights_back in (1, lag))
        changes.append(NightChange(near.difference, near.variance, far.variance, lag, near.step))
    return paired_chart(changes).side


def _change(before: Floats, after: Floats) -> StatisticChange:
    measured_change = estimate_change(SampleStatistic(before, after), np.arange(len(before)))
    assert measured_change is not None
    return measured_change


def _results(log: Log, nights: int, generator: np.random.Generator, loss: Loss) -> Floats:
    """Return (nights, cases) hits, NaN for cases that were not asked."""
    total = log.n + log.new * (nights - 1)
    hits = generator.random(total) < HIT_RATE
    order = generator.random(total)
    results = np.full((nights, total), np.nan)
    for night in range(nights):
        if generator.random() < log.flips:
            better = generator.random() < 0.5
            hits[generator.choice(np.flatnonzero(hits != better))] = better
        cases = np.arange(log.new * night if log.rolling else 0, log.n + log.new * night)
        hits_of_night = hits[cases]
        positions = np.flatnonzero(hits_of_night)
        hits_of_night[positions[np.argsort(order[cases[positions]])][: round(loss(night) * len(cases))]] = False
        results[night, cases] = hits_of_night ^ (generator.random(len(cases)) < log.churn)
    return results

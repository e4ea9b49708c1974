"""A year of nights of a system that does not change, and of one that does, in each kind of log: who leaves the band."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations import Claim, counted
from yarus.metrics.statistics.differences.changes import Change, change
from yarus.metrics.statistics.differences.numbers import Number
from yarus.metrics.statistics.ewma import chart
from yarus.metrics.statistics.paired_chart import LAG, NightChange, paired_chart

HIT_RATE = 0.8
YEAR, CALM = 365, 60
NEW = 8
"""Questions that a log grows by in a night."""
AT_ONCE, SOON = 0.05, 2
"""What is lost at once, and within how many nights it is to be found."""
A_NIGHT, LATER = 0.002, 20
"""What is lost a night, and within how many nights that is to be found."""
Loss = Callable[[int], float]
Floats = NDArray[np.float64]


class Log(NamedTuple):
    """What is asked every night."""

    name: str
    n: int
    new: int = 0
    """Questions a night."""
    rolling: bool = False
    """Whether as many old ones leave it."""
    flips: float = 0.0
    """Cases a night whose result changes for good, as many to the better as to the worse."""
    churn: float = 0.0
    """Share of cases that come out otherwise in a night by themselves."""
    found: tuple[float, float] = (0.8, 0.8)
    """Least share of losses that are found: at once, slow."""


LOGS = (
    Log("250 new questions a night", 250, new=250, rolling=True, found=(0.1, 0.1)),
    Log("whole log of 300 growing by 8", 300, new=NEW),
    Log("last 250 of a log growing by 8", 250, new=NEW, rolling=True),
    Log("frozen set of 300, a case changes every 3rd night", 300, flips=1 / 3),
    Log("frozen set of 300, a case changes every 10th night", 300, flips=1 / 10),
    Log("frozen set of 300, 2 % of answers change by themselves", 300, churn=0.02),
    Log("whole log of 300 growing by 8, 2 % change", 300, new=NEW, churn=0.02),
    Log("last 250 of a log growing by 8, 2 % change", 250, new=NEW, rolling=True, churn=0.02, found=(0.1, 0.1)),
)
OUT_A_YEAR = 2


def claims(effort: float) -> Iterator[Claim]:
    """Nights out of the band where nothing changes, and how often a loss is found in time."""
    repetitions = max(6, round(80 * effort))
    for number, log in enumerate(LOGS):
        seeds = [[number, repetition] for repetition in range(repetitions)]
        out = sum(int(np.count_nonzero(_sides(log, YEAR, [1, *seed], _nothing))) for seed in seeds) / repetitions
        yield Claim(f"{log.name}, system unchanged: nights out a year", 0, OUT_A_YEAR, out, repetitions, False)
        for key, words, loss, within, least in (
            (2, f"-{100 * AT_ONCE:g} points", _at_once, SOON, log.found[0]),
            (3, f"-{100 * A_NIGHT:g} points a night", _slowly, LATER, log.found[1]),
        ):
            sides = [_sides(log, CALM + within, [key, *seed], loss)[CALM:] for seed in seeds]
            found = [(side < 0).any() for side in sides]
            yield counted(f"{log.name}, {words}: below its band within {within} nights", least, 1, found)


def _nothing(night: int) -> float:
    return 0.0


def _at_once(night: int) -> float:
    return AT_ONCE * (night >= CALM)


def _slowly(night: int) -> float:
    return A_NIGHT * max(0, night - CALM + 1)


def _sides(log: Log, nights: int, seed: list[int], loss: Loss) -> NDArray[np.int64]:
    """(nights,) the side of the band that each is on."""
    results = _results(log, nights, np.random.default_rng(seed), loss)
    if log.new >= log.n:
        return chart([float(np.nanmean(night)) for night in results], step=1 / log.n).side
    changes = []
    for number in range(1, nights):
        lag = min(LAG, number)
        near, far = (_change(results[number - back], results[number]) for back in (1, lag))
        changes.append(NightChange(near.difference, near.variance, far.variance, lag, near.step))
    return paired_chart(changes).side


def _change(before: Floats, after: Floats) -> Change:
    found = change(Number(before, after), np.arange(len(before)))
    assert found is not None
    return found


def _results(log: Log, nights: int, chance: np.random.Generator, loss: Loss) -> Floats:
    """(nights, cases) whether a case was found, NaN where it was not asked."""
    total = log.n + log.new * (nights - 1)
    hits = chance.random(total) < HIT_RATE
    order = chance.random(total)
    found = np.full((nights, total), np.nan)
    for night in range(nights):
        if chance.random() < log.flips:
            better = chance.random() < 0.5
            hits[chance.choice(np.flatnonzero(hits != better))] = better
        asked = np.arange(log.new * night if log.rolling else 0, log.n + log.new * night)
        kept = hits[asked]
        hit = np.flatnonzero(kept)
        kept[hit[np.argsort(order[asked[hit]])][: round(loss(night) * len(asked))]] = False
        found[night, asked] = kept ^ (chance.random(len(asked)) < log.churn)
    return found

"""What a watch may be expected to do where nights are as noisy as these: false alarms a year, nights until it tells."""

from collections.abc import Iterator
from itertools import count, islice
from statistics import median
from typing import NamedTuple

import numpy as np

from yarus.metrics.statistics.alarms.level import Level
from yarus.metrics.statistics.alarms.noise import Night, Noise, replaced_share
from yarus.metrics.statistics.alarms.watch import Watch

RUNS, CALM, YEAR, YEARS = 40, 30, 365, 10
LONGEST = 60
"""Nights after which a loss that nobody was told of counts as not found."""
METRIC = "metric"


class Nights(NamedTuple):
    """Nights as they are: what they do by themselves, and one of them, for its cases."""

    noise: Noise
    night: Night
    least: float
    looks: float
    """In which one false alarm may come."""

    @property
    def spread(self) -> float:
        """Variance of what a night does by itself."""
        like = self.night
        return self.noise.night + (like.sampling if like.change is None else self.noise.case / like.total)

    def drawn(self, chance: np.random.Generator, loss: float = 0.0, a_night: float = 0.0) -> Iterator[Night]:
        """Nights like these without end; after CALM of them so much is lost at once, or every night."""
        noise, like = self.noise, self.night
        paired, n, new = like.change is not None, max(1, like.n), like.n_new / like.total
        lasting, twice = noise.lasting / n, 2 * noise.case / n
        walk = lasting + noise.case * replaced_share(like) if paired else 0.0
        level, offset, cases, before = like.value, 0.0, 0.0, 0.0
        for number in count(1):
            night, own = noise.night**0.5 * chance.normal(), (self.spread - noise.night) ** 0.5 * chance.normal()
            chained = level + offset + own + night
            value = level + cases + own + night if new else chained
            if number == 1 or not paired:
                yield Night(value, like.sampling, like.total)
            else:
                lag = min(like.lag, number - 1)
                drawn = Night(value, like.sampling, like.total, chained - before, n, twice + lasting)
                drawn = drawn._replace(far_variance=twice + lag * lasting, lag=lag, step=like.step)
                if new:
                    of_new = level + night + (like.sampling / new) ** 0.5 * chance.normal()
                    drawn = drawn._replace(n_new=like.n_new, new_value=of_new)
                yield drawn
            before = chained
            level += noise.drift**0.5 * chance.normal()
            level -= (loss if number == CALM else 0) + (a_night if number >= CALM else 0)
            offset += walk**0.5 * chance.normal()
            cases = (1 - new) * cases + ((1 - (1 - new) ** 2) * like.sampling) ** 0.5 * chance.normal()


def false_alarms(nights: Nights) -> float:
    """How often a year a watch rings where nothing happens, counted in a few drawn years.

    Example:
        >>> from yarus.metrics.statistics.alarms.expectation import Nights, false_alarms
        >>> from yarus.metrics.statistics.alarms.noise import Night, Noise
        >>> like = Night(0.8, 0.0004, 400, 0.0, 400, 0.0001, 0.0001, 8, 0.0025)
        >>> false_alarms(Nights(Noise(0.02, 0.0, 0.0, 0.0), like, 0.005, 2920.0))
        0.1
    """
    rung = 0
    for year in range(YEARS):
        watch = Watch({METRIC: Level(nights.least)})
        drawn = islice(nights.drawn(np.random.default_rng([0, 0, year])), YEAR)
        rung += sum(watch.look({METRIC: night}, nights.looks) == "rings" for night in drawn)
    return rung / YEARS


def nights_to_notice(nights: Nights, loss: float = 0.0, a_night: float = 0.0) -> float | None:
    """The night in which a watch tells of a loss, the first of it being 1: the median; None where it is after LONGEST.

    Args:
        nights: as they are; before the loss there were CALM of them.
        loss: at once, in the metric's unit, above 0 where it gets worse.
        a_night: what every night loses more.

    Example:
        >>> from yarus.metrics.statistics.alarms.expectation import Nights, nights_to_notice
        >>> from yarus.metrics.statistics.alarms.noise import Night, Noise
        >>> like = Night(0.8, 0.0004, 400, 0.0, 400, 0.0001, 0.0001, 8, 0.0025)
        >>> nights_to_notice(Nights(Noise(0.02, 0.0, 0.0, 0.0), like, 0.005, 2920.0), 0.05)
        1.0
    """
    found = []
    for run in range(RUNS):
        watch = Watch({METRIC: Level(nights.least)})
        drawn = islice(nights.drawn(np.random.default_rng([0, 1, run]), loss, a_night), CALM + LONGEST)
        told = LONGEST + 1
        for number, night in enumerate(drawn, start=1 - CALM):
            watch.add({METRIC: night})
            if number > 0 and watch.rings(nights.looks):
                told = number
                break
        found.append(told)
    middle = float(median(found))
    return middle if middle <= LONGEST else None

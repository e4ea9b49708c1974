"""Simulated operating characteristics of a watch: false alarms per year, and nights until it notices a loss."""

from collections.abc import Iterator
from itertools import count, islice
from statistics import median
from typing import NamedTuple

import numpy as np

from yarus.metrics.statistics.change_detection.level import LevelDetector
from yarus.metrics.statistics.change_detection.noise import NightlyValue, NoiseVariances, lasting_share
from yarus.metrics.statistics.change_detection.watch import ChangeMonitor

SIMULATED_RUNS, CALM_NIGHTS, NIGHTS_PER_YEAR, SIMULATED_YEARS = 40, 30, 365, 10
MAX_DELAY = 60
"""Nights after which a loss that raised no alarm counts as missed."""
METRIC = "metric"


class NightlyNoise(NamedTuple):
    """Noise of nightly values, with one typical night for its cases."""

    noise: NoiseVariances
    night: NightlyValue
    least: float
    looks: float
    """Checks per expected false alarm."""

    @property
    def spread(self) -> float:
        """Return the variance of the noise of one night."""
        like = self.night
        return self.noise.night + (like.sampling if like.change is None else self.noise.case / like.total)

    def drawn(self, chance: np.random.Generator, loss: float = 0.0, a_night: float = 0.0) -> Iterator[NightlyValue]:
        """Yield simulated nights without end; after CALM_NIGHTS of them this is lost at once, or every night."""
        noise, template = self.noise, self.night
        paired, n, new = template.change is not None, max(1, template.n), template.n_new / template.total
        lasting, twice = noise.lasting / n, 2 * noise.case / n
        walk = lasting + noise.case * lasting_share(template) if paired else 0.0
        level, offset, cases, before = template.value, 0.0, 0.0, 0.0
        for index in count(1):
            shared, own = noise.night**0.5 * chance.normal(), (self.spread - noise.night) ** 0.5 * chance.normal()
            chained = level + offset + own + shared
            value = level + cases + own + shared if new else chained
            if index == 1 or not paired:
                yield NightlyValue(value, template.sampling, template.total)
            else:
                lag = min(template.lag, index - 1)
                night = NightlyValue(value, template.sampling, template.total, chained - before, n, twice + lasting)
                night = night._replace(far_variance=twice + lag * lasting, lag=lag, step=template.step)
                if new:
                    new_value = level + shared + (template.sampling / new) ** 0.5 * chance.normal()
                    night = night._replace(n_new=template.n_new, new_value=new_value)
                yield night
            before = chained
            level += noise.drift**0.5 * chance.normal()
            level -= (loss if index == CALM_NIGHTS else 0) + (a_night if index >= CALM_NIGHTS else 0)
            offset += walk**0.5 * chance.normal()
            cases = (1 - new) * cases + ((1 - (1 - new) ** 2) * template.sampling) ** 0.5 * chance.normal()


def expected_false_alarms(noise: NightlyNoise) -> float:
    """Return how often per year a watch raises an alarm if nothing happens, counted in a few simulated years.

    Example:
        >>> from yarus.metrics.statistics.change_detection.expectation import NightlyNoise, expected_false_alarms
        >>> from yarus.metrics.statistics.change_detection.noise import NightlyValue, NoiseVariances
        >>> like = NightlyValue(0.8, 0.0004, 400, 0.0, 400, 0.0001, 0.0001, 8, 0.0025)
        >>> expected_false_alarms(NightlyNoise(NoiseVariances(0.02, 0.0, 0.0, 0.0), like, 0.005, 2920.0))
        0.1
    """
    alarms = 0
    for year in range(SIMULATED_YEARS):
        watch = ChangeMonitor({METRIC: LevelDetector(noise.least)})
        nights_of_year = islice(noise.drawn(np.random.default_rng([0, 0, year])), NIGHTS_PER_YEAR)
        alarms += sum(watch.look({METRIC: night}, noise.looks) == "rings" for night in nights_of_year)
    return alarms / SIMULATED_YEARS


def detection_delay(noise: NightlyNoise, loss: float = 0.0, a_night: float = 0.0) -> float | None:
    """Return the median night in which a watch notices a loss, the first night of it being 1; None if after MAX_DELAY.

    Args:
        noise: of the nights; before the loss there are CALM_NIGHTS.
        loss: at once, in the metric's unit, above 0 if the metric gets worse.
        a_night: additional loss per night.

    Example:
        >>> from yarus.metrics.statistics.change_detection.expectation import NightlyNoise, detection_delay
        >>> from yarus.metrics.statistics.change_detection.noise import NightlyValue, NoiseVariances
        >>> like = NightlyValue(0.8, 0.0004, 400, 0.0, 400, 0.0001, 0.0001, 8, 0.0025)
        >>> detection_delay(NightlyNoise(NoiseVariances(0.02, 0.0, 0.0, 0.0), like, 0.005, 2920.0), 0.05)
        1.0
    """
    delays = []
    for run in range(SIMULATED_RUNS):
        watch = ChangeMonitor({METRIC: LevelDetector(noise.least)})
        simulated = islice(noise.drawn(np.random.default_rng([0, 1, run]), loss, a_night), CALM_NIGHTS + MAX_DELAY)
        delay = MAX_DELAY + 1
        for index, night in enumerate(simulated, start=1 - CALM_NIGHTS):
            watch.add({METRIC: night})
            if index > 0 and watch.rings(noise.looks):
                delay = index
                break
        delays.append(delay)
    middle = float(median(delays))
    return middle if middle <= MAX_DELAY else None

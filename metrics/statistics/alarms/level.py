"""The level of one metric night by night: the evidence that it has fallen, and that it is back."""

from typing import NamedTuple

import numpy as np

from metrics.statistics.alarms.local_level import LEAST_SPREAD, LocalLevel, evidence
from metrics.statistics.alarms.noise import Night, Noise, Noises, replaced_share
from metrics.statistics.groups import Floats
from metrics.statistics.intervals import normal_quantile

STEPS = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
"""Losses at once that are looked for, in multiples of the least."""
SLOPES = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Losses a night that are looked for."""
STILL = 0.5
"""Share of what was lost that is still missing, at least, while a loss goes on."""
VAGUE = 20.0
"""Multiple of the least that a night must tell from none by itself."""
HIGHEST = 500.0
"""Logarithm of the most evidence that is counted."""


class Loss(NamedTuple):
    """What was lost, in the metric's unit."""

    since: int
    """The first night of it, from 0."""
    size: float
    """Up to now; above 0."""
    low: float
    high: float
    """Its 95 % interval, if it began there."""


class _Seen(NamedTuple):
    """A night as it was seen."""

    y: float
    """The level, as the sum of its changes."""
    spread: float
    """Variance of what the night says of it."""
    wander: float
    """Variance of what it may have moved by since the night before."""
    mean: float
    """What was expected."""
    before: float
    """The variance of that."""
    noise: Noise
    told: int
    """Nights that told of the noise before it."""
    night: Night


class Level:
    """The level of one metric: what the nights say of it since it was accepted.

    The evidence is an e-detector: likelihood ratios of a loss against none (at once: against the least), mixed over
    sizes and slopes, summed over the nights in which it may have begun. Where nothing is lost, that sum rises by 1 a
    night at most on average, so that it passes c once in c nights at most, however often it is looked at. That the
    level is back is an e-process: its weights add up to 1, so that one in c of losses that last ever seems over.

    Reference: Shin, Ramdas and Rinaldo 2023, E-detectors: a nonparametric framework for sequential change detection.

    Args:
        least: the smallest loss that anyone is to be told of, above 0.
        better: 1 where higher is better, -1 where lower is.
        known: what `Noises` begins with.
    """

    def __init__(self, least: float, *, better: int = 1, known: tuple[float, float] = (0.0, 0.0)) -> None:
        self.least, self._better = least, better
        self._noises = Noises(known)
        self._noise = self._noises.now
        self._last: Night | None = None
        self._paired, self._own = False, 0.0
        self._nights: list[_Seen] = []
        self._level = LocalLevel(0.0, 0.0)
        self._incident: _Incident | None = None

    @property
    def nights(self) -> int:
        """How many there were."""
        return len(self._nights)

    @property
    def noise(self) -> Noise:
        """What the level does by itself, as the nights so far tell it."""
        return self._noises.told

    def add(self, night: Night) -> None:
        """One more night."""
        last, self._last = self._last, night
        if last is None:
            self._level.mean = night.value
            self._nights.append(_Seen(night.value, 0.0, 0.0, night.value, 0.0, self._noise, 0, night))
            return
        told, within = self._noises.nights, self._incident is not None
        first = within and not self._noises.is_told
        if not within:
            self._noise = self._noises.add(night, last)
        elif first:
            self._tell_within(night)
        wander, spread = self._of_night(night, last)
        y, before = self._nights[-1].y + night.moved_since(last), self._level.spread + wander
        seen = _Seen(y, spread, wander, self._level.mean, before, self._noise, told, night)
        self._nights.append(seen)
        if self._incident:
            self._incident.add(seen)
            if not first:  # tonight's noise is told by the nights before: it may be the first that is back
                self._tell_within(night)
        else:
            self._level.add(y, spread, wander)

    def _of_night(self, night: Night, last: Night) -> tuple[float, float]:
        """Variances: by how much the level may have moved since the night before, and of what the night says of it."""
        noise, own = self._noise, 0.0 if night.skips else self._own
        if night.change is None:  # other cases than before
            if self.nights == 1:
                self._level.spread = last.sampling + noise.night
            wander = noise.drift + (last.sampling if self._paired else 0.0)
            self._paired, self._own = False, 0.0
            return wander, night.sampling + noise.night
        if not self._paired:  # from here on the cases are the same: what others say is no reference for them
            self._begin(noise.case / last.total + noise.night, last.sampling)
        self._paired, self._own = True, noise.case * replaced_share(night, last)
        return noise.drift + noise.lasting / night.n + own, noise.night + noise.case / night.total + self._own

    def _begin(self, spread: float, sampling: float) -> None:
        if self._incident:
            self._incident.spread += sampling
        else:
            self._level.begin(self._nights[-1].y, spread)

    def _likely(self) -> Floats:
        """(2, nights) evidence, in logarithms, that a loss began in each night: at once, and by and by."""
        (at_once, slowly), (heavy, steep) = -self._better * self._level.sums, self._level.weights
        steps = [evidence(at_once, heavy, size * self.least, self.least) for size in STEPS]
        slopes = [evidence(slowly, steep, slope * self.least, 0.0) for slope in SLOPES]
        return np.array([np.logaddexp.reduce(found) - np.log(len(found)) for found in (steps, slopes)])

    @property
    def evidence(self) -> float:
        """That the level has fallen by more than the least."""
        return float(np.exp(np.minimum(self._likely(), HIGHEST)).sum() / 2)

    @property
    def loss(self) -> Loss | None:
        """What was lost, going by the likeliest beginning; None where nothing was."""
        if not self._level.nights:
            return None
        likely = self._likely()
        kind, start = np.unravel_index(int(likely.argmax()), likely.shape)
        weight = float(self._level.weights[kind, start])
        ago = self._level.nights - int(start)
        times = ago if kind else 1
        size = -self._better * float(self._level.sums[kind, start]) / weight * times
        half = normal_quantile(0.95) / weight**0.5 * times
        return Loss(self.nights - ago, size, size - half, size + half) if size > 0 else None

    def open(self, since: int, size: float) -> None:
        """An incident: the level is held from now on against what it was before that night, where so much was lost."""
        of = self._nights[since:]
        self._incident = _Incident(of, size, self._better)
        self._noises.forget(of[0].told)  # the loss is nothing that the level does by itself
        self._noise = self._noises.now if self._noises.is_told else of[0].noise
        for seen in of[1:]:
            self._tell_within(seen.night)

    def _tell_within(self, night: Night) -> None:
        """Within an incident cases tell of the noise as ever, and levels do not."""
        if night.change is not None:
            self._noises.add_cases(night)
            self._noise = self._noises.now

    def find_sudden_loss(self, looks: float) -> Loss | None:
        """Return what a single night shows to be lost, with one false alarm in so many looks; None: nothing."""
        return None

    @property
    def vague(self) -> bool:
        """Whether the last night says next to nothing: what it alone can tell is far more than the least."""
        if not self._nights:
            return False
        night = self._nights[-1]
        return bool(normal_quantile(0.95) * (night.spread + night.wander) ** 0.5 > VAGUE * self.least)

    @property
    def back(self) -> float:
        """Evidence that the level is back, of an incident that goes on."""
        return self._incident.back if self._incident else 0.0

    def close(self) -> None:
        """What begins from now on is a new loss."""
        self._level.forget()
        if self._incident:
            self._level.begin(self._incident.mean, self._incident.spread)
            self._incident = None


class _Incident:
    """The nights since a loss was told of: are they as those before it, or do they lie higher than those within it?

    Args:
        of: the nights of the loss so far.
        size: what was lost.
        better: as of `Level`.
    """

    def __init__(self, of: list[_Seen], size: float, better: int) -> None:
        self.mean, self.spread = of[0].mean, of[0].before + sum(night.wander for night in of[1:])
        self._size, self._better = size, better
        weights = np.array([1 / max(LEAST_SPREAD, night.spread) for night in of])
        within = float(weights @ [night.y for night in of] / weights.sum())
        self._within = LocalLevel(within, float(1 / weights.sum()))
        self._missing, self._weights = np.zeros((2, 0))

    def add(self, night: _Seen) -> None:
        self.spread += night.wander
        self._within.add(night.y, night.spread, night.wander)
        weight = 1 / max(LEAST_SPREAD, night.spread)
        self._missing = np.append(self._missing, 0.0) + self._better * (self.mean - night.y) * weight
        self._weights = np.append(self._weights, 0.0) + weight

    @property
    def back(self) -> float:
        """Mixed over the nights since which the level may be back, with weights that add up to 1 over all to come."""
        if not len(self._weights):
            return 0.0
        still = STILL * self._size
        missing, spread = self._missing / self._weights, 1 / self._weights + self.spread
        as_before = (still**2 - 2 * still * missing) / 2 / spread
        risen = evidence(self._better * self._within.sums[0], self._within.weights[0], self._size, still)
        number = np.arange(1, len(missing) + 1)
        either = np.exp(np.minimum(as_before, HIGHEST)) + np.exp(np.minimum(risen, HIGHEST))
        return float((either / 2 / number / (number + 1)).sum())

"""The level of one metric night by night: the evidence that it has fallen, and that it is back."""

from typing import NamedTuple

import numpy as np

from yarus.metrics.statistics.alarms.local_level import (
    FOLLOWED,
    LEAST_SPREAD,
    LEVEL,
    LocalLevel,
    Observation,
    Start,
    evidence,
    mixed_evidence,
)
from yarus.metrics.statistics.alarms.noise import Night, Noise, Noises, kept_share
from yarus.metrics.statistics.groups import Floats
from yarus.metrics.statistics.intervals import normal_quantile

STEP, SLOPE = 10.0, 1.0
"""What is lost at once, and in a night, is of this order, in multiples of the least."""
LARGE, RARE = 10.0, 0.1
"""Some losses are so many times larger; this share of them."""
KINDS = np.array([0.75, 0.25])
"""Shares of losses at once, and of those by and by."""
STILL = 0.5
"""Share of what was lost that is still missing, at least, while a loss goes on."""
VAGUE = 20.0
"""Multiple of the least that a night must tell from none by itself."""
UNKNOWN = 100.0
"""Multiple of the least that is the standard deviation of what nothing is known of."""
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

    said: Observation
    before: LocalLevel
    """What was known before it."""
    noise: Noise
    told: int
    """Nights that told of the noise before it."""
    night: Night


class Level:
    """The level of one metric: what the nights say of it since it was accepted.

    The evidence is an e-detector: likelihood ratios of a loss against none, at once or by and by, mixed over its sizes,
    summed over the nights in which it may have begun. Where nothing is lost, that sum rises by 1 a
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
        self._paired, self._kept, self._late, self._chained = False, 0.0, 0.0, 0.0
        self._first: Night | None = None
        self._nights: list[_Seen] = []
        self._level = LocalLevel(0.0, 0.0, 0.0)
        self._incident: _Incident | None = None

    @property
    def nights(self) -> int:
        """How many there were."""
        return len(self._nights) + (self._first is not None)

    @property
    def noise(self) -> Noise:
        """What the level does by itself, as the nights so far tell it."""
        return self._noises.told

    def add(self, night: Night) -> None:
        """One more night."""
        if self._first is None:
            self._first, self._chained = night, night.value
            self._level = LocalLevel(night.value, 0.0, (UNKNOWN * self.least) ** 2)
            return
        last = self._nights[-1].night if self._nights else self._first
        told, within = self._noises.nights, self._incident is not None
        first = within and not self._noises.is_told
        if not within:
            self._noise = self._noises.add(night, last)
        elif first:
            self._tell_within(night)
        seen = _Seen(self._observe(night, last), self._level.copy(), self._noise, told, night)
        self._nights.append(seen)
        if self._incident:
            self._incident.add(seen.said)
            if not first:  # tonight's noise is told by the nights before: it may be the first that is back
                self._tell_within(night)
        else:
            self._level.add(seen.said)

    def _observe(self, night: Night, last: Night) -> Observation:
        """What the night says of the level, with variances; the night as a whole moves all that it says."""
        noise, paired, start = self._noise, night.change is not None, None
        if paired != self._paired or not self._nights:
            self._kept, self._chained, chained = 1 / last.total, last.value, self._chained
            whole = self._whole(last)
            own = noise.case * self._kept + whole
            start = Start(paired, last.value, chained, own, last.sampling + whole)
        self._paired = paired
        if night.change is None:  # other cases than before
            value, spread = [night.value], [night.sampling]
            parts, wander = [LEVEL], [noise.drift, 0.0]
        else:
            self._chained += night.change
            before, self._kept = self._kept, kept_share(night)
            stays = noise.case * max(0.0, 2 / night.n - self._kept - before)
            late, self._late = 0.0 if night.skips else self._late, 0.0
            value, spread, parts = [self._chained], [noise.case * self._kept], [FOLLOWED]
            if 2 * night.total < last.total:  # a small night: the next may pass it over
                spread, stays, self._late = [spread[0] + stays], 0.0, stays
            wander = [noise.drift, noise.lasting / night.n + stays + late]
            if night.new_value is not None:
                value, parts = [*value, night.new_value], [*parts, LEVEL]
                spread = [*spread, night.sampling * night.total / night.n_new]
        variances = np.diag(np.maximum(spread, LEAST_SPREAD)) + self._whole(night)
        return Observation(np.array(value), np.array(parts), variances, np.array(wander), start)

    def _whole(self, night: Night) -> float:
        """Variance of what a night adds to all its cases."""
        return self._noise.night + night.unknown

    def _likely(self) -> Floats:
        """(2, nights) evidence, in logarithms, that a loss began in each night: at once, and by and by."""
        lost, weights = -self._better * self._level.sums, self._level.weights
        scales = np.array([[STEP], [SLOPE]]) * self.least
        usual, large = (mixed_evidence(lost, weights, times * scales) for times in (1.0, LARGE))
        return np.asarray(np.logaddexp(usual + np.log(1 - RARE), large + np.log(RARE)))

    @property
    def evidence(self) -> float:
        """That the level has fallen."""
        return float((KINDS @ np.exp(np.minimum(self._likely(), HIGHEST))).sum())

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
        of = self._nights[since - 1 :]
        self._incident = _Incident([night.said for night in of], of[0].before, size, self._better, self.least)
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
        said, night = self._nights[-1].said, self._nights[-1].night
        alone = 1 / np.linalg.inv(said.spread - night.unknown).sum() + said.wander.sum()
        return bool(normal_quantile(0.95) * alone**0.5 > VAGUE * self.least)

    @property
    def back(self) -> float:
        """Evidence that the level is back, of an incident that goes on."""
        return self._incident.back if self._incident else 0.0

    def close(self) -> None:
        """What begins from now on is a new loss."""
        self._level.forget()
        if self._incident:
            self._level = self._incident.before
            self._incident = None


class _Incident:
    """The nights since a loss was told of: are they as those before it, or do they lie higher than those within it?

    Args:
        of: the nights of the loss so far.
        before: what was known of the level before them.
        size: what was lost.
        better, least: as of `Level`.
    """

    def __init__(self, of: list[Observation], before: LocalLevel, size: float, better: int, least: float) -> None:
        self.before = before.copy()
        """What would be known of the level if nothing were lost."""
        self._size, self._better = size, better
        self._within = before.copy((UNKNOWN * least) ** 2)
        for night in of:
            self.before.move(night)
            self._within.add(night)
        self._within.forget()
        self._missing, self._weights = np.zeros((2, 2, 0))
        """(2, nights) over the nights since each: of what is followed and of what is new."""

    def add(self, night: Observation) -> None:
        self.before.move(night)
        self._within.add(night)
        if night.start:
            self._missing[0], self._weights[0] = 0.0, 0.0  # they were of other cases
            if night.start.follows:
                self.before.draw(night.start)
        self._missing, self._weights = (
            np.append(one, np.zeros((2, 1)), axis=1) for one in (self._missing, self._weights)
        )
        missing = self._better * (night.parts @ self.before.mean - night.values)
        for part, lost, spread in zip(night.parts, missing, np.diag(night.spread), strict=True):
            kind = 0 if part[1] else 1
            self._weights[kind] += 1 / spread
            self._missing[kind] += lost / spread

    @property
    def back(self) -> float:
        """Mixed over the nights since which the level may be back, with weights that add up to 1 over all to come."""
        if not self._within.nights:
            return 0.0
        still = STILL * self._size
        parts = np.array([FOLLOWED, LEVEL])
        (both, shared), (_, level) = parts @ self.before.spread @ parts.T
        (followed, new), (lost, lost_new) = self._weights, self._missing
        a, d = 1 + followed * both, 1 + new * level  # of the inverse of what all nights since then share
        scale = a * d - followed * new * shared**2
        precision = (followed * d + new * a - 2 * followed * new * shared) / scale
        missing = (lost * (d - new * shared) + lost_new * (a - followed * shared)) / scale
        as_before = still**2 * precision / 2 - still * missing
        risen = evidence(self._better * self._within.sums[0], self._within.weights[0], self._size, still)
        number = np.arange(1, len(missing) + 1)
        either = np.exp(np.minimum(as_before, HIGHEST)) + np.exp(np.minimum(risen, HIGHEST))
        return float((either / 2 / number / (number + 1)).sum())

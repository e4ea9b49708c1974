"""The level of one metric night by night: the evidence that it has fallen, and that it has recovered."""

from typing import NamedTuple

import numpy as np

from yarus.metrics.statistics.change_detection.local_level import (
    FOLLOWED,
    LEVEL,
    MIN_VARIANCE,
    CaseChange,
    LocalLevel,
    Observation,
    log_evidence,
    mixed_log_evidence,
)
from yarus.metrics.statistics.change_detection.noise import NightlyValue, NoiseEstimator, NoiseVariances, reverted_share
from yarus.metrics.statistics.groups import Floats
from yarus.metrics.statistics.intervals import normal_quantile

TYPICAL_STEP, TYPICAL_SLOPE = 10.0, 1.0
"""Typical sizes of a loss at once, and of a loss per night, in multiples of the least."""
LARGE_FACTOR, LARGE_SHARE = 10.0, 0.1
"""Large losses: this many times larger, and their share of all losses."""
KIND_SHARES = np.array([0.75, 0.25])
"""Shares of losses at once, and of gradual losses."""
LASTING_SHARE = 0.5
"""Least share of the loss that is still missing while it lasts."""
VAGUE_FACTOR = 20.0
"""Multiple of the least: a night whose own half-width is larger is uninformative."""
UNKNOWN_FACTOR = 100.0
"""Multiple of the least: the standard deviation of unknown quantities."""
MAX_LOG_EVIDENCE = 500.0
"""Logarithm of the largest evidence that is counted."""


class LevelLoss(NamedTuple):
    """A loss, in the metric's unit."""

    since: int
    """First night of the loss, from 0."""
    size: float
    """Size up to now; above 0."""
    low: float
    high: float
    """95 % interval of the size, if the loss began there."""


class _Seen(NamedTuple):
    """A night with its observation and the state before it."""

    observation: Observation
    before: LocalLevel
    """Level before the night."""
    noise: NoiseVariances
    noise_nights: int
    """Nights that the noise was estimated from before it."""
    night: NightlyValue


class LevelDetector:
    """The level of one metric: the evidence of the nights since it was accepted.

    The evidence is an e-detector: likelihood ratios of a loss (at once or gradual) against no loss, mixed over its
    sizes and summed over the nights in which it may have begun. If nothing is lost, that sum rises by at most 1 per
    night on average, so that it exceeds c at most once in c nights, however often it is checked. The evidence of a
    recovery is an e-process: its weights add up to 1, so that at most one in c of the lasting losses ever seems to be
    over.

    Reference: Shin, Ramdas and Rinaldo 2023, E-detectors: a nonparametric framework for sequential change detection.

    Args:
        least: the smallest loss that is worth an alarm, above 0.
        better: 1 if higher is better, -1 if lower is.
        known: the noise that `NoiseEstimator` starts from.
    """

    def __init__(self, least: float, *, better: int = 1, known: tuple[float, float] = (0.0, 0.0)) -> None:
        self.least, self._better = least, better
        self._noises = NoiseEstimator(known)
        self._noise = self._noises.current
        self._paired, self._kept, self._late, self._chained = False, 0.0, 0.0, 0.0
        self._first: NightlyValue | None = None
        self._nights: list[_Seen] = []
        self._level = LocalLevel(0.0, 0.0, 0.0)
        self._incident: _Incident | None = None

    @property
    def nights(self) -> int:
        """Return the number of nights."""
        return len(self._nights) + (self._first is not None)

    @property
    def noise(self) -> NoiseVariances:
        """Return the noise of the level, estimated from the nights so far."""
        return self._noises.estimate

    def add(self, night: NightlyValue) -> None:
        """Add one more night."""
        if self._first is None:
            self._first, self._chained = night, night.value
            self._level = LocalLevel(night.value, 0.0, (UNKNOWN_FACTOR * self.least) ** 2)
            return
        last = self._nights[-1].night if self._nights else self._first
        noise_nights, in_incident = self._noises.nights, self._incident is not None
        is_first_noise = in_incident and not self._noises.has_estimate
        if not in_incident:
            self._noise = self._noises.add(night, last)
        elif is_first_noise:
            self._add_noise(night)
        seen = _Seen(self._observe(night, last), self._level.copy(), self._noise, noise_nights, night)
        self._nights.append(seen)
        if self._incident:
            self._incident.add(seen.observation)
            # The noise of tonight comes from the nights before: tonight may be the first after a recovery.
            if not is_first_noise:
                self._add_noise(night)
        else:
            self._level.add(seen.observation)

    def _observe(self, night: NightlyValue, last: NightlyValue) -> Observation:
        """Return the observation of a night with variances; all its values share `_shared_variance`."""
        noise, paired, start = self._noise, night.change is not None, None
        if paired != self._paired or not self._nights:
            self._kept, self._chained, chained = 1 / last.total, last.value, self._chained
            shared = self._shared_variance(last)
            own = noise.case * self._kept + shared
            start = CaseChange(paired, last.value, chained, own, last.sampling + shared)
        self._paired = paired
        if night.change is None:  # other cases than before
            value, spread = [night.value], [night.sampling]
            components, drifts = [LEVEL], [noise.drift, 0.0]
        else:
            self._chained += night.change
            before, self._kept = self._kept, reverted_share(night)
            lasting = noise.case * max(0.0, 2 / night.n - self._kept - before)
            late, self._late = 0.0 if night.skips else self._late, 0.0
            value, spread, components = [self._chained], [noise.case * self._kept], [FOLLOWED]
            if 2 * night.total < last.total:  # a small night: the next may skip it
                spread, lasting, self._late = [spread[0] + lasting], 0.0, lasting
            drifts = [noise.drift, noise.lasting / night.n + lasting + late]
            if night.new_value is not None:
                value, components = [*value, night.new_value], [*components, LEVEL]
                spread = [*spread, night.sampling * night.total / night.n_new]
        variances = np.diag(np.maximum(spread, MIN_VARIANCE)) + self._shared_variance(night)
        return Observation(np.array(value), np.array(components), variances, np.array(drifts), start)

    def _shared_variance(self, night: NightlyValue) -> float:
        """Return the variance of what a night adds to all its cases."""
        return self._noise.night + night.unknown

    def _likely(self) -> Floats:
        """Return (2, nights) log evidence that a loss began in each night: at once, and gradual."""
        lost, weights = -self._better * self._level.sums, self._level.weights
        scales = np.array([[TYPICAL_STEP], [TYPICAL_SLOPE]]) * self.least
        usual, large = (mixed_log_evidence(lost, weights, times * scales) for times in (1.0, LARGE_FACTOR))
        return np.asarray(np.logaddexp(usual + np.log(1 - LARGE_SHARE), large + np.log(LARGE_SHARE)))

    @property
    def evidence(self) -> float:
        """Return the evidence that the level has fallen."""
        return float((KIND_SHARES @ np.exp(np.minimum(self._likely(), MAX_LOG_EVIDENCE))).sum())

    @property
    def loss(self) -> LevelLoss | None:
        """Return the loss that began in the likeliest night; None if nothing was lost."""
        if not self._level.nights:
            return None
        likely = self._likely()
        kind, start = np.unravel_index(int(likely.argmax()), likely.shape)
        weight = float(self._level.weights[kind, start])
        ago = self._level.nights - int(start)
        times = ago if kind else 1
        size = -self._better * float(self._level.sums[kind, start]) / weight * times
        half = normal_quantile(0.95) / weight**0.5 * times
        return LevelLoss(self.nights - ago, size, size - half, size + half) if size > 0 else None

    def open(self, since: int, size: float) -> None:
        """Open an incident: from now on compare the level with what it was before that night, when so much was lost."""
        nights = self._nights[since - 1 :]
        self._incident = _Incident(
            [night.observation for night in nights], nights[0].before, size, self._better, self.least
        )
        self._noises.forget(nights[0].noise_nights)  # the loss is not noise
        self._noise = self._noises.current if self._noises.has_estimate else nights[0].noise
        for seen in nights[1:]:
            self._add_noise(seen.night)

    def _add_noise(self, night: NightlyValue) -> None:
        """Update the noise within an incident: from cases as ever, but not from levels."""
        if night.change is not None:
            self._noises.add_cases(night)
            self._noise = self._noises.current

    def find_sudden_loss(self, looks: float) -> LevelLoss | None:
        """Return the loss that a single night shows, with one false alarm per so many looks; None if it shows none."""
        return None

    @property
    def vague(self) -> bool:
        """Return whether the last night is uninformative: what it alone can show is far larger than the least."""
        if not self._nights:
            return False
        observation, night = self._nights[-1].observation, self._nights[-1].night
        night_variance = 1 / np.linalg.inv(observation.spread - night.unknown).sum() + observation.wander.sum()
        return bool(normal_quantile(0.95) * night_variance**0.5 > VAGUE_FACTOR * self.least)

    @property
    def back(self) -> float:
        """Return the evidence that the level has recovered from the open incident."""
        return self._incident.back if self._incident else 0.0

    def close(self) -> None:
        """Close the incident: whatever begins from now on is a new loss."""
        self._level.forget()
        if self._incident:
            self._level = self._incident.before
            self._incident = None


class _Incident:
    """The nights since a loss was found: are they like those before it, or higher than those within it?

    Args:
        nights: the observations of the loss so far.
        before: the level before them.
        size: of the loss.
        better, least: as in `LevelDetector`.
    """

    def __init__(self, nights: list[Observation], before: LocalLevel, size: float, better: int, least: float) -> None:
        self.before = before.copy()
        """The level as it would be if nothing were lost."""
        self._size, self._better = size, better
        self._within = before.copy((UNKNOWN_FACTOR * least) ** 2)
        for night in nights:
            self.before.move(night)
            self._within.add(night)
        self._within.forget()
        self._missing, self._weights = np.zeros((2, 2, 0))
        """(2, nights) over the nights since each: of followed cases and of new cases."""

    def add(self, night: Observation) -> None:
        self.before.move(night)
        self._within.add(night)
        if night.start:
            self._missing[0], self._weights[0] = 0.0, 0.0  # they belong to other cases
            if night.start.follows:
                self.before.draw(night.start)
        self._missing, self._weights = (
            np.append(sums, np.zeros((2, 1)), axis=1) for sums in (self._missing, self._weights)
        )
        missing = self._better * (night.parts @ self.before.mean - night.values)
        for part, lost, spread in zip(night.parts, missing, np.diag(night.spread), strict=True):
            kind = 0 if part[1] else 1
            self._weights[kind] += 1 / spread
            self._missing[kind] += lost / spread

    @property
    def back(self) -> float:
        """Return the evidence of a recovery, mixed over its possible nights with weights that add up to 1."""
        if not self._within.nights:
            return 0.0
        still = LASTING_SHARE * self._size
        parts = np.array([FOLLOWED, LEVEL])
        (both, shared), (_, level) = parts @ self.before.spread @ parts.T
        (followed, new), (lost, lost_new) = self._weights, self._missing
        a, d = 1 + followed * both, 1 + new * level  # entries of the inverse of what all nights since then share
        scale = a * d - followed * new * shared**2
        precision = (followed * d + new * a - 2 * followed * new * shared) / scale
        missing = (lost * (d - new * shared) + lost_new * (a - followed * shared)) / scale
        as_before = still**2 * precision / 2 - still * missing
        risen = log_evidence(self._better * self._within.sums[0], self._within.weights[0], self._size, still)
        number = np.arange(1, len(missing) + 1)
        either = np.exp(np.minimum(as_before, MAX_LOG_EVIDENCE)) + np.exp(np.minimum(risen, MAX_LOG_EVIDENCE))
        return float((either / 2 / number / (number + 1)).sum())

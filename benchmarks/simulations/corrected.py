"""Corrected means: how often their intervals contain the truth, and raw ones do not, and the width by labels alone."""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations import Claim
from yarus.metrics.statistics import mean_interval
from yarus.metrics.statistics.corrected import ppi_mean

Floats = NDArray[np.float64]
RATES = (0.1, 0.5, 0.8, 0.95)
JUDGES = ((0.6, 0.6), (0.8, 0.7), (0.95, 0.9))
"""Sensitivity and specificity."""
SIZES = (400, 4_000)
LABELS = (30, 60, 120, 240)
FEW_USERS = 0.9
"""Least coverage for 400 questions of 16 users, if nearly all of them, or of the labels, are good or bad."""
RARE = 0.995
"""The same for 30 labels of which one or two are expected to be bad: the interval must allow for unseen failures."""
CORRELATION = 0.2
"""Correlation of the answers to one user's questions; each user has 1 to 50."""


class SimulatedNight(NamedTuple):
    """A night with its truth, and people's labels of it."""

    scores: Floats
    labels: Floats
    probabilities: Floats
    groups: list[int] | None


def claims(effort: float) -> Iterator[Claim]:
    """Yield coverage by number of labels, with and without users, drawn alike and by the judge's score.

    The claims are over all rates, judges and sizes together, and for the situations of lowest and highest coverage."""
    times = max(20, round(effort * 1_000))
    raw: list[float] = []
    for grouped, stratified, n in product((False, True), (False, True), LABELS):
        coverages, width_ratios = [], []
        for rate, judge, size in product(RATES, JUDGES, SIZES):
            coverage, ratio, uncorrected = _measure(rate, judge, n, size, times, grouped=grouped, stratified=stratified)
            coverages.append(coverage)
            width_ratios.append(ratio)
            raw += [uncorrected] if rate == 0.8 and judge == (0.8, 0.7) else []
        what = f"{n} labels{', users' if grouped else ''}{', drawn by score' if stratified else ''}"
        low, high = (0.92, 0.98) if n == 30 else (0.93, 0.97)
        yield Claim(f"{what}: holds the truth", low, high, float(np.mean(coverages)), times * len(coverages))
        yield Claim(f"{what}: where most rarely", FEW_USERS if grouped else low, 1, min(coverages), times)
        yield Claim(f"{what}: where most often", 0, RARE, max(coverages), times)
        yield Claim(f"{what}: width by labels alone", 0, 1.05, max(width_ratios), times, is_share=False)
    what = "the judge's own interval: sensitivity 0.8, specificity 0.7, rate 0.8"
    yield Claim(what, 0, 0.1, float(np.mean(raw)), times)
    what = "a fall by 0.1, judge 0.9 / 0.7, as labels of the night before show it"
    yield Claim(what, 0, 0.05, _estimated_fall(times), times, is_share=False)


def _estimated_fall(times: int) -> float:
    """Return how far the corrected mean falls if answers get worse by 0.1, with labels of the answers before."""
    falls, judge = [], (0.9, 0.7)
    for number in range(times):
        generator = np.random.default_rng(number)
        night = _draw_night(generator, 0.8, judge, 400, 4_000, grouped=False, stratified=False)
        is_labelled = ~np.isnan(night.labels)
        before = ppi_mean(night.scores, night.labels, night.probabilities).value
        worse = _draw_night(generator, 0.7, judge, 1, 4_000, grouped=False, stratified=False).scores
        after = ppi_mean(
            np.append(worse, night.scores[is_labelled]),
            np.append(np.full(len(worse), np.nan), night.labels[is_labelled]),
            np.append(np.full(len(worse), np.nan), night.probabilities[is_labelled]),
            counted=np.arange(len(worse) + is_labelled.sum()) < len(worse),
        ).value
        falls.append(before - after)
    return float(np.mean(falls))


def _measure(
    rate: float, judge: tuple[float, float], n: int, size: int, times: int, *, grouped: bool, stratified: bool
) -> tuple[float, float, float]:
    """Return the coverage of the rate, the mean width relative to labels alone, and the coverage of raw intervals."""
    n_covered, n_raw_covered, widths, width_alone = 0, 0, 0.0, 0.0
    for number in range(times):
        night = _draw_night(np.random.default_rng(number), rate, judge, n, size, grouped=grouped, stratified=stratified)
        corrected = ppi_mean(night.scores, night.labels, night.probabilities, groups=night.groups)
        labels_only = ppi_mean(np.full(size, 0.5), night.labels, night.probabilities, groups=night.groups)
        n_covered += corrected.low <= rate <= corrected.high
        widths, width_alone = widths + corrected.high - corrected.low, width_alone + labels_only.high - labels_only.low
        if rate == 0.8 and number < 50:
            interval = mean_interval(night.scores, seed=0, low=0, high=1, groups=night.groups)
            n_raw_covered += interval.low <= rate <= interval.high
    return n_covered / times, widths / width_alone, n_raw_covered / min(times, 50)


def _draw_night(
    generator: np.random.Generator,
    rate: float,
    judge: tuple[float, float],
    n: int,
    size: int,
    *,
    grouped: bool,
    stratified: bool,
) -> SimulatedNight:
    users, rates = None, np.full(size, rate)
    if grouped:
        users = np.repeat(np.arange(size), generator.integers(1, 51, size))[:size]
        a, b = (share * (1 - CORRELATION) / CORRELATION for share in (rate, 1 - rate))
        rates = generator.beta(a, b, size)[users]
    truth = generator.random(size) < rates
    right = generator.random(size) < np.where(truth, *judge)
    scores = np.where(truth == right, 1.0, 0.0)
    strata = scores if stratified and min(scores.sum(), size - scores.sum()) >= n else np.zeros(size)
    labels, probabilities = np.full(size, np.nan), np.empty(size)
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        n_of_stratum = n // len(np.unique(strata))
        probabilities[members] = n_of_stratum / len(members)
        chosen = generator.choice(members, n_of_stratum, replace=False)
        labels[chosen] = truth[chosen]
    return SimulatedNight(scores, labels, probabilities, None if users is None else users.tolist())

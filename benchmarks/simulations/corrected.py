"""Corrected means: how often their intervals hold the truth, raw ones do not, and what labels alone would cost."""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations import Claim
from yarus.metrics.statistics import mean_interval
from yarus.metrics.statistics.corrected import corrected_mean

Floats = NDArray[np.float64]
RATES = (0.1, 0.5, 0.8, 0.95)
JUDGES = ((0.6, 0.6), (0.8, 0.7), (0.95, 0.9))
"""Sensitivity and specificity."""
SIZES = (400, 4_000)
LABELS = (30, 60, 120, 240)
FEW_USERS = 0.9
"""What 400 questions of 16 users are held to, where nearly all of them, or of the labels, are good or bad."""
RARE = 0.995
"""The same of 30 labels of which one or two are expected to be bad: what no label shows yet must be left room for."""
CORRELATION = 0.2
"""Of the answers to one user's questions, of which each has 1 to 50."""


class Drawn(NamedTuple):
    """A night with its truth, and what people have labelled of it."""

    scores: Floats
    labels: Floats
    probabilities: Floats
    groups: list[int] | None


def claims(effort: float) -> Iterator[Claim]:
    """By number of labels, with and without users, drawn alike and by the judge's score: over all rates, judges and
    sizes together, and in the situations where the intervals hold the truth most rarely and most often."""
    times = max(20, round(effort * 1_000))
    raw: list[float] = []
    for grouped, stratified, n in product((False, True), (False, True), LABELS):
        covered, wider = [], []
        for rate, judge, size in product(RATES, JUDGES, SIZES):
            held, ratio, uncorrected = _cell(rate, judge, n, size, times, grouped=grouped, stratified=stratified)
            covered.append(held)
            wider.append(ratio)
            raw += [uncorrected] if rate == 0.8 and judge == (0.8, 0.7) else []
        what = f"{n} labels{', users' if grouped else ''}{', drawn by score' if stratified else ''}"
        low, high = (0.92, 0.98) if n == 30 else (0.93, 0.97)
        yield Claim(f"{what}: holds the truth", low, high, float(np.mean(covered)), times * len(covered))
        yield Claim(f"{what}: where most rarely", FEW_USERS if grouped else low, 1, min(covered), times)
        yield Claim(f"{what}: where most often", 0, RARE, max(covered), times)
        yield Claim(f"{what}: width by labels alone", 0, 1.05, max(wider), times, is_share=False)
    what = "the judge's own interval: sensitivity 0.8, specificity 0.7, rate 0.8"
    yield Claim(what, 0, 0.1, float(np.mean(raw)), times)
    what = "a fall by 0.1, judge 0.9 / 0.7, as labels of the night before show it"
    yield Claim(what, 0, 0.05, _shown(times), times, is_share=False)


def _shown(times: int) -> float:
    """How far the corrected mean falls where answers get worse by 0.1, by labels of the answers before."""
    falls, judge = [], (0.9, 0.7)
    for number in range(times):
        chance = np.random.default_rng(number)
        drawn = _drawn(chance, 0.8, judge, 400, 4_000, grouped=False, stratified=False)
        labelled = ~np.isnan(drawn.labels)
        before = corrected_mean(drawn.scores, drawn.labels, drawn.probabilities).value
        worse = _drawn(chance, 0.7, judge, 1, 4_000, grouped=False, stratified=False).scores
        after = corrected_mean(
            np.append(worse, drawn.scores[labelled]),
            np.append(np.full(len(worse), np.nan), drawn.labels[labelled]),
            np.append(np.full(len(worse), np.nan), drawn.probabilities[labelled]),
            counted=np.arange(len(worse) + labelled.sum()) < len(worse),
        ).value
        falls.append(before - after)
    return float(np.mean(falls))


def _cell(
    rate: float, judge: tuple[float, float], n: int, size: int, times: int, *, grouped: bool, stratified: bool
) -> tuple[float, float, float]:
    """Share of the intervals that hold the rate, their width by that of labels alone, share of the raw ones that do."""
    held, raw, widths, alone = 0, 0, 0.0, 0.0
    for number in range(times):
        drawn = _drawn(np.random.default_rng(number), rate, judge, n, size, grouped=grouped, stratified=stratified)
        found = corrected_mean(drawn.scores, drawn.labels, drawn.probabilities, groups=drawn.groups)
        without = corrected_mean(np.full(size, 0.5), drawn.labels, drawn.probabilities, groups=drawn.groups)
        held += found.low <= rate <= found.high
        widths, alone = widths + found.high - found.low, alone + without.high - without.low
        if rate == 0.8 and number < 50:
            interval = mean_interval(drawn.scores, seed=0, low=0, high=1, groups=drawn.groups)
            raw += interval.low <= rate <= interval.high
    return held / times, widths / alone, raw / min(times, 50)


def _drawn(
    chance: np.random.Generator,
    rate: float,
    judge: tuple[float, float],
    n: int,
    size: int,
    *,
    grouped: bool,
    stratified: bool,
) -> Drawn:
    users, rates = None, np.full(size, rate)
    if grouped:
        users = np.repeat(np.arange(size), chance.integers(1, 51, size))[:size]
        a, b = (share * (1 - CORRELATION) / CORRELATION for share in (rate, 1 - rate))
        rates = chance.beta(a, b, size)[users]
    truth = chance.random(size) < rates
    right = chance.random(size) < np.where(truth, *judge)
    scores = np.where(truth == right, 1.0, 0.0)
    strata = scores if stratified and min(scores.sum(), size - scores.sum()) >= n else np.zeros(size)
    labels, probabilities = np.full(size, np.nan), np.empty(size)
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        several = n // len(np.unique(strata))
        probabilities[members] = several / len(members)
        chosen = chance.choice(members, several, replace=False)
        labels[chosen] = truth[chosen]
    return Drawn(scores, labels, probabilities, None if users is None else users.tolist())

"""A system that raises on some questions, since a release or always: verdicts of gate, comparison and nights."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.simulations import Claim, share_claim
from benchmarks.simulations.pairs import Floats, gate_fails
from yarus.deployments.alarms.budget import LEAST_SHARE
from yarus.metrics.statistics.change_detection.failures import FailureDetector
from yarus.metrics.statistics.change_detection.level import LevelDetector
from yarus.metrics.statistics.change_detection.noise import NightlyValue, variance_around_zero
from yarus.metrics.statistics.change_detection.watch import ChangeMonitor
from yarus.metrics.statistics.differences.changes import estimate_change
from yarus.metrics.statistics.differences.compared_statistics import SampleStatistic
from yarus.metrics.statistics.intervals import normal_quantile
from yarus.metrics.statistics.means import mean_interval
from yarus.metrics.statistics.paired_chart import COMPARISON_LAG
from yarus.tasks.cases.table import make_cases
from yarus.tasks.comparison.changes import build_statements
from yarus.tasks.comparison.common_cases import CommonCases
from yarus.tasks.comparison.compare import compare_pairs, directed_headlines

N = 300
TIERS, YEAR = 8, 365
LOOKS = float(TIERS * YEAR)
"""Looks of a year, in which one false alarm may occur."""
CALM = 7
"""Nights before a release."""
RATE, SCORE = "sut_error_rate", "avg_e2e_score"
NEW = ((0.0, 0.01), (0.0, 0.02), (0.0, 0.03), (0.0, 0.04), (0.0, 0.06), (0.01, 0.04))
"""Shares of the questions on which a system raised before its release, and of those on which it newly raises."""
FOUND = 0.04
"""The least of these shares that must always be detected."""
ALIKE = (0.01, 0.02, 0.04, 0.06)
Raised = NDArray[np.bool_]


class Evaluation(NamedTuple):
    """Judged answers, and whether the system raised on each question."""

    raised: Raised
    scores: Floats
    """NaN if it raised."""


class Bot:
    """A system whose answers a judge scores in quarters, with occasional changes.

    Args:
        chance: generator of everything random.
        errors: share of the questions on which it raises in every evaluation, each time different ones.
        always: share of the questions on which it raises every time.
    """

    def __init__(self, chance: np.random.Generator, *, errors: float = 0.0, always: float = 0.0) -> None:
        self._generator, self._errors, self._always = chance, errors, always
        self._quality = chance.beta(4, 1.5, N)
        self._order = chance.permutation(N)

    def evaluate(self, newly: float = 0.0) -> Evaluation:
        """Return an evaluation of a release that raises on so many more questions."""
        raised = self._generator.random(N) < self._errors
        raised[self._order[: round((self._always + newly) * N)]] = True
        scores = np.round(4 * np.clip(self._quality + self._generator.normal(0, 0.05, N), 0, 1)) / 4
        return Evaluation(raised, np.where(raised, np.nan, scores))


def claims(effort: float) -> Iterator[Claim]:
    """Yield the detection of releases that newly raise, then false alarms about those that raise as before."""
    for before, newly in NEW:
        yield from claim_new(before, newly, max(5, round(effort * 200)))
    rates: list[float] = []
    for errors in ALIKE:
        yield from claim_alike(errors, max(8, round(effort * 200)))
        years = max(1, round(effort * 60))
        bots = (Bot(np.random.default_rng([42, year]), errors=errors) for year in range(years))
        rates.append(sum(map(count_alarms, bots)) / years)
        what = f"raises on {errors:.0%} of {N} questions every night: false alarms a year of a tier"
        yield Claim(what, 0, 1 / TIERS, rates[-1], years)
    yield Claim("all of these: false alarms a year of a tier", 0, 1 / TIERS, float(np.mean(rates)), years * len(ALIKE))


def claim_new(before: float, newly: float, times: int) -> Iterator[Claim]:
    """Yield how often a release is detected that raises on questions that were answered before."""
    bots = [Bot(np.random.default_rng([40, number]), always=before) for number in range(times)]
    pairs = [(bot.evaluate(), bot.evaluate(newly)) for bot in bots]
    low = float(newly >= FOUND)
    what = f"raises on {newly:.0%} of {N} questions since a release{f', on {before:.0%} always' if before else ''}: "
    yield share_claim(f"{what}gate fails", low, 1, map(fails, pairs))
    yield share_claim(f"{what}comparison begins with it", low, 1, map(is_named_first, pairs))
    for calm in (1, CALM):
        has_rung = [rings(bot, calm, newly) for bot in bots]
        least = low if calm == CALM or not before else 0.0
        yield share_claim(f"{what}first night rings after {calm} calm", least, 1, has_rung)


def claim_alike(errors: float, times: int) -> Iterator[Claim]:
    """Yield how often a release is judged worse that raises on as many questions as before, but on different ones."""
    bots = [Bot(np.random.default_rng([41, number]), errors=errors) for number in range(times)]
    pairs = [(bot.evaluate(), bot.evaluate()) for bot in bots]
    what = f"raises on {errors:.0%} of {N} questions, before and after alike: "
    yield share_claim(f"{what}gate fails", 0, 0.05, map(fails, pairs))
    yield share_claim(f"{what}comparison begins with it", 0, 0.05, map(is_named_first, pairs))


def fails(pair: Sequence[Evaluation]) -> bool:
    """Return whether the gate fails."""
    return gate_fails([cases_of(evaluation) for evaluation in pair], "tier3")


def is_named_first(pair: Sequence[Evaluation]) -> bool:
    """Return whether the first sentence of the comparison calls the rate of errors worse."""
    headlines = directed_headlines("tier3")
    changes = compare_pairs(CommonCases(*map(cases_of, pair)), {row.name: row for row in headlines}, headlines, ())
    sides = {name: {"evaluation_id": name, "state": "completed", "tier": "tier3"} for name in ("a", "b")}
    document: Any = {
        **changes,
        **sides,
        "n_common": N,
        "comparable": True,
        "key_differences": [],
        "changed_settings": [],
    }
    first = build_statements([document])[0]
    return first["kind"] == "regressed" and RATE in first["text"]["en"]


def cases_of(evaluation: Evaluation) -> pa.Table:
    """Return the cases as an evaluation stores them."""
    ids, raised = [f"q{number}" for number in range(N)], evaluation.raised
    return make_cases(
        case_id=ids,
        question=ids,
        status=np.where(raised, "sut_error", "ok").tolist(),
        outcome=np.where(raised, "failed", "answered").tolist(),
        reason=[None] * N,
        group=[None] * N,
        e2e_score=evaluation.scores,
        semantic_similarity=evaluation.scores,
    )


def rings(bot: Bot, calm: int, newly: float) -> bool:
    """Return whether the first night of a release raises an alarm, after so many nights without errors."""
    return watch_nights([*(bot.evaluate() for _ in range(calm)), bot.evaluate(newly)])[-1]


def count_alarms(bot: Bot) -> int:
    """Return the false alarms of a year."""
    return sum(watch_nights([bot.evaluate() for _ in range(YEAR)]))


def watch_nights(evaluations: Sequence[Evaluation]) -> list[bool]:
    """Return which nights raise an alarm."""
    watch = ChangeMonitor({SCORE: LevelDetector(LEAST_SHARE), RATE: FailureDetector(LEAST_SHARE)})
    scores = [evaluation.scores for evaluation in evaluations]
    rates = [evaluation.raised.astype(float) for evaluation in evaluations]
    nights = [{SCORE: make_night(scores, night), RATE: make_night(rates, night)} for night in range(len(evaluations))]
    return [watch.look(night, LOOKS) == "rings" for night in nights]


def make_night(values: Sequence[Floats], number: int) -> NightlyValue:
    """Return a metric of a night as read from evaluations, with the changes since two earlier nights."""
    tonight, lag = values[number], min(COMPARISON_LAG, number)
    n = int((~np.isnan(tonight)).sum())
    low, high = mean_interval(tonight, seed=0, low=0, high=1)
    deviation = max((high - low) / 2 / normal_quantile(0.95), 1 / n)
    night = NightlyValue(float(np.nanmean(tonight)), deviation**2, n)
    if not number:
        return night
    near, far = (estimate_change(SampleStatistic(values[number - ago], tonight), np.arange(N)) for ago in (1, lag))
    assert near is not None and far is not None
    variance, far_variance = (variance_around_zero(change.variance, near.difference, near.n) for change in (near, far))
    return night._replace(
        change=near.difference,
        n=near.n,
        variance=variance,
        far_variance=far_variance,
        lag=lag,
        step=near.step or 1 / near.n,
    )

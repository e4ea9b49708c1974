"""Logs of users with very different numbers of questions: the detectable difference, and the cases to decide."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations import Claim, share_claim
from benchmarks.simulations.pairs import DRAWS, Floats
from yarus.metrics.statistics import mean_interval
from yarus.metrics.statistics.differences.compared_statistics import SampleStatistic, StatisticComparison
from yarus.metrics.statistics.differences.comparison import adjust_for_multiple_tests
from yarus.metrics.statistics.differences.paired import compare_statistics
from yarus.metrics.statistics.groups import effective_groups
from yarus.metrics.statistics.power_in_groups import LEAST_GROUPS
from yarus.tasks.comparison.gate_rules import GateRule
from yarus.tasks.comparison.gate_verdicts import RuleResult, judge_bound, judge_regressions

ALIKE = 0.2
"""Intraclass correlation: how much more alike the questions of one user are than those of two."""
AGAIN = 0.1
"""Share of the questions whose answer changes, without a loss."""
FEW = 0.1
"""Least share of the users on whom an unshared loss falls; more if they have less to lose."""
HEADLINES = ("mrr", "ndcg@10", "hit_rate@1")
FLOOR = 0.8
RARELY = 10
"""Most logs per repetition, if few of them have a detectable difference."""
Users = NDArray[np.intp]


class Log(NamedTuple):
    """Questions of users, each of whom asked 1 to `most`, log-uniform."""

    n: int
    most: int

    @property
    def name(self) -> str:
        """Return the description of the log in claims."""
        return f"{self.n:,} questions, 1 to {self.most} a user" if self.most > 1 else f"{self.n:,} questions, 1 a user"

    def draw(self, generator: np.random.Generator) -> Users:
        """Return the number of the user who asked each question."""
        n_questions = np.exp(generator.uniform(0, np.log(self.most + 1), self.n)).astype(np.intp)
        return np.repeat(np.arange(self.n), n_questions)[: self.n]


LOGS = tuple(Log(n, most) for most, n in product((1, 10, 50), (60, 200, 1_000)))


def claims(effort: float) -> Iterator[Claim]:
    """Yield the power at detectable differences, alone and in a gate, then at the reported numbers of cases."""
    times = max(6, round(effort * 240))
    for number, log in enumerate(LOGS):
        yield from claim_detectable(log, [40, number], times)
    for number, (kind, most) in enumerate(product(ANSWERS, (1, 10, 50))):
        log = Log(200, most)
        failed = find_failed(log, kind, [41, number], max(4, round(effort * 120)))
        yield share_claim(f"{kind}, {log.name}: told in a gate of three, found", 0.75, 0.85, failed)
    for number, (n, most) in enumerate(product((100, 200, 400), (1, 10, 50))):
        log = Log(n, most)
        decided = find_decided(log, [42, number], max(20, round(effort * 500)))
        yield share_claim(f"floor open at {log.name}: decided after as many more as told", 0.75, 0.85, decided)


def claim_detectable(log: Log, seed: list[int], times: int) -> Iterator[Claim]:
    """Yield how often detectable differences are found in a log, and that none is reported for few users."""
    reported_for_few: list[bool] = []
    for number, kind in enumerate(ANSWERS):
        is_detected: list[bool] = []
        is_detected_on_few: list[bool] = []
        for run in range(RARELY * times):
            if len(is_detected) == times:
                break
            generator = np.random.default_rng([*seed, number, run])
            users = log.draw(generator)
            detectable = compare_users(lose(generator, users, kind, 0.0), users, run).comparison.smallest_detectable
            if effective_groups(users) < LEAST_GROUPS:
                reported_for_few.append(not np.isnan(detectable))
            if not np.isnan(detectable):
                is_detected.append(is_found(lose(generator, users, kind, detectable), users, run))
                with_loss_on_few = lose(generator, users, kind, detectable, shared=False)
                is_detected_on_few.append(is_found(with_loss_on_few, users, run))
        if is_detected:
            yield share_claim(f"{kind}, {log.name}: told alone, found", 0.75, 0.85, is_detected)
        if log == LOGS[-1]:
            what = f"{kind}, {log.name}: told, found where few users lose (not promised)"
            yield share_claim(what, 0, 1, is_detected_on_few)
    if reported_for_few:
        yield share_claim(f"{log.name}, worth fewer than {LEAST_GROUPS} equal users: told", 0, 0, reported_for_few)


def find_failed(log: Log, kind: str, seed: list[int], times: int) -> list[bool]:
    """Return whether gates of three metrics fail, the first of which has lost the detectable difference."""
    failed = []
    for repetition in range(times):
        generator = np.random.default_rng([*seed, repetition])
        users = log.draw(generator)
        comparisons = [compare_users(lose(generator, users, kind, 0.0), users, repetition) for _ in HEADLINES]
        detectable = judge_three(comparisons)["min_detectable_effect"]
        if detectable is not None:
            with_loss = compare_users(lose(generator, users, kind, detectable), users, repetition)
            failed.append(judge_three([with_loss, *comparisons[1:]])["verdict"] == "fail")
    return failed


def find_decided(log: Log, seed: list[int], times: int) -> list[bool]:
    """Return whether open floors of a log are decided by as many more questions as reported."""
    decided: list[bool] = []
    repetition = 0
    while len(decided) < times:
        outcome = is_decided(np.random.default_rng([*seed, repetition]), log)
        decided += [] if outcome is None else [outcome]
        repetition += 1
    return decided


class Answers(NamedTuple):
    """Scores of two evaluations, and those of the second if an answer is lost."""

    before: Floats
    after: Floats
    lost: Floats


def answer_hits(generator: np.random.Generator, users: Users) -> Answers:
    """Return yes or no: whether the first result is relevant."""
    level = draw_levels(generator, users, 0.8)
    before, new_hits = (generator.random(len(users)) < level for _ in range(2))
    after = np.where(generator.random(len(users)) < AGAIN, new_hits, before)
    return Answers(before.astype(float), after.astype(float), np.zeros(len(users)))


def answer_ranks(generator: np.random.Generator, users: Users) -> Answers:
    """Return reciprocal ranks of ten results; a loss moves a result some ranks down, or out of them."""
    level = draw_levels(generator, users, 0.6)
    before, new_ranks = (generator.geometric(np.maximum(level, 0.01)) for _ in range(2))
    after = np.where(generator.random(len(users)) < AGAIN, new_ranks, before)
    lower = after + generator.geometric(0.4, len(users))
    return Answers(*(np.where(ranks <= 10, 1 / ranks, 0.0) for ranks in (before, after, lower)))


def answer_judged(generator: np.random.Generator, users: Users) -> Answers:
    """Return scores in tenths by a judge that changes most of its scores; a loss is one or two tenths."""
    quality = generator.normal(draw_levels(generator, users, 0.7), 0.1)
    before, after = (judge_worth(generator, quality) for _ in range(2))
    lost = np.maximum(0, after - generator.choice((0.1, 0.2), len(users)))
    return Answers(before, after, lost)


def judge_worth(generator: np.random.Generator, quality: Floats) -> Floats:
    """Return a judge's scores, in tenths."""
    noise = generator.normal(0, 0.08, len(quality))
    return np.asarray(np.round(10 * np.clip(quality + noise, 0, 1)) / 10, dtype=np.float64)


ANSWERS: dict[str, Callable[[np.random.Generator, Users], Answers]] = {
    "hit rate": answer_hits,
    "reciprocal ranks": answer_ranks,
    "judged scores": answer_judged,
}


def draw_levels(generator: np.random.Generator, users: Users, mean: float) -> Floats:
    """Return the quality of the system for the user of each question."""
    strength = (1 - ALIKE) / ALIKE
    levels: Floats = generator.beta(mean * strength, (1 - mean) * strength, int(users.max()) + 1)[users]
    return levels


def lose(
    generator: np.random.Generator, users: Users, kind: str, loss: float, *, shared: bool = True
) -> SampleStatistic:
    """Return two evaluations, the second with this mean loss: shared by all users, or by few."""
    before, after, lost = ANSWERS[kind](generator, users)
    falls = after - lost
    share = np.full(len(users), loss * len(users) / falls.sum())
    if not shared:
        order = generator.permutation(int(users.max()) + 1)
        reach = np.cumsum(np.bincount(users, weights=falls)[order])
        n_losing = max(int(np.ceil(FEW * len(order))), int(np.searchsorted(reach, loss * len(users))) + 1)
        losing = order[:n_losing]
        share = np.isin(users, losing) * loss * len(users) / reach[min(n_losing, len(order)) - 1]
    return SampleStatistic(a=before, b=np.where(generator.random(len(users)) < share, lost, after))


def compare_users(number: SampleStatistic, users: Users, seed: int) -> StatisticComparison:
    """Return the comparison of two evaluations of a log."""
    return compare_statistics({"": number}, seed=seed, groups=users.tolist(), count=DRAWS)[""]


def is_found(number: SampleStatistic, users: Users, seed: int) -> bool:
    """Return whether the comparison finds a loss."""
    return compare_users(number, users, seed).comparison.verdict == "regressed"


def judge_three(comparisons: list[StatisticComparison]) -> RuleResult:
    """Return the gate's result for the first of three headline metrics."""
    by_metric = dict(zip(HEADLINES, comparisons, strict=True))
    headlines = adjust_for_multiple_tests({name: comparison.comparison for name, comparison in by_metric.items()})
    rules = {GateRule(name, "no regression"): comparison for name, comparison in by_metric.items()}
    return next(iter(judge_regressions(rules, headlines).values()))


def judge_floor(hits: Floats, users: Users) -> RuleResult:
    """Return the gate's result for a hit rate with a floor."""
    low, high = mean_interval(hits, seed=0, low=0, high=1, groups=users.tolist())
    bounds = {"value": float(hits.mean()), "ci_low": low, "ci_high": high, "n": len(hits), "reason": None}
    return judge_bound(GateRule("hit_rate@1", "floor", FLOOR), {**bounds, "effective_units": effective_groups(users)})


def is_decided(generator: np.random.Generator, log: Log) -> bool | None:
    """Judge an open floor again, with as many more questions of new users as reported.

    Returns:
        Whether it is decided then; None if it was not open, or no number was reported.
    """
    truth = generator.uniform(0.6, 0.95)  # unknown to the gate

    def draw_hits(log: Log) -> tuple[Floats, Users]:
        users = log.draw(generator)
        return (generator.random(log.n) < draw_levels(generator, users, truth)).astype(float), users

    hits, users = draw_hits(log)
    needs = judge_floor(hits, users)["n_cases_needed"]
    if needs is None:
        return None
    more_hits, more_users = draw_hits(log._replace(n=needs))
    second_result = judge_floor(np.concatenate([hits, more_hits]), np.concatenate([users, more_users + len(users)]))
    return second_result["verdict"] != "inconclusive"

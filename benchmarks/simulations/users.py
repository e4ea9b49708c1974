"""Logs of users who ask very differently much: whether a told difference is found, and whether told cases decide."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations import Claim, counted
from benchmarks.simulations.pairs import DRAWS, Floats
from yarus.metrics.statistics import mean_interval
from yarus.metrics.statistics.differences.comparison import adjusted
from yarus.metrics.statistics.differences.numbers import Compared, Number
from yarus.metrics.statistics.differences.paired import compare_numbers
from yarus.metrics.statistics.groups import effective_groups
from yarus.metrics.statistics.power_in_groups import LEAST_GROUPS
from yarus.tasks.comparison.gate_rules import Rule
from yarus.tasks.comparison.gate_verdicts import RuleResult, bounded, regressions

ALIKE = 0.2
"""Intraclass correlation: how much more alike the questions of one user are than those of two."""
AGAIN = 0.1
"""Share of the questions that are answered anew, without a loss."""
FEW = 0.1
"""Share of the users on whom a loss falls that is not shared, or more where these have less to lose."""
HEADLINES = ("mrr", "ndcg@10", "hit_rate@1")
FLOOR = 0.8
RARELY = 10
"""Times as many logs are drawn, at most, where few of them allow a promise."""
Users = NDArray[np.intp]


class Log(NamedTuple):
    """Questions of users, each of whom asked 1 to `most`, log-uniform."""

    n: int
    most: int

    @property
    def name(self) -> str:
        """The log, as claims call it."""
        return f"{self.n:,} questions, 1 to {self.most} a user" if self.most > 1 else f"{self.n:,} questions, 1 a user"

    def draw(self, chance: np.random.Generator) -> Users:
        """Return the number of the user who asked each question."""
        asked = np.exp(chance.uniform(0, np.log(self.most + 1), self.n)).astype(np.intp)
        return np.repeat(np.arange(self.n), asked)[: self.n]


LOGS = tuple(Log(n, most) for most, n in product((1, 10, 50), (60, 200, 1_000)))


def claims(effort: float) -> Iterator[Claim]:
    """Yield told differences alone and in a gate, then told cases."""
    times = max(6, round(effort * 240))
    for number, log in enumerate(LOGS):
        yield from claim_detectable(log, [40, number], times)
    for number, (kind, most) in enumerate(product(ANSWERS, (1, 10, 50))):
        log = Log(200, most)
        failed = find_failed(log, kind, [41, number], max(4, round(effort * 120)))
        yield counted(f"{kind}, {log.name}: told in a gate of three, found", 0.75, 0.85, failed)
    for number, (n, most) in enumerate(product((100, 200, 400), (1, 10, 50))):
        log = Log(n, most)
        decided = find_decided(log, [42, number], max(20, round(effort * 500)))
        yield counted(f"floor open at {log.name}: decided after as many more as told", 0.75, 0.85, decided)


def claim_detectable(log: Log, seed: list[int], times: int) -> Iterator[Claim]:
    """Yield how often told differences are found in a log, and that none is told of few users."""
    told_of_few: list[bool] = []
    for number, kind in enumerate(ANSWERS):
        found: list[bool] = []
        found_on_few: list[bool] = []
        for repetition in range(RARELY * times):
            if len(found) == times:
                break
            chance = np.random.default_rng([*seed, number, repetition])
            users = log.draw(chance)
            told = compare_users(lose(chance, users, kind, 0.0), users, repetition).comparison.smallest_detectable
            if effective_groups(users) < LEAST_GROUPS:
                told_of_few.append(not np.isnan(told))
            if not np.isnan(told):
                found.append(is_found(lose(chance, users, kind, told), users, repetition))
                lost_on_few = lose(chance, users, kind, told, shared=False)
                found_on_few.append(is_found(lost_on_few, users, repetition))
        if found:
            yield counted(f"{kind}, {log.name}: told alone, found", 0.75, 0.85, found)
        if log == LOGS[-1]:
            what = f"{kind}, {log.name}: told, found where few users lose (not promised)"
            yield counted(what, 0, 1, found_on_few)
    if told_of_few:
        yield counted(f"{log.name}, worth fewer than {LEAST_GROUPS} equal users: told", 0, 0, told_of_few)


def find_failed(log: Log, kind: str, seed: list[int], times: int) -> list[bool]:
    """Return whether gates of three metrics fail, the first of which has lost what the gate told."""
    failed = []
    for repetition in range(times):
        chance = np.random.default_rng([*seed, repetition])
        users = log.draw(chance)
        three = [compare_users(lose(chance, users, kind, 0.0), users, repetition) for _ in HEADLINES]
        told = judge_three(three)["smallest_detectable"]
        if told is not None:
            lost = compare_users(lose(chance, users, kind, told), users, repetition)
            failed.append(judge_three([lost, *three[1:]])["verdict"] == "fail")
    return failed


def find_decided(log: Log, seed: list[int], times: int) -> list[bool]:
    """Return whether floors that a log leaves open are decided by as many more questions as told."""
    decided: list[bool] = []
    repetition = 0
    while len(decided) < times:
        tried = is_decided(np.random.default_rng([*seed, repetition]), log)
        decided += [] if tried is None else [tried]
        repetition += 1
    return decided


class Answers(NamedTuple):
    """Scores of two evaluations, and those of the second where an answer is lost."""

    before: Floats
    after: Floats
    lost: Floats


def answer_hits(chance: np.random.Generator, users: Users) -> Answers:
    """Yes or no: whether the first result is relevant."""
    level = draw_levels(chance, users, 0.8)
    before, again = (chance.random(len(users)) < level for _ in range(2))
    after = np.where(chance.random(len(users)) < AGAIN, again, before)
    return Answers(before.astype(float), after.astype(float), np.zeros(len(users)))


def answer_ranks(chance: np.random.Generator, users: Users) -> Answers:
    """Reciprocal ranks of ten results; what is lost falls some places down, or out of them."""
    level = draw_levels(chance, users, 0.6)
    before, again = (chance.geometric(np.maximum(level, 0.01)) for _ in range(2))
    after = np.where(chance.random(len(users)) < AGAIN, again, before)
    lower = after + chance.geometric(0.4, len(users))
    return Answers(*(np.where(ranks <= 10, 1 / ranks, 0.0) for ranks in (before, after, lower)))


def answer_judged(chance: np.random.Generator, users: Users) -> Answers:
    """Scores in tenths by a judge that gives most answers another one the second time; what is lost is one or two."""
    worth = chance.normal(draw_levels(chance, users, 0.7), 0.1)
    before, after = (judge_worth(chance, worth) for _ in range(2))
    lost = np.maximum(0, after - chance.choice((0.1, 0.2), len(users)))
    return Answers(before, after, lost)


def judge_worth(chance: np.random.Generator, worth: Floats) -> Floats:
    """Return a judge's scores, in tenths."""
    noise = chance.normal(0, 0.08, len(worth))
    return np.asarray(np.round(10 * np.clip(worth + noise, 0, 1)) / 10, dtype=np.float64)


ANSWERS: dict[str, Callable[[np.random.Generator, Users], Answers]] = {
    "hit rate": answer_hits,
    "reciprocal ranks": answer_ranks,
    "judged scores": answer_judged,
}


def draw_levels(chance: np.random.Generator, users: Users, mean: float) -> Floats:
    """Return how good the system is at what the user of each question asks."""
    strength = (1 - ALIKE) / ALIKE
    levels: Floats = chance.beta(mean * strength, (1 - mean) * strength, int(users.max()) + 1)[users]
    return levels


def lose(chance: np.random.Generator, users: Users, kind: str, loss: float, *, shared: bool = True) -> Number:
    """Return two evaluations, the second of which has lost so much in the mean: of all users alike, or of few."""
    before, after, lost = ANSWERS[kind](chance, users)
    falls = after - lost
    share = np.full(len(users), loss * len(users) / falls.sum())
    if not shared:
        order = chance.permutation(int(users.max()) + 1)
        reach = np.cumsum(np.bincount(users, weights=falls)[order])
        n_losing = max(int(np.ceil(FEW * len(order))), int(np.searchsorted(reach, loss * len(users))) + 1)
        losing = order[:n_losing]
        share = np.isin(users, losing) * loss * len(users) / reach[min(n_losing, len(order)) - 1]
    return Number(a=before, b=np.where(chance.random(len(users)) < share, lost, after))


def compare_users(number: Number, users: Users, seed: int) -> Compared:
    """Return what the comparison says of two evaluations of a log."""
    return compare_numbers({"": number}, seed=seed, groups=users.tolist(), count=DRAWS)[""]


def is_found(number: Number, users: Users, seed: int) -> bool:
    """Return whether the comparison finds a loss."""
    return compare_users(number, users, seed).comparison.verdict == "regressed"


def judge_three(three: list[Compared]) -> RuleResult:
    """Return what the gate says of the first of three headline metrics."""
    compared = dict(zip(HEADLINES, three, strict=True))
    headlines = adjusted({name: one.comparison for name, one in compared.items()})
    rules = {Rule(name, "no regression"): one for name, one in compared.items()}
    return next(iter(regressions(rules, headlines).values()))


def judge_floor(hits: Floats, users: Users) -> RuleResult:
    """Return what the gate says of a hit rate with a floor."""
    low, high = mean_interval(hits, seed=0, low=0, high=1, groups=users.tolist())
    found = {"value": float(hits.mean()), "ci_low": low, "ci_high": high, "n": len(hits), "reason": None}
    return bounded(Rule("hit_rate@1", "floor", FLOOR), {**found, "effective_units": effective_groups(users)})


def is_decided(chance: np.random.Generator, log: Log) -> bool | None:
    """Judge a floor that is open once more, with as many more questions of new users as were said to be needed.

    Returns:
        Whether it is decided then; None if it was not open, or nothing was told.
    """
    truth = chance.uniform(0.6, 0.95)  # nothing is known beforehand

    def draw(log: Log) -> tuple[Floats, Users]:
        users = log.draw(chance)
        return (chance.random(log.n) < draw_levels(chance, users, truth)).astype(float), users

    hits, users = draw(log)
    needs = judge_floor(hits, users)["needs"]
    if needs is None:
        return None
    more, others = draw(log._replace(n=needs))
    again = judge_floor(np.concatenate([hits, more]), np.concatenate([users, others + len(users)]))
    return again["verdict"] != "inconclusive"

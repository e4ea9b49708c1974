"""The gate: how often a margin fails a release that keeps to it, and how often a told difference is found."""

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Protocol

import numpy as np

from benchmarks.simulations import Claim
from benchmarks.simulations.pairs import Floats, Sides, compared, reciprocal, scores, yes_no
from metrics.statistics import wilson_interval
from metrics.statistics.differences.comparison import adjusted
from metrics.statistics.differences.numbers import Compared
from tasks.comparison.gates.documents import RuleResult
from tasks.comparison.gates.gate_rules import Rule
from tasks.comparison.gates.gate_verdicts import bounded, regressions

MARGIN = 0.03
HEADLINES = ("mrr", "ndcg@10", "hit_rate@1")


class Lost(Protocol):
    """Pairs that have lost so much, in the mean of their cases."""

    def __call__(self, generator: np.random.Generator, shape: tuple[int, int], *, loss: float | Floats) -> Sides: ...


def claims(effort: float) -> Iterator[Claim]:
    """Margins, then told differences."""
    generator = np.random.default_rng(16)
    for n, churn in product((100, 1_000, 10_000), (0.02, 0.06)):
        yield from _margin(generator, n, churn, max(40, round(effort * (1_500 if n < 10_000 else 500))))
    for name, n, lost in _kinds():
        yield from _told(generator, name, n, lost, max(40, round(effort * 500)))
    for n in (100, 400):
        yield _decided(generator, n, max(100, round(effort * 1_500)))


def _margin(generator: np.random.Generator, n: int, churn: float, times: int) -> Iterator[Claim]:
    rule = Rule("hit_rate@1", "no regression", MARGIN)

    def verdicts(loss: float | Floats, seed: int) -> list[tuple[str, float]]:
        found = compared(yes_no(generator, (times, n), churn=churn, loss=loss), seed)
        rules = [regressions({rule: one}, {})[rule] for one in found]
        return [(one["verdict"], one["smallest_detectable"] or 1.0) for one in rules]

    named = f"margin of {MARGIN:g}, {n:,} cases, {churn:.0%} churn: "
    at_margin = [verdict == "fail" for verdict, _ in verdicts(MARGIN, 1)]
    yield Claim(f"{named}fails at a loss of the margin", 0, 0.05, float(np.mean(at_margin)), times)
    told = np.minimum([told for _, told in verdicts(0.0, 2)], 0.7)
    beyond = [verdict == "fail" for verdict, _ in verdicts(MARGIN + told, 3)]
    yield Claim(f"{named}fails beyond it by the told difference", 0.75, 1, float(np.mean(beyond)), times)


def _kinds() -> Iterator[tuple[str, int, Lost]]:
    for n, churn in product((200, 1_000), (0.02, 0.06)):
        yield f"yes/no, {n:,} cases, {churn:.0%} churn", n, partial(yes_no, churn=churn)
        yield f"reciprocal ranks, {n:,} cases, {churn:.0%} churn", n, partial(reciprocal, churn=churn)
    yield "judged scores, 200 cases", 200, scores


def _told(generator: np.random.Generator, name: str, n: int, lost: Lost, times: int) -> Iterator[Claim]:
    """The told difference of a pair without a loss, in another pair that has lost so much."""
    nothing = list(compared(lost(generator, (times, n), loss=0.0), 1))
    others = [compared(lost(generator, (times, n), loss=0.0), 2 + number) for number in range(2)]
    second, third = (list(other) for other in others)
    told_alone = np.array([one.comparison.smallest_detectable for one in nothing])
    found = [one.comparison.verdict == "regressed" for one in compared(lost(generator, (times, n), loss=told_alone), 5)]
    yield Claim(f"{name}: told alone, found", 0.75, 0.85, float(np.mean(found)), times)
    families = [dict(zip(HEADLINES, three, strict=True)) for three in zip(nothing, second, third, strict=True)]
    told = np.array([_gate(family)["mrr"]["smallest_detectable"] for family in families])
    lower = compared(lost(generator, (times, n), loss=told), 7)
    families = [dict(zip(HEADLINES, three, strict=True)) for three in zip(lower, second, third, strict=True)]
    failed = [_gate(family)["mrr"]["verdict"] == "fail" for family in families]
    yield Claim(f"{name}: told in a gate of three, found", 0.75, 0.85, float(np.mean(failed)), times)


def _gate(family: dict[str, Compared]) -> dict[str, RuleResult]:
    headlines = adjusted({name: one.comparison for name, one in family.items()})
    rules = {Rule(name, "no regression"): one for name, one in family.items()}
    return {rule.metric: found for rule, found in regressions(rules, headlines).items()}


def _decided(generator: np.random.Generator, n: int, times: int) -> Claim:
    """A floor that n cases leave open, judged once more with as many more cases as were said to be needed."""
    decided: list[bool] = []
    while len(decided) < times:
        truth = generator.uniform(0.6, 0.95)  # nothing is known beforehand
        hits = int(generator.binomial(n, truth))
        needs = _floor(hits, n)["needs"]
        if needs is not None:
            again = _floor(hits + int(generator.binomial(needs, truth)), n + needs)
            decided.append(again["verdict"] != "inconclusive")
    return Claim(
        f"floor open at {n} cases: decided after as many more as told", 0.75, 0.85, float(np.mean(decided)), times
    )


def _floor(hits: int, n: int) -> RuleResult:
    low, high = wilson_interval(hits, n)
    return bounded(
        Rule("hit_rate@1", "floor", 0.8), {"value": hits / n, "ci_low": low, "ci_high": high, "n": n, "reason": None}
    )

"""The gate: how often a margin fails a release within it, and one with a larger loss."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from benchmarks.simulations import Claim, share_claim
from benchmarks.simulations.pairs import Floats, compare_rows, draw_hits
from yarus.tasks.comparison.gate_rules import GateRule
from yarus.tasks.comparison.gate_verdicts import judge_regressions

MARGIN = 0.03


def claims(effort: float) -> Iterator[Claim]:
    """Yield how often a margin fails a loss of its size, and one beyond it."""
    generator = np.random.default_rng(16)
    for n, churn in product((100, 1_000, 10_000), (0.02, 0.06)):
        yield from _claims_of_margin(generator, n, churn, max(40, round(effort * (1_500 if n < 10_000 else 500))))


def _claims_of_margin(generator: np.random.Generator, n: int, churn: float, times: int) -> Iterator[Claim]:
    rule = GateRule("hit_rate@1", "no regression", MARGIN)

    def judge(loss: float | Floats, seed: int) -> list[tuple[str, float]]:
        comparisons = compare_rows(draw_hits(generator, (times, n), churn=churn, loss=loss), seed)
        rules = [judge_regressions({rule: comparison}, {})[rule] for comparison in comparisons]
        return [(comparison["verdict"], comparison["min_detectable_effect"] or 1.0) for comparison in rules]

    description = f"margin of {MARGIN:g}, {n:,} cases, {churn:.0%} churn: "
    at_margin = [verdict == "fail" for verdict, _ in judge(MARGIN, 1)]
    yield share_claim(f"{description}fails at a loss of the margin", 0, 0.05, at_margin)
    detectable = np.minimum([detectable for _, detectable in judge(0.0, 2)], 0.7)
    beyond = [verdict == "fail" for verdict, _ in judge(MARGIN + detectable, 3)]
    yield share_claim(f"{description}fails beyond it by the told difference", 0.75, 1, beyond)

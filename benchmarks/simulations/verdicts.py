"""The gate: how often a margin fails a release that keeps to it, and one that loses more."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from benchmarks.simulations import Claim, counted
from benchmarks.simulations.pairs import Floats, compared, yes_no
from yarus.tasks.comparison.gate_rules import Rule
from yarus.tasks.comparison.gate_verdicts import regressions

MARGIN = 0.03


def claims(effort: float) -> Iterator[Claim]:
    """Yield how often a margin fails a loss of its size, and one beyond it."""
    generator = np.random.default_rng(16)
    for n, churn in product((100, 1_000, 10_000), (0.02, 0.06)):
        yield from _margin(generator, n, churn, max(40, round(effort * (1_500 if n < 10_000 else 500))))


def _margin(generator: np.random.Generator, n: int, churn: float, times: int) -> Iterator[Claim]:
    rule = Rule("hit_rate@1", "no regression", MARGIN)

    def verdicts(loss: float | Floats, seed: int) -> list[tuple[str, float]]:
        found = compared(yes_no(generator, (times, n), churn=churn, loss=loss), seed)
        rules = [regressions({rule: one}, {})[rule] for one in found]
        return [(one["verdict"], one["smallest_detectable"] or 1.0) for one in rules]

    named = f"margin of {MARGIN:g}, {n:,} cases, {churn:.0%} churn: "
    at_margin = [verdict == "fail" for verdict, _ in verdicts(MARGIN, 1)]
    yield counted(f"{named}fails at a loss of the margin", 0, 0.05, at_margin)
    told = np.minimum([told for _, told in verdicts(0.0, 2)], 0.7)
    beyond = [verdict == "fail" for verdict, _ in verdicts(MARGIN + told, 3)]
    yield counted(f"{named}fails beyond it by the told difference", 0.75, 1, beyond)

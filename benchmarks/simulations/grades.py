"""Grades: how often what lies on a bound is called better than it, by the real intervals and the real grades."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from benchmarks.simulations import Claim, counted
from yarus.metrics.metric import LADDERS
from yarus.metrics.table import METRICS, Grades, grades
from yarus.tasks.cases.table import table
from yarus.tasks.evaluation.aggregate import summarise

SIZES = (5, 10, 20, 50, 200, 2_000)
CONCENTRATION = 5
"""Of the Beta distribution of scores: their deviation about a mean of 0.8 is 0.16."""


def claims(effort: float) -> Iterator[Claim]:
    """A share, and a mean of scores, that lie on the bound of the best grade."""
    times = max(60, round(effort * 1_500))
    for name, n in product(("hit_rate@1", "avg_faithfulness"), SIZES):
        bounds = METRICS[name].thresholds or ()
        best = LADDERS[len(bounds)][-1]
        generator = np.random.default_rng(n)
        repetitions = times if n < 2_000 or name == "hit_rate@1" else max(60, times // 5)
        graded = [_graded(generator, name, bounds[-1], n, number) for number in range(repetitions)]
        called = [found is not None and found.low == best for found in graded]
        yield counted(f"{name} of truly {bounds[-1]:g}, {n:,} cases: {best} alone", 0, 0.03, called)


def _graded(generator: np.random.Generator, name: str, truth: float, n: int, seed: int) -> Grades | None:
    if name == "hit_rate@1":
        values = (generator.random(n) < truth).astype(float)
    else:
        values = generator.beta(CONCENTRATION * truth, CONCENTRATION * (1 - truth), n)
    column = METRICS[name].column or name
    cases = table(case_id=[str(number) for number in range(n)], status=["ok"] * n, group=[None] * n, **{column: values})
    (value,) = summarise([METRICS[name]], cases, seed=seed, options={}, whole={})
    return grades(name, value.value, value.ci_low, value.ci_high, value.n_scored)

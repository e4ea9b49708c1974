"""Grades: how often a value on a bound is called better than it, with the real intervals and grades."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from benchmarks.simulations import Claim, share_claim
from yarus.metrics.metric import GRADE_LADDERS
from yarus.metrics.table import METRICS, GradeRange, grades
from yarus.tasks.cases.table import make_cases
from yarus.tasks.evaluation.aggregate import aggregate_metrics

SIZES = (5, 10, 20, 50, 200, 2_000)
CONCENTRATION = 5
"""Concentration of the Beta distribution of scores: their deviation about a mean of 0.8 is 0.16."""


def claims(effort: float) -> Iterator[Claim]:
    """Yield claims about a share, and a mean of scores, on the bound of the best grade."""
    times = max(60, round(effort * 1_500))
    for name, n in product(("hit_rate@1", "avg_faithfulness"), SIZES):
        bounds = METRICS[name].thresholds or ()
        best = GRADE_LADDERS[len(bounds)][-1]
        generator = np.random.default_rng(n)
        repetitions = times if n < 2_000 or name == "hit_rate@1" else max(60, times // 5)
        grade_ranges = [_simulate_grades(generator, name, bounds[-1], n, number) for number in range(repetitions)]
        is_called_best = [grade_range is not None and grade_range.low == best for grade_range in grade_ranges]
        yield share_claim(f"{name} of truly {bounds[-1]:g}, {n:,} cases: {best} alone", 0, 0.03, is_called_best)


def _simulate_grades(generator: np.random.Generator, name: str, truth: float, n: int, seed: int) -> GradeRange | None:
    if name == "hit_rate@1":
        values = (generator.random(n) < truth).astype(float)
    else:
        values = generator.beta(CONCENTRATION * truth, CONCENTRATION * (1 - truth), n)
    column = METRICS[name].column or name
    cases = make_cases(case_id=[str(row) for row in range(n)], status=["ok"] * n, group=[None] * n, **{column: values})
    (value,) = aggregate_metrics([METRICS[name]], cases, seed=seed, options={}, whole={})
    return grades(name, value.value, value.ci_low, value.ci_high, value.n_scored)

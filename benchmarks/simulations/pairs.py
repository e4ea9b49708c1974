"""Pairs of evaluations with known truth, many at once: rows are pairs, columns are cases."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from yarus.metrics.statistics.differences.compared_statistics import SampleStatistic, StatisticComparison
from yarus.metrics.statistics.differences.paired import compare_statistics
from yarus.tasks.comparison.compare import SEED, adjust_headlines, directed_headlines
from yarus.tasks.comparison.gate_rules import GateRule
from yarus.tasks.comparison.gate_verdicts import judge_regressions
from yarus.tasks.comparison.metric_values import comparable_numbers

Floats = NDArray[np.float64]
Sides = tuple[Floats, Floats]
DRAWS = 1_000
ROWS_AT_ONCE = 25
FALL = 0.4778
"""Mean loss of a reciprocal rank that falls."""


def compare_rows(sides: Sides, seed: int, groups: Sequence[int] | None = None) -> Iterator[StatisticComparison]:
    """Yield the comparison of every row; rows are resampled together, like the metrics of a comparison."""
    for start in range(0, len(sides[0]), ROWS_AT_ONCE):
        rows = range(start, min(start + ROWS_AT_ONCE, len(sides[0])))
        numbers = {str(row): SampleStatistic(a=sides[0][row], b=sides[1][row]) for row in rows}
        yield from compare_statistics(numbers, seed=seed + start, groups=groups, count=DRAWS).values()


def gate_fails(cases: Sequence[pa.Table], tier: str) -> bool:
    """Return whether the default gate fails, given the cases before and after: no headline metric may regress."""
    headlines = directed_headlines(tier)
    pairs = compare_statistics(comparable_numbers(headlines, *cases)[0], seed=SEED, count=DRAWS)
    rules = {GateRule(name, "no regression"): pair for name, pair in pairs.items()}
    return any(
        rule["verdict"] == "fail" for rule in judge_regressions(rules, adjust_headlines(pairs, headlines)).values()
    )


def draw_hits(generator: np.random.Generator, shape: tuple[int, int], *, churn: float, loss: float | Floats) -> Sides:
    """Return hits, four in five: a share `churn` of the cases changes, half each way, and `loss` more are lost."""
    before = (generator.random(shape) < 0.8).astype(float)
    lost, won = (np.reshape(loss, (-1, 1)) + churn / 2) / 0.8, churn / 2 / 0.2
    is_changed = generator.random(shape) < np.where(before > 0, lost, won)
    return before, np.where(is_changed, 1 - before, before)


def draw_ranks(generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Return reciprocal ranks of a good retriever: six questions in ten first, one in seven not found."""
    rank_values = np.where(generator.random(shape) < 0.6, 1, generator.integers(2, 11, shape))
    return np.where(generator.random(shape) < 0.15, 0.0, 1 / rank_values)


def draw_reciprocal_ranks(
    generator: np.random.Generator, shape: tuple[int, int], *, churn: float, loss: float | Floats
) -> Sides:
    """Return reciprocal ranks: a share `churn` is ranked again, some fall or are not found, with a mean loss `loss`."""
    before = draw_ranks(generator, shape)
    churned = np.where(generator.random(shape) < churn, draw_ranks(generator, shape), before)
    lower = np.where(generator.random(shape) < 0.5, 0.0, churned / generator.integers(2, 5, shape))
    is_fallen = generator.random(shape) < np.reshape(loss, (-1, 1)) / FALL
    return before, np.where(is_fallen, lower, churned)


def draw_scores(generator: np.random.Generator, shape: tuple[int, int], *, loss: float | Floats) -> Sides:
    """Return judged scores, all of which change a little: both sides have the same hard and easy questions."""
    easiness = generator.beta(2, 1, shape)
    before, after = (easiness + generator.normal(0, 0.1, shape) for _ in range(2))
    return before, after - np.reshape(loss, (-1, 1))

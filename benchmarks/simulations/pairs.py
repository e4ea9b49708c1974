"""Pairs of evaluations whose truth is known, many at once: rows are pairs, columns are cases."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from yarus.metrics.statistics.differences.numbers import Compared, Number
from yarus.metrics.statistics.differences.paired import compare_numbers
from yarus.tasks.comparison.compare import SEED, headlines_of, under_holm
from yarus.tasks.comparison.gate_rules import Rule
from yarus.tasks.comparison.gate_verdicts import regressions
from yarus.tasks.comparison.totals import numbers

Floats = NDArray[np.float64]
Sides = tuple[Floats, Floats]
DRAWS = 1_000
AT_ONCE = 25
FALL = 0.4778
"""What a reciprocal rank that falls loses in the mean."""


def compared(sides: Sides, seed: int, groups: Sequence[int] | None = None) -> Iterator[Compared]:
    """What the comparison says of every row; rows are drawn together, as a comparison's metrics are."""
    for start in range(0, len(sides[0]), AT_ONCE):
        rows = range(start, min(start + AT_ONCE, len(sides[0])))
        numbers = {str(row): Number(a=sides[0][row], b=sides[1][row]) for row in rows}
        yield from compare_numbers(numbers, seed=seed + start, groups=groups, count=DRAWS).values()


def gate_fails(cases: Sequence[pa.Table], tier: str) -> bool:
    """Whether the gate without a file fails, of the cases before and after: no headline metric may be worse."""
    headlines = headlines_of(tier)
    found = compare_numbers(numbers(headlines, *cases)[0], seed=SEED, count=DRAWS)
    rules = {Rule(name, "no regression"): one for name, one in found.items()}
    return any(rule["verdict"] == "fail" for rule in regressions(rules, under_holm(found, headlines)).values())


def yes_no(generator: np.random.Generator, shape: tuple[int, int], *, churn: float, loss: float | Floats) -> Sides:
    """Hits, four in five: a share `churn` of the cases changes by itself, half each way, and `loss` more are lost."""
    before = (generator.random(shape) < 0.8).astype(float)
    lost, won = (np.reshape(loss, (-1, 1)) + churn / 2) / 0.8, churn / 2 / 0.2
    moves = generator.random(shape) < np.where(before > 0, lost, won)
    return before, np.where(moves, 1 - before, before)


def ranks(generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Reciprocal ranks as a good retriever has them: six questions in ten first, one in seven nowhere."""
    found = np.where(generator.random(shape) < 0.6, 1, generator.integers(2, 11, shape))
    return np.where(generator.random(shape) < 0.15, 0.0, 1 / found)


def reciprocal(generator: np.random.Generator, shape: tuple[int, int], *, churn: float, loss: float | Floats) -> Sides:
    """Reciprocal ranks: a share `churn` is ranked anew, and as many fall, or out of the list, as lose `loss` in all."""
    before = ranks(generator, shape)
    moved = np.where(generator.random(shape) < churn, ranks(generator, shape), before)
    lower = np.where(generator.random(shape) < 0.5, 0.0, moved / generator.integers(2, 5, shape))
    falls = generator.random(shape) < np.reshape(loss, (-1, 1)) / FALL
    return before, np.where(falls, lower, moved)


def scores(generator: np.random.Generator, shape: tuple[int, int], *, loss: float | Floats) -> Sides:
    """Judged scores, all of which move a little: both sides see the same hard and easy questions."""
    easy = generator.beta(2, 1, shape)
    before, after = (easy + generator.normal(0, 0.1, shape) for _ in range(2))
    return before, after - np.reshape(loss, (-1, 1))

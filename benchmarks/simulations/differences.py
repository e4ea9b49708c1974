"""Paired differences: the coverage of the interval, and whether p ever contradicts the interval."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations import Claim, share_claim
from benchmarks.simulations.pairs import (
    FALL,
    Sides,
    compare_rows,
    draw_hits,
    draw_ranks,
    draw_reciprocal_ranks,
    draw_scores,
)
from yarus.metrics.statistics.differences.comparison import Comparison

DrawSides = Callable[[np.random.Generator, tuple[int, int]], Sides]
"""(generator, (pairs, cases)) -> both sides."""
USERS, ICC, CHANGE = 50, 0.2, 0.15
"""Most questions of a user; correlation of the changes of one user; share of questions that change."""
TOTAL = 2_000_000
"""Cases for the true difference."""
FEW = 11
"""Changes below which an interval cannot cover exactly 95 %: each change is a step of several points."""


def claims(effort: float) -> Iterator[Claim]:
    """Yield claims about sparse and dense differences, of independent cases and of users' questions."""
    times = max(60, round(effort * 1_500))
    for name, n, changes, sides in _independent_settings():
        yield from _claims_of_setting(f"{name}, {n:,} cases", n, changes, sides, times)
    times = max(60, round(effort * 600))
    for name, users in product(("judged scores", "reciprocal ranks", "yes/no"), (6, 12, 30, 100)):
        yield _claim_of_users(name, users, times)


def _independent_settings() -> Iterator[tuple[str, int, float, DrawSides]]:
    """Yield name, cases, how many of them are expected to change, and the pairs."""
    for n, lost in product((50, 200, 1_000), (0.02, 0.05, 0.1)):
        yield (
            f"reciprocal ranks, {lost:.0%} fall",
            n,
            lost * n,
            partial(draw_reciprocal_ranks, churn=0.0, loss=lost * FALL),
        )
    for n, churn in product((50, 200), (0.05, 0.2)):
        yield f"yes/no, {churn:.0%} churn, 3 % lost", n, (churn + 0.03) * n, partial(draw_hits, churn=churn, loss=0.03)
    for n in (20, 50, 200):
        yield "judged scores, all change", n, n, partial(draw_scores, loss=0.05)


def _claims_of_setting(name: str, n: int, changes: float, sides: DrawSides, times: int) -> Iterator[Claim]:
    generator = np.random.default_rng(5)
    before, after = sides(generator, (TOTAL // n, n))
    comparisons = [pair.comparison for pair in compare_rows(sides(generator, (times, n)), 1)]
    low, high = (0.92, 0.98) if n <= 50 else (0.93, 0.97)
    yield _coverage(name, comparisons, float((after - before).mean()), *((0.92, 1.0) if changes < FEW else (low, high)))
    disagrees = [(pair.p < pair.alpha) != (not pair.interval.low <= 0 <= pair.interval.high) for pair in comparisons]
    yield share_claim(f"{name}: p and interval contradict each other", 0, 0, disagrees)


def _claim_of_users(name: str, users: int, times: int) -> Claim:
    generator = np.random.default_rng(6)
    large_samples = [_draw_users(generator, name, 2_000) for _ in range(20)]
    truth = float(np.concatenate([after - before for _, (before, after) in large_samples]).mean())
    comparisons = []
    for number in range(times):
        codes, (before, after) = _draw_users(generator, name, users)
        comparisons += [pair.comparison for pair in compare_rows((before[None], after[None]), number, codes.tolist())]
    low, high = (0.92, 0.98) if users < 12 else (0.93, 0.97)
    return _coverage(f"{name} of {users} users with 1 to {USERS} questions", comparisons, truth, low, high)


def _coverage(name: str, comparisons: Sequence[Comparison], truth: float, low: float, high: float) -> Claim:
    covers = [comparison.interval.low <= truth <= comparison.interval.high for comparison in comparisons]
    return share_claim(f"{name}: interval holds the true difference", low, high, covers)


def _draw_users(generator: np.random.Generator, name: str, users: int) -> tuple[NDArray[np.intp], Sides]:
    """Return the user of each question, and both sides: all scores move, or those of a share of a user's questions."""
    codes = np.repeat(np.arange(users), generator.integers(1, USERS + 1, users))
    n = len(codes)
    if name == "judged scores":
        deviation = 0.1 * 2**0.5
        user_effect = generator.normal(0, deviation * ICC**0.5, users)[codes]
        before = generator.beta(2, 1, n)
        return codes, (before, before - 0.05 + user_effect + generator.normal(0, deviation * (1 - ICC) ** 0.5, n))
    rate = generator.beta(CHANGE * (1 / ICC - 1), (1 - CHANGE) * (1 / ICC - 1), users)[codes]
    if name == "yes/no":
        before, new = ((generator.random(n) < share).astype(float) for share in (0.8, 0.5))
    else:
        before, new = draw_ranks(generator, (n,)), draw_ranks(generator, (n,)) * (generator.random(n) < 0.6)
    return codes, (before, np.where(generator.random(n) < rate, new, before))

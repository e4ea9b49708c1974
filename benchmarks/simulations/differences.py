"""Paired differences: how often the interval holds the true one, and whether p ever says what the interval does not."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations import Claim, counted
from benchmarks.simulations.pairs import FALL, Sides, compared, ranks, reciprocal, scores, yes_no
from yarus.metrics.statistics.differences.comparison import Comparison

Made = Callable[[np.random.Generator, tuple[int, int]], Sides]
"""(generator, (pairs, cases)) -> both sides."""
USERS, ICC, CHANGE = 50, 0.2, 0.15
"""Questions of a user, 1 to so many; how much alike the changes of one user are; how many questions change."""
TOTAL = 2_000_000
"""Cases of which the truth is taken."""
FEW = 11
"""Changes, below which an interval cannot hold exactly 95 %: one more or less is a step of several points."""


def claims(effort: float) -> Iterator[Claim]:
    """Sparse and dense differences, of cases that stand alone and of users' questions."""
    times = max(60, round(effort * 1_500))
    for name, n, changes, sides in _alone():
        yield from _held(f"{name}, {n:,} cases", n, changes, sides, times)
    times = max(60, round(effort * 600))
    for name, users in product(("judged scores", "reciprocal ranks", "yes/no"), (6, 12, 30, 100)):
        yield _grouped(name, users, times)


def _alone() -> Iterator[tuple[str, int, float, Made]]:
    """Name, cases, how many of them are expected to change, and the pairs."""
    for n, lost in product((50, 200, 1_000), (0.02, 0.05, 0.1)):
        yield f"reciprocal ranks, {lost:.0%} fall", n, lost * n, partial(reciprocal, churn=0.0, loss=lost * FALL)
    for n, churn in product((50, 200), (0.05, 0.2)):
        yield f"yes/no, {churn:.0%} churn, 3 % lost", n, (churn + 0.03) * n, partial(yes_no, churn=churn, loss=0.03)
    for n in (20, 50, 200):
        yield "judged scores, all change", n, n, partial(scores, loss=0.05)


def _held(name: str, n: int, changes: float, sides: Made, times: int) -> Iterator[Claim]:
    generator = np.random.default_rng(5)
    before, after = sides(generator, (TOTAL // n, n))
    found = [one.comparison for one in compared(sides(generator, (times, n)), 1)]
    low, high = (0.92, 0.98) if n <= 50 else (0.93, 0.97)
    yield _coverage(name, found, float((after - before).mean()), *((0.92, 1.0) if changes < FEW else (low, high)))
    apart = [(one.p < one.alpha) != (not one.interval.low <= 0 <= one.interval.high) for one in found]
    yield counted(f"{name}: p and interval contradict each other", 0, 0, apart)


def _grouped(name: str, users: int, times: int) -> Claim:
    generator = np.random.default_rng(6)
    many = [_users(generator, name, 2_000) for _ in range(20)]
    truth = float(np.concatenate([after - before for _, (before, after) in many]).mean())
    found = []
    for number in range(times):
        codes, (before, after) = _users(generator, name, users)
        found += [one.comparison for one in compared((before[None], after[None]), number, codes.tolist())]
    low, high = (0.92, 0.98) if users < 12 else (0.93, 0.97)
    return _coverage(f"{name} of {users} users with 1 to {USERS} questions", found, truth, low, high)


def _coverage(name: str, found: Sequence[Comparison], truth: float, low: float, high: float) -> Claim:
    held = [one.interval.low <= truth <= one.interval.high for one in found]
    return counted(f"{name}: interval holds the true difference", low, high, held)


def _users(generator: np.random.Generator, name: str, users: int) -> tuple[NDArray[np.intp], Sides]:
    """Whose each question is, and both sides: all scores move, or those of a share of a user's questions."""
    codes = np.repeat(np.arange(users), generator.integers(1, USERS + 1, users))
    n = len(codes)
    if name == "judged scores":
        deviation = 0.1 * 2**0.5
        own = generator.normal(0, deviation * ICC**0.5, users)[codes]
        before = generator.beta(2, 1, n)
        return codes, (before, before - 0.05 + own + generator.normal(0, deviation * (1 - ICC) ** 0.5, n))
    rate = generator.beta(CHANGE * (1 / ICC - 1), (1 - CHANGE) * (1 / ICC - 1), users)[codes]
    if name == "yes/no":
        before, new = ((generator.random(n) < share).astype(float) for share in (0.8, 0.5))
    else:
        before, new = ranks(generator, (n,)), ranks(generator, (n,)) * (generator.random(n) < 0.6)
    return codes, (before, np.where(generator.random(n) < rate, new, before))

"""Samples of a growing log: how many of their members eight new questions replace."""

from collections import Counter
from collections.abc import Iterator
from random import Random
from statistics import mean

from benchmarks.simulations import Claim
from yarus.tasks.cases.sampling import stratified_sample

LIMIT, NEW = 200, 8
LOGS = (500, 1_000, 2_000, 5_000)
TOPICS = 60


def claims(effort: float) -> Iterator[Claim]:
    """Yield replaced members, and the share that strata of every size have of the sample."""
    repetitions = max(20, round(400 * effort))
    for n in LOGS:
        mean_replaced = mean(count_replaced(n, seed) for seed in range(repetitions))
        what, high = f"--limit {LIMIT}, log of {n}: replaced by {NEW} new questions", 2.0
        # In a sample of fixed size with equal chances for new and old questions, this many are new.
        if (fair := NEW * LIMIT / (n + NEW)) > high:
            what, high = f"{what} (no fair sample: fewer than {fair:.2f})", fair + 0.6
        yield Claim(what, 0, high, mean_replaced, repetitions, is_share=False)
    for size, relative in fairness(5 * repetitions).items():
        what = f"how likely a case is drawn whose stratum has {size} cases, 1 = as any"
        yield Claim(what, 0.95, 1.05, relative, 5 * repetitions, is_share=False)


def draw_strata(n: int, seed: int) -> list[str]:
    """Return the strata of n questions: topics of very different size, each with three scores."""
    generator = Random(seed)
    sizes = [generator.paretovariate(1) for _ in range(TOPICS)]
    return [f"{topic}|{generator.choice([5, None, 1])}" for topic in generator.choices(range(TOPICS), sizes, k=n)]


def count_replaced(n: int, seed: int) -> int:
    """Return how many members of the sample of a log of n are replaced when it has grown."""
    ids, strata = [f"q{number}" for number in range(n + NEW)], draw_strata(n + NEW, seed)
    before, after = (set(stratified_sample(ids[:size], strata[:size], LIMIT, seed)) for size in (n, n + NEW))
    return len(before - after)


def fairness(repetitions: int) -> dict[str, float]:
    """Return size of a stratum -> drawn cases, divided by the expected number with equal chances."""
    n = 1_000
    n_drawn, expected = Counter[str](), Counter[str]()
    for seed in range(repetitions):
        strata = draw_strata(n, seed)
        sizes = Counter(strata)
        for number in stratified_sample([f"q{number}" for number in range(n)], strata, LIMIT, seed):
            n_drawn[_size(sizes[strata[number]])] += 1
        for stratum in strata:
            expected[_size(sizes[stratum])] += 1
    return {size: n_drawn[size] * n / LIMIT / expected[size] for size in sorted(expected)}


def _size(n: int) -> str:
    return "1 or 2" if n < 3 else "3 to 10" if n <= 10 else "more than 10"

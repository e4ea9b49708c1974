"""Samples of a log that grows: how many of their members eight new questions replace."""

from collections import Counter
from collections.abc import Iterator
from random import Random
from statistics import mean

from benchmarks.simulations import Claim
from yarus.tasks.cases.sampling import sampled

LIMIT, NEW = 200, 8
LOGS = (500, 1_000, 2_000, 5_000)
TOPICS = 60


def claims(effort: float) -> Iterator[Claim]:
    """Members that are replaced, and the share that strata of every size have of the sample."""
    repetitions = max(20, round(400 * effort))
    for n in LOGS:
        found = mean(replaced(n, seed) for seed in range(repetitions))
        what, high = f"--limit {LIMIT}, log of {n}: replaced by {NEW} new questions", 2.0
        # Of a sample of fixed size, in which a new question is as likely as an old one, so many are new.
        if (fair := NEW * LIMIT / (n + NEW)) > high:
            what, high = f"{what} (no fair sample: fewer than {fair:.2f})", fair + 0.6
        yield Claim(what, 0, high, found, repetitions, is_share=False)
    for size, relative in fairness(5 * repetitions).items():
        what = f"how likely a case is drawn whose stratum has {size} cases, 1 = as any"
        yield Claim(what, 0.95, 1.05, relative, 5 * repetitions, is_share=False)


def log(n: int, seed: int) -> list[str]:
    """The strata of n questions: topics of very different size, each with three scores."""
    chance = Random(seed)
    sizes = [chance.paretovariate(1) for _ in range(TOPICS)]
    return [f"{topic}|{chance.choice([5, None, 1])}" for topic in chance.choices(range(TOPICS), sizes, k=n)]


def replaced(n: int, seed: int) -> int:
    """How many of the members of a log of n are no longer members when it has grown."""
    ids, strata = [f"q{number}" for number in range(n + NEW)], log(n + NEW, seed)
    before, after = (set(sampled(ids[:size], strata[:size], LIMIT, seed)) for size in (n, n + NEW))
    return len(before - after)


def fairness(repetitions: int) -> dict[str, float]:
    """Size of a stratum -> how many of its cases are drawn, divided by how many would be if all were as likely."""
    n = 1_000
    drawn, expected = Counter[str](), Counter[str]()
    for seed in range(repetitions):
        strata = log(n, seed)
        sizes = Counter(strata)
        for number in sampled([f"q{number}" for number in range(n)], strata, LIMIT, seed):
            drawn[_size(sizes[strata[number]])] += 1
        for stratum in strata:
            expected[_size(sizes[stratum])] += 1
    return {size: drawn[size] * n / LIMIT / expected[size] for size in sorted(expected)}


def _size(n: int) -> str:
    return "1 or 2" if n < 3 else "3 to 10" if n <= 10 else "more than 10"

"""Intervals of one evaluation: in what share of repetitions do they contain the truth?"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations import Claim, counted
from yarus.metrics import agreement, classification
from yarus.metrics.statistics import Interval, mean_interval, quantile_interval, share_interval
from yarus.tasks.evaluation.set_metrics import SET_METRICS, over_pairs

Floats = NDArray[np.float64]
Generator = np.random.Generator
Draw = Callable[[Generator], Interval]
"""Draws cases, and makes the interval of them; NaN where the number has no value."""
REPETITIONS = 1_200
FEW_CASES, FEW_USERS = 50, 12
WITHIN = 0.2
"""Intraclass correlation: the share of the variance that is between users."""
TRUTH = 1_000_000
"""Cases of which what has no formula is known."""


class Line(NamedTuple):
    """A kind of interval, and the data of which it is made."""

    what: str
    cases: int
    users: int
    """Whose cases they are; 0 where each stands alone."""
    truth: float
    draw: Draw
    cost: float = 1
    """Share of the repetitions that it gets, for it takes long."""


def claims(effort: float) -> Iterator[Claim]:
    """Coverage of every kind of interval, asked for 95 %: 93 to 97 %, of few cases or users 92 to 98 %."""
    for line in lines():
        rng = np.random.default_rng(17)
        found = [line.draw(rng) for _ in range(max(10, round(REPETITIONS * effort * line.cost)))]
        covered = [low <= line.truth <= high for low, high in found if not np.isnan(low)]
        few = line.users <= FEW_USERS if line.users else line.cases <= FEW_CASES
        low, high = (0.92, 0.98) if few else (0.93, 0.97)
        size = f"{line.cases} cases" + (f" of {line.users} users" if line.users else "")
        yield counted(f"{line.what}: {size}", low, high, covered)


def lines() -> Iterator[Line]:
    """All of them."""
    for n in (20, 50, 200):
        yield from independent(n)
    for n in (20, 50, 200, 1_000):
        for quantile, truth in LATENCIES.items():
            yield Line(f"{quantile:.0%} quantile of latency", n, 0, truth, partial(latency, n, quantile))
    for m in (5, 12, 30, 100):
        yield from by_user(m)
    for m in (12, 30, 100):
        draw = partial(judged, "user_votes_weighted_kappa", m * 10, m)
        yield Line("weighted kappa with people, 10 answers a user", m * 10, m, KAPPA, draw, 0.5)
    draw = partial(judged, "spearman", 300, 30)
    yield Line("Spearman with people, 10 answers a user", 300, 30, SPEARMAN, draw, 0.03)


def independent(n: int) -> Iterator[Line]:
    """Of n cases that stand alone."""
    for share in (0.5, 0.9):
        yield Line(f"share {share}", n, 0, share, partial(share_of, n, share))
    for name, scores in SCORES.items():
        truth = mean_of(name)
        yield Line(name, n, 0, truth, partial(score_of, n, scores), 0.4 if "continuous" in name else 1)
    yield Line("skewed mean (gamma)", n, 0, 2.0, partial(skewed, n), 0.4)
    for positive in (0.5, 0.9):
        for name in ("f1_score", "mcc"):
            draw = partial(decided, name, n, positive)
            yield Line(f"{name}, {positive:.0%} positive", n, 0, truth_of(name, positive), draw, 0.5)
    yield Line("weighted kappa, five levels", n, 0, KAPPA, partial(judged, "weighted_kappa", n, None), 0.5)


def by_user(m: int) -> Iterator[Line]:
    """Of m users who have asked 1 to 50 questions each, 26 on average."""
    n = 26 * m
    for share in (0.5, 0.7, 0.9):
        yield Line(f"share {share}", n, m, share, partial(share_by_user, m, share))
    yield Line("mean of continuous scores", n, m, 0.7, partial(mean_by_user, m))
    yield Line("scores 0, 0.9 and 1, 10 % are 0", n, m, 0.86, partial(levels_by_user, m))
    if m > 5:
        for quantile, truth in LATENCIES.items():
            yield Line(f"{quantile:.0%} quantile of latency", n, m, truth, partial(latency_by_user, m, quantile))
        for name in ("f1_score", "mcc"):
            yield Line(f"{name}, 70% positive", n, m, truth_of(name, 0.7), partial(decided_by_user, name, m), 0.5)


def truth_of(name: str, positive: float) -> float:
    """What a metric of the set would be over endless cases."""
    statistic = SET_METRICS[name].statistic
    return np.nan if statistic is None else float(statistic(outcome_shares(positive)))


@cache
def mean_of(name: str) -> float:
    """What scores of a kind would be on average over endless cases."""
    return float(SCORES[name](np.random.default_rng(1), TRUTH).mean())


def share_of(n: int, share: float, rng: Generator) -> Interval:
    """Independent answers, right or wrong."""
    return share_interval(rng.random(n) < share)


def score_of(n: int, scores: Callable[[Generator, int], Floats], rng: Generator) -> Interval:
    """Independent scores between 0 and 1."""
    return mean_interval(scores(rng, n), seed=0, low=0, high=1)


def skewed(n: int, rng: Generator) -> Interval:
    """A cost: no upper end, a long tail."""
    return mean_interval(rng.gamma(2, size=n), seed=0, low=0)


def latency(n: int, quantile: float, rng: Generator) -> Interval:
    """Independent lognormal latencies."""
    return quantile_interval(np.exp(0.8 * rng.normal(size=n)), quantile)


def users(m: int, rng: Generator) -> NDArray[np.intp]:
    """Of m users, who has asked: 1 to 50 questions each."""
    return np.repeat(np.arange(m), rng.integers(1, 51, m))


def share_by_user(m: int, share: float, rng: Generator) -> Interval:
    """Right or wrong; users differ in how often."""
    codes = users(m, rng)
    chances = rng.beta(share * (1 - WITHIN) / WITHIN, (1 - share) * (1 - WITHIN) / WITHIN, m)
    return share_interval(rng.random(len(codes)) < chances[codes], groups=codes.tolist())


def latent(m: int, codes: NDArray[np.intp], rng: Generator) -> Floats:
    """(n,) standard normal; of a user's cases any two correlate."""
    found: Floats = np.sqrt(WITHIN) * rng.normal(size=m)[codes] + np.sqrt(1 - WITHIN) * rng.normal(size=len(codes))
    return found


def mean_by_user(m: int, rng: Generator) -> Interval:
    """Continuous scores."""
    codes = users(m, rng)
    return mean_interval(0.7 + 0.1 * latent(m, codes, rng), seed=0, groups=codes.tolist())


def levels_by_user(m: int, rng: Generator) -> Interval:
    """Scores on three levels: a tenth 0, four tenths 0.9, half 1."""
    codes = users(m, rng)
    level = np.searchsorted([-1.2815515655, 0.0], latent(m, codes, rng))
    return mean_interval(np.array([0.0, 0.9, 1.0])[level], seed=0, low=0, high=1, groups=codes.tolist())


def latency_by_user(m: int, quantile: float, rng: Generator) -> Interval:
    """Lognormal latencies; some users ask what takes long."""
    codes = users(m, rng)
    return quantile_interval(np.exp(0.8 * latent(m, codes, rng)), quantile, groups=codes.tolist())


def outcome_shares(positive: float) -> Floats:
    """Shares of TP, TN, FP and FN of a judge that finds 90 % of the good and 80 % of the bad."""
    return np.array([0.9 * positive, 0.8 * (1 - positive), 0.2 * (1 - positive), 0.1 * positive])


def decided(name: str, n: int, positive: float, rng: Generator) -> Interval:
    """Independent decisions."""
    rows = np.eye(len(classification.OUTCOMES))[rng.choice(4, n, p=outcome_shares(positive))]
    return measured(name, rows, [None] * n)


def decided_by_user(name: str, m: int, rng: Generator) -> Interval:
    """Decisions about the answers to users who differ in how many are good."""
    codes = users(m, rng)
    good = latent(m, codes, rng) < 0.5244005127  # 70 % are
    right = rng.random(len(codes)) < np.where(good, 0.9, 0.8)
    outcome = np.where(good, np.where(right, 0, 3), np.where(right, 1, 2))
    return measured(name, np.eye(4)[outcome], codes.tolist())


def pairs(scores: Floats, rng: Generator) -> tuple[Floats, Floats]:
    """What judge and person say of answers that are so good: both err, both on five levels."""
    said = [np.round(np.clip(scores + rng.normal(0, 0.12, len(scores)), 0, 1) * 4) / 4 for _ in range(2)]
    return said[0], said[1]


def judged(name: str, n: int, m: int | None, rng: Generator) -> Interval:
    """Agreement over n answers, of m users or independent."""
    codes = np.arange(n) % (m or n)
    first, second = pairs(0.6 + 0.25 * latent(m or n, codes, rng), rng)
    groups = codes.tolist()
    if name == "spearman":
        return over_pairs(agreement.spearman, first, second, groups, 0).interval
    return measured(name, agreement.kappa_parts(first, second), groups)


def measured(name: str, rows: Floats, groups: list[Any]) -> Interval:
    """The interval of a metric of the set, as an evaluation stores it."""
    measure = SET_METRICS[name].measure
    return Interval(np.nan, np.nan) if measure is None else measure(rows, groups, 0).interval


SCORES: dict[str, Callable[[Generator, int], Floats]] = {
    "scores 0, 0.9 and 1, 5 % are 0": lambda rng, n: rng.choice([0, 0.9, 1], n, p=[0.05, 0.35, 0.6]),
    "scores 0, 0.9 and 1, 2 % are 0": lambda rng, n: rng.choice([0, 0.9, 1], n, p=[0.02, 0.28, 0.7]),
    "scores on five levels": lambda rng, n: rng.choice(np.linspace(0, 1, 5), n, p=[0.05, 0.1, 0.2, 0.35, 0.3]),
    "reciprocal ranks": lambda rng, n: np.where(rng.random(n) < 0.6, 1, 1 / rng.integers(2, 11, n)),
    "continuous scores, beta(8, 2)": lambda rng, n: rng.beta(8, 2, n),
    "continuous scores, beta(2, 2)": lambda rng, n: rng.beta(2, 2, n),
}
LATENCIES = {0.5: 1.0, 0.95: float(np.exp(0.8 * 1.6448536270))}
_BOTH = pairs(0.6 + 0.25 * np.random.default_rng(2).normal(size=TRUTH), np.random.default_rng(3))
KAPPA = agreement.weighted_kappa(*_BOTH)
SPEARMAN = agreement.spearman(*_BOTH)

"""Intervals of one evaluation: their coverage of the truth."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulations import Claim, share_claim
from yarus.metrics import agreement, classification
from yarus.metrics.statistics import Interval, mean_interval, quantile_interval, share_interval
from yarus.tasks.evaluation.set_metrics import SET_METRICS, measure_agreement

Floats = NDArray[np.float64]
Generator = np.random.Generator
Draw = Callable[[Generator], Interval]
"""Draw cases and return their interval; NaN if the metric is undefined."""
REPETITIONS = 1_200
FEW_CASES, FEW_USERS = 50, 12
WITHIN = 0.2
"""Intraclass correlation: the share of the variance that is between users."""
TRUTH = 1_000_000
"""Cases for truths without a formula."""


class IntervalSetting(NamedTuple):
    """A kind of interval, and the data for it."""

    what: str
    cases: int
    users: int
    """Number of users of the cases; 0: no users."""
    truth: float
    draw: Draw
    cost: float = 1
    """Share of the repetitions, for slow intervals."""


def claims(effort: float) -> Iterator[Claim]:
    """Yield the coverage of every kind of interval at level 95 %: 93 to 97 %, with few cases or users 92 to 98 %."""
    for setting in all_settings():
        rng = np.random.default_rng(17)
        bounds = [setting.draw(rng) for _ in range(max(10, round(REPETITIONS * effort * setting.cost)))]
        covered = [low <= setting.truth <= high for low, high in bounds if not np.isnan(low)]
        is_few = setting.users <= FEW_USERS if setting.users else setting.cases <= FEW_CASES
        low, high = (0.92, 0.98) if is_few else (0.93, 0.97)
        size = f"{setting.cases} cases" + (f" of {setting.users} users" if setting.users else "")
        yield share_claim(f"{setting.what}: {size}", low, high, covered)


def all_settings() -> Iterator[IntervalSetting]:
    """Yield all settings."""
    for n in (20, 50, 200):
        yield from independent_settings(n)
    for n in (20, 50, 200, 1_000):
        for quantile, truth in LATENCIES.items():
            yield IntervalSetting(
                f"{quantile:.0%} quantile of latency", n, 0, truth, partial(interval_of_latency, n, quantile)
            )
    for m in (5, 12, 30, 100):
        yield from user_settings(m)
    for m in (12, 30, 100):
        draw = partial(interval_of_agreement, "user_votes_weighted_kappa", m * 10, m)
        yield IntervalSetting("weighted kappa with people, 10 answers a user", m * 10, m, KAPPA, draw, 0.5)
    draw = partial(interval_of_agreement, "spearman", 300, 30)
    yield IntervalSetting("Spearman with people, 10 answers a user", 300, 30, SPEARMAN, draw, 0.03)


def independent_settings(n: int) -> Iterator[IntervalSetting]:
    """Yield settings of n independent cases."""
    for share in (0.5, 0.9):
        yield IntervalSetting(f"share {share}", n, 0, share, partial(interval_of_share, n, share))
    for name, scores in SCORES.items():
        truth = mean_of(name)
        yield IntervalSetting(
            name, n, 0, truth, partial(interval_of_scores, n, scores), 0.4 if "continuous" in name else 1
        )
    yield IntervalSetting("skewed mean (gamma)", n, 0, 2.0, partial(interval_of_skewed, n), 0.4)
    for positive in (0.5, 0.9):
        for name in ("f1_score", "mcc"):
            draw = partial(interval_of_decisions, name, n, positive)
            yield IntervalSetting(f"{name}, {positive:.0%} positive", n, 0, truth_of(name, positive), draw, 0.5)
    yield IntervalSetting(
        "weighted kappa, five levels", n, 0, KAPPA, partial(interval_of_agreement, "weighted_kappa", n, None), 0.5
    )


def user_settings(m: int) -> Iterator[IntervalSetting]:
    """Yield settings of m users who have asked 1 to 50 questions each, 26 on average."""
    n = 26 * m
    for share in (0.5, 0.7, 0.9):
        yield IntervalSetting(f"share {share}", n, m, share, partial(interval_of_user_shares, m, share))
    yield IntervalSetting("mean of continuous scores", n, m, 0.7, partial(interval_of_user_means, m))
    yield IntervalSetting("scores 0, 0.9 and 1, 10 % are 0", n, m, 0.86, partial(interval_of_user_levels, m))
    if m > 5:
        for quantile, truth in LATENCIES.items():
            yield IntervalSetting(
                f"{quantile:.0%} quantile of latency", n, m, truth, partial(interval_of_user_latencies, m, quantile)
            )
        for name in ("f1_score", "mcc"):
            yield IntervalSetting(
                f"{name}, 70% positive", n, m, truth_of(name, 0.7), partial(interval_of_user_decisions, name, m), 0.5
            )


def truth_of(name: str, positive: float) -> float:
    """Return the value of a metric of the set over infinitely many cases."""
    statistic = SET_METRICS[name].statistic
    return np.nan if statistic is None else float(statistic(outcome_shares(positive)))


@cache
def mean_of(name: str) -> float:
    """Return the mean of a kind of scores over very many cases."""
    return float(SCORES[name](np.random.default_rng(1), TRUTH).mean())


def interval_of_share(n: int, share: float, rng: Generator) -> Interval:
    """Return the interval of independent answers, right or wrong."""
    return share_interval(rng.random(n) < share)


def interval_of_scores(n: int, scores: Callable[[Generator, int], Floats], rng: Generator) -> Interval:
    """Return the interval of independent scores between 0 and 1."""
    return mean_interval(scores(rng, n), seed=0, low=0, high=1)


def interval_of_skewed(n: int, rng: Generator) -> Interval:
    """Return the interval of a cost: no upper end, a long tail."""
    return mean_interval(rng.gamma(2, size=n), seed=0, low=0)


def interval_of_latency(n: int, quantile: float, rng: Generator) -> Interval:
    """Return the interval of independent lognormal latencies."""
    return quantile_interval(np.exp(0.8 * rng.normal(size=n)), quantile)


def draw_users(m: int, rng: Generator) -> NDArray[np.intp]:
    """Return the user of each question; each of m users has asked 1 to 50."""
    return np.repeat(np.arange(m), rng.integers(1, 51, m))


def interval_of_user_shares(m: int, share: float, rng: Generator) -> Interval:
    """Return the interval of right or wrong answers; users differ in their rate."""
    codes = draw_users(m, rng)
    rates = rng.beta(share * (1 - WITHIN) / WITHIN, (1 - share) * (1 - WITHIN) / WITHIN, m)
    return share_interval(rng.random(len(codes)) < rates[codes], groups=codes.tolist())


def draw_latent(m: int, codes: NDArray[np.intp], rng: Generator) -> Floats:
    """Return (n,) standard normal values that correlate within users."""
    values: Floats = np.sqrt(WITHIN) * rng.normal(size=m)[codes] + np.sqrt(1 - WITHIN) * rng.normal(size=len(codes))
    return values


def interval_of_user_means(m: int, rng: Generator) -> Interval:
    """Return the interval of continuous scores."""
    codes = draw_users(m, rng)
    return mean_interval(0.7 + 0.1 * draw_latent(m, codes, rng), seed=0, groups=codes.tolist())


def interval_of_user_levels(m: int, rng: Generator) -> Interval:
    """Return the interval of scores on three levels: a tenth 0, four tenths 0.9, half 1."""
    codes = draw_users(m, rng)
    level = np.searchsorted([-1.2815515655, 0.0], draw_latent(m, codes, rng))
    return mean_interval(np.array([0.0, 0.9, 1.0])[level], seed=0, low=0, high=1, groups=codes.tolist())


def interval_of_user_latencies(m: int, quantile: float, rng: Generator) -> Interval:
    """Return the interval of lognormal latencies; some users ask slow questions."""
    codes = draw_users(m, rng)
    return quantile_interval(np.exp(0.8 * draw_latent(m, codes, rng)), quantile, groups=codes.tolist())


def outcome_shares(positive: float) -> Floats:
    """Return the shares of TP, TN, FP and FN of a judge that is right about 90 % of the good and 80 % of the bad."""
    return np.array([0.9 * positive, 0.8 * (1 - positive), 0.2 * (1 - positive), 0.1 * positive])


def interval_of_decisions(name: str, n: int, positive: float, rng: Generator) -> Interval:
    """Return the interval of independent decisions."""
    rows = np.eye(len(classification.OUTCOMES))[rng.choice(4, n, p=outcome_shares(positive))]
    return interval_of_set_metric(name, rows, [None] * n)


def interval_of_user_decisions(name: str, m: int, rng: Generator) -> Interval:
    """Return the interval of decisions about answers to users who differ in the share of good ones."""
    codes = draw_users(m, rng)
    is_good = draw_latent(m, codes, rng) < 0.5244005127  # 70 % are
    is_right = rng.random(len(codes)) < np.where(is_good, 0.9, 0.8)
    outcome = np.where(is_good, np.where(is_right, 0, 3), np.where(is_right, 1, 2))
    return interval_of_set_metric(name, np.eye(4)[outcome], codes.tolist())


def draw_ratings(scores: Floats, rng: Generator) -> tuple[Floats, Floats]:
    """Return the ratings of judge and person for answers of given quality: both err, both on five levels."""
    ratings = [np.round(np.clip(scores + rng.normal(0, 0.12, len(scores)), 0, 1) * 4) / 4 for _ in range(2)]
    return ratings[0], ratings[1]


def interval_of_agreement(name: str, n: int, m: int | None, rng: Generator) -> Interval:
    """Return the interval of the agreement over n answers, of m users or independent."""
    codes = np.arange(n) % (m or n)
    first, second = draw_ratings(0.6 + 0.25 * draw_latent(m or n, codes, rng), rng)
    groups = codes.tolist()
    if name == "spearman":
        return measure_agreement(agreement.spearman, first, second, groups, 0).interval
    return interval_of_set_metric(name, agreement.kappa_parts(first, second), groups)


def interval_of_set_metric(name: str, rows: Floats, groups: list[Any]) -> Interval:
    """Return the interval of a metric of the set, as an evaluation stores it."""
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
_BOTH = draw_ratings(0.6 + 0.25 * np.random.default_rng(2).normal(size=TRUTH), np.random.default_rng(3))
KAPPA = agreement.weighted_kappa(*_BOTH)
SPEARMAN = agreement.spearman(*_BOTH)

"""The threshold of showing: gates with a known best threshold, and useless scores."""

from collections.abc import Iterator

import numpy as np

from benchmarks.simulations import Claim, share_claim
from yarus.metrics.selective import BestThreshold, best_threshold

REPEATS = 5
WRONG, HIDDEN = 3.0, 1.0
BEST, BEST_OF_REPEATS = WRONG / (WRONG + HIDDEN), 1.0
"""The best threshold for answers that are right as often as their score says. After four yes of five an answer is right
in 6 / 8.2 = 0.73 of the cases, by Bayes' rule, which is too little; after five in 7 / 8.2 = 0.85."""


def claims(effort: float) -> Iterator[Claim]:
    """Yield the coverage of the best threshold by its interval, and how often a useless score seems to save."""
    repetitions = max(40, round(400 * effort))
    for n in (200, 1_000):
        for repeats, best in ((0, BEST), (REPEATS, BEST_OF_REPEATS)):
            thresholds = [simulate_gate(n, repeats, seed) for seed in range(repetitions)]
            covers = [threshold.interval.low <= best <= threshold.interval.high for threshold in thresholds]
            scored = f"{repeats} repeated answers" if repeats else "a probability"
            yield share_claim(f"{n} answers, {scored}: the cheapest threshold is in its interval", 0.95, 1, covers)
    saves = [simulate_useless_gate(seed).saved_interval.low > 0 for seed in range(repetitions)]
    yield share_claim("300 answers, a score of pure chance: a threshold is said to save", 0, 0.03, saves)


def simulate_gate(n: int, repeats: int, seed: int) -> BestThreshold:
    """Simulate a gate that shows from 0.5 on; scores are shares of `repeats` yes/no, or probabilities if that is 0."""
    generator = np.random.default_rng(seed)
    probabilities = generator.beta(2, 1.2, n)
    is_right = generator.random(n) < probabilities
    scores = generator.binomial(repeats, probabilities) / repeats if repeats else probabilities
    return best_threshold(scores, is_right, scores >= 0.5, wrong_shown=WRONG, right_hidden=HIDDEN, seed=seed)


def simulate_useless_gate(seed: int) -> BestThreshold:
    """Simulate a gate that shows everything, with scores independent of the truth."""
    generator = np.random.default_rng(seed)
    scores, is_right = generator.random(300), generator.random(300) < 0.75
    return best_threshold(scores, is_right, np.ones(300), wrong_shown=WRONG, right_hidden=HIDDEN, seed=seed)

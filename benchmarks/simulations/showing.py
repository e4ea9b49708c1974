"""The price of showing: gates whose cheapest threshold is known, and scores that say nothing."""

from collections.abc import Iterator

import numpy as np

from benchmarks.simulations import Claim, counted
from yarus.metrics.selective import Cheapest, cheapest

REPEATS = 5
WRONG, HIDDEN = 3.0, 1.0
BEST, BEST_OF_REPEATS = WRONG / (WRONG + HIDDEN), 1.0
"""An answer that is right as often as its score says is best shown from here on. After four yes of five it is right in
6 / 8.2 = 0.73 of the cases, by Bayes' rule, which is too little; after five in 7 / 8.2 = 0.85."""


def claims(effort: float) -> Iterator[Claim]:
    """How often the interval holds the cheapest threshold, and how often a useless score seems to save."""
    repetitions = max(40, round(400 * effort))
    for n in (200, 1_000):
        for repeats, best in ((0, BEST), (REPEATS, BEST_OF_REPEATS)):
            found = [planted(n, repeats, seed) for seed in range(repetitions)]
            held = [one.interval.low <= best <= one.interval.high for one in found]
            scored = f"{repeats} repeated answers" if repeats else "a probability"
            yield counted(f"{n} answers, {scored}: the cheapest threshold is in its interval", 0.95, 1, held)
    saves = [useless(seed).saved_interval.low > 0 for seed in range(repetitions)]
    yield counted("300 answers, a score of pure chance: a threshold is said to save", 0, 0.03, saves)


def planted(n: int, repeats: int, seed: int) -> Cheapest:
    """A gate that shows from 0.5 on; `repeats` yes and no say how sure it is, or its probability where that is 0."""
    chance = np.random.default_rng(seed)
    sure = chance.beta(2, 1.2, n)
    right = chance.random(n) < sure
    scores = chance.binomial(repeats, sure) / repeats if repeats else sure
    return cheapest(scores, right, scores >= 0.5, wrong_shown=WRONG, right_hidden=HIDDEN, seed=seed)


def useless(seed: int) -> Cheapest:
    """All is shown, and the score knows nothing of what is right."""
    chance = np.random.default_rng(seed)
    scores, right = chance.random(300), chance.random(300) < 0.75
    return cheapest(scores, right, np.ones(300), wrong_shown=WRONG, right_hidden=HIDDEN, seed=seed)

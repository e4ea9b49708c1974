"""The paired permutation test against scipy's, on the same differences."""

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import stats

from benchmarks import Row, time_in_turn
from yarus.metrics.statistics import permutation_p

Floats = NDArray[np.float64]
RESAMPLES = 10_000


def _mean_difference(x: Floats, y: Floats, axis: int) -> Floats:
    result: Floats = (x - y).mean(axis=axis)
    return result


def run() -> list[Row]:
    generator = np.random.default_rng(1)
    differences = generator.normal(0.002, 0.1, 10_000)
    zeros = np.zeros_like(differences)

    def scipys_p() -> float:
        # Without batches scipy holds all resamples at once: 800 MB here.
        return float(
            stats.permutation_test(
                (differences, zeros),
                _mean_difference,
                permutation_type="samples",
                n_resamples=RESAMPLES,
                batch=500,
                rng=1,
            ).pvalue
        )

    # Both draw at random: equal up to the chance of 10,000 draws.
    p = scipys_p()
    assert abs(permutation_p(differences, seed=1, resamples=RESAMPLES) - p) < 4 * (2 * p * (1 - p) / RESAMPLES) ** 0.5
    peer = f"scipy {scipy.__version__}"
    test = time_in_turn(lambda: permutation_p(differences, seed=1, resamples=RESAMPLES), scipys_p, rounds=3)
    return [Row("paired permutation test, 10,000 cases x 10,000", peer, *test, 5, "at least")]

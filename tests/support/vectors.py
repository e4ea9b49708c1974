"""Vectors that tests of embeddings share."""

from typing import Any

import numpy as np

# Unit vectors at 0, 90 and 45 degrees, and one at 180; lengths differ, which only Euclidean distances see.
EAST, NORTH, NORTHEAST, WEST = [2.0, 0.0], [0.0, 1.0], [3.0, 3.0], [-1.0, 0.0]


def cloud(n: int, d: int, clusters: int, seed: int = 0, dtype: Any = np.float64) -> tuple[np.ndarray, list[int]]:
    """Gaussian clouds around random centres."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, clusters, n)
    return (rng.normal(size=(clusters, d))[labels] + rng.normal(size=(n, d))).astype(dtype), labels.tolist()

"""The geometry of a cloud of vectors: values by hand, scikit-learn's and scipy's values."""

import math

import numpy as np
import pytest

from tests.support.vectors import EAST, NORTH, NORTHEAST, WEST, make_clouds
from yarus.metrics.embedding import (
    centroid_distances,
    density_score,
    effective_dimensionality,
    mean_pairwise_distance,
    nearest_neighbour_distance,
    nearest_neighbour_distances,
    silhouette,
    spread,
)

ROOT = math.sqrt(0.5)


def test_geometry_equals_values_by_hand() -> None:
    # Cosine distances: 0-90: 1, 0-45 and 90-45: 0.292893
    three = [EAST, NORTH, NORTHEAST]
    near = 1 - ROOT
    np.testing.assert_allclose(nearest_neighbour_distances(three, neighbours=1), [near] * 3, atol=1e-15)
    two = [(near + 1) / 2, (near + 1) / 2, near]
    np.testing.assert_allclose(nearest_neighbour_distances(three, neighbours=2), two, atol=1e-15)
    np.testing.assert_allclose(nearest_neighbour_distances(three), two, atol=1e-15)  # 5 asked for, 2 there
    assert nearest_neighbour_distance(three) == pytest.approx((1 + 2 * near) / 3, abs=1e-15)
    assert mean_pairwise_distance(three) == pytest.approx((1 + 2 * near) / 3, abs=1e-15)
    # Euclidean, as they are: the mean of (2, 0), (0, 1), (-1, 0) is (1/3, 1/3)
    expected = [math.hypot(5 / 3, 1 / 3), math.hypot(1 / 3, 2 / 3), math.hypot(4 / 3, 1 / 3)]
    np.testing.assert_allclose(centroid_distances([EAST, NORTH, WEST]), expected, atol=1e-15)
    assert spread([EAST, NORTH, WEST]) == pytest.approx(sum(expected) / 3, abs=1e-15)
    assert density_score(0.25) == 4


# Variances 75, 24 and 1 of 100 along the axes: one holds 0.75, two 0.99.
@pytest.mark.parametrize(("variance", "components"), [(0.95, 2), (0.74, 1), (0.76, 2), (0.98, 2), (0.995, 3)])
def test_effective_dimensionality_by_variance_share(variance: float, components: int) -> None:
    axes = np.diag([math.sqrt(75), math.sqrt(24), 1.0])
    assert effective_dimensionality(np.vstack((axes, -axes)) + 7, variance=variance) == components


def test_geometry_defaults() -> None:
    vectors, _ = make_clouds(40, 6, 3)
    assert nearest_neighbour_distance(vectors) == nearest_neighbour_distance(vectors, neighbours=5)
    assert nearest_neighbour_distance(vectors) != nearest_neighbour_distance(vectors, neighbours=6)
    for largest, components in ((94, 2), (96, 1)):  # of 100, beside 0.5 and the rest
        axes = np.diag(np.sqrt([largest, 99.5 - largest, 0.5]))
        assert effective_dimensionality(np.vstack((axes, -axes))) == components
    assert silhouette(vectors, [0, 1] * 20) == silhouette(vectors, [0, 1] * 20, metric="cosine")


@pytest.mark.parametrize("n", [1500, 1024, 1025])
def test_nearest_distances_equal_sorted_distances(n: int) -> None:
    from scipy.spatial.distance import cdist

    vectors, _ = make_clouds(n, 8, 4)
    distances = cdist(vectors, vectors, "cosine")
    np.fill_diagonal(distances, np.inf)
    expected = np.sort(distances, axis=1)[:, :5].mean(axis=1)
    np.testing.assert_allclose(nearest_neighbour_distances(vectors), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("n", "d"), [(200, 30), (20, 50), (2, 5)])
def test_effective_dimensionality_equals_scikit_learn(n: int, d: int) -> None:
    from sklearn.decomposition import PCA

    vectors = make_clouds(n, d, 4)[0] * np.linspace(0.1, 3, d) + 5
    expected = PCA(n_components=0.95, svd_solver="full").fit(vectors).n_components_
    assert effective_dimensionality(vectors) == expected


def test_effective_dimensionality_with_few_or_many_texts() -> None:
    vectors = np.random.default_rng(3).standard_normal((40, 60))
    square = np.vstack([vectors, vectors])  # 80 texts of 60 dimensions, the same cloud
    assert effective_dimensionality(vectors) == effective_dimensionality(square)

"""Cluster metrics: values worked out by hand, scikit-learn's and scipy's values, memory."""

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.vectors import EAST, NORTH, NORTHEAST, WEST, make_clouds
from yarus.metrics.embedding import (
    cluster_similarities,
    cluster_sizes,
    effective_dimensionality,
    inter_cluster_distance,
    intra_cluster_similarity,
    mean_pairwise_distance,
    nearest_neighbour_distance,
    silhouette,
    silhouette_samples,
    spread,
)

ROOT = math.sqrt(0.5)


def test_cluster_sizes_in_order_of_appearance() -> None:
    assert cluster_sizes(["б", "а", "б", "в", "б"]).tolist() == [3, 1, 1]
    assert cluster_sizes([]).tolist() == []


def test_intra_cluster_similarity_averages_clusters() -> None:
    # x: pairs (0, 90) = 0, (0, 45) = (90, 45) = 0.707107, mean 0.471405; y: one text; z: (180, 45) = -0.707107
    vectors = [EAST, NORTH, NORTHEAST, WEST, WEST, NORTHEAST]
    labels = ["x", "x", "x", "y", "z", "z"]
    np.testing.assert_allclose(cluster_similarities(vectors, labels), [2 * ROOT / 3, np.nan, -ROOT], atol=1e-15)
    assert intra_cluster_similarity(vectors, labels) == pytest.approx((2 * ROOT / 3 - ROOT) / 2, abs=1e-15)


def test_inter_cluster_distance_averages_centroid_pairs() -> None:
    # centroids (1, 0.5), (3, 3), (-1, 0): distances sqrt(4 + 6.25), sqrt(4 + 0.25), sqrt(16 + 9) = 5
    vectors, labels = [EAST, NORTH, NORTHEAST, WEST], [1, 1, 2, 3]
    expected = (math.sqrt(10.25) + math.sqrt(4.25) + 5) / 3
    assert inter_cluster_distance(vectors, labels) == pytest.approx(expected, abs=1e-14)


def test_silhouette_by_hand() -> None:
    # Cosine distances from 0 degrees: 1 to 90, 1 - 0.707107 to 45, 2 to 180. Clusters {0, 45}, {90}, {180}.
    # 0: a = 0.292893, b = 1; 45: a = 0.292893, b = 0.292893 (to 90); the clusters of one: 0.
    vectors, labels = [EAST, NORTHEAST, NORTH, WEST], [0, 0, 1, 2]
    np.testing.assert_allclose(silhouette_samples(vectors, labels), [ROOT, 0, 0, 0], atol=1e-14)
    assert silhouette(vectors, labels) == pytest.approx(ROOT / 4, abs=1e-14)
    # Euclidean, on a line: 0 and 1 against 4: (4 - 1) / 4, (3 - 1) / 3, and 0 for the one alone
    np.testing.assert_allclose(
        silhouette_samples([[0], [1], [4]], list("aab"), metric="euclidean"), [3 / 4, 2 / 3, 0], atol=1e-14
    )


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_cluster_metrics_ignore_rounding_of_equal_vectors(metric: str) -> None:
    vectors = np.tile(np.random.default_rng(0).normal(size=384), (60, 1))
    labels = [0, 1, 2] * 20
    assert silhouette(vectors, labels, metric=metric) == 0
    assert intra_cluster_similarity(vectors, labels) == pytest.approx(1, abs=1e-15)
    assert inter_cluster_distance(vectors, labels) == 0
    assert nearest_neighbour_distance(vectors) == 0
    assert math.isnan(effective_dimensionality(vectors))


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_duplicates_have_zero_distance(metric: str) -> None:
    """Each text twice, both in one cluster: a = 0, so that every text scores 1."""
    vectors, _ = make_clouds(30, 384, 3)
    labels = list(range(30)) * 2
    assert (silhouette_samples(np.vstack((vectors, vectors)), labels, metric=metric) == 1).all()
    assert nearest_neighbour_distance(np.vstack((vectors, vectors)), neighbours=1) == 0


@pytest.mark.slow("breadth: it equals its definition")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize(("n", "d", "clusters"), [(50, 3, 2), (400, 64, 7), (300, 8, 150), (2500, 16, 20)])
def test_silhouette_equals_scikit_learn(n: int, d: int, clusters: int, metric: str, dtype: Any) -> None:
    from sklearn import metrics as peer

    vectors, labels = make_clouds(n, d, clusters, dtype=dtype)
    expected = peer.silhouette_samples(vectors.astype(np.float64), labels, metric=metric)
    np.testing.assert_allclose(silhouette_samples(vectors, labels, metric=metric), expected, rtol=0, atol=1e-9)
    assert silhouette(vectors, labels, metric=metric) == pytest.approx(expected.mean(), abs=1e-9)


def test_similarities_equal_all_pairs_product() -> None:
    from scipy.spatial.distance import pdist
    from sklearn import metrics as peer

    vectors, labels = make_clouds(300, 16, 5)
    similarity, codes = peer.pairwise.cosine_similarity(vectors), np.array(labels)
    means = []
    for cluster in range(5):
        inside = similarity[np.ix_(codes == cluster, codes == cluster)]
        means.append(inside[np.triu_indices(len(inside), 1)].mean())
    assert intra_cluster_similarity(vectors, labels) == pytest.approx(np.mean(means), abs=1e-12)
    centroids = [vectors[codes == cluster].mean(axis=0) for cluster in range(5)]
    assert inter_cluster_distance(vectors, labels) == pytest.approx(pdist(centroids).mean(), abs=1e-12)
    assert mean_pairwise_distance(vectors) == pytest.approx(pdist(vectors, "cosine").mean(), abs=1e-12)


@st.composite
def labelled_vectors(draw: st.DrawFn) -> tuple[np.ndarray, list[str]]:
    """Draw small integer vectors, many of them equal, none zero, with labels."""
    n = draw(st.integers(2, 12))
    row = st.lists(st.integers(-3, 3), min_size=3, max_size=3).filter(any)
    return np.array(draw(st.lists(row, min_size=n, max_size=n)), float), draw(
        st.lists(st.sampled_from("абв"), min_size=n, max_size=n)
    )


@given(labelled_vectors(), st.randoms(use_true_random=False))
def test_cluster_metrics_range_and_order(data: tuple[np.ndarray, list[str]], rng: Any) -> None:
    vectors, labels = data
    order = rng.sample(range(len(labels)), len(labels))
    moved, names = vectors[order], [labels[row] for row in order]
    for function, low, high in (
        (intra_cluster_similarity, -1, 1),
        (inter_cluster_distance, 0, math.inf),
        (silhouette, -1, 1),
        (lambda v, n: silhouette(v, n, metric="euclidean"), -1, 1),
        (lambda v, _: nearest_neighbour_distance(v), 0, 2),
        (lambda v, _: mean_pairwise_distance(v), 0, 2),
        (lambda v, _: spread(v), 0, math.inf),
    ):
        value = function(vectors, labels)
        assert math.isnan(value) or low <= value <= high
        assert function(moved, names) == pytest.approx(value, abs=1e-9, nan_ok=True)


@given(labelled_vectors())
def test_silhouette_equals_its_definition(data: tuple[np.ndarray, list[str]]) -> None:
    from scipy.spatial.distance import cdist

    vectors, labels = data
    codes = np.array(labels)
    for metric in ("cosine", "euclidean"):
        distances = cdist(vectors, vectors, metric)
        distances[distances < 1e-12] = 0
        expected = []
        for row, label in enumerate(labels):
            own = (codes == label) & (np.arange(len(codes)) != row)
            distances_to_others = [distances[row, codes == other_label].mean() for other_label in set(labels) - {label}]
            a, b = distances[row, own].mean() if own.any() else math.nan, min(distances_to_others, default=math.nan)
            expected.append((b - a) / max(a, b) if own.any() and max(a, b) > 0 else 0 * b)
        scores = silhouette_samples(vectors, labels, metric=metric)
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-9)


def test_separate_clusters_score_best() -> None:
    vectors, labels = np.repeat(np.eye(4), 5, axis=0), [0, 1, 2, 3] * 5
    separate_labels = sorted(labels)
    assert silhouette(vectors, separate_labels) == silhouette(vectors, separate_labels, metric="euclidean") == 1
    assert intra_cluster_similarity(vectors, separate_labels) == 1
    assert silhouette(vectors, labels) < 0
    assert intra_cluster_similarity(vectors, labels) < 1


@pytest.mark.slow("breadth: it equals its definition")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_silhouette_of_50000_vectors_needs_under_100_mb(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(50_000, 384)).astype(dtype)
    labels = rng.integers(0, 50, 50_000).tolist()
    tracemalloc.start()
    try:
        silhouette(vectors, labels)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100e6

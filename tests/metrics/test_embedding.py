"""Cluster metrics and geometry: values worked out by hand, scikit-learn's and scipy's values, bad input, memory."""

import math
import re
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist, pdist
from sklearn import metrics as peer
from sklearn.decomposition import PCA

from metrics.embedding import (
    centroid_distances,
    cluster_similarities,
    cluster_sizes,
    density_score,
    effective_dimensionality,
    inter_cluster_distance,
    intra_cluster_similarity,
    mean_pairwise_distance,
    nearest_neighbour_distance,
    nearest_neighbour_distances,
    silhouette,
    silhouette_samples,
    spread,
)
from metrics.embedding import vectors as vectors_module

ROOT = math.sqrt(0.5)
# Unit vectors at 0, 90 and 45 degrees, and one at 180; lengths differ, which only Euclidean distances see.
EAST, NORTH, NORTHEAST, WEST = [2.0, 0.0], [0.0, 1.0], [3.0, 3.0], [-1.0, 0.0]


def cloud(n: int, d: int, clusters: int, seed: int = 0, dtype: Any = np.float64) -> tuple[np.ndarray, list[int]]:
    """Gaussian clouds around random centres."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, clusters, n)
    return (rng.normal(size=(clusters, d))[labels] + rng.normal(size=(n, d))).astype(dtype), labels.tolist()


# Golden values


def test_clusters_are_counted_in_order_of_first_appearance() -> None:
    assert cluster_sizes(["б", "а", "б", "в", "б"]).tolist() == [3, 1, 1]
    assert cluster_sizes([]).tolist() == []


def test_intra_cluster_similarity_is_the_mean_over_clusters() -> None:
    # x: pairs (0, 90) = 0, (0, 45) = (90, 45) = 0.707107, mean 0.471405; y: one text; z: (180, 45) = -0.707107
    vectors = [EAST, NORTH, NORTHEAST, WEST, WEST, NORTHEAST]
    labels = ["x", "x", "x", "y", "z", "z"]
    np.testing.assert_allclose(cluster_similarities(vectors, labels), [2 * ROOT / 3, np.nan, -ROOT], atol=1e-15)
    assert intra_cluster_similarity(vectors, labels) == pytest.approx((2 * ROOT / 3 - ROOT) / 2, abs=1e-15)


def test_inter_cluster_distance_is_the_mean_over_pairs_of_centroids() -> None:
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


def test_geometry_by_hand() -> None:
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
def test_components_needed_for_a_share_of_the_variance(variance: float, components: int) -> None:
    axes = np.diag([math.sqrt(75), math.sqrt(24), 1.0])
    assert effective_dimensionality(np.vstack((axes, -axes)) + 7, variance=variance) == components


def test_five_neighbours_and_95_percent_are_the_defaults() -> None:
    vectors, _ = cloud(40, 6, 3)
    assert nearest_neighbour_distance(vectors) == nearest_neighbour_distance(vectors, neighbours=5)
    assert nearest_neighbour_distance(vectors) != nearest_neighbour_distance(vectors, neighbours=6)
    for largest, components in ((94, 2), (96, 1)):  # of 100, beside 0.5 and the rest
        axes = np.diag(np.sqrt([largest, 99.5 - largest, 0.5]))
        assert effective_dimensionality(np.vstack((axes, -axes))) == components
    assert silhouette(vectors, [0, 1] * 20) == silhouette(vectors, [0, 1] * 20, metric="cosine")


# Undefined, and limits


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (lambda: intra_cluster_similarity([EAST, WEST], [0, 1]), math.nan),  # clusters of one only
        (lambda: intra_cluster_similarity([], []), math.nan),
        (lambda: inter_cluster_distance([EAST, WEST], [0, 0]), math.nan),
        (lambda: inter_cluster_distance([], []), math.nan),
        (lambda: silhouette([EAST, WEST], [0, 0]), math.nan),
        (lambda: silhouette([], []), math.nan),
        (lambda: silhouette([EAST, WEST], [0, 0], metric="euclidean"), math.nan),
        (lambda: silhouette([EAST, WEST], [0, 1]), 0),  # Rousseeuw: 0 for a cluster of one
        (lambda: silhouette([EAST, WEST], [0, 1], metric="euclidean"), 0),
        (lambda: inter_cluster_distance([[0, 0], [3, 4]], [0, 1]), 5),  # a zero vector has a place, if no direction
        (lambda: silhouette([[0], [0], [2]], [0, 0, 1], metric="euclidean"), 2 / 3),
        (lambda: nearest_neighbour_distance([EAST]), math.nan),
        (lambda: nearest_neighbour_distance([]), math.nan),
        (lambda: mean_pairwise_distance([EAST]), math.nan),
        (lambda: mean_pairwise_distance([EAST, WEST]), 2),
        (lambda: spread([]), math.nan),
        (lambda: spread([EAST]), 0),
        (lambda: effective_dimensionality([EAST]), math.nan),
        (lambda: effective_dimensionality([]), math.nan),
        (lambda: effective_dimensionality([EAST, WEST]), 1),
        (lambda: density_score(0.0), math.nan),
        (lambda: density_score(math.nan), math.nan),
    ],
)
def test_undefined_and_limits(value: Callable[[], float], expected: float) -> None:
    assert value() == pytest.approx(expected, abs=1e-15, nan_ok=True)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_equal_vectors_are_not_scored_on_rounding(metric: str) -> None:
    vectors = np.tile(np.random.default_rng(0).normal(size=384), (60, 1))
    labels = [0, 1, 2] * 20
    assert silhouette(vectors, labels, metric=metric) == 0
    assert intra_cluster_similarity(vectors, labels) == pytest.approx(1, abs=1e-15)
    assert inter_cluster_distance(vectors, labels) == 0
    assert nearest_neighbour_distance(vectors) == 0
    assert math.isnan(effective_dimensionality(vectors))


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_duplicates_have_distance_0(metric: str) -> None:
    """Each text twice, both in one cluster: a = 0, so that every text scores 1."""
    vectors, _ = cloud(30, 384, 3)
    labels = list(range(30)) * 2
    assert (silhouette_samples(np.vstack((vectors, vectors)), labels, metric=metric) == 1).all()
    assert nearest_neighbour_distance(np.vstack((vectors, vectors)), neighbours=1) == 0


# Parity


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize(("n", "d", "clusters"), [(50, 3, 2), (400, 64, 7), (300, 8, 150), (2500, 16, 20)])
def test_silhouette_equals_scikit_learn(n: int, d: int, clusters: int, metric: str, dtype: Any) -> None:
    vectors, labels = cloud(n, d, clusters, dtype=dtype)
    expected = peer.silhouette_samples(vectors.astype(np.float64), labels, metric=metric)
    np.testing.assert_allclose(silhouette_samples(vectors, labels, metric=metric), expected, rtol=0, atol=1e-9)
    assert silhouette(vectors, labels, metric=metric) == pytest.approx(expected.mean(), abs=1e-9)


def test_small_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, labels = cloud(2100, 9, 12)

    def all_metrics() -> list[float]:
        return [
            silhouette(vectors, labels),
            silhouette(vectors, labels, metric="euclidean"),
            intra_cluster_similarity(vectors, labels),
            inter_cluster_distance(vectors, labels),
            spread(vectors),
            effective_dimensionality(vectors),
        ]

    whole = all_metrics()
    monkeypatch.setattr(vectors_module, "BLOCK_VALUES", 100)
    assert all_metrics() == pytest.approx(whole, rel=1e-12)


def test_similarities_equal_the_product_of_all_pairs() -> None:
    vectors, labels = cloud(300, 16, 5)
    similarity, codes = peer.pairwise.cosine_similarity(vectors), np.array(labels)
    means = []
    for cluster in range(5):
        inside = similarity[np.ix_(codes == cluster, codes == cluster)]
        means.append(inside[np.triu_indices(len(inside), 1)].mean())
    assert intra_cluster_similarity(vectors, labels) == pytest.approx(np.mean(means), abs=1e-12)
    centroids = [vectors[codes == cluster].mean(axis=0) for cluster in range(5)]
    assert inter_cluster_distance(vectors, labels) == pytest.approx(pdist(centroids).mean(), abs=1e-12)
    assert mean_pairwise_distance(vectors) == pytest.approx(pdist(vectors, "cosine").mean(), abs=1e-12)


@pytest.mark.parametrize("n", [1500, 1024, 1025])
def test_neighbours_equal_all_distances_sorted(n: int) -> None:
    vectors, _ = cloud(n, 8, 4)
    distances = cdist(vectors, vectors, "cosine")
    np.fill_diagonal(distances, np.inf)
    expected = np.sort(distances, axis=1)[:, :5].mean(axis=1)
    np.testing.assert_allclose(nearest_neighbour_distances(vectors), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("n", "d"), [(200, 30), (20, 50), (2, 5)])
def test_components_equal_scikit_learn(n: int, d: int) -> None:
    vectors = cloud(n, d, 4)[0] * np.linspace(0.1, 3, d) + 5
    expected = PCA(n_components=0.95, svd_solver="full").fit(vectors).n_components_
    assert effective_dimensionality(vectors) == expected


# Properties


@st.composite
def labelled(draw: st.DrawFn) -> tuple[np.ndarray, list[str]]:
    """Small integer vectors, many of them equal, none zero."""
    n = draw(st.integers(2, 12))
    row = st.lists(st.integers(-3, 3), min_size=3, max_size=3).filter(any)
    return np.array(draw(st.lists(row, min_size=n, max_size=n)), float), draw(
        st.lists(st.sampled_from("абв"), min_size=n, max_size=n)
    )


@given(labelled(), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_range_and_order(data: tuple[np.ndarray, list[str]], rng: Any) -> None:
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


@given(labelled())
@settings(deadline=None)
def test_silhouette_equals_its_definition(data: tuple[np.ndarray, list[str]]) -> None:
    vectors, labels = data
    codes = np.array(labels)
    for metric in ("cosine", "euclidean"):
        distances = cdist(vectors, vectors, metric)
        distances[distances < 1e-12] = 0
        expected = []
        for row, label in enumerate(labels):
            own = (codes == label) & (np.arange(len(codes)) != row)
            others = [distances[row, codes == other].mean() for other in set(labels) - {label}]
            a, b = distances[row, own].mean() if own.any() else math.nan, min(others, default=math.nan)
            expected.append((b - a) / max(a, b) if own.any() and max(a, b) > 0 else 0 * b)
        found = silhouette_samples(vectors, labels, metric=metric)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_separate_clusters_are_best() -> None:
    vectors, labels = np.repeat(np.eye(4), 5, axis=0), [0, 1, 2, 3] * 5
    apart = sorted(labels)
    assert silhouette(vectors, apart) == silhouette(vectors, apart, metric="euclidean") == 1
    assert intra_cluster_similarity(vectors, apart) == 1
    assert silhouette(vectors, labels) < 0
    assert intra_cluster_similarity(vectors, labels) < 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_cosine_silhouette_of_50000_takes_less_than_100_mb(dtype: Any) -> None:
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


def test_input_is_left_as_it_was() -> None:
    vectors, labels = cloud(30, 4, 3)
    before = vectors.copy()
    silhouette(vectors, labels)
    silhouette(vectors, labels, metric="euclidean")
    nearest_neighbour_distance(vectors)
    np.testing.assert_array_equal(vectors, before)


# Bad input

ALL = {
    "cosine": [
        intra_cluster_similarity,
        silhouette,
        lambda vectors, _: nearest_neighbour_distance(vectors),
        lambda vectors, _: mean_pairwise_distance(vectors),
    ],
    "euclidean": [
        inter_cluster_distance,
        lambda vectors, labels: silhouette(vectors, labels, metric="euclidean"),
        lambda vectors, _: spread(vectors),
        lambda vectors, _: effective_dimensionality(vectors),
    ],
}


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e200])
def test_vectors_that_are_not_finite_are_named(bad: float) -> None:
    for function in ALL["cosine"] + ALL["euclidean"]:
        with pytest.raises(ValueError, match="vector 2 is not finite, or too long to be squared"):
            function([EAST, WEST, [0.0, bad], NORTH], [0, 1, 0, 1])


@pytest.mark.parametrize("zero", [0.0, 1e-160])
def test_zero_vectors_are_named_where_a_cosine_is_asked_for(zero: float) -> None:
    for function in ALL["cosine"]:
        with pytest.raises(ValueError, match="vector 1 is zero: it has no cosine"):
            function([EAST, [0.0, zero], NORTH], [0, 1, 0])


def test_lengths_and_shapes_are_checked() -> None:
    for function in (intra_cluster_similarity, inter_cluster_distance, silhouette):
        with pytest.raises(ValueError, match="2 vectors but 3 labels"):
            function([EAST, WEST], [0, 1, 1])
        with pytest.raises(ValueError, match=re.escape("text 1 has no label (None)")):
            function([EAST, WEST], [0, None])
    with pytest.raises(ValueError, match=re.escape("vectors of shape (2,) are not (texts, dimensions)")):
        silhouette([1.0, 2.0], [0, 1])
    with pytest.raises(ValueError, match="no metric 'cosinus'; there are: cosine, euclidean"):
        silhouette([EAST, WEST], [0, 1], metric="cosinus")
    with pytest.raises(ValueError, match="neighbours = 0 is below 1"):
        nearest_neighbour_distances([EAST, WEST], neighbours=0)
    for variance in (0.0, 1.0):
        with pytest.raises(ValueError, match=f"variance = {variance} is not a share between 0 and 1"):
            effective_dimensionality([EAST, WEST], variance=variance)


def test_a_label_that_is_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="text 1 has no label"):
        silhouette([[1, 0], [1, 0.1], [0, 1]], ["a", float("nan"), "b"])


def test_dimensions_are_the_same_whichever_are_fewer() -> None:
    vectors = np.random.default_rng(3).standard_normal((40, 60))
    square = np.vstack([vectors, vectors])  # 80 texts of 60 dimensions, the same cloud
    assert effective_dimensionality(vectors) == effective_dimensionality(square)

"""Input of embedding metrics: bad, undefined, and not modified."""

import math
import re
from collections.abc import Callable

import numpy as np
import pytest

from tests.support.examples import for_all
from tests.support.vectors import EAST, NORTH, WEST, make_clouds
from yarus.metrics.embedding import (
    density_score,
    effective_dimensionality,
    inter_cluster_distance,
    intra_cluster_similarity,
    mean_pairwise_distance,
    nearest_neighbour_distance,
    nearest_neighbour_distances,
    silhouette,
    spread,
)
from yarus.metrics.embedding import vectors as vectors_module


@for_all(
    "value, expected",
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
def test_embedding_metrics_undefined_and_limits(value: Callable[[], float], expected: float) -> None:
    assert value() == pytest.approx(expected, abs=1e-15, nan_ok=True)


def test_embedding_metrics_independent_of_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, labels = make_clouds(700, 9, 12)

    def all_metrics() -> list[float]:
        return [
            silhouette(vectors, labels),
            silhouette(vectors, labels, metric="euclidean"),
            intra_cluster_similarity(vectors, labels),
            inter_cluster_distance(vectors, labels),
            spread(vectors),
            effective_dimensionality(vectors),
        ]

    expected = all_metrics()
    monkeypatch.setattr(vectors_module, "BLOCK_VALUES", 100)
    assert all_metrics() == pytest.approx(expected, rel=1e-12)


def test_embedding_metrics_keep_input() -> None:
    vectors, labels = make_clouds(30, 4, 3)
    before = vectors.copy()
    silhouette(vectors, labels)
    silhouette(vectors, labels, metric="euclidean")
    nearest_neighbour_distance(vectors)
    np.testing.assert_array_equal(vectors, before)


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
def test_infinite_vectors_are_refused(bad: float) -> None:
    for function in ALL["cosine"] + ALL["euclidean"]:
        with pytest.raises(ValueError, match="vector 2 is not finite, or too long to be squared"):
            function([EAST, WEST, [0.0, bad], NORTH], [0, 1, 0, 1])


@pytest.mark.parametrize("zero", [0.0, 1e-160])
def test_zero_vectors_are_refused_by_cosine_metrics(zero: float) -> None:
    for function in ALL["cosine"]:
        with pytest.raises(ValueError, match="vector 1 is zero: it has no cosine"):
            function([EAST, [0.0, zero], NORTH], [0, 1, 0])


def test_embedding_metrics_refuse_bad_shapes() -> None:
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


def test_nan_labels_are_refused() -> None:
    with pytest.raises(ValueError, match="text 1 has no label"):
        silhouette([[1, 0], [1, 0.1], [0, 1]], ["a", float("nan"), "b"])

"""Cluster metrics of 50,000 vectors of 384 dimensions in 50 clusters, against scikit-learn and the naive product."""

from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import silhouette_samples

from benchmarks import Row, time_in_turn
from yarus.metrics import embedding

N, D, CLUSTERS, CHECKED = 50_000, 384, 50, 2_000
Floats = NDArray[np.float64]


def draw_clusters() -> tuple[Floats, list[int]]:
    """Return Gaussian clouds around random centers, about as wide as the distances of the centers."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLUSTERS, N)
    return rng.normal(size=(CLUSTERS, D))[labels] + rng.normal(size=(N, D)), labels.tolist()


def silhouette_by_scikit_learn(vectors: Floats, labels: list[int]) -> Any:
    return silhouette_samples(vectors, labels, metric="cosine")


def similarity_by_product(vectors: Floats, labels: list[int]) -> float:
    """Compute all cosines of each cluster as one matrix product, without the diagonal."""
    unit_vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    codes, means = np.asarray(labels), []
    for cluster in range(CLUSTERS):
        members = unit_vectors[codes == cluster]
        n = len(members)
        means.append(((members @ members.T).sum() - n) / (n * (n - 1)))
    return float(np.mean(means))


def compare_times(
    what: str, peer_name: str, ours: Callable[[], Any], peer: Callable[[], Any], target: float, rounds: int
) -> Row:
    """Return the ratio, after a check that the timed results are equal."""
    values: dict[str, Any] = {}
    seconds = time_in_turn(lambda: values.update(ours=ours()), lambda: values.update(peer=peer()), rounds=rounds)
    np.testing.assert_allclose(values["ours"], values["peer"], rtol=0, atol=1e-9)
    return Row(what, peer_name, *seconds, target, "at least")


def run() -> Iterator[Row]:
    """Yield silhouette and intra-cluster similarity; one round for scikit-learn, which takes most of a minute."""
    vectors, labels = draw_clusters()
    points, codes = vectors[:CHECKED], labels[:CHECKED]
    np.testing.assert_allclose(
        embedding.silhouette_samples(points, codes), silhouette_by_scikit_learn(points, codes), rtol=0, atol=1e-9
    )
    np.testing.assert_allclose(
        embedding.intra_cluster_similarity(points, codes), similarity_by_product(points, codes), rtol=0, atol=1e-9
    )
    shape = f"{N:,} x {D} in {CLUSTERS} clusters"
    yield compare_times(
        f"intra-cluster similarity, {shape}",
        f"naive product, numpy {version('numpy')}",
        lambda: embedding.intra_cluster_similarity(vectors, labels),
        lambda: similarity_by_product(vectors, labels),
        target=8,
        rounds=5,
    )
    yield compare_times(
        f"cosine silhouette, {shape}",
        f"scikit-learn {version('scikit-learn')}",
        lambda: embedding.silhouette_samples(vectors, labels),
        lambda: silhouette_by_scikit_learn(vectors, labels),
        target=300,
        rounds=1,
    )

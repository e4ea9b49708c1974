"""Cluster metrics of 50,000 vectors of 384 dimensions in 50 clusters, against scikit-learn and the naive product."""

from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import silhouette_samples

from benchmarks import Row, medians
from yarus.metrics import embedding

N, D, CLUSTERS, CHECKED = 50_000, 384, 50, 2_000
Floats = NDArray[np.float64]


def clusters() -> tuple[Floats, list[int]]:
    """Gaussian clouds around random centres, about as wide as the centres are apart."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLUSTERS, N)
    return rng.normal(size=(CLUSTERS, D))[labels] + rng.normal(size=(N, D)), labels.tolist()


def by_scikit_learn(vectors: Floats, labels: list[int]) -> Any:
    return silhouette_samples(vectors, labels, metric="cosine")


def by_product(vectors: Floats, labels: list[int]) -> float:
    """All cosines of each cluster as one matrix product, the diagonal left out."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    codes, means = np.asarray(labels), []
    for cluster in range(CLUSTERS):
        of_cluster = unit[codes == cluster]
        n = len(of_cluster)
        means.append(((of_cluster @ of_cluster.T).sum() - n) / (n * (n - 1)))
    return float(np.mean(means))


def compared(
    what: str, peer_name: str, ours: Callable[[], Any], peer: Callable[[], Any], target: float, rounds: int
) -> Row:
    """The ratio, after a check that what was timed is equal too."""
    values: dict[str, Any] = {}
    seconds = medians(lambda: values.update(ours=ours()), lambda: values.update(peer=peer()), rounds=rounds)
    np.testing.assert_allclose(values["ours"], values["peer"], rtol=0, atol=1e-9)
    return Row(what, peer_name, *seconds, target, "at least")


def run() -> Iterator[Row]:
    """Silhouette and intra-cluster similarity; one round for scikit-learn, which takes most of a minute."""
    vectors, labels = clusters()
    some, names = vectors[:CHECKED], labels[:CHECKED]
    np.testing.assert_allclose(
        embedding.silhouette_samples(some, names), by_scikit_learn(some, names), rtol=0, atol=1e-9
    )
    np.testing.assert_allclose(
        embedding.intra_cluster_similarity(some, names), by_product(some, names), rtol=0, atol=1e-9
    )
    shape = f"{N:,} x {D} in {CLUSTERS} clusters"
    yield compared(
        f"intra-cluster similarity, {shape}",
        f"naive product, numpy {version('numpy')}",
        lambda: embedding.intra_cluster_similarity(vectors, labels),
        lambda: by_product(vectors, labels),
        target=8,
        rounds=5,
    )
    yield compared(
        f"cosine silhouette, {shape}",
        f"scikit-learn {version('scikit-learn')}",
        lambda: embedding.silhouette_samples(vectors, labels),
        lambda: by_scikit_learn(vectors, labels),
        target=300,
        rounds=1,
    )

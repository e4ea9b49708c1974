"""Cohesion and separation of labelled clusters."""

from collections.abc import Callable, Hashable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from yarus.metrics.embedding.vectors import (
    BLOCK_VALUES,
    ROUNDING,
    Blocks,
    Codes,
    Floats,
    Matrix,
    as_matrix,
    blocks,
    cluster_codes,
    euclidean_distances,
    mean_defined,
    squared_lengths,
    vector_lengths,
)


def cluster_sizes(labels: Iterable[Hashable]) -> Codes:
    """Return the number of texts per cluster, in order of first appearance; clusters of one are `(sizes == 1).sum()`.

    Example:
        >>> from yarus.metrics.embedding import cluster_sizes
        >>> cluster_sizes(["приём", "сессия", "приём"])
        array([2, 1])
    """
    return np.asarray(np.bincount(cluster_codes(labels)), dtype=np.int64)


def cluster_similarities(vectors: ArrayLike, labels: Iterable[Hashable]) -> Floats:
    """Return the mean cosine over the pairs of each cluster: (|sum of unit vectors|^2 - n) / (n (n - 1)).

    Args:
        vectors: (n, d), none of them zero.
        labels: n cluster names.

    Returns:
        float64, one per cluster in order of first appearance, -1 to 1; NaN for a cluster of one.

    Raises:
        ValueError: lengths differ, a text without label, a vector that is zero, NaN or infinite.

    Stored as: `response_semantic_consistency` (metrics/table/generation.py).

    Example:
        >>> from yarus.metrics.embedding import cluster_similarities
        >>> cluster_similarities([[1, 0], [3, 4], [0, 1]], ["приём", "приём", "сессия"])
        array([0.6, nan])
    """
    matrix, codes, sizes = _prepare(vectors, labels)
    sums = _cluster_sums(matrix, codes, len(sizes), 1 / vector_lengths(matrix))
    pairs = np.where(sizes > 1, sizes * (sizes - 1.0), np.nan)
    return np.asarray(np.minimum((squared_lengths(sums) - sizes) / pairs, 1))  # rounding may exceed 1


def intra_cluster_similarity(vectors: ArrayLike, labels: Iterable[Hashable]) -> float:
    """Return the mean over clusters of the mean pairwise cosine; clusters of one are left out (see `cluster_sizes`).

    Args:
        vectors: (n, d), none of them zero.
        labels: n cluster names.

    Returns:
        -1 to 1, higher is tighter; NaN if no cluster has two texts.

    Raises:
        ValueError: lengths differ, a text without label, a vector that is zero, NaN or infinite.

    Stored as: `avg_intra_cluster_sim` (metrics/table/embedding.py).

    Example:
        >>> from yarus.metrics.embedding import intra_cluster_similarity
        >>> round(intra_cluster_similarity([[1, 0], [3, 4], [0, 1]], ["приём", "приём", "сессия"]), 3)
        0.6
    """
    return mean_defined(cluster_similarities(vectors, labels))


def inter_cluster_distance(vectors: ArrayLike, labels: Iterable[Hashable]) -> float:
    """Return the mean Euclidean distance between all pairs of centroids (means of the original vectors).

    Args:
        vectors: (n, d).
        labels: n cluster names.

    Returns:
        0 or more, higher is further apart; NaN below 2 clusters.

    Raises:
        ValueError: lengths differ, a text without label, a vector that is NaN or infinite.

    Stored as: `avg_inter_cluster_dist` (metrics/table/embedding.py).

    Example:
        >>> from yarus.metrics.embedding import inter_cluster_distance
        >>> inter_cluster_distance([[0, 0], [0, 2], [3, 5]], ["приём", "приём", "сессия"])  # from (0, 1) to (3, 5)
        5.0
    """
    matrix, codes, sizes = _prepare(vectors, labels)
    centroids = _cluster_sums(matrix, codes, len(sizes), np.ones(len(matrix))) / sizes[:, None]
    total = sum(float(distances.sum()) for _, distances in euclidean_distances(centroids))
    return total / (len(sizes) * (len(sizes) - 1)) if len(sizes) > 1 else np.nan


def silhouette_samples(vectors: ArrayLike, labels: Iterable[Hashable], *, metric: str = "cosine") -> Floats:
    """Return each text's silhouette (b - a) / max(a, b): mean distances a to its own, b to the nearest other cluster.

    Args:
        vectors: (n, d); none of them zero for cosine.
        labels: n cluster names.
        metric: "cosine", in time n x clusters x d, or "euclidean", in n^2 x d; either in blocks of bounded memory.

    Returns:
        float64 (n,), -1 to 1, higher is better; 0 in a cluster of one and if a = b = 0; NaN below 2 clusters.

    Raises:
        ValueError: lengths differ, a text without label, a vector NaN, infinite or (cosine) zero, another metric.

    Reference: Rousseeuw 1987, Silhouettes: a graphical aid to the interpretation and validation of cluster analysis.
    Equal to scikit-learn's silhouette_samples, which however refuses n clusters of one; here they are 0.

    Example:
        >>> from yarus.metrics.embedding import silhouette_samples
        >>> silhouette_samples([[1, 0], [1, 0], [0, 1], [3, 4]], ["а", "а", "б", "б"]).round(3)
        array([1. , 1. , 0.8, 0.5])
    """
    if metric not in _TO_CLUSTERS:
        raise ValueError(f"no metric {metric!r}; there are: {', '.join(_TO_CLUSTERS)}")
    matrix, codes, sizes = _prepare(vectors, labels)
    scores = np.full(len(matrix), np.nan)
    if len(sizes) < 2:
        return scores
    for rows, sums in _TO_CLUSTERS[metric](matrix, codes, sizes):
        own_cluster = np.arange(len(sums)), codes[rows]
        within = sums[own_cluster] / np.maximum(sizes[codes[rows]] - 1, 1)
        means = sums / sizes
        means[own_cluster] = np.inf
        nearest = means.min(axis=1)
        larger = np.maximum(within, nearest)
        defined = (larger > 0) & (sizes[codes[rows]] > 1)
        scores[rows] = np.divide(nearest - within, larger, out=np.zeros(len(sums)), where=defined)
    return scores


def silhouette(vectors: ArrayLike, labels: Iterable[Hashable], *, metric: str = "cosine") -> float:
    """Return the mean silhouette over texts; see `silhouette_samples` for arguments and errors.

    Returns:
        -1 to 1, higher is better; NaN below 2 clusters. It depends on the number of clusters and on the sample: compare
        it on the same texts only.

    Stored as: `silhouette_score` (metrics/table/embedding.py).

    Example:
        >>> from yarus.metrics.embedding import silhouette
        >>> silhouette([[1, 0], [1, 0], [0, 1], [0, 1]], ["а", "а", "б", "б"])
        1.0
        >>> silhouette([[1, 0], [1, 0], [0, 1], [0, 1]], ["а", "б", "а", "б"])
        -0.5
    """
    return mean_defined(silhouette_samples(vectors, labels, metric=metric))


def _prepare(vectors: ArrayLike, labels: Iterable[Hashable]) -> tuple[Matrix, Codes, Codes]:
    """Return the vectors, the number of each vector's cluster, and the sizes of the clusters."""
    matrix, codes = as_matrix(vectors), cluster_codes(labels)
    if len(matrix) != len(codes):
        raise ValueError(f"{len(matrix)} vectors but {len(codes)} labels; give one label per vector")
    return matrix, codes, np.bincount(codes)


def _cluster_sums(rows: Matrix, codes: Codes, clusters: int, weights: Floats) -> Floats:
    """Return (clusters, width) weighted sums of rows; as fast as SciPy's product, which takes 0.3 s to import."""
    sums = np.zeros((clusters, rows.shape[1]))
    ends = np.cumsum(np.bincount(codes, minlength=clusters))
    for cluster, members in enumerate(np.split(np.argsort(codes, kind="stable"), ends)[:-1]):
        for part in np.array_split(members, len(members) * rows.shape[1] // BLOCK_VALUES + 1):
            sums[cluster] += weights[part] @ rows[part].astype(np.float64, copy=False)
    return sums


def _cosine_to_clusters(matrix: Matrix, codes: Codes, sizes: Codes) -> Blocks:
    """Return (rows, clusters) sums of cosine distances to the texts of each cluster, by the sum of its unit vectors."""
    lengths = vector_lengths(matrix)
    sums = _cluster_sums(matrix, codes, len(sizes), 1 / lengths)
    for rows, block in blocks(matrix, width=max(sums.shape)):
        distances = sizes - (block @ sums.T) / lengths[rows, None]
        np.copyto(distances, 0, where=distances < ROUNDING * sizes)
        yield rows, distances


def _euclidean_to_clusters(matrix: Matrix, codes: Codes, sizes: Codes) -> Blocks:
    """Return (rows, clusters) sums of Euclidean distances to the texts of each cluster."""
    weights = np.ones(len(matrix))
    for rows, distances in euclidean_distances(matrix):
        yield rows, _cluster_sums(distances, codes, len(sizes), weights).T


_TO_CLUSTERS: dict[str, Callable[[Matrix, Codes, Codes], Blocks]] = {
    "cosine": _cosine_to_clusters,
    "euclidean": _euclidean_to_clusters,
}

"""Embedding quality: how well labelled clusters hold together and stand apart, and the geometry of the whole cloud.

Vectors are (n, d), one row a text; labels are n cluster names. All work is done in float64, block by block, whatever
comes in. A vector that is NaN or infinite is an error that names its row; so is a zero vector where a cosine is asked
for: it has none.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

Floats: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int64]
Matrix: TypeAlias = NDArray[Any]  # (n, d), float32 or float64 as given
Blocks: TypeAlias = Iterator[tuple[slice, Floats]]

BLOCK_VALUES = 2**21  # numbers in a block: 16 MB
# A cosine distance below this is rounding: equal vectors have distance 0, not 2e-16, and the silhouette 0, not noise.
ROUNDING = 1e-12
# The same for squared Euclidean distances, which lose half the digits: relative to the longest vector's square.
ROUNDING_SQUARED = 1e-14


def cluster_sizes(labels: Iterable[Hashable]) -> Codes:
    """Number of texts of each cluster, in order of first appearance; clusters of one are `(sizes == 1).sum()`."""
    return np.asarray(np.bincount(cluster_codes(labels)), dtype=np.int64)


def cluster_similarities(vectors: ArrayLike, labels: Iterable[Hashable]) -> Floats:
    """Mean cosine over the pairs of different texts of each cluster; (|sum of unit vectors|^2 - n) / (n (n - 1)).

    Args:
        vectors: (n, d), none of them zero.
        labels: n cluster names.

    Returns:
        float64, one a cluster in order of first appearance, -1 to 1; NaN for a cluster of one.

    Raises:
        ValueError: lengths differ, a text without label, a vector that is zero, NaN or infinite.
    """
    matrix, codes, sizes = _clustered(vectors, labels)
    sums = _cluster_sums(matrix, codes, len(sizes), 1 / vector_lengths(matrix))
    pairs = np.where(sizes > 1, sizes * (sizes - 1.0), np.nan)
    return np.asarray(np.minimum((_squares(sums) - sizes) / pairs, 1))  # rounding may lead above


def intra_cluster_similarity(vectors: ArrayLike, labels: Iterable[Hashable]) -> float:
    """Mean over clusters of the mean pairwise cosine; clusters of one are left out (see `cluster_sizes`).

    Args:
        vectors: (n, d), none of them zero.
        labels: n cluster names.

    Returns:
        -1 to 1, higher is tighter; NaN where no cluster has two texts.

    Raises:
        ValueError: lengths differ, a text without label, a vector that is zero, NaN or infinite.
    """
    return mean_defined(cluster_similarities(vectors, labels))


def inter_cluster_distance(vectors: ArrayLike, labels: Iterable[Hashable]) -> float:
    """Mean Euclidean distance between all pairs of centroids (means of the vectors as they are).

    Args:
        vectors: (n, d).
        labels: n cluster names.

    Returns:
        0 or more, higher is further apart; NaN below 2 clusters.

    Raises:
        ValueError: lengths differ, a text without label, a vector that is NaN or infinite.
    """
    matrix, codes, sizes = _clustered(vectors, labels)
    centroids = _cluster_sums(matrix, codes, len(sizes), np.ones(len(matrix))) / sizes[:, None]
    total = sum(float(distances.sum()) for _, distances in _euclidean(centroids))
    return total / (len(sizes) * (len(sizes) - 1)) if len(sizes) > 1 else np.nan


def silhouette_samples(vectors: ArrayLike, labels: Iterable[Hashable], *, metric: str = "cosine") -> Floats:
    """Silhouette of each text: (b - a) / max(a, b), a its mean distance to its own cluster, b to the nearest other.

    Args:
        vectors: (n, d); none of them zero for cosine.
        labels: n cluster names.
        metric: "cosine", in time n x clusters x d, or "euclidean", in n^2 x d; either in blocks of bounded memory.

    Returns:
        float64 (n,), -1 to 1, higher is better; 0 in a cluster of one and where a = b = 0; NaN below 2 clusters.

    Raises:
        ValueError: lengths differ, a text without label, a vector NaN, infinite or (cosine) zero, another metric.

    Reference: Rousseeuw 1987, Silhouettes: a graphical aid to the interpretation and validation of cluster analysis.
    Equal to scikit-learn's silhouette_samples, which however refuses n clusters of one; here they are 0.
    """
    if metric not in _TO_CLUSTERS:
        raise ValueError(f"no metric {metric!r}; there are: {', '.join(_TO_CLUSTERS)}")
    matrix, codes, sizes = _clustered(vectors, labels)
    scores = np.full(len(matrix), np.nan)
    if len(sizes) < 2:
        return scores
    for rows, sums in _TO_CLUSTERS[metric](matrix, codes, sizes):
        own = np.arange(len(sums)), codes[rows]
        within = sums[own] / np.maximum(sizes[codes[rows]] - 1, 1)
        means = sums / sizes
        means[own] = np.inf
        nearest = means.min(axis=1)
        larger = np.maximum(within, nearest)
        defined = (larger > 0) & (sizes[codes[rows]] > 1)
        scores[rows] = np.divide(nearest - within, larger, out=np.zeros(len(sums)), where=defined)
    return scores


def silhouette(vectors: ArrayLike, labels: Iterable[Hashable], *, metric: str = "cosine") -> float:
    """Mean silhouette over texts; see `silhouette_samples` for arguments and errors.

    Returns:
        -1 to 1, higher is better; NaN below 2 clusters. It depends on the number of clusters and on the sample: compare
        it on the same texts only.
    """
    return mean_defined(silhouette_samples(vectors, labels, metric=metric))


def nearest_neighbour_distances(vectors: ArrayLike, *, neighbours: int = 5) -> Floats:
    """Mean cosine distance of each text to its nearest others (to all others, where there are fewer).

    Args:
        vectors: (n, d), none of them zero.
        neighbours: how many others, at least 1.

    Returns:
        float64 (n,), 0 to 2, lower is denser; NaN for a single text.

    Raises:
        ValueError: neighbours below 1, a vector that is zero, NaN or infinite.
    """
    if neighbours < 1:
        raise ValueError(f"neighbours = {neighbours} is below 1")
    matrix = as_matrix(vectors)
    lengths = vector_lengths(matrix)
    found = np.full(len(matrix), np.nan)
    nearest = min(neighbours, len(matrix) - 1)
    if nearest < 1:
        return found
    side = 1024  # rows and columns of a block of distances
    for rows, block in blocks(matrix, side):
        best = np.empty((len(block), 0))
        for columns, others in blocks(matrix, side):
            distances = 1 - (block @ others.T) / np.outer(lengths[rows], lengths[columns])
            if rows == columns:
                np.fill_diagonal(distances, np.inf)
            best = np.hstack((best, distances))
            best = np.partition(best, min(nearest, best.shape[1]) - 1, axis=1)[:, :nearest]
        found[rows] = np.where(best < ROUNDING, 0, best).mean(axis=1)
    return found


def nearest_neighbour_distance(vectors: ArrayLike, *, neighbours: int = 5) -> float:
    """Mean over texts of `nearest_neighbour_distances`: 0 to 2, lower is denser; NaN below 2 texts."""
    return mean_defined(nearest_neighbour_distances(vectors, neighbours=neighbours))


def density_score(distance: float) -> float:
    """1 / the mean distance to the nearest neighbours: above 0.5, higher is denser; NaN where all of them coincide."""
    return 1 / distance if distance > 0 else np.nan


def centroid_distances(vectors: ArrayLike) -> Floats:
    """Euclidean distance of each text to the mean of all: float64 (n,), 0 or more.

    Raises:
        ValueError: a vector that is NaN or infinite.
    """
    matrix = as_matrix(vectors)
    centre = _centre(matrix)
    parts = [np.linalg.norm(block - centre, axis=1) for _, block in blocks(matrix)]
    return np.concatenate([np.empty(0), *parts])


def spread(vectors: ArrayLike) -> float:
    """Mean over texts of `centroid_distances`: 0 or more, higher is wider; NaN without texts."""
    return mean_defined(centroid_distances(vectors))


def effective_dimensionality(vectors: ArrayLike, *, variance: float = 0.95) -> float:
    """Number of principal components that together hold more than this share of the variance.

    Args:
        vectors: (n, d).
        variance: share of the variance, above 0 and below 1.

    Returns:
        1 to min(n - 1, d); NaN where nothing varies (one text, or all equal).

    Raises:
        ValueError: a share outside 0 to 1, a vector that is NaN or infinite.

    Reference: as scikit-learn's PCA(n_components=variance) counts them.
    """
    if not 0 < variance < 1:
        raise ValueError(f"variance = {variance} is not a share between 0 and 1")
    matrix = as_matrix(vectors)
    centre = _centre(matrix)
    n, d = matrix.shape
    if n < d:  # the products of texts have the same eigenvalues as those of dimensions, and there are fewer
        centred = matrix - centre
        scatter = centred @ centred.T
    else:
        scatter = np.zeros((d, d))
        for _, block in blocks(matrix):
            scatter += (block - centre).T @ (block - centre)
    if np.trace(scatter) <= ROUNDING**2 * len(matrix) * (centre @ centre):
        return np.nan
    shares = np.cumsum(np.linalg.eigvalsh(scatter)[::-1])
    return float(np.searchsorted(shares / shares[-1], variance, side="right") + 1)


def mean_pairwise_distance(vectors: ArrayLike) -> float:
    """Mean cosine distance over all pairs of different texts, in closed form.

    Args:
        vectors: (n, d), none of them zero.

    Returns:
        0 to 2, higher is wider; NaN below 2 texts.

    Raises:
        ValueError: a vector that is zero, NaN or infinite.
    """
    matrix = as_matrix(vectors)
    return 1 - intra_cluster_similarity(matrix, ["all"] * len(matrix))


def mean_defined(values: Floats) -> float:
    """Mean of the values that are not NaN; NaN where there are none."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else np.nan


def as_matrix(vectors: ArrayLike) -> Matrix:
    """The vectors as (n, d) floats, uncopied if they are; refuses NaN and infinity by row."""
    matrix = np.asarray(vectors)
    matrix = matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
    if matrix.shape == (0,):
        matrix = matrix[:, None]
    if matrix.ndim != 2:
        raise ValueError(f"vectors of shape {matrix.shape} are not (texts, dimensions)")
    if not (finite := np.isfinite(_squares(matrix))).all():
        raise ValueError(f"vector {np.argmin(finite)} is not finite, or too long to be squared; leave its text out")
    return matrix


def _squares(matrix: Matrix) -> Floats:
    """Squared lengths, in float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))


def vector_lengths(matrix: Matrix) -> Floats:
    """Lengths, none of which may be 0."""
    lengths = np.sqrt(_squares(matrix))
    if (zero := lengths < 1e-150).any():  # below it, the square has lost its digits
        raise ValueError(f"vector {np.argmax(zero)} is zero: it has no cosine; leave its text out")
    return lengths


def cluster_codes(labels: Iterable[Hashable]) -> Codes:
    """Clusters numbered in order of first appearance."""
    names = list(labels)
    if unnamed := [row for row, name in enumerate(names) if name != name]:
        raise ValueError(f"text {unnamed[0]} has no label (NaN); leave it out")
    if None in (numbers := {name: number for number, name in enumerate(dict.fromkeys(names))}):
        raise ValueError(f"text {names.index(None)} has no label (None); leave it out")
    return np.fromiter(map(numbers.__getitem__, names), np.int64, len(names))


def _clustered(vectors: ArrayLike, labels: Iterable[Hashable]) -> tuple[Matrix, Codes, Codes]:
    """Vectors, the number of each one's cluster, and the clusters' sizes."""
    matrix, codes = as_matrix(vectors), cluster_codes(labels)
    if len(matrix) != len(codes):
        raise ValueError(f"{len(matrix)} vectors but {len(codes)} labels; give one label per vector")
    return matrix, codes, np.bincount(codes)


def blocks(matrix: Matrix, rows: int | None = None) -> Blocks:
    """Rows of the matrix as float64, a bounded number at a time."""
    step = rows or max(1, BLOCK_VALUES // max(matrix.shape[1], 1))
    for start in range(0, len(matrix), step):
        rows_here = slice(start, min(start + step, len(matrix)))
        yield rows_here, np.asarray(matrix[rows_here], dtype=np.float64)


def _centre(matrix: Matrix) -> Floats:
    """The mean vector."""
    return np.asarray(matrix.mean(axis=0, dtype=np.float64)) if len(matrix) else np.zeros(matrix.shape[1])


def _cluster_sums(matrix: Matrix, codes: Codes, clusters: int, weights: Floats) -> Floats:
    """(clusters, d): sum of each cluster's weighted vectors."""
    sums = np.zeros((clusters, matrix.shape[1]))
    for rows, block in blocks(matrix):
        member = csr_array((weights[rows], codes[rows], np.arange(len(block) + 1)), shape=(len(block), clusters))
        sums += member.T @ block
    return sums


def _cosine_to_clusters(matrix: Matrix, codes: Codes, sizes: Codes) -> Blocks:
    """(rows, clusters): sums of cosine distances to the texts of each cluster, by the sum of its unit vectors."""
    lengths = vector_lengths(matrix)
    sums = _cluster_sums(matrix, codes, len(sizes), 1 / lengths)
    step = max(1, BLOCK_VALUES // max(sums.shape))
    for rows, block in blocks(matrix, step):
        distances = sizes - (block @ sums.T) / lengths[rows, None]
        np.copyto(distances, 0, where=distances < ROUNDING * sizes)
        yield rows, distances


def _euclidean_to_clusters(matrix: Matrix, codes: Codes, sizes: Codes) -> Blocks:
    """(rows, clusters): sums of Euclidean distances to the texts of each cluster."""
    member = csr_array((np.ones(len(codes)), codes, np.arange(len(codes) + 1)), shape=(len(codes), len(sizes)))
    for rows, distances in _euclidean(matrix):
        yield rows, (member.T @ distances).T


def _euclidean(matrix: Matrix) -> Blocks:
    """(n, rows): Euclidean distances of all to some rows; from the centre, where the squares lose the fewest digits."""
    centred = matrix - _centre(matrix)
    squares = _squares(centred)
    for rows, block in blocks(centred, max(1, BLOCK_VALUES // max(len(centred), 1))):
        distances = centred @ (-2 * block.T)
        distances += squares[:, None]
        distances += squares[rows]
        np.copyto(distances, 0, where=distances < ROUNDING_SQUARED * squares.max())
        yield rows, np.sqrt(distances, out=distances)


_TO_CLUSTERS: dict[str, Callable[[Matrix, Codes, Codes], Blocks]] = {
    "cosine": _cosine_to_clusters,
    "euclidean": _euclidean_to_clusters,
}

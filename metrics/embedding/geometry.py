"""The geometry of all texts, without labels: density, spread, and number of dimensions."""

import numpy as np
from numpy.typing import ArrayLike

from yarus.metrics.embedding.clusters import intra_cluster_similarity
from yarus.metrics.embedding.vectors import ROUNDING, Floats, as_matrix, blocks, center_of, mean_defined, vector_lengths


def nearest_neighbour_distances(vectors: ArrayLike, *, neighbours: int = 5) -> Floats:
    """Return the mean cosine distance of each text to its nearest neighbours (to all other texts, if there are fewer).

    Args:
        vectors: (n, d), none of them zero.
        neighbours: number of neighbours, at least 1.

    Returns:
        float64 (n,), 0 to 2, lower is denser; NaN for a single text.

    Raises:
        ValueError: neighbours below 1, a vector that is zero, NaN or infinite.

    Example:
        >>> from yarus.metrics.embedding import nearest_neighbour_distances
        >>> nearest_neighbour_distances([[1, 0], [3, 4], [0, 1]], neighbours=1).round(3)
        array([0.4, 0.2, 0.2])
    """
    if neighbours < 1:
        raise ValueError(f"neighbours = {neighbours} is below 1")
    matrix = as_matrix(vectors)
    lengths = vector_lengths(matrix)
    distances_of_texts = np.full(len(matrix), np.nan)
    nearest = min(neighbours, len(matrix) - 1)
    if nearest < 1:
        return distances_of_texts
    side = 1024  # rows and columns of a block of distances
    for rows, block in blocks(matrix, side):
        closest = np.empty((len(block), 0))
        for columns, other_block in blocks(matrix, side):
            distances = 1 - (block @ other_block.T) / np.outer(lengths[rows], lengths[columns])
            if rows == columns:
                np.fill_diagonal(distances, np.inf)
            closest = np.hstack((closest, distances))
            closest = np.partition(closest, min(nearest, closest.shape[1]) - 1, axis=1)[:, :nearest]
        distances_of_texts[rows] = np.where(closest < ROUNDING, 0, closest).mean(axis=1)
    return distances_of_texts


def nearest_neighbour_distance(vectors: ArrayLike, *, neighbours: int = 5) -> float:
    """Return the mean over texts of `nearest_neighbour_distances`: 0 to 2, lower is denser; NaN below 2 texts.

    Stored as: `avg_nn_distance` (metrics/table/embedding.py).

    Example:
        >>> from yarus.metrics.embedding import nearest_neighbour_distance
        >>> round(nearest_neighbour_distance([[1, 0], [3, 4], [0, 1]], neighbours=1), 3)
        0.267
    """
    return mean_defined(nearest_neighbour_distances(vectors, neighbours=neighbours))


def density_score(distance: float) -> float:
    """Return 1 / the mean distance to the nearest neighbours: above 0.5, higher is denser; NaN if all of them coincide.

    Stored as: `density_score` (metrics/table/embedding.py).

    Example:
        >>> from yarus.metrics.embedding import density_score
        >>> density_score(0.25)
        4.0
    """
    return 1 / distance if distance > 0 else np.nan


def centroid_distances(vectors: ArrayLike) -> Floats:
    """Return the Euclidean distance of each text to the mean of all: float64 (n,), 0 or more.

    Raises:
        ValueError: a vector that is NaN or infinite.

    Example:
        >>> from yarus.metrics.embedding import centroid_distances
        >>> centroid_distances([[0, 0], [6, 8]])
        array([5., 5.])
    """
    matrix = as_matrix(vectors)
    center = center_of(matrix)
    parts = [np.linalg.norm(block - center, axis=1) for _, block in blocks(matrix)]
    return np.concatenate([np.empty(0), *parts])


def spread(vectors: ArrayLike) -> float:
    """Return the mean over texts of `centroid_distances`: 0 or more, higher is wider; NaN without texts.

    Stored as: `avg_spread` (metrics/table/embedding.py).

    Example:
        >>> from yarus.metrics.embedding import spread
        >>> spread([[0, 0], [6, 8]])
        5.0
    """
    return mean_defined(centroid_distances(vectors))


def effective_dimensionality(vectors: ArrayLike, *, variance: float = 0.95) -> float:
    """Return the number of principal components that together explain more than this share of the variance.

    Args:
        vectors: (n, d).
        variance: share of the variance, above 0 and below 1.

    Returns:
        1 to min(n - 1, d); NaN if nothing varies (one text, or all equal).

    Raises:
        ValueError: a share outside 0 to 1, a vector that is NaN or infinite.

    Reference: counted as in scikit-learn's PCA(n_components=variance).

    Stored as: `effective_dimensionality` (metrics/table/embedding.py).

    Example:
        >>> from yarus.metrics.embedding import effective_dimensionality
        >>> effective_dimensionality([[0, 0, 5], [1, 0, 5], [0, 1, 5], [1, 1, 5]])  # nothing varies along the third
        2.0
    """
    if not 0 < variance < 1:
        raise ValueError(f"variance = {variance} is not a share between 0 and 1")
    matrix = as_matrix(vectors)
    center = center_of(matrix)
    n, d = matrix.shape
    if n < d:  # the products of texts have the same eigenvalues as those of dimensions, and there are fewer
        centered = matrix - center
        scatter = centered @ centered.T
    else:
        scatter = np.zeros((d, d))
        for _, block in blocks(matrix):
            scatter += (block - center).T @ (block - center)
    if np.trace(scatter) <= ROUNDING**2 * len(matrix) * (center @ center):
        return np.nan
    shares = np.cumsum(np.linalg.eigvalsh(scatter)[::-1])
    return float(np.searchsorted(shares / shares[-1], variance, side="right") + 1)


def mean_pairwise_distance(vectors: ArrayLike) -> float:
    """Return the mean cosine distance over all pairs of different texts, in closed form.

    Args:
        vectors: (n, d), none of them zero.

    Returns:
        0 to 2, higher is wider; NaN below 2 texts.

    Raises:
        ValueError: a vector that is zero, NaN or infinite.

    Stored as: `avg_pairwise_distance` (metrics/table/embedding.py).

    Example:
        >>> from yarus.metrics.embedding import mean_pairwise_distance
        >>> round(mean_pairwise_distance([[1, 0], [3, 4], [0, 1]]), 3)  # 0.4, 0.2 and 1
        0.533
    """
    matrix = as_matrix(vectors)
    return 1 - intra_cluster_similarity(matrix, ["all"] * len(matrix))

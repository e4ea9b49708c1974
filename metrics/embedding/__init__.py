"""Embedding metrics: cohesion and separation of labelled clusters, and the geometry of all texts.

Vectors are (n, d), one row per text; labels are n cluster names. Computation is in float64, block by block, whatever
the input. A vector that is NaN or infinite is an error that names its row; so is a zero vector for a cosine, because
it has none.
"""

from yarus.metrics.embedding.clusters import (
    cluster_similarities,
    cluster_sizes,
    inter_cluster_distance,
    intra_cluster_similarity,
    silhouette,
    silhouette_samples,
)
from yarus.metrics.embedding.geometry import (
    centroid_distances,
    density_score,
    effective_dimensionality,
    mean_pairwise_distance,
    nearest_neighbour_distance,
    nearest_neighbour_distances,
    spread,
)
from yarus.metrics.embedding.vectors import mean_defined

__all__ = [
    "centroid_distances",
    "cluster_similarities",
    "cluster_sizes",
    "density_score",
    "effective_dimensionality",
    "inter_cluster_distance",
    "intra_cluster_similarity",
    "mean_defined",
    "mean_pairwise_distance",
    "nearest_neighbour_distance",
    "nearest_neighbour_distances",
    "silhouette",
    "silhouette_samples",
    "spread",
]

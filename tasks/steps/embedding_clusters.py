"""Steps of tier 0: embed every text, then measure the clusters."""

import asyncio
import json
import logging
import math
from collections import Counter
from collections.abc import Mapping
from itertools import compress

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE

from yarus.db import journal
from yarus.db.messages import Words
from yarus.metrics import embedding
from yarus.metrics.embedding.vectors import euclidean_distances
from yarus.metrics.statistics import Interval, mean_interval
from yarus.metrics.statistics.intervals import NO_INTERVAL, student_quantile
from yarus.tasks.cases.outcomes import mark_failures, set_failures
from yarus.tasks.cases.table import column_values, set_columns
from yarus.tasks.config.connections import database
from yarus.tasks.config.parameters import Tier0
from yarus.tasks.config.settings import get_settings
from yarus.tasks.evaluation.batch import save_batch
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.evaluation.set_metrics import SetValue, unmeasured_value
from yarus.tasks.evaluation.work_folder import read_cases, read_stored_corpus
from yarus.tasks.models.embedding.cache import embed_texts_with_failures
from yarus.tasks.models.embedding.embedders import get_embedder_pair
from yarus.tasks.models.embedding.partial_results import Vectors
from yarus.tasks.steps.search import choose_vectors

log = logging.getLogger("yarus")
CLUSTER_METRICS = ("total_texts", "total_pairs", "n_clusters", "avg_inter_cluster_dist")
WITHIN_CLUSTER_METRICS = ("avg_intra_cluster_sim", "silhouette_score")
"""Metrics that need a cluster of two texts."""
ERRORS_FILE = "without_vector.json"
"""File in the working folder: number of a text -> why it has no vector."""


@task(task_run_name="embed_texts", cache_policy=NO_CACHE)
async def embed_texts(run: EvaluationRun[Tier0]) -> EvaluationRun[Tier0]:
    """Write one vector per text into the working folder: the source's own, or the embedder's.

    Raises:
        InputError: the source's vectors are not the embedder's.
    """
    return await asyncio.to_thread(_embed_texts, run)


@task(task_run_name="measure_clusters", cache_policy=NO_CACHE)
async def measure_clusters(run: EvaluationRun[Tier0]) -> dict[str, SetValue]:
    """Score every text, and the set of them.

    A text without a cluster counts only in the geometry of all texts; one with a missing or zero vector nowhere.
    """
    return await asyncio.to_thread(_measure_clusters, run)


def _embed_texts(run: EvaluationRun[Tier0]) -> EvaluationRun[Tier0]:
    corpus = read_stored_corpus(run)
    errors: dict[int, str] = {}
    run = choose_vectors(run, corpus)
    if run.config.vectors == "stored" and corpus.vectors is not None:
        vectors = np.asarray(corpus.vectors)
    else:
        questions, chunks = get_embedder_pair(run.config.embedder, get_settings())
        model = questions if run.config.texts == "questions" else chunks
        vectors, errors = embed_texts_with_failures(read_cases(run)["text"].to_pylist(), model, database())
    np.save(run.work / "vectors.npy", vectors)
    (run.work / ERRORS_FILE).write_text(json.dumps(errors), encoding="utf-8")
    journal.update_evaluation(database(), run.id, resolved=run.config.stored())
    return run


def _measure_clusters(run: EvaluationRun[Tier0]) -> dict[str, SetValue]:
    parameters = run.parameters
    vectors = np.load(run.work / "vectors.npy")
    # NaN: no vector is stored; 0: the text has no content for the embedder
    has_vector = np.linalg.norm(vectors, axis=1) > 0
    errors = json.loads((run.work / ERRORS_FILE).read_text(encoding="utf-8"))
    cases = _without_direction(read_cases(run), ~has_vector, {int(number): why for number, why in errors.items()})
    is_labelled = np.array([status == "ok" for status in column_values(cases, "status")])
    clusters = list(compress(column_values(cases, "cluster"), is_labelled))
    silhouettes = embedding.silhouette_samples(vectors[is_labelled], clusters, metric=parameters.distance)
    why = _why_not_clustered(column_values(cases, "cluster"), run.config.texts)
    if "silhouette_score" in why:  # 0 by convention in a cluster of one; the mean of such alone is meaningless
        silhouettes = np.full(len(silhouettes), np.nan)
    nearest = embedding.nearest_neighbour_distances(vectors[has_vector])
    cases = set_columns(
        cases,
        silhouette_score=_spread_out(silhouettes, is_labelled),
        nn_distance=_spread_out(nearest, has_vector),
        spread=_spread_out(embedding.centroid_distances(vectors[has_vector]), has_vector),
    )
    save_batch(run, 0, cases)
    clustering = _clustering_metrics(vectors[is_labelled], clusters, parameters.seed) | why
    return clustering | _geometry_metrics(vectors[has_vector], nearest)


def _why_not_clustered(clusters: list[str | None], texts: str) -> dict[str, SetValue]:
    """Return the cluster metrics that are undefined for any embedder, because of the labels."""
    sizes = Counter(cluster for cluster in clusters if cluster is not None)
    chunks = texts == "chunks"
    if not sizes:
        why = Words("no passage names its page") if chunks else Words("no question has a topic or a page")
        return {name: unmeasured_value(why) for name in (*CLUSTER_METRICS, *WITHIN_CLUSTER_METRICS)}
    if max(sizes.values()) == 1:
        why = Words("every page has one passage") if chunks else Words("every topic has one question")
        return {name: unmeasured_value(why) for name in WITHIN_CLUSTER_METRICS}
    return {}


def _without_direction(cases: pa.Table, has_no_direction: NDArray[np.bool_], errors: Mapping[int, str]) -> pa.Table:
    """Mark cases with a missing or zero vector as not applicable, or with the embedder's error."""
    cases = mark_failures(cases, {number: f"embedder: {error}" for number, error in errors.items()})
    no_direction = (number for number in np.flatnonzero(has_no_direction).tolist() if number not in errors)
    return set_failures(
        cases, ((number, "not_applicable", Words("the text has no vector, or a zero one")) for number in no_direction)
    )


def _clustering_metrics(vectors: Vectors, clusters: list[str], seed: int) -> dict[str, SetValue]:
    """Compute the metrics over texts with a cluster; intervals of means over clusters are over clusters."""
    sizes = embedding.cluster_sizes(clusters)
    similarities = embedding.cluster_similarities(vectors, clusters)
    defined = similarities[~np.isnan(similarities)]
    interval = mean_interval(defined, seed=seed, low=-1, high=1)
    distance = embedding.inter_cluster_distance(vectors, clusters)
    n_texts = len(vectors)
    return {
        "total_texts": SetValue(n_texts or math.nan, NO_INTERVAL, n_texts),
        "total_pairs": SetValue(float((sizes * (sizes - 1) // 2).sum()) if n_texts else math.nan, NO_INTERVAL, n_texts),
        "n_clusters": SetValue(len(sizes) or math.nan, NO_INTERVAL, n_texts),
        "avg_intra_cluster_sim": SetValue(embedding.mean_defined(similarities), interval, len(defined)),
        "avg_inter_cluster_dist": SetValue(distance, _distance_interval(vectors, clusters, distance), len(sizes)),
    }


def _geometry_metrics(vectors: Vectors, nearest: NDArray[np.float64]) -> dict[str, SetValue]:
    """Compute the metrics over all texts with a vector; `nearest` has each text's mean distance to its neighbours."""
    values = {
        "density_score": embedding.density_score(embedding.mean_defined(nearest)),
        "effective_dimensionality": embedding.effective_dimensionality(vectors),
        "avg_pairwise_distance": embedding.mean_pairwise_distance(vectors),
    }
    return {name: SetValue(value, NO_INTERVAL, len(vectors)) for name, value in values.items()}


def _distance_interval(vectors: Vectors, clusters: list[str], distance: float) -> Interval:
    """Compute Student's t interval of the mean distance between centroids, by leaving out each cluster in turn.

    None for two clusters, which have one distance.
    """
    names, codes = np.unique(clusters, return_inverse=True)
    n_clusters = len(names)
    if n_clusters < 3:
        return NO_INTERVAL
    sums = np.zeros((n_clusters, vectors.shape[1]))
    np.add.at(sums, codes, vectors)
    centroids = sums / np.bincount(codes)[:, None]
    from_each = np.concatenate([distances.sum(axis=1) for _, distances in euclidean_distances(centroids)])
    without_each = (from_each.sum() - 2 * from_each) / ((n_clusters - 1) * (n_clusters - 2))
    error = np.sqrt((n_clusters - 1) / n_clusters * ((without_each - distance) ** 2).sum())
    half_width = student_quantile(0.95, n_clusters - 1) * float(error)
    return Interval(max(0.0, distance - half_width), distance + half_width)


def _spread_out(values: NDArray[np.float64], is_kept: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Put values into the kept rows, NaN elsewhere."""
    result = np.full(len(is_kept), np.nan)
    result[is_kept] = values
    return result

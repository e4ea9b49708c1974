"""Tier 0's steps: a vector for every text, then how the clusters lie."""

import asyncio
import json
import logging
import math
from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE

from yarus.db import journal
from yarus.db.words import Words
from yarus.metrics import embedding
from yarus.metrics.embedding.vectors import euclidean_distances
from yarus.metrics.statistics import Interval, mean_interval
from yarus.metrics.statistics.intervals import NO_INTERVAL, student_quantile
from yarus.tasks.cases.outcomes import fail, with_failures
from yarus.tasks.cases.table import values_of, with_columns
from yarus.tasks.config.connections import database
from yarus.tasks.config.parameters import Tier0
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation.batch import keep_batch
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.set_metrics import Whole, not_measured
from yarus.tasks.evaluation.work_folder import read_cases, read_stored_corpus
from yarus.tasks.models.embedding.cache import embed_each
from yarus.tasks.models.embedding.embedders import embedders
from yarus.tasks.models.embedding.parts import Vectors
from yarus.tasks.steps.search import choose_vectors

log = logging.getLogger("yarus")
OF_CLUSTERS = ("total_texts", "total_pairs", "n_clusters", "avg_inter_cluster_dist")
WITHIN_CLUSTERS = ("avg_intra_cluster_sim", "silhouette_score")
"""Metrics that need a cluster of two texts."""
WRONG = "without_vector.json"
"""In the working folder: number of a text -> why a server gave no vector for it."""


@task(task_run_name="embed_texts", cache_policy=NO_CACHE)
async def embed_texts(run: Run[Tier0]) -> Run[Tier0]:
    """Writes one vector a text into the working folder: the source's own, or the embedder's.

    Raises:
        InputError: the source's vectors are not the embedder's.
    """
    return await asyncio.to_thread(_embed_texts, run)


@task(task_run_name="measure_clusters", cache_policy=NO_CACHE)
async def measure_clusters(run: Run[Tier0]) -> dict[str, Whole]:
    """Scores every text, and the set of them.

    A text without a cluster counts in the geometry of the whole only; one whose vector is zero or missing, nowhere.
    """
    return await asyncio.to_thread(_measure_clusters, run)


def _embed_texts(run: Run[Tier0]) -> Run[Tier0]:
    corpus = read_stored_corpus(run)
    wrong: dict[int, str] = {}
    run = choose_vectors(run, corpus)
    if run.config.vectors == "stored" and corpus.vectors is not None:
        vectors = np.asarray(corpus.vectors)
    else:
        questions, chunks = embedders(run.config.embedder, settings())
        model = questions if run.config.texts == "questions" else chunks
        vectors, wrong = embed_each(read_cases(run)["text"].to_pylist(), model, database())
    np.save(run.work / "vectors.npy", vectors)
    (run.work / WRONG).write_text(json.dumps(wrong), encoding="utf-8")
    journal.describe(database(), run.id, resolved=run.config.stored())
    return run


def _measure_clusters(run: Run[Tier0]) -> dict[str, Whole]:
    parameters = run.parameters
    vectors = np.load(run.work / "vectors.npy")
    there = np.linalg.norm(vectors, axis=1) > 0  # NaN: no vector is stored; 0: the embedder sees nothing in the text
    wrong = json.loads((run.work / WRONG).read_text(encoding="utf-8"))
    cases = _without_direction(read_cases(run), ~there, {int(number): why for number, why in wrong.items()})
    labelled = np.array([status == "ok" for status in values_of(cases, "status")])
    clusters = [cluster for cluster, has in zip(values_of(cases, "cluster"), labelled, strict=True) if has]
    silhouettes = embedding.silhouette_samples(vectors[labelled], clusters, metric=parameters.distance)
    why = _why_not_clustered(values_of(cases, "cluster"), run.config.texts)
    if "silhouette_score" in why:  # 0 by convention in a cluster of one: of such alone it would say nothing
        silhouettes = np.full(len(silhouettes), np.nan)
    nearest = embedding.nearest_neighbour_distances(vectors[there])
    cases = with_columns(
        cases,
        silhouette_score=_spread_out(silhouettes, labelled),
        nn_distance=_spread_out(nearest, there),
        spread=_spread_out(embedding.centroid_distances(vectors[there]), there),
    )
    keep_batch(run, 0, cases)
    clustering = _clustering(vectors[labelled], clusters, parameters.seed) | why
    return clustering | _geometry(vectors[there], nearest)


def _why_not_clustered(clusters: list[str | None], texts: str) -> dict[str, Whole]:
    """The metrics of clusters that no embedder can have a value of, because of how the texts are labelled."""
    sizes = Counter(cluster for cluster in clusters if cluster is not None)
    chunks = texts == "chunks"
    if not sizes:
        why = Words("no passage names its page") if chunks else Words("no question has a topic or a page")
        return {name: not_measured(why) for name in (*OF_CLUSTERS, *WITHIN_CLUSTERS)}
    if max(sizes.values()) == 1:
        why = Words("every page has one passage") if chunks else Words("every topic has one question")
        return {name: not_measured(why) for name in WITHIN_CLUSTERS}
    return {}


def _without_direction(cases: pa.Table, without: NDArray[np.bool_], wrong: Mapping[int, str]) -> pa.Table:
    """The cases, with those whose vector is missing or zero marked as not applicable, or with why it was not given."""
    cases = with_failures(cases, {number: f"embedder: {why}" for number, why in wrong.items()})
    no_direction = (number for number in np.flatnonzero(without).tolist() if number not in wrong)
    return fail(
        cases, ((number, "not_applicable", Words("the text has no vector, or a zero one")) for number in no_direction)
    )


def _clustering(vectors: Vectors, clusters: list[str], seed: int) -> dict[str, Whole]:
    """The metrics over texts with a cluster; the intervals are over clusters, of which they are means."""
    sizes = embedding.cluster_sizes(clusters)
    similarities = embedding.cluster_similarities(vectors, clusters)
    inside = similarities[~np.isnan(similarities)]
    interval = mean_interval(inside, seed=seed, low=-1, high=1)
    apart = embedding.inter_cluster_distance(vectors, clusters)
    n = len(vectors)
    return {
        "total_texts": Whole(n or math.nan, NO_INTERVAL, n),
        "total_pairs": Whole(float((sizes * (sizes - 1) // 2).sum()) if n else math.nan, NO_INTERVAL, n),
        "n_clusters": Whole(len(sizes) or math.nan, NO_INTERVAL, n),
        "avg_intra_cluster_sim": Whole(embedding.mean_defined(similarities), interval, len(inside)),
        "avg_inter_cluster_dist": Whole(apart, _apart_interval(vectors, clusters, apart), len(sizes)),
    }


def _geometry(vectors: Vectors, nearest: NDArray[np.float64]) -> dict[str, Whole]:
    """The metrics over all texts with a vector; `nearest` has the mean distance of each to its nearest others."""
    values = {
        "density_score": embedding.density_score(embedding.mean_defined(nearest)),
        "effective_dimensionality": embedding.effective_dimensionality(vectors),
        "avg_pairwise_distance": embedding.mean_pairwise_distance(vectors),
    }
    return {name: Whole(value, NO_INTERVAL, len(vectors)) for name, value in values.items()}


def _apart_interval(vectors: Vectors, clusters: list[str], apart: float) -> Interval:
    """Student's t interval of the mean distance between centroids, by leaving out each cluster in turn.

    None for two clusters, which have one distance.
    """
    names, codes = np.unique(clusters, return_inverse=True)
    m = len(names)
    if m < 3:
        return NO_INTERVAL
    sums = np.zeros((m, vectors.shape[1]))
    np.add.at(sums, codes, vectors)
    centroids = sums / np.bincount(codes)[:, None]
    from_each = np.concatenate([distances.sum(axis=1) for _, distances in euclidean_distances(centroids)])
    without = (from_each.sum() - 2 * from_each) / ((m - 1) * (m - 2))
    error = np.sqrt((m - 1) / m * ((without - apart) ** 2).sum())
    reach = student_quantile(0.95, m - 1) * float(error)
    return Interval(max(0.0, apart - reach), apart + reach)


def _spread_out(values: NDArray[np.float64], kept: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Values of the kept rows in their places, NaN elsewhere."""
    out = np.full(len(kept), np.nan)
    out[kept] = values
    return out

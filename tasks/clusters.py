"""Tier 0's steps: a vector for every text, then how the clusters lie."""

import asyncio
import logging
import math

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE
from scipy.spatial.distance import cdist

from db import journal
from db.errors import InputError
from metrics import embedding
from metrics.statistics import Interval, bootstrap_statistic
from tasks.cases import with_columns
from tasks.connect import database
from tasks.embed import embed
from tasks.load import read_cases, read_stored_corpus
from tasks.models.embedders import Vectors, embedders
from tasks.parameters import Tier0
from tasks.persist import keep_batch
from tasks.retrieve import choose_vectors
from tasks.run import Run
from tasks.score import Whole
from tasks.settings import settings

log = logging.getLogger("yarus")
RESAMPLES, MOST_CLUSTERS = 2_000, 5_000
UNKNOWN = Interval(math.nan, math.nan)


@task(task_run_name="embed the texts", cache_policy=NO_CACHE)
async def embed_texts(run: Run) -> Run:
    """Writes one vector a text into the working folder: the source's own, or the embedder's.

    Raises:
        InputError: the source's vectors are not the embedder's.
    """
    return await asyncio.to_thread(_embed_texts, run)


@task(task_run_name="measure the clusters", cache_policy=NO_CACHE)
async def measure_clusters(run: Run) -> dict[str, Whole]:
    """Scores every text, and the set of them; texts without a cluster or a direction are left out and counted."""
    return await asyncio.to_thread(_measure_clusters, run)


def _embed_texts(run: Run) -> Run:
    run = choose_vectors(run, read_stored_corpus(run))
    corpus = read_stored_corpus(run)
    if run.resolved["vectors"] == "stored" and corpus.vectors is not None:
        vectors = np.asarray(corpus.vectors)
    else:
        _, chunks = embedders(run.resolved["embedder"], settings())
        vectors = embed(read_cases(run)["text"].to_pylist(), chunks, database())
    np.save(run.work / "vectors.npy", vectors)
    journal.describe(database(), run.id, resolved=run.resolved)
    return run


def _measure_clusters(run: Run) -> dict[str, Whole]:
    parameters = run.parameters
    if not isinstance(parameters, Tier0):
        raise TypeError(f"{run.tier} has no clusters")
    vectors = np.load(run.work / "vectors.npy")
    cases = _usable(read_cases(run), vectors)
    kept = np.array([status == "ok" for status in cases["status"].to_pylist()])
    if not kept.any():
        raise InputError(f"source {run.parameters.source!r}: no text has a cluster and a vector; try --texts chunks")
    there, clusters = vectors[kept], [c for c, keep in zip(cases["cluster"].to_pylist(), kept, strict=True) if keep]
    cases = with_columns(
        cases,
        silhouette_score=_spread_out(embedding.silhouette_samples(there, clusters, metric=parameters.distance), kept),
        nn_distance=_spread_out(embedding.nearest_neighbour_distances(there), kept),
        spread=_spread_out(embedding.centroid_distances(there), kept),
    )
    keep_batch(run, 0, cases)
    return _whole(there, clusters, parameters.seed)


def _usable(cases: pa.Table, vectors: Vectors) -> pa.Table:
    """The cases, with those whose vector is missing or zero marked as not applicable."""
    lengths = np.linalg.norm(vectors, axis=1)
    missing = ~(lengths > 0)  # NaN: no vector stored; 0: the text has nothing that the embedder sees
    statuses, reasons = cases["status"].to_pylist(), cases["reason"].to_pylist()
    for number in np.flatnonzero(missing):
        statuses[number], reasons[number] = "not_applicable", "the text has no vector, or a zero one"
    return with_columns(cases, status=statuses, reason=reasons)


def _whole(vectors: Vectors, clusters: list[str], seed: int) -> dict[str, Whole]:
    """The metrics over the set; intervals by resampling clusters where the metric is a mean over clusters."""
    sizes = embedding.cluster_sizes(clusters)
    n = len(vectors)
    similarities = embedding.cluster_similarities(vectors, clusters)
    distance = embedding.nearest_neighbour_distance(vectors)
    values = {
        "total_texts": float(n),
        "total_pairs": float((sizes * (sizes - 1) // 2).sum()),
        "n_clusters": float(len(sizes)),
        "density_score": embedding.density_score(distance),
        "effective_dimensionality": embedding.effective_dimensionality(vectors),
        "avg_pairwise_distance": embedding.mean_pairwise_distance(vectors),
    }
    whole = {name: Whole(value, UNKNOWN, n) for name, value in values.items()}
    apart = embedding.inter_cluster_distance(vectors, clusters)
    whole["avg_inter_cluster_dist"] = Whole(apart, _apart_interval(vectors, clusters, seed), len(sizes))
    inside = similarities[~np.isnan(similarities)]
    value = embedding.intra_cluster_similarity(vectors, clusters)
    interval = bootstrap_statistic(lambda rows: float(inside[rows].mean()), len(inside), seed=seed)
    whole["avg_intra_cluster_sim"] = Whole(value, interval, len(inside))
    return whole


def _apart_interval(vectors: Vectors, clusters: list[str], seed: int) -> Interval:
    """Percentile interval of the mean distance between centroids, by resampling clusters.

    A cluster drawn twice is not compared with itself. None above 5,000 clusters, whose distances would not fit.
    """
    codes = np.unique(clusters, return_inverse=True)[1]
    m = int(codes.max()) + 1
    if not 2 <= m <= MOST_CLUSTERS:
        return UNKNOWN
    sums = np.zeros((m, vectors.shape[1]))
    np.add.at(sums, codes, vectors)
    centroids = sums / np.bincount(codes)[:, None]
    drawn = np.random.default_rng(seed).multinomial(m, np.full(m, 1 / m), size=RESAMPLES).astype(np.float64)
    pairs = m * m - (drawn**2).sum(axis=1)  # of different clusters
    means = np.einsum("ri,ri->r", drawn @ cdist(centroids, centroids), drawn) / pairs
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(float(low), float(high))


def _spread_out(values: NDArray[np.float64], kept: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Values of the kept rows in their places, NaN elsewhere."""
    out = np.full(len(kept), np.nan)
    out[kept] = values
    return out

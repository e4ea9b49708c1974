"""Exact nearest neighbours in process: cosine distance, blocked matrix products, a running threshold."""

import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from yarus.db.errors import ModelUnavailable
from yarus.tasks.models.embedding.embedders import Embedder
from yarus.tasks.models.embedding.parts import Vectors
from yarus.tasks.systems.retrievers.protocol import Ranking

QUERY_BLOCK = 1_024
BLOCK = 1 << 20
"""Products that are held at once: 4 MB, which stay in the cache while they are compared. So many candidates, too: only
where very many vectors are equal, or a query is zero, are there more, and they are thinned out on the way."""
PAIRED = 1 << 16
"""Numbers of candidates, and as many of their queries, that are widened at once: 1 MB in float64, in the cache too."""

_ALONE = threading.Lock()
"""Held while the number of threads of a product is 1: two searches at once would restore it in the wrong order."""

Pairs = tuple[NDArray[np.int64], NDArray[np.int64], Vectors]
"""(query, position, float32 product) of each candidate."""


class Dense:
    """Ranks all chunks of a corpus by cosine distance to the question."""

    def __init__(self, ids: Sequence[str], vectors: Vectors, questions: Embedder) -> None:
        """Takes n chunk ids in order and their (n, d) unit vectors; a row of NaN is a chunk that cannot be found."""
        found = ~np.isnan(vectors[:, 0])
        self._ids = [chunk_id for chunk_id, there in zip(ids, found, strict=True) if there]
        self._vectors = vectors if found.all() else vectors[found]
        self._questions = questions

    def retrieve(self, questions: Sequence[str], vectors: Vectors | None, k: int, *, timed: int) -> list[Ranking]:
        """See `Retriever`. A batch is one matrix product; the first `timed` questions are also timed alone."""
        if vectors is None:
            raise ValueError("the dense retriever needs the vectors of the questions")
        if not self._ids:
            return [Ranking([], []) for _ in questions]
        latencies = [self._latency_ms(question, k) for question in questions[:timed]]
        indices, similarities = nearest(self._vectors, vectors, k)
        depths = np.where(vectors.any(axis=1), k, 0)  # a question that the embedder sees nothing in is near to nothing
        return [
            Ranking(
                ids=[self._ids[chunk] for chunk in row[:depth]],
                distances=(1.0 - near[:depth]).tolist(),
                latency_ms=latencies[number] if number < timed else None,
            )
            for number, (row, near, depth) in enumerate(zip(indices, similarities, depths, strict=True))
        ]

    def _latency_ms(self, question: str, k: int) -> float | None:
        """What one user would wait: embedding the question, and the search; None where the embedder fails this time."""
        start = time.perf_counter()
        try:
            nearest(self._vectors, self._questions.encode([question]), k)
        except ModelUnavailable:
            return None
        return (time.perf_counter() - start) * 1_000


def unit_vectors(vectors: Vectors) -> Vectors:
    """The rows (n, d) at length 1; a row of zeros has no direction and becomes NaN."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, np.nan))


def nearest(vectors: Vectors, queries: Vectors, k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The k nearest vectors of each query, by the inner product; equal ones by their position.

    The product is taken in float32 and in blocks that fit the cache. Of each block only what reaches the k-th best so
    far is kept, and what float32 cannot tell apart is compared again in float64, so the result is that of sorting the
    exact product, whatever the blocks.

    Args:
        vectors: (n, d) float32, rows no longer than 1.
        queries: (m, d) float32.
        k: at least 1.

    Returns:
        positions (m, min(k, n)) and inner products, best first.

    Raises:
        ValueError: a query is not finite.

    Reference:
        The error of an inner product is at most d u |a| |b|: Higham, Accuracy and Stability of Numerical Algorithms,
        2002, section 3.1. Two products may err towards each other, and 2 u is the machine epsilon.
    """
    k = min(k, len(vectors))
    indices = np.empty((len(queries), k), dtype=np.int64)
    products = np.empty((len(queries), k))
    lengths = np.sqrt(np.einsum("ij,ij->i", queries, queries))
    if not np.isfinite(lengths).all():
        raise ValueError(f"the vector of query {np.flatnonzero(~np.isfinite(lengths))[0]} is not finite")
    if k == 0:
        return indices, products
    errors = (vectors.shape[1] + 4) * np.finfo(np.float32).eps * lengths
    step = min(QUERY_BLOCK, max(1, BLOCK // k))

    def search(start: int) -> None:
        block = slice(start, start + step)
        candidates = _candidates(vectors, queries[block], k, errors[block])
        indices[block], products[block] = _exact(vectors, queries[block], candidates, k)

    starts = range(0, len(queries), step)
    if len(starts) <= 1:
        for start in starts:
            search(start)
        return indices, products
    # A thread a block: threads within a product would wait for each other at its end, and for the comparison.
    with _ALONE, threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(_cores()) as pool:
        list(pool.map(search, starts))
    return indices, products


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _candidates(vectors: Vectors, queries: Vectors, k: int, errors: Vectors) -> Pairs:
    """What may belong to the k best of each query: at least k, and what float32 cannot tell from them."""
    width = min(max(BLOCK // len(queries), k), len(vectors))
    buffers = np.empty((len(queries), width), dtype=np.float32), np.empty((len(queries), width), dtype=bool)
    best = np.full((len(queries), k), -np.inf, dtype=np.float32)  # unsorted; its minimum is the threshold
    found: list[Pairs] = []
    for start in range(0, len(vectors), width):
        part = vectors[start : start + width]
        similarities, hit = (buffer[:, : len(part)] for buffer in buffers)
        np.matmul(queries, part.T, out=similarities)
        if start == 0:
            best = np.partition(similarities, -k, axis=1)[:, -k:].copy()
        hits = np.flatnonzero(np.greater_equal(similarities, _threshold(best, errors)[:, None], out=hit))
        row, column = np.divmod(hits, len(part))
        found.append((row, column + start, similarities[row, column]))
        if start and len(row):
            _raise(best, row, found[-1][2])
        if sum(len(pairs[0]) for pairs in found) > BLOCK:
            found = [_thinned(vectors, queries, found, k)]
    row, position, product = (np.concatenate(parts) for parts in zip(*found, strict=True))
    kept = product >= _threshold(best, errors)[row]
    return row[kept], position[kept], product[kept]


def _threshold(best: Vectors, errors: Vectors) -> Vectors:
    return np.asarray(best.min(axis=1) - errors)


def _thinned(vectors: Vectors, queries: Vectors, found: list[Pairs], k: int) -> Pairs:
    """The exact k best of the candidates so far: the others cannot come back."""
    row, position, product = (np.concatenate(parts) for parts in zip(*found, strict=True))
    positions, exact = _exact(vectors, queries, (row, position, product), k)
    return np.repeat(np.arange(len(queries)), k), positions.ravel(), exact.ravel().astype(np.float32)


def _raise(best: Vectors, row: NDArray[np.int64], values: Vectors) -> None:
    """Puts the new values into the k best of their rows."""
    k = best.shape[1]
    touched, counts = np.unique(row, return_counts=True)
    fresh = np.full((len(touched), int(counts.max())), -np.inf, dtype=np.float32)
    within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    fresh[np.repeat(np.arange(len(touched)), counts), within] = values
    merged = np.concatenate([best[touched], fresh], axis=1)
    best[touched] = np.partition(merged, -k, axis=1)[:, -k:]


def _exact(
    vectors: Vectors, queries: Vectors, candidates: Pairs, k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Orders the candidates by their product in float64, equal ones by position, and keeps k of each query."""
    row, position, _ = candidates
    exact = np.empty(len(row))
    step = max(1, PAIRED // vectors.shape[1])
    for start in range(0, len(row), step):
        part = slice(start, start + step)
        left, right = vectors[position[part]], queries[row[part]]
        exact[part] = np.einsum("ij,ij->i", left.astype(np.float64), right.astype(np.float64))
    order = np.lexsort((position, -exact, row))
    row, position, exact = row[order], position[order], exact[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    kept = rank < k
    return position[kept].reshape(-1, k), exact[kept].reshape(-1, k)

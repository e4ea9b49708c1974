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
from yarus.tasks.models.embedding.partial_results import Vectors
from yarus.tasks.systems.retrievers.protocol import Ranking

QUERY_BLOCK = 1_024
BLOCK_PRODUCTS = 1 << 20
"""Products in memory at once: 4 MB, which stay in the cache while they are compared. Also the limit of candidates: only
many equal vectors or a zero query have more, and these are reduced on the way."""
PAIR_BLOCK = 1 << 16
"""Numbers of candidates, and of their queries, that are widened at once: 1 MB in float64, which stays in the cache."""

_SINGLE_THREAD_LOCK = threading.Lock()
"""Lock while products use one thread: two searches at once would restore the number in the wrong order."""

CandidatePairs = tuple[NDArray[np.int64], NDArray[np.int64], Vectors]
"""(query, position, float32 product) of each candidate."""


class DenseRetriever:
    """Retriever of all chunks of a corpus by cosine distance to the question."""

    def __init__(self, ids: Sequence[str], vectors: Vectors, questions: Embedder) -> None:
        """Take n chunk ids in order and their (n, d) unit vectors; a row of NaN is a chunk that cannot be found."""
        has_vector = ~np.isnan(vectors[:, 0])
        self._ids = [chunk_id for chunk_id, is_usable in zip(ids, has_vector, strict=True) if is_usable]
        self._vectors = vectors if has_vector.all() else vectors[has_vector]
        self._questions = questions

    def retrieve(self, questions: Sequence[str], vectors: Vectors | None, k: int, *, timed: int) -> list[Ranking]:
        """See `Retriever`. A batch is one matrix product; the first `timed` questions are also timed alone."""
        if vectors is None:
            raise ValueError("the dense retriever needs the vectors of the questions")
        if not self._ids:
            return [Ranking([], []) for _ in questions]
        latencies = [self._latency_ms(question, k) for question in questions[:timed]]
        indices, similarities = find_nearest(self._vectors, vectors, k)
        depths = np.where(vectors.any(axis=1), k, 0)  # a question with a zero vector is not near to anything
        return [
            Ranking(
                ids=[self._ids[chunk] for chunk in row[:depth]],
                distances=(1.0 - products[:depth]).tolist(),
                latency_ms=latencies[index] if index < timed else None,
            )
            for index, (row, products, depth) in enumerate(zip(indices, similarities, depths, strict=True))
        ]

    def _latency_ms(self, question: str, k: int) -> float | None:
        """Return the time that a user would wait for embedding and search; None if the embedder fails."""
        started_at = time.perf_counter()
        try:
            find_nearest(self._vectors, self._questions.encode([question]), k)
        except ModelUnavailable:
            return None
        return (time.perf_counter() - started_at) * 1_000


def normalise_vectors(vectors: Vectors) -> Vectors:
    """Return the rows (n, d) at length 1; a row of zeros has no direction and becomes NaN."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, np.nan))


def find_nearest(vectors: Vectors, queries: Vectors, k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the k nearest vectors of each query, by the inner product; equal ones by their position.

    The product is computed in float32 and in blocks that fit the cache. From each block, only vectors that reach the
    k-th best so far are kept. Those that float32 cannot distinguish are compared again in float64. The result equals
    that of sorting the exact product, whatever the blocks.

    Args:
        vectors: (n, d) float32, rows no longer than 1.
        queries: (m, d) float32.
        k: at least 1.

    Returns:
        Positions (m, min(k, n)) and inner products, best first.

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
    step = min(QUERY_BLOCK, max(1, BLOCK_PRODUCTS // k))

    def search(start: int) -> None:
        block = slice(start, start + step)
        candidates = _find_candidates(vectors, queries[block], k, errors[block])
        indices[block], products[block] = _rank_exactly(vectors, queries[block], candidates, k)

    starts = range(0, len(queries), step)
    if len(starts) <= 1:
        for start in starts:
            search(start)
        return indices, products
    # One thread per block: threads within a product would wait for each other at its end, and for the comparison.
    with _SINGLE_THREAD_LOCK, threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(_count_cores()) as pool:
        list(pool.map(search, starts))
    return indices, products


def _count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _find_candidates(vectors: Vectors, queries: Vectors, k: int, errors: Vectors) -> CandidatePairs:
    """Return candidates for the k best of each query: at least k, and those that float32 cannot distinguish."""
    width = min(max(BLOCK_PRODUCTS // len(queries), k), len(vectors))
    buffers = np.empty((len(queries), width), dtype=np.float32), np.empty((len(queries), width), dtype=bool)
    best = np.full((len(queries), k), -np.inf, dtype=np.float32)  # unsorted; its minimum is the threshold
    candidates: list[CandidatePairs] = []
    for start in range(0, len(vectors), width):
        block = vectors[start : start + width]
        similarities, hit_buffer = (buffer[:, : len(block)] for buffer in buffers)
        np.matmul(queries, block.T, out=similarities)
        if start == 0:
            best = np.partition(similarities, -k, axis=1)[:, -k:].copy()
        hits = np.flatnonzero(np.greater_equal(similarities, _running_threshold(best, errors)[:, None], out=hit_buffer))
        row, column = np.divmod(hits, len(block))
        candidates.append((row, column + start, similarities[row, column]))
        if start and len(row):
            _merge_best(best, row, candidates[-1][2])
        if sum(len(block_pairs[0]) for block_pairs in candidates) > BLOCK_PRODUCTS:
            candidates = [_reduce_candidates(vectors, queries, candidates, k)]
    row, position, product = (np.concatenate(columns) for columns in zip(*candidates, strict=True))
    reaches_threshold = product >= _running_threshold(best, errors)[row]
    return row[reaches_threshold], position[reaches_threshold], product[reaches_threshold]


def _running_threshold(best: Vectors, errors: Vectors) -> Vectors:
    return np.asarray(best.min(axis=1) - errors)


def _reduce_candidates(vectors: Vectors, queries: Vectors, candidates: list[CandidatePairs], k: int) -> CandidatePairs:
    """Return the exact k best of the candidates so far: the others cannot be among the best any more."""
    row, position, product = (np.concatenate(columns) for columns in zip(*candidates, strict=True))
    positions, exact = _rank_exactly(vectors, queries, (row, position, product), k)
    return np.repeat(np.arange(len(queries)), k), positions.ravel(), exact.ravel().astype(np.float32)


def _merge_best(best: Vectors, row: NDArray[np.int64], values: Vectors) -> None:
    """Merge new values into the k best of their rows."""
    k = best.shape[1]
    changed_rows, counts = np.unique(row, return_counts=True)
    fresh = np.full((len(changed_rows), int(counts.max())), -np.inf, dtype=np.float32)
    column = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    fresh[np.repeat(np.arange(len(changed_rows)), counts), column] = values
    merged = np.concatenate([best[changed_rows], fresh], axis=1)
    best[changed_rows] = np.partition(merged, -k, axis=1)[:, -k:]


def _rank_exactly(
    vectors: Vectors, queries: Vectors, candidates: CandidatePairs, k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Order the candidates by their product in float64, equal ones by position, and keep k of each query."""
    row, position, _ = candidates
    exact = np.empty(len(row))
    step = max(1, PAIR_BLOCK // vectors.shape[1])
    for start in range(0, len(row), step):
        block = slice(start, start + step)
        left, right = vectors[position[block]], queries[row[block]]
        exact[block] = np.einsum("ij,ij->i", left.astype(np.float64), right.astype(np.float64))
    order = np.lexsort((position, -exact, row))
    row, position, exact = row[order], position[order], exact[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    is_best = rank < k
    return position[is_best].reshape(-1, k), exact[is_best].reshape(-1, k)

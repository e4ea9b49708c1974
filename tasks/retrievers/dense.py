"""Exact nearest neighbours in process: cosine distance, blocked matrix products, a running threshold."""

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tasks.models.embedders import Embedder, Vectors
from tasks.retrievers.protocol import Ranking

QUERY_BLOCK, CHUNK_BLOCK = 256, 4_096
ROUNDING = np.float32(1e-5)
"""More than a float32 product of two unit vectors can err: candidates within it are compared again in float64."""


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

    def _latency_ms(self, question: str, k: int) -> float:
        """What one user would wait: embedding the question, and the search."""
        start = time.perf_counter()
        nearest(self._vectors, self._questions.encode([question]), k)
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
        vectors: (n, d) float32.
        queries: (m, d) float32.
        k: at least 1.

    Returns:
        positions (m, min(k, n)) and inner products, best first.
    """
    k = min(k, len(vectors))
    indices = np.empty((len(queries), k), dtype=np.int64)
    products = np.empty((len(queries), k))
    for start in range(0, len(queries), QUERY_BLOCK):
        block = slice(start, start + QUERY_BLOCK)
        candidates = _candidates(vectors, queries[block], k)
        indices[block], products[block] = _exact(vectors, queries[block], candidates, k)
    return indices, products


def _candidates(vectors: Vectors, queries: Vectors, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(query, position) pairs that may belong to the k best; some more than k of each query."""
    rows: list[NDArray[np.int64]] = []
    positions: list[NDArray[np.int64]] = []
    best = np.full((len(queries), k), -np.inf, dtype=np.float32)  # unsorted; its minimum is the threshold
    for start in range(0, len(vectors), CHUNK_BLOCK):
        similarities = queries @ vectors[start : start + CHUNK_BLOCK].T
        threshold = best.min(axis=1) - ROUNDING
        if start == 0:
            width = min(k, similarities.shape[1])
            best[:, :width] = np.partition(similarities, -width, axis=1)[:, -width:]
            threshold = best.min(axis=1) - ROUNDING
        hits = np.flatnonzero(similarities > threshold[:, None])
        row, column = np.divmod(hits, similarities.shape[1])
        rows.append(row)
        positions.append(column + start)
        if start and len(row):
            _raise(best, row, similarities.ravel()[hits])
    row, position = np.concatenate(rows), np.concatenate(positions)
    return row, position


def _raise(best: Vectors, row: NDArray[np.int64], values: Vectors) -> None:
    """Puts the new values into the k best of their rows."""
    k = best.shape[1]
    touched, counts = np.unique(row, return_counts=True)
    widest = int(counts.max())
    fresh = np.full((len(touched), widest), -np.inf, dtype=np.float32)
    within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    fresh[np.repeat(np.arange(len(touched)), counts), within] = values
    merged = np.concatenate([best[touched], fresh], axis=1)
    best[touched] = np.partition(merged, -k, axis=1)[:, -k:]


def _exact(
    vectors: Vectors, queries: Vectors, candidates: tuple[NDArray[np.int64], NDArray[np.int64]], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Orders the candidates by their product in float64, equal ones by position, and keeps k of each query."""
    row, position = candidates
    exact = np.empty(len(row))
    for start in range(0, len(row), CHUNK_BLOCK):
        part = slice(start, start + CHUNK_BLOCK)
        left, right = vectors[position[part]], queries[row[part]]
        exact[part] = np.einsum("ij,ij->i", left.astype(np.float64), right.astype(np.float64))
    order = np.lexsort((position, -exact, row))
    row, position, exact = row[order], position[order], exact[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    kept = rank < k
    return position[kept].reshape(-1, k), exact[kept].reshape(-1, k)

"""Exact dense search: 10,000 questions in 100,000 chunks of 384 dimensions, the 10 nearest.

The limit is the float32 product alone, in blocks of rows into one buffer, without reading its values.
"""

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from benchmarks import Row, time_in_turn
from yarus.tasks.models.embedding.partial_results import Vectors
from yarus.tasks.systems.retrievers.dense import find_nearest, normalise_vectors

QUESTIONS, CHUNKS, D, K = 10_000, 100_000, 384, 10
ROWS = 1_000
CHECKED = 200


def random_vectors(n: int, seed: int) -> Vectors:
    return normalise_vectors(np.random.default_rng(seed).normal(size=(n, D)).astype(np.float32))


def compute_products(vectors: Vectors, queries: Vectors) -> None:
    buffer = np.empty((ROWS, len(vectors)), dtype=np.float32)
    for start in range(0, len(queries), ROWS):
        np.matmul(queries[start : start + ROWS], vectors.T, out=buffer)


def search_by_argpartition(vectors: Vectors, queries: Vectors) -> NDArray[np.int64]:
    rankings = []
    for start in range(0, len(queries), ROWS):
        products = queries[start : start + ROWS] @ vectors.T
        candidates = np.argpartition(products, -K, axis=1)[:, -K:]
        order = np.argsort(-np.take_along_axis(products, candidates, axis=1), axis=1, kind="stable")
        rankings.append(np.take_along_axis(candidates, order, axis=1))
    return np.concatenate(rankings)


def check(vectors: Vectors, queries: Vectors) -> None:
    """Check that the rankings of some questions equal those from sorting all products in float64."""
    sample = queries[:CHECKED]
    exact = sample.astype(np.float64) @ vectors.astype(np.float64).T
    np.testing.assert_array_equal(find_nearest(vectors, sample, K)[0], np.argsort(-exact, axis=1, kind="stable")[:, :K])


def run() -> Iterator[Row]:
    """Compare with the product alone, FAISS and NumPy."""
    vectors, queries = random_vectors(CHUNKS, 0), random_vectors(QUESTIONS, 1)
    check(vectors, queries)
    index: Any = faiss.IndexFlatIP(D)
    index.add(vectors)
    what = f"{QUESTIONS:,} x {CHUNKS:,} x {D}, top {K}"

    def ours() -> object:
        return find_nearest(vectors, queries, K)

    numpy = f"numpy {version('numpy')}"
    times = time_in_turn(ours, lambda: compute_products(vectors, queries), rounds=3)
    yield Row(what, f"float32 product alone, {numpy}", *times, target=1.35)
    times = time_in_turn(ours, lambda: index.search(queries, K), rounds=3)
    yield Row(what, f"IndexFlatIP, faiss-cpu {version('faiss-cpu')}", *times, target=1.35)
    times = time_in_turn(ours, lambda: search_by_argpartition(vectors, queries), rounds=1)
    yield Row(what, f"product and argpartition, {numpy}", *times, target=1.2, goal="at least")

"""Exact dense search: 10,000 questions in 100,000 chunks of 384 dimensions, the 10 nearest.

The limit is the float32 product alone, in blocks of rows into one buffer, without looking at a single number of it.
"""

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from benchmarks import Row, medians
from yarus.tasks.models.embedding.parts import Vectors
from yarus.tasks.systems.retrievers.dense import nearest, unit_vectors

QUESTIONS, CHUNKS, D, K = 10_000, 100_000, 384, 10
ROWS = 1_000
CHECKED = 200


def normal(n: int, seed: int) -> Vectors:
    return unit_vectors(np.random.default_rng(seed).normal(size=(n, D)).astype(np.float32))


def product(vectors: Vectors, queries: Vectors) -> None:
    buffer = np.empty((ROWS, len(vectors)), dtype=np.float32)
    for start in range(0, len(queries), ROWS):
        np.matmul(queries[start : start + ROWS], vectors.T, out=buffer)


def by_argpartition(vectors: Vectors, queries: Vectors) -> NDArray[np.int64]:
    found = []
    for start in range(0, len(queries), ROWS):
        products = queries[start : start + ROWS] @ vectors.T
        best = np.argpartition(products, -K, axis=1)[:, -K:]
        order = np.argsort(-np.take_along_axis(products, best, axis=1), axis=1, kind="stable")
        found.append(np.take_along_axis(best, order, axis=1))
    return np.concatenate(found)


def check(vectors: Vectors, queries: Vectors) -> None:
    """Every ranking of some questions is that of sorting all products in float64."""
    some = queries[:CHECKED]
    exact = some.astype(np.float64) @ vectors.astype(np.float64).T
    np.testing.assert_array_equal(nearest(vectors, some, K)[0], np.argsort(-exact, axis=1, kind="stable")[:, :K])


def run() -> Iterator[Row]:
    """Against the product alone, FAISS and NumPy."""
    vectors, queries = normal(CHUNKS, 0), normal(QUESTIONS, 1)
    check(vectors, queries)
    index: Any = faiss.IndexFlatIP(D)
    index.add(vectors)
    what = f"{QUESTIONS:,} x {CHUNKS:,} x {D}, top {K}"

    def ours() -> object:
        return nearest(vectors, queries, K)

    numpy = f"numpy {version('numpy')}"
    times = medians(ours, lambda: product(vectors, queries), rounds=3)
    yield Row(what, f"float32 product alone, {numpy}", *times, target=1.35)
    times = medians(ours, lambda: index.search(queries, K), rounds=3)
    yield Row(what, f"IndexFlatIP, faiss-cpu {version('faiss-cpu')}", *times, target=1.35)
    times = medians(ours, lambda: by_argpartition(vectors, queries), rounds=1)
    yield Row(what, f"product and argpartition, {numpy}", *times, target=1.2, goal="at least")

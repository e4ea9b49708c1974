"""Nearest neighbours equal those of sorting all products in float64, whatever the blocks."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from yarus.tasks.systems.retrievers import dense
from yarus.tasks.systems.retrievers.dense import find_nearest, normalise_vectors


def random_vectors(n: int, d: int = 24, seed: int = 0) -> np.ndarray:
    return normalise_vectors(np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32))


def sort_exactly(vectors: np.ndarray, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    # One inner product per pair, in the order of its terms: a matrix product gives equal rows unequal sums.
    products = np.stack([np.einsum("ij,j->i", vectors.astype(float), query.astype(float)) for query in queries])
    order = np.argsort(-products, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(products, order, axis=1)


@pytest.fixture(params=[1 << 20, 700, 40], ids=["one block", "some blocks", "many blocks"])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "BLOCK_PRODUCTS", request.param)
    monkeypatch.setattr(dense, "QUERY_BLOCK", 16)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize(
    ("vectors", "queries", "k"),
    [
        pytest.param(random_vectors(300), random_vectors(50, seed=1), 10, id="random"),
        pytest.param(random_vectors(300), random_vectors(300), 1, id="each its own nearest"),
        pytest.param(
            np.repeat(random_vectors(20), 15, axis=0), random_vectors(40, seed=1), 10, id="every vector 15 times"
        ),
        pytest.param(np.repeat(random_vectors(1), 300, axis=0), random_vectors(40, seed=1), 10, id="all equal"),
        pytest.param(random_vectors(300), np.zeros((20, 24), np.float32), 10, id="queries of zeros"),
        pytest.param(random_vectors(7), random_vectors(20, seed=1), 10, id="fewer than k"),
        pytest.param(random_vectors(1), random_vectors(1, seed=1), 1, id="one in one"),
        pytest.param(random_vectors(300), random_vectors(20, seed=1), 300, id="all of them"),
        pytest.param(random_vectors(300), random_vectors(20, seed=1) * 1_000, 10, id="long queries"),
    ],
)
def test_nearest_equals_sorting_exact_products(vectors: np.ndarray, queries: np.ndarray, k: int) -> None:
    positions, products = find_nearest(vectors, queries, k)
    expected, expected_products = sort_exactly(vectors, queries, k)
    np.testing.assert_array_equal(positions, expected)
    np.testing.assert_allclose(products, expected_products, rtol=1e-12, atol=1e-15)


@pytest.mark.usefixtures("blocks")
def test_nearest_distinguishes_equal_float32_products() -> None:
    # Vectors that differ in the last bit of one component: many of their float32 products are equal.
    base = random_vectors(1, d=384)[0] * np.float32(0.99)
    vectors = np.repeat(base[None], 200, axis=0)
    for index in range(200):
        vectors[index, index] = np.nextafter(base[index], np.float32(np.inf if index % 2 else -np.inf))
    queries = random_vectors(5, d=384, seed=2)
    assert len(np.unique((queries @ vectors.T)[0])) < 150
    np.testing.assert_array_equal(find_nearest(vectors, queries, 10)[0], sort_exactly(vectors, queries, 10)[0])


def test_nearest_of_no_vectors_is_empty() -> None:
    assert find_nearest(np.zeros((0, 24), np.float32), random_vectors(3), 10)[0].shape == (3, 0)
    assert find_nearest(random_vectors(3), np.zeros((0, 24), np.float32), 2)[0].shape == (0, 2)


def test_nearest_rejects_queries_that_are_not_finite() -> None:
    queries = random_vectors(3)
    queries[1, 5] = np.nan
    with pytest.raises(ValueError, match="query 1 is not finite"):
        find_nearest(random_vectors(10), queries, 2)


def test_nearest_needs_at_most_twice_the_memory_of_the_vectors() -> None:
    vectors = random_vectors(40_000, d=128)
    assert measure_peak_bytes(vectors, random_vectors(500, d=128, seed=1)) <= 2 * vectors.nbytes


@pytest.mark.slow("breadth: a large matrix")
def test_nearest_limits_memory_for_many_ties() -> None:
    # 4 million pairs are candidates: 450 MB if all were in memory.
    vectors = random_vectors(40_000, d=16)
    assert measure_peak_bytes(vectors, np.zeros((100, 16), np.float32)) <= 250e6


def measure_peak_bytes(vectors: np.ndarray, queries: np.ndarray) -> int:
    tracemalloc.start()
    find_nearest(vectors, queries, 10)
    _, bytes_ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return bytes_


def test_unit_vectors_have_length_one_or_no_direction() -> None:
    vectors = normalise_vectors(np.array([[3, 4], [0, 0], [0, -2]], dtype=np.float32))
    np.testing.assert_array_equal(vectors, np.array([[0.6, 0.8], [np.nan, np.nan], [0, -1]], dtype=np.float32))


def test_nearest_restores_the_number_of_threads() -> None:
    before = [pool["num_threads"] for pool in threadpool_info()]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda seed: find_nearest(random_vectors(500), random_vectors(3_000, seed=seed), 3), range(8)))
    assert [pool["num_threads"] for pool in threadpool_info()] == before

"""The nearest neighbours: those of sorting every product in float64, whatever the blocks."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from yarus.tasks.systems.retrievers import dense
from yarus.tasks.systems.retrievers.dense import nearest, unit_vectors


def normal(n: int, d: int = 24, seed: int = 0) -> np.ndarray:
    return unit_vectors(np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32))


def by_sorting(vectors: np.ndarray, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    # One inner product a pair, in the order of its terms: a matrix product gives equal rows unequal sums.
    products = np.stack([np.einsum("ij,j->i", vectors.astype(float), query.astype(float)) for query in queries])
    order = np.argsort(-products, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(products, order, axis=1)


@pytest.fixture(params=[1 << 20, 700, 40], ids=["one block", "some blocks", "many blocks"])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "BLOCK", request.param)
    monkeypatch.setattr(dense, "QUERY_BLOCK", 16)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize(
    ("vectors", "queries", "k"),
    [
        pytest.param(normal(300), normal(50, seed=1), 10, id="random"),
        pytest.param(normal(300), normal(300), 1, id="each its own nearest"),
        pytest.param(np.repeat(normal(20), 15, axis=0), normal(40, seed=1), 10, id="every vector 15 times"),
        pytest.param(np.repeat(normal(1), 300, axis=0), normal(40, seed=1), 10, id="all equal"),
        pytest.param(normal(300), np.zeros((20, 24), np.float32), 10, id="queries of zeros"),
        pytest.param(normal(7), normal(20, seed=1), 10, id="fewer than k"),
        pytest.param(normal(1), normal(1, seed=1), 1, id="one in one"),
        pytest.param(normal(300), normal(20, seed=1), 300, id="all of them"),
        pytest.param(normal(300), normal(20, seed=1) * 1_000, 10, id="long queries"),
    ],
)
def test_it_ranks_as_sorting_the_exact_products(vectors: np.ndarray, queries: np.ndarray, k: int) -> None:
    positions, products = nearest(vectors, queries, k)
    expected, expected_products = by_sorting(vectors, queries, k)
    np.testing.assert_array_equal(positions, expected)
    np.testing.assert_allclose(products, expected_products, rtol=1e-12, atol=1e-15)


@pytest.mark.usefixtures("blocks")
def test_what_float32_cannot_tell_apart_is_told_apart() -> None:
    # Vectors that differ from one another in the last bit of one component: float32 products of many of them are equal.
    base = normal(1, d=384)[0] * np.float32(0.99)
    vectors = np.repeat(base[None], 200, axis=0)
    for number in range(200):
        vectors[number, number] = np.nextafter(base[number], np.float32(np.inf if number % 2 else -np.inf))
    queries = normal(5, d=384, seed=2)
    assert len(np.unique((queries @ vectors.T)[0])) < 150
    np.testing.assert_array_equal(nearest(vectors, queries, 10)[0], by_sorting(vectors, queries, 10)[0])


def test_no_vectors_no_neighbours() -> None:
    assert nearest(np.zeros((0, 24), np.float32), normal(3), 10)[0].shape == (3, 0)
    assert nearest(normal(3), np.zeros((0, 24), np.float32), 2)[0].shape == (0, 2)


def test_a_query_that_is_not_finite_is_named() -> None:
    queries = normal(3)
    queries[1, 5] = np.nan
    with pytest.raises(ValueError, match="query 1 is not finite"):
        nearest(normal(10), queries, 2)


def test_it_needs_no_more_than_twice_the_vectors_beside_them() -> None:
    vectors = normal(40_000, d=128)
    assert peak(vectors, normal(500, d=128, seed=1)) <= 2 * vectors.nbytes


@pytest.mark.slow("breadth: a large matrix")
def test_very_many_ties_need_a_bounded_memory() -> None:
    # 4 million pairs, all candidates: 450 MB if they were all held.
    vectors = normal(40_000, d=16)
    assert peak(vectors, np.zeros((100, 16), np.float32)) <= 250e6


def peak(vectors: np.ndarray, queries: np.ndarray) -> int:
    tracemalloc.start()
    nearest(vectors, queries, 10)
    _, bytes_ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return bytes_


def test_unit_vectors_have_length_one_or_no_direction() -> None:
    vectors = unit_vectors(np.array([[3, 4], [0, 0], [0, -2]], dtype=np.float32))
    np.testing.assert_array_equal(vectors, np.array([[0.6, 0.8], [np.nan, np.nan], [0, -1]], dtype=np.float32))


def test_products_of_others_have_their_threads_again() -> None:
    before = [pool["num_threads"] for pool in threadpool_info()]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda seed: nearest(normal(500), normal(3_000, seed=seed), 3), range(8)))
    assert [pool["num_threads"] for pool in threadpool_info()] == before

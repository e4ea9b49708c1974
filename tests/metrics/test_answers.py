"""Semantic similarity and repeated answers: golden values, properties, and bad input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import for_all
from yarus.metrics.answers import exact_match, semantic_similarity

NAN = math.nan


@for_all(
    "first, second, expected",
    [
        ([1, 0], [1, 0], 1),
        ([1, 0], [5, 0], 1),  # length does not matter
        ([1, 0], [0, 2], 0),
        ([1, 0], [-3, 0], -1),
        ([3, 4], [4, 3], 24 / 25),
        ([1, 0], [0, 0], NAN),
        ([0, 0], [1, 0], NAN),
        ([NAN, NAN], [1, 0], NAN),
        ([1, 0], [NAN, NAN], NAN),
    ],
)
def test_semantic_similarity_golden_values(first: list[float], second: list[float], expected: float) -> None:
    assert semantic_similarity([first], [second]) == pytest.approx(expected, rel=0, abs=1e-12, nan_ok=True)


VECTORS = st.lists(st.floats(-10, 10).filter(lambda x: x == 0 or abs(x) > 1e-3), min_size=3, max_size=3).filter(any)


@given(st.lists(st.tuples(VECTORS, VECTORS), min_size=1, max_size=5))
def test_semantic_similarity_equals_scipy(pairs: list[tuple[list[float], list[float]]]) -> None:
    from scipy.spatial.distance import cosine

    cosines = semantic_similarity([first for first, _ in pairs], [second for _, second in pairs])
    np.testing.assert_allclose(cosines, [1 - cosine(*pair) for pair in pairs], rtol=0, atol=1e-9)
    assert (np.abs(cosines) <= 1).all()
    first = [first for first, _ in pairs]
    np.testing.assert_allclose(semantic_similarity(first, first), 1)


def test_semantic_similarity_in_range_despite_rounding() -> None:
    """Without care a quarter of these are 1.0000000000000002."""
    vectors = np.random.default_rng(0).normal(size=(1_000, 3))
    assert semantic_similarity(vectors, vectors).max() == 1
    assert semantic_similarity(vectors, -vectors).min() == -1


def test_semantic_similarity_undefined_with_missing_numbers() -> None:
    np.testing.assert_equal(semantic_similarity([[None, 1.0], [3, 4]], [[1.0, 1.0], [3, 4]]), [np.nan, 1.0])


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([[1, 2]], [[1, 2], [3, 4]], r"hypotheses are \(1, 2\) but references \(2, 2\)"),
        ([[1, 2, 3]], [[1, 2]], "one vector a case"),
        ([1, 2], [1, 2], "one vector a case"),
        ([[1, math.inf]], [[1, 2]], "infinite"),
        ([[1, 2]], [[1, -math.inf]], "infinite"),
    ],
)
def test_semantic_similarity_refuses(first: list[float], second: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        semantic_similarity(first, second)


@for_all(
    "answers, expected",
    [
        (["да", "да"], 1),
        (["да", "нет"], 0),
        (["да", "да", "нет"], 1 / 3),  # one equal pair of three
        (["да", "да", "нет", "нет"], 2 / 6),
        (["да", "Да"], 0),
        (["да", "да."], 0),
        (["\u0438\u0306", "й"], 1),  # the same letter, composed and not
        (["", ""], 1),
        (["😀", "😀", None], 1),
        (["да", None], NAN),
        (["да"], NAN),
        ([None, None], NAN),
        ([], NAN),
    ],
)
def test_exact_match_golden_values(answers: list[str | None], expected: float) -> None:
    assert exact_match([answers]) == pytest.approx(expected, rel=0, abs=1e-12, nan_ok=True)


@given(st.lists(st.sampled_from("abc"), min_size=2, max_size=8))
def test_exact_match_ignores_the_order_of_repeats(answers: list[str]) -> None:
    value = exact_match([answers])[0]
    assert 0 <= value <= 1
    assert exact_match([sorted(answers)])[0] == value
    assert (value == 1) == (len(set(answers)) == 1)


def test_exact_match_per_question() -> None:
    assert exact_match([]).shape == (0,)
    np.testing.assert_array_equal(exact_match([["a", "a"], ["a", "b"], ["a"]]), [1, 0, NAN])
    with pytest.raises(TypeError, match=r"answers\[1\] is one text, 'да'"):
        exact_match([["да"], "да"])

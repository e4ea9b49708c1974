"""The Pareto front: examples, properties, and unknown values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.metrics.pareto import pareto_front

NAN = float("nan")
BETTER = ("higher", "lower")


def front(*rows: tuple[float, float]) -> list[bool]:
    return pareto_front(rows, better=BETTER).tolist()


def test_pareto_front_example() -> None:
    # (quality, cost): the second is worse and dearer than the first; the third is worse but cheaper.
    assert front((0.9, 5), (0.8, 6), (0.7, 1)) == [True, False, True]


def test_pareto_front_with_ties() -> None:
    assert front((0.9, 5), (0.9, 5)) == [True, True]
    assert front((0.9, 5), (0.9, 4)) == [False, True]


def test_pareto_front_with_unknown_values() -> None:
    assert front((0.9, NAN), (0.8, NAN)) == [True, False]
    assert front((0.9, NAN), (0.8, 5)) == [False, True]
    assert front((NAN, NAN)) == [False]


def test_pareto_front_of_no_or_one_system() -> None:
    assert pareto_front(np.zeros((0, 2)), better=BETTER).tolist() == []
    assert front((0.1, 9)) == [True]


def test_pareto_front_refuses() -> None:
    with pytest.raises(ValueError, match="do not belong together"):
        pareto_front([[1.0, 2.0]], better=("higher",))
    with pytest.raises(ValueError, match="better direction"):
        pareto_front([[1.0]], better=("neither",))


POINTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12)


@given(POINTS)
def test_pareto_front_keeps_undominated_points(points: list[tuple[int, int]]) -> None:
    def beats(a: tuple[int, int], b: tuple[int, int]) -> bool:
        return a != b and a[0] >= b[0] and a[1] <= b[1]

    expected = [not any(beats(competitor, point) for competitor in points) for point in points]
    assert front(*points) == expected
    assert any(expected)

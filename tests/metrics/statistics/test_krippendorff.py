"""Krippendorff's alpha: the published example, its limits, and undefined values."""

import numpy as np
import pytest

from yarus.metrics.statistics.krippendorff import krippendorff_alpha

NAN = float("nan")
PUBLISHED = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
)
"""Krippendorff 2011, section C: four observers, twelve units; 0.849 with the interval metric."""


def test_alpha_equals_published_example() -> None:
    assert krippendorff_alpha(PUBLISHED) == pytest.approx(0.849, abs=0.0005)


def test_alpha_by_hand() -> None:
    """Two observers, labels 1 1, 0 0, 1 0: observed 2 / 6 of squared differences, expected 2 (6 * 3 - 9) / 30."""
    assert krippendorff_alpha([[1, 0, 1], [1, 0, 0]]) == pytest.approx(1 - (2 / 6) / (2 * (6 * 3 - 9) / 30))


def test_alpha_at_full_agreement_and_disagreement() -> None:
    anna = np.array([1.0, 0.0] * 20)
    assert krippendorff_alpha([anna, anna]) == 1
    assert krippendorff_alpha([anna, 1 - anna]) == pytest.approx(-1, abs=0.03)
    assert krippendorff_alpha([np.ones(20), np.zeros(20)]) == pytest.approx(-1, abs=0.06)


def test_alpha_zero_at_chance() -> None:
    rng = np.random.default_rng(0)
    assert krippendorff_alpha(rng.random((3, 4_000)) < 0.7) == pytest.approx(0, abs=0.03)


@pytest.mark.parametrize("values", [[[1.0, 1.0], [1.0, 1.0]], [[1.0, NAN], [NAN, 0.0]], [[1.0, 0.0]], [[NAN, NAN]] * 2])
def test_alpha_undefined_without_common_or_varied_labels(values: list[list[float]]) -> None:
    assert np.isnan(krippendorff_alpha(values))


@pytest.mark.parametrize("values", [[1.0, 0.0], [[np.inf, 1.0]]])
def test_alpha_refuses_bad_tables(values: list[float]) -> None:
    with pytest.raises(ValueError, match="a finite label"):
        krippendorff_alpha(values)

"""Citation metrics against a direct implementation of ALCE's definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.metrics.claims import citation_precision, citation_recall

UNKNOWN = float("nan")


@given(st.integers(1, 5), st.integers(1, 5), st.randoms(use_true_random=False))
def test_citations_equal_definitions(statements: int, pages: int, chance) -> None:
    case = [[chance.choice([0, 1]) for _ in range(pages)] for _ in range(statements)]
    right = [any(row[page] for row in case) for page in range(pages)]
    assert citation_precision([case])[0] == sum(right) / pages
    assert citation_recall([case])[0] == sum(map(any, case)) / statements


@pytest.mark.parametrize(
    ("case", "precision", "recall"),
    [
        (None, UNKNOWN, UNKNOWN),
        (np.empty((0, 0)), UNKNOWN, UNKNOWN),
        (np.empty((0, 2)), UNKNOWN, UNKNOWN),  # the answer says nothing that could be supported
        (np.empty((2, 0)), UNKNOWN, 0),  # no page is named
        ([[1, UNKNOWN]], 1, UNKNOWN),  # the second page is not in the corpus
        ([[0, UNKNOWN]], 0, UNKNOWN),
        ([[UNKNOWN, 1], [UNKNOWN, 0]], 1, UNKNOWN),
        ([[1, 0], [UNKNOWN, UNKNOWN]], 0.5, 1),  # a statement that the judge forgot
        ([[UNKNOWN]], UNKNOWN, UNKNOWN),
    ],
)
def test_citations_leave_out_unknown_verdicts(case, precision: float, recall: float) -> None:
    assert citation_precision([case])[0] == pytest.approx(precision, nan_ok=True)
    assert citation_recall([case])[0] == pytest.approx(recall, nan_ok=True)


def test_citation_precision_refuses_flat_verdicts() -> None:
    with pytest.raises(ValueError, match=r"expected \(statements, pages\), got 1 dimensions"):
        citation_precision([[1, 0]])

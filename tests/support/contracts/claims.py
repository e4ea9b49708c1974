"""Contracts of the metrics of claims; see `tests/support/contracts/cases.py`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.support.contracts.cases import NAN, Contract
from yarus.metrics import claims

VERDICT = st.sampled_from([0, 1, NAN])


def verdicts(rows: int, columns: int) -> st.SearchStrategy[list[list[float]]]:
    return st.lists(st.lists(VERDICT, min_size=columns, max_size=columns), min_size=rows, max_size=rows)


MATRIX = st.none() | st.tuples(st.integers(1, 4), st.integers(1, 4)).flatmap(lambda size: verdicts(*size))
CLAIM_CASE = st.tuples(*(st.integers(0, 3) for _ in range(3))).flatmap(
    lambda sizes: st.tuples(
        verdicts(1, sizes[0]).map(lambda rows: rows[0]),
        verdicts(1, sizes[1]).map(lambda rows: rows[0]),
        verdicts(sizes[0], sizes[2]),
        verdicts(sizes[1], sizes[2]),
    )
)


def claim_precision(cases: Sequence[Any]) -> Any:
    return claims.claim_metrics([case and claims.Verdicts(*case) for case in cases])["claim_precision"]


def citation_contract(compute: Callable[..., Any], golden: float, empty: float, unread: float) -> Contract:
    """Return a contract for two statements and three pages, of which one supports the first."""
    return Contract(
        compute,
        golden=(([[[1, 0, 0], [0, 0, 0]]],), [golden]),
        cases=st.tuples(MATRIX),
        best=(([[[1, 0], [0, 1]]],), [1]),
        edges=[
            (([],), []),
            (([None],), [NAN]),
            (([np.empty((2, 0))],), [empty]),  # no page is named
            (([[[1, 0], [NAN, NAN]]],), [unread]),
            (([[1, 0]],), ValueError),
        ],
    )


NUGGETS = st.none() | st.lists(st.tuples(st.sampled_from([0, 0.5, 1, NAN]), st.booleans()), max_size=5)


def nugget_recall(cases: Sequence[Any]) -> Any:
    """Compute nugget recall from pairs of support and vitality."""
    split = [None if case is None else claims.Nuggets([s for s, _ in case], [v for _, v in case]) for case in cases]
    return claims.nugget_recall(split)


CLAIM_CONTRACTS = {
    "claims.nugget_recall": Contract(
        nugget_recall,
        golden=(([[(1, True), (0.5, True), (0, True), (NAN, True), (1, False)]],), [1 / 3]),
        cases=st.tuples(NUGGETS),
        best=(([[(1, True)]],), [1]),
        edges=[
            (([],), []),
            (([None],), [NAN]),
            (([[]],), [NAN]),
            (([[(1, False)]],), [NAN]),  # none is vital
            (([[(0.7, True)]],), ValueError),
        ],
    ),
    "claims.claim_metrics": Contract(
        claim_precision,
        golden=(([([1, 0, NAN], [1], [[1], [0], [0]], [[1]])],), [0.5]),
        cases=st.tuples(st.none() | CLAIM_CASE),
        best=(([([1], [1], [[1]], [[1]])],), [1]),
        edges=[
            (([],), []),
            (([None],), [NAN]),
            (([([], [], [], [])],), [NAN]),
            (([([1, 0], [1], [[1]], [[1]])],), ValueError),
        ],
    ),
    "claims.citation_precision": citation_contract(claims.citation_precision, 1 / 3, NAN, 1 / 2),
    "claims.citation_recall": citation_contract(claims.citation_recall, 1 / 2, 0, 1),
    "claims.citation_known": Contract(
        claims.citation_known,
        golden=(([[True, False, True]],), [2 / 3]),
        cases=st.tuples(st.none() | st.lists(st.booleans(), max_size=5)),
        best=(([[True]],), [1]),
        edges=[(([],), []), (([None],), [NAN]), (([[]],), [NAN])],
    ),
}

"""What every metric of the table must keep: a golden value, its range, its best value, the order of cases, its edges.

A metric that is added to the table without a row in one of `tests/support/contracts/` fails the suite.
"""

import copy
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.contracts.cases import METRIC_CONTRACTS as OF_CASES
from tests.support.contracts.claims import CLAIM_CONTRACTS
from tests.support.contracts.contexts import CONTEXT_CONTRACTS
from tests.support.contracts.vectors import VECTOR_CONTRACTS
from tests.support.examples import for_all, get_example_count
from yarus.metrics.table import METRICS

CONTRACTS = OF_CASES | VECTOR_CONTRACTS | CLAIM_CONTRACTS | CONTEXT_CONTRACTS
ROWS = {row.function: row for row in reversed(METRICS.values()) if row.function}
ORDERED = {"dialogue.context_preservation"}  # the turns of a dialog have an order
EVERY = for_all("function", CONTRACTS)
ALIKE: dict[int, list[str]] = {}
"""The functions that the same cases are made up for, by these."""
for function, contract in CONTRACTS.items():
    ALIKE.setdefault(id(contract.cases), []).append(function)


def test_every_metric_has_a_contract() -> None:
    assert set(CONTRACTS) == set(ROWS), "a metric of the table needs a golden value, edges and properties here"


@EVERY
def test_golden_value(function: str) -> None:
    columns, value = CONTRACTS[function].golden
    assert CONTRACTS[function].compute(*columns) == pytest.approx(value, rel=0, abs=1e-9)


@EVERY
def test_perfect_input_gives_the_best_value(function: str) -> None:
    contract, row = CONTRACTS[function], ROWS[function]
    if contract.best is None:
        assert row.better == "neither" or math.isinf(row.high)
        return
    columns, value = contract.best
    assert contract.compute(*columns) == pytest.approx(value, rel=0, abs=1e-9)
    if function != "agreement.chance_consistency":  # which has no better direction
        bound = row.high if row.better == "higher" else row.low
        assert np.all(np.multiply(value, contract.scale) == bound)


@EVERY
def test_edges(function: str) -> None:
    contract = CONTRACTS[function]
    assert len(contract.edges) >= 3
    for columns, expected in contract.edges:
        if isinstance(expected, type):
            with pytest.raises(expected):
                contract.compute(*columns)
        else:
            assert contract.compute(*columns) == pytest.approx(expected, rel=0, abs=1e-9, nan_ok=True), columns


@pytest.mark.parametrize("functions", ALIKE.values(), ids=" ".join)
@given(data=st.data())
@settings(max_examples=get_example_count(25))
def test_values_in_range_and_independent_of_order(functions: list[str], data: st.DataObject) -> None:
    cases = data.draw(st.lists(CONTRACTS[functions[0]].cases, min_size=2, max_size=8))
    columns = [list(column) for column in zip(*cases, strict=True)]
    given_columns = copy.deepcopy(columns)
    order = data.draw(st.permutations(range(len(cases))))
    for function in functions:
        contract, row = CONTRACTS[function], ROWS[function]
        values = np.atleast_1d(contract.compute(*columns)) * contract.scale
        assert repr(columns) == repr(given_columns), f"{function} changed the caller's values"
        measured = values[~np.isnan(values)]
        assert ((row.low - 1e-9 <= measured) & (measured <= row.high + 1e-9)).all(), function
        if function in ORDERED:
            continue
        again = np.atleast_1d(contract.compute(*[[column[i] for i in order] for column in columns])) * contract.scale
        expected = (
            values[list(order)]
            if len(values) == len(cases) and row.aggregate != "whole" and len(values) > 1
            else values
        )
        np.testing.assert_allclose(again, expected, rtol=1e-9, atol=1e-9, err_msg=function)

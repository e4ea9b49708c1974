"""The table of cases: declared columns, their types, and errors for values that break them."""

import math
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest

from yarus.metrics.table import METRICS
from yarus.tasks.cases.table import CASE_COLUMNS, make_cases, set_columns
from yarus.tasks.cases.vocabulary import MEASURED_STATUSES, UNMEASURABLE_STATUSES, Status


def test_table_columns_have_declared_types() -> None:
    cases = make_cases(case_id=["a"], relevant=[["x"]], distances=[[0.5]], mrr=np.array([1.0]))
    assert cases.schema == pa.schema([(name, CASE_COLUMNS[name].type) for name in cases.column_names])


def test_set_columns_turns_nan_into_null() -> None:
    cases = set_columns(make_cases(case_id=["a", "b"]), mrr=np.array([math.nan, 0.5]))
    assert cases["mrr"].to_pylist() == [None, 0.5]


def test_table_keeps_empty_lists() -> None:
    assert make_cases(retrieved=[[], None])["retrieved"].to_pylist() == [[], None]


def test_set_columns_replaces_a_column_in_a_copy() -> None:
    before = make_cases(case_id=["a"], status=["ok"], question=["?"])
    after = set_columns(before, status=["sut_error"])
    assert after.column_names == before.column_names
    assert (before["status"][0].as_py(), after["status"][0].as_py()) == ("ok", "sut_error")


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"colour": ["red"]}, KeyError, "colour"),
        ({"question": ["?", "??"]}, ValueError, "2 values for 1 cases"),
        ({"mrr": ["high"]}, pa.ArrowInvalid, "high"),
        ({"question": [5]}, pa.ArrowTypeError, "got a 'int' object"),
        ({"relevant": [5]}, pa.ArrowTypeError, "list"),
    ],
)
def test_set_columns_rejects_values_of_another_type(
    columns: dict[str, list[object]], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        set_columns(make_cases(case_id=["a"]), **columns)


def test_table_without_columns_is_rejected() -> None:
    with pytest.raises(ValueError, match="needs a column"):
        make_cases()


def test_metrics_per_case_have_columns() -> None:
    for metric in METRICS.values():
        assert metric.column is None or CASE_COLUMNS[metric.column].type in (pa.float64(), pa.int64()), metric.name


def test_statuses_are_measured_or_not_measurable() -> None:
    statuses = set(get_args(Status))
    assert set(MEASURED_STATUSES) < statuses
    assert set(UNMEASURABLE_STATUSES) < statuses
    assert not set(MEASURED_STATUSES) & set(UNMEASURABLE_STATUSES)

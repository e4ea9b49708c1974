"""The table of cases: declared columns, their types, and nothing that breaks them."""

import math
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest

from yarus.metrics.table import METRICS
from yarus.tasks.cases.table import COLUMNS, table, with_columns
from yarus.tasks.cases.vocabulary import CANNOT_BE_MEASURED, MEASURED, Status


def test_columns_have_their_declared_types() -> None:
    cases = table(case_id=["a"], relevant=[["x"]], distances=[[0.5]], mrr=np.array([1.0]))
    assert cases.schema == pa.schema([(name, COLUMNS[name].type) for name in cases.column_names])


def test_nan_becomes_null() -> None:
    cases = with_columns(table(case_id=["a", "b"]), mrr=np.array([math.nan, 0.5]))
    assert cases["mrr"].to_pylist() == [None, 0.5]


def test_an_empty_list_stays_and_is_not_null() -> None:
    assert table(retrieved=[[], None])["retrieved"].to_pylist() == [[], None]


def test_a_column_is_replaced_in_its_place_and_the_old_table_stays() -> None:
    before = table(case_id=["a"], status=["ok"], question=["?"])
    after = with_columns(before, status=["sut_error"])
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
def test_what_breaks_the_schema_fails_where_it_broke(
    columns: dict[str, list[object]], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        with_columns(table(case_id=["a"]), **columns)


def test_a_table_without_columns_is_none() -> None:
    with pytest.raises(ValueError, match="needs a column"):
        table()


def test_every_per_case_metric_has_its_column() -> None:
    for metric in METRICS.values():
        assert metric.column is None or COLUMNS[metric.column].type in (pa.float64(), pa.int64()), metric.name


def test_every_status_is_one_kind_of_thing() -> None:
    statuses = set(get_args(Status))
    assert set(MEASURED) < statuses
    assert set(CANNOT_BE_MEASURED) < statuses
    assert not set(MEASURED) & set(CANNOT_BE_MEASURED)

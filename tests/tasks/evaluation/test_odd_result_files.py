"""Files of results that were replaced by something else: the message says so, and nothing hangs or breaks off."""

import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from yarus.db.errors import ResultsUnavailable
from yarus.tasks.evaluation.result_files import read

CASES = {"case_id": ["s:1"], "status": ["ok"], "reason": [None], "question": ["где?"], "mrr": [0.5]}


def written(tmp_path: Path, **other: Any) -> str:
    file = tmp_path / "tier1-x.parquet"
    columns = {name: values for name, values in (CASES | other).items() if values is not None}
    pq.write_table(pa.table(columns), file)
    return str(file)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"case_id": None}, "no column 'case_id'"),
        ({"status": None}, "no column 'status'"),
        ({"mrr": ["good"]}, "'mrr' is string, not double"),
        ({"mrr": [{"value": 0.5}]}, "'mrr' is struct<value: double>, not double"),
        ({"question": [{"text": "где?"}]}, "'question' is struct<text: string>, not string"),
    ],
)
def test_what_are_no_cases_is_named(tmp_path: Path, other: dict[str, Any], said: str) -> None:
    with pytest.raises(ResultsUnavailable, match="put its own file back") as refused:
        read(written(tmp_path, **other))
    assert said in str(refused.value)


def test_a_column_that_is_not_asked_for_need_not_be_there(tmp_path: Path) -> None:
    assert read(written(tmp_path, status=None), ["mrr"])["mrr"].to_pylist() == [0.5]


def test_the_same_values_in_another_form_are_the_same(tmp_path: Path) -> None:
    same = {"case_id": pa.array(["s:1"]).dictionary_encode(), "mrr": [Decimal("0.5")]}
    found = read(written(tmp_path, **same))
    assert (found["case_id"].type, found["mrr"].to_pylist()) == (pa.string(), [0.5])


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tier1-x.parquet")
    with pytest.raises(ResultsUnavailable, match="it is a pipe"):
        read(str(tmp_path / "tier1-x.parquet"))

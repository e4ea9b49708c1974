"""Result files replaced by other files: the message names the problem, and nothing hangs or crashes."""

import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from yarus.db.errors import ResultsUnavailable
from yarus.tasks.evaluation.result_files import read_results

CASES = {"case_id": ["s:1"], "status": ["ok"], "reason": [None], "question": ["где?"], "mrr": [0.5]}


def write_cases(tmp_path: Path, **replacements: Any) -> str:
    file = tmp_path / "tier1-x.parquet"
    columns = {name: values for name, values in (CASES | replacements).items() if values is not None}
    pq.write_table(pa.table(columns), file)
    return str(file)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"case_id": None}, "no column 'case_id'"),
        ({"status": None}, "no column 'status'"),
        ({"mrr": ["good"]}, "'mrr' is string, not double"),
        ({"mrr": [{"value": 0.5}]}, "'mrr' is struct<value: double>, not double"),
        ({"question": [{"text": "где?"}]}, "'question' is struct<text: string>, not string"),
    ],
)
def test_read_names_missing_or_wrong_columns(tmp_path: Path, other: dict[str, Any], message: str) -> None:
    with pytest.raises(ResultsUnavailable, match="put its own file back") as error:
        read_results(write_cases(tmp_path, **other))
    assert message in str(error.value)


def test_read_ignores_unrequested_missing_columns(tmp_path: Path) -> None:
    assert read_results(write_cases(tmp_path, status=None), ["mrr"])["mrr"].to_pylist() == [0.5]


def test_read_casts_equal_values_of_other_types(tmp_path: Path) -> None:
    equal_columns = {"case_id": pa.array(["s:1"]).dictionary_encode(), "mrr": [Decimal("0.5")]}
    table = read_results(write_cases(tmp_path, **equal_columns))
    assert (table["case_id"].type, table["mrr"].to_pylist()) == (pa.string(), [0.5])


def test_read_refuses_pipes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tier1-x.parquet")
    with pytest.raises(ResultsUnavailable, match="it is a pipe"):
        read_results(str(tmp_path / "tier1-x.parquet"))

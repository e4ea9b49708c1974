"""Test Parquet files of other programs and damaged ones: read, skipped with their place, or rejected with a message."""

import random
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from yarus.db.errors import InputError
from yarus.db.importers import table


def read_values(path: Path, columns: dict[str, Any], name: str, **options: Any) -> list[Any]:
    """Return the values of the rows, or the problems with an unreadable column."""
    pq.write_table(pa.table(columns), path / "t.parquet", **options)
    stream = table.read_table(path / "t.parquet", mapping={name: name})
    return stream.problems or [row.values for row in stream.questions]


@pytest.mark.parametrize(
    ("name", "values", "options", "expected"),
    [
        ("score", pa.array([Decimal("5.00"), None]), {}, 5),
        ("score", pa.array([Decimal("4.50"), None]), {}, "no whole number"),
        ("score", pa.array([Decimal(10**60), None], pa.decimal256(70, 2)), {}, "no whole number"),
        ("answer", pa.array(["x", "y"]).dictionary_encode(), {}, "x"),
        ("answer", pa.array([{"x": 1, "y": 2}, None]), {}, "no text"),
        ("answer", pa.array([b"x", None]), {}, "no text"),
        ("created_at", pa.array([1, None], pa.timestamp("ns", "Asia/Tokyo")), {},
         "1970-01-01T09:00:00.000000001+09:00"),
        ("created_at", pa.array([datetime(2026, 1, 1), None]), {"use_deprecated_int96_timestamps": True},
         "2026-01-01T00:00:00+00:00"),
        ("embedding", pa.array([[[1.0]], None]), {}, "no vector"),
        ("relevant_chunk_ids", pa.array([[[True]], None]), {}, "no labels"),
    ],
)  # fmt: skip
def test_read_converts_parquet_types(
    tmp_path: Path, name: str, values: Any, options: dict[str, Any], expected: object
) -> None:
    other_columns = {} if name == "created_at" else {"user_id": ["1", "2"]}
    row = read_values(tmp_path, {"question": ["a", "b"], **other_columns, name: values}, name, **options)[0]
    result = row if isinstance(row, str) else row[name]
    if isinstance(row, str):
        assert str(expected) in result
    else:
        assert (result.isoformat() if hasattr(result, "isoformat") else result) == expected


@pytest.mark.parametrize(
    "values",
    [
        pa.array([2**62, None], pa.timestamp("us")),
        pa.array([2**31 - 1, None], pa.date32()),
        pa.array([0, None], pa.timestamp("us", "Mars/Base")),
    ],
)
def test_unreadable_parquet_time_costs_no_row(tmp_path: Path, values: Any) -> None:
    (problem,) = read_values(tmp_path, {"question": ["a", "b"], "created_at": values}, "created_at")
    assert problem.startswith("created_at: 1 of 1 not read") and "no date" in problem
    assert len(list(table.read_table(tmp_path / "t.parquet").questions)) == 2


def test_damaged_parquet_is_rejected_or_read(tmp_path: Path) -> None:
    """Cut the file at many lengths, and change random bytes."""
    path, generator = tmp_path / "t.parquet", random.Random(1)
    pq.write_table(pa.table({"question": [f"вопрос {number}" for number in range(500)]}), path)
    valid_content, n_rejected = path.read_bytes(), 0
    damaged_contents = [valid_content[:length] for length in range(0, len(valid_content), 97)]
    for _ in range(200):
        content = bytearray(valid_content)
        for _ in range(generator.choice((1, 3, 20))):
            content[generator.randrange(len(content))] = generator.randrange(256)
        damaged_contents.append(bytes(content))
    for content in damaged_contents:
        path.write_bytes(content)
        try:
            list(table.read_table(path).questions)
        except InputError:
            n_rejected += 1
    assert n_rejected > len(damaged_contents) / 2


def test_read_skips_empty_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    with pq.ParquetWriter(path, pa.schema([("question", pa.string())])) as writer:
        for part in ([], ["a"], [], ["b"]):
            writer.write_table(pa.table({"question": pa.array(part, pa.string())}))
    assert [row.values["question"] for row in table.read_table(path).questions] == ["a", "b"]

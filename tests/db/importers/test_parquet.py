"""Parquet as other programs write it, and damaged: read, skipped with its place, or refused in words; never more."""

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


def read(path: Path, columns: dict[str, Any], name: str, **options: Any) -> list[Any]:
    """The values of the rows; what is said of a column that cannot be read."""
    pq.write_table(pa.table(columns), path / "t.parquet", **options)
    stream = table.read(path / "t.parquet", mapping={name: name})
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
def test_types_of_other_programs(
    tmp_path: Path, name: str, values: Any, options: dict[str, Any], expected: object
) -> None:
    beside = {} if name == "created_at" else {"user_id": ["1", "2"]}
    row = read(tmp_path, {"question": ["a", "b"], **beside, name: values}, name, **options)[0]
    found = row if isinstance(row, str) else row[name]
    if isinstance(row, str):
        assert str(expected) in found
    else:
        assert (found.isoformat() if hasattr(found, "isoformat") else found) == expected


@pytest.mark.parametrize(
    "values",
    [
        pa.array([2**62, None], pa.timestamp("us")),
        pa.array([2**31 - 1, None], pa.date32()),
        pa.array([0, None], pa.timestamp("us", "Mars/Base")),
    ],
)
def test_a_time_that_nobody_can_read_costs_no_row(tmp_path: Path, values: Any) -> None:
    (problem,) = read(tmp_path, {"question": ["a", "b"], "created_at": values}, "created_at")
    assert problem.startswith("created_at: 1 of 1 not read") and "no date" in problem
    assert len(list(table.read(tmp_path / "t.parquet").questions)) == 2


def test_damaged_files_are_refused_in_words_or_read(tmp_path: Path) -> None:
    """Every length that it may be cut to, and bytes changed at random."""
    path, generator = tmp_path / "t.parquet", random.Random(1)
    pq.write_table(pa.table({"question": [f"вопрос {number}" for number in range(500)]}), path)
    whole, refused = path.read_bytes(), 0
    damaged = [whole[:length] for length in range(0, len(whole), 97)]
    for _ in range(200):
        content = bytearray(whole)
        for _ in range(generator.choice((1, 3, 20))):
            content[generator.randrange(len(content))] = generator.randrange(256)
        damaged.append(bytes(content))
    for content in damaged:
        path.write_bytes(content)
        try:
            list(table.read(path).questions)
        except InputError:
            refused += 1
    assert refused > len(damaged) / 2


def test_empty_groups_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    with pq.ParquetWriter(path, pa.schema([("question", pa.string())])) as writer:
        for part in ([], ["a"], [], ["b"]):
            writer.write_table(pa.table({"question": pa.array(part, pa.string())}))
    assert [row.values["question"] for row in table.read(path).questions] == ["a", "b"]

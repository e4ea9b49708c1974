"""Test columns that record how answers were made."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from yarus.db.importers import table
from yarus.db.loading.recorded import content_id
from yarus.db.loading.staging import IncomingRow

TEXT = "Билет выдают в деканате."
PASSAGE = {"id": "c2", "content": "Б", "url": "https://wiki/b"}
ROWS: list[dict[str, Any]] = [
    {
        "id": "1",
        "question": "Где билет?",
        "answer": "В деканате.",
        "contexts": [TEXT, PASSAGE],
        "latency_ms": 12.5,
        "tokens_in": 7,
    },
    {"id": "2", "question": "Когда?", "answer": None, "contexts": [], "error": "TimeoutError"},
    {"id": "3", "question": "Кто?", "answer": "Ректор.", "contexts": None},
]
PLAIN_COLUMNS = ("id", "question", "answer", "latency_ms", "tokens_in", "error")


def read_stream(path: Path) -> tuple[list[Any], list[Any], list[str]]:
    stream = table.read_table(path)
    return list(stream.chunks), list(stream.questions), stream.problems


def test_recorded_columns_and_passages_are_read(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    chunks, questions, problems = read_stream(tmp_path / "t.jsonl")
    content_hash = content_id({"text": TEXT, "confluence_url": None})
    first = {"id": content_hash, "text": TEXT, "url": None}
    second = {"id": "c2", "text": "Б", "url": "https://wiki/b"}
    assert [row.values["recorded"] for row in questions] == [
        {"contexts": [first, second], "latency_ms": 12.5, "tokens_in": 7},
        {"contexts": [], "error": "TimeoutError"},
        None,
    ]
    assert [row.values for row in chunks] == [
        {"id": content_hash, "confluence_url": None, "text": TEXT},
        {"id": "c2", "confluence_url": "https://wiki/b", "text": "Б"},
    ]
    assert problems == []
    assert table.read_table(tmp_path / "t.jsonl").new_chunks_only


def test_csv_and_parquet_give_same_records(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    with (tmp_path / "t.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*PLAIN_COLUMNS, "contexts"])
        for row in ROWS:
            contexts_text = "" if row["contexts"] is None else json.dumps(row["contexts"])
            writer.writerow([*(row.get(name, "") for name in PLAIN_COLUMNS), contexts_text])
    first = [{"content": TEXT, "id": None, "url": None}, PASSAGE]
    columns = {name: [row.get(name) for row in ROWS] for name in PLAIN_COLUMNS}
    pq.write_table(pa.table({**columns, "contexts": [first, [], None]}), tmp_path / "t.parquet")
    expected = [[row.values for row in part] for part in read_stream(tmp_path / "t.jsonl")[:2]]
    for name in ("t.csv", "t.parquet"):
        assert [[row.values for row in part] for part in read_stream(tmp_path / name)[:2]] == expected, name


def test_row_id_does_not_depend_on_recorded_columns(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"question": "Где?", "latency_ms": 1}\n{"question": "Где?"}', encoding="utf-8")
    _, (first, second), _ = read_stream(tmp_path / "t.jsonl")
    assert isinstance(first, IncomingRow)
    assert first.values["id"] == second.values["id"]


def test_file_without_recorded_columns_has_no_records(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"question": "Где?"}', encoding="utf-8")
    chunks, (row,), _ = read_stream(tmp_path / "t.jsonl")
    assert (chunks, "recorded" in row.values) == ([], False)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("contexts", "В деканате."),
        ("contexts", [1, 2]),
        ("contexts", [{"url": "https://wiki"}]),
        ("history", [{"role": "robot", "content": "a"}]),
        ("history", ["a"]),
        ("latency_ms", -1),
        ("latency_ms", "inf"),
        ("latency_ms", True),
        ("latency_ms", "12 ms"),
        ("tokens_in", 1.5),
        ("tokens_out", -3),
        ("cost_usd", "0,5"),
    ],
)
def test_invalid_recorded_value_is_empty_and_reported(column: str, value: Any, tmp_path: Path) -> None:
    valid_value = {"contexts": ["a"], "history": [{"role": "user", "content": "a"}]}.get(column, 1)
    rows = [{"question": "Где?", "answer": "Тут.", "user_id": "1", column: value}]
    rows += [{"question": f"Где {n}?", "answer": "Тут.", "user_id": "1", column: valid_value} for n in range(3)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    _, (row, *_), problems = read_stream(tmp_path / "t.jsonl")
    assert row.values["question"] == "Где?"
    assert column not in (row.values["recorded"] or {})
    assert any(problem.startswith(f"{column}: 1 of 4 not read") and "t.jsonl:1" in problem for problem in problems)

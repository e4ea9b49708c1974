"""Columns of a table of questions that say how its answers came about."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from yarus.db.importers import table
from yarus.db.loading.recorded import content_id
from yarus.db.loading.staging import Row

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
PLAIN = ("id", "question", "answer", "latency_ms", "tokens_in", "error")


def read(path: Path) -> tuple[list[Any], list[Any], list[str]]:
    stream = table.read(path)
    return list(stream.chunks), list(stream.questions), stream.problems


def test_a_record_is_made_of_what_a_row_tells_and_its_passages_are_chunks(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    chunks, questions, problems = read(tmp_path / "t.jsonl")
    own = content_id({"text": TEXT, "confluence_url": None})
    first = {"id": own, "text": TEXT, "url": None}
    second = {"id": "c2", "text": "Б", "url": "https://wiki/b"}
    assert [row.values["recorded"] for row in questions] == [
        {"contexts": [first, second], "latency_ms": 12.5, "tokens_in": 7},
        {"contexts": [], "error": "TimeoutError"},
        None,
    ]
    assert [row.values for row in chunks] == [
        {"id": own, "confluence_url": None, "text": TEXT},
        {"id": "c2", "confluence_url": "https://wiki/b", "text": "Б"},
    ]
    assert problems == []
    assert table.read(tmp_path / "t.jsonl").new_chunks_only


def test_csv_and_parquet_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    with (tmp_path / "t.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*PLAIN, "contexts"])
        for row in ROWS:
            found = "" if row["contexts"] is None else json.dumps(row["contexts"])
            writer.writerow([*(row.get(name, "") for name in PLAIN), found])
    first = [{"content": TEXT, "id": None, "url": None}, PASSAGE]
    columns = {name: [row.get(name) for row in ROWS] for name in PLAIN}
    pq.write_table(pa.table({**columns, "contexts": [first, [], None]}), tmp_path / "t.parquet")
    expected = [[row.values for row in part] for part in read(tmp_path / "t.jsonl")[:2]]
    for name in ("t.csv", "t.parquet"):
        assert [[row.values for row in part] for part in read(tmp_path / name)[:2]] == expected, name


def test_a_row_without_id_is_the_same_row_whatever_is_recorded_with_it(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"question": "Где?", "latency_ms": 1}\n{"question": "Где?"}', encoding="utf-8")
    _, (first, second), _ = read(tmp_path / "t.jsonl")
    assert isinstance(first, Row)
    assert first.values["id"] == second.values["id"]


def test_other_files_say_nothing_of_records(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"question": "Где?"}', encoding="utf-8")
    chunks, (row,), _ = read(tmp_path / "t.jsonl")
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
def test_what_cannot_be_recorded_is_left_empty_with_its_place(column: str, value: Any, tmp_path: Path) -> None:
    good = {"contexts": ["a"], "history": [{"role": "user", "content": "a"}]}.get(column, 1)
    rows = [{"question": "Где?", "answer": "Тут.", "user_id": "1", column: value}]
    rows += [{"question": f"Где {n}?", "answer": "Тут.", "user_id": "1", column: good} for n in range(3)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    _, (row, *_), problems = read(tmp_path / "t.jsonl")
    assert row.values["question"] == "Где?"
    assert column not in (row.values["recorded"] or {})
    assert any(problem.startswith(f"{column}: 1 of 4 not read") and "t.jsonl:1" in problem for problem in problems)

"""Test that tables in CSV, JSON Lines and Parquet give the same rows in every format."""

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import Engine

from tests.support.database.dumps import query_rows
from yarus.db.errors import InputError
from yarus.db.importers import table
from yarus.db.loading.load_rows import LoadCounts, LoadReport, load_rows

ROWS = [
    {
        "id": "7", "question": "Где взять билет,\n«студенческий»?", "answer": 'В деканате; "новый"',
        "confluence_url": "https://wiki.example/a", "user_id": "118", "created_at": "2026-03-05T10:30:00+03:00",
        "score": 5, "relevant_chunk_ids": {"c1": 3, "c2": 0}, "answerable": True, "cluster": "Деканат",
        "dialog_id": "d1", "turn": 1,
    },
    {"id": "8", "question": "图書館 📚?", "relevant_chunk_ids": ["c2"], "turn": 2},
]  # fmt: skip


def write_table(path: Path, rows: list[dict]) -> Path:
    names = list(dict.fromkeys(name for row in rows for name in row))
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    elif path.suffix == ".parquet":
        json_rows = [
            {name: json.dumps(value) if isinstance(value, dict | list) else value for name, value in row.items()}
            for row in rows
        ]
        pd.DataFrame(json_rows, columns=names).to_parquet(path)
    else:
        file = io.StringIO()
        writer = csv.DictWriter(file, names, delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writeheader()
        for row in rows:
            writer.writerow(
                {name: json.dumps(value) if isinstance(value, dict | list) else value for name, value in row.items()}
            )
        path.write_text(file.getvalue(), encoding="utf-8", newline="")
    return path


def csv_file(folder: Path, content: str, encoding: str = "utf-8") -> Path:
    path = folder / "table.csv"
    path.write_bytes(content.encode(encoding))
    return path


def load(engine: Engine, name: str, path: Path, **options: object) -> LoadReport:
    return load_rows(engine, name, table.read_table(path, **options), language="ru", origin="test")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_every_format_gives_same_rows(engine: Engine, tmp_path: Path, suffix: str) -> None:
    name = f"table_{suffix[1:]}"
    for added in (2, 0):
        report = load(engine, name, write_table(tmp_path / f"log{suffix}", ROWS))
        assert (report.questions, report.labels) == (LoadCounts(2, added), LoadCounts(2, added))
        assert report.problems == []
    columns = "id, question, answer, confluence_url, score, user_id, created_at"
    assert query_rows(engine, f"SELECT {columns} FROM source_{name}.question_answer ORDER BY id") == [
        ("7", ROWS[0]["question"], ROWS[0]["answer"], "https://wiki.example/a", 5, "118",
         datetime(2026, 3, 5, 7, 30, tzinfo=UTC)),
        ("8", "图書館 📚?", None, None, None, None, None),
    ]  # fmt: skip
    columns = "question_id, relevant_chunk_ids, answerable, cluster, dialog_id, turn, origin"
    assert query_rows(engine, f"SELECT {columns} FROM source_{name}.annotation ORDER BY 1") == [
        ("7", {"c1": 3, "c2": 0}, True, "Деканат", "d1", 1, "imported"),
        ("8", ["c2"], None, None, None, 2, "imported"),
    ]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_chunk_vectors_are_stored_exactly(engine: Engine, tmp_path: Path, suffix: str) -> None:
    """Check that float32 values are stored exactly, from a list, a JSON text or NumPy."""
    vector = [float(value) for value in np.array([0.1, -2.5e-7, 3], dtype=np.float32)]
    chunks = [{"id": 1, "text": "а", "confluence_url": "u", "embedding": vector}, {"id": 2, "text": "б"}]
    name = f"chunks_{suffix[1:]}"
    report = load(engine, name, write_table(tmp_path / f"c{suffix}", chunks), kind="chunks")
    assert (report.chunks, report.questions, report.problems) == (LoadCounts(2, 2), LoadCounts(), [])
    rows = query_rows(engine, f"SELECT id, text, CAST(embedding AS real[]) FROM source_{name}.chunk ORDER BY id")
    assert [row[:2] for row in rows] == [("1", "а"), ("2", "б")]
    assert np.array_equal(np.array(rows[0][2], dtype=np.float32), np.array(vector, dtype=np.float32))
    assert rows[1][2] is None


def test_parquet_lists_and_dates_are_loaded(engine: Engine, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "id": [1.0, 2.0],  # integers as floats, as pandas stores a column with gaps
            "question": ["а", "б"],
            "created_at": [pd.Timestamp("2026-01-02 03:04:05"), None],
            "relevant_chunk_ids": [["c1", "c2"], None],
            "embedding": [np.array([1, 2], dtype=np.float32), np.array([3, 4], dtype=np.float32)],
        }
    )
    frame.to_parquet(tmp_path / "t.parquet")
    report = load(engine, "parquet_types", tmp_path / "t.parquet")
    assert report.questions == LoadCounts(2, 2)
    assert query_rows(
        engine, "SELECT id, created_at, CAST(embedding AS text) FROM source_parquet_types.question_answer"
    ) == [("1", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "[1,2]"), ("2", None, "[3,4]")]
    assert query_rows(engine, "SELECT relevant_chunk_ids, origin FROM source_parquet_types.annotation ORDER BY 1") == [
        (["c1", "c2"], "imported"),
        (None, None),
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_delimiter_is_detected_from_header(engine: Engine, tmp_path: Path, delimiter: str, encoding: str) -> None:
    content = delimiter.join(["id", "question", "score"]) + "\r\n" + delimiter.join(["1", '"а;б,в\tг"', "5"]) + "\r\n"
    name = f"delimiter_{ord(delimiter)}_{len(encoding)}"
    report = load(engine, name, csv_file(tmp_path, content, encoding))
    assert (report.questions, report.problems) == (LoadCounts(1, 1), [])
    assert query_rows(engine, f"SELECT id, question, score FROM source_{name}.question_answer") == [
        ("1", "а;б,в\tг", 5)
    ]


def test_mapped_columns_are_loaded(engine: Engine, tmp_path: Path) -> None:
    path = csv_file(tmp_path, "Номер,Вопрос,Оценка\n1,где?,5\n")
    load(engine, "mapped", path, mapping={"id": "Номер", "question": "Вопрос", "score": "Оценка"})
    assert query_rows(engine, "SELECT id, question, score FROM source_mapped.question_answer") == [("1", "где?", 5)]


def test_row_without_id_is_identified_by_content(engine: Engine, tmp_path: Path) -> None:
    head = "question,user_id,score,relevant_chunk_ids\n"
    first = load(engine, "hashed", csv_file(tmp_path, head + "где?,1,5,a\nгде?,2,,\nкогда?,1,,\n"))
    assert first.questions == LoadCounts(3, 3)
    second = load(engine, "hashed", csv_file(tmp_path, head + "когда?,1,,\nгде?,1,1,a;b\nгде?,1,1,a;b\n"))
    assert second.questions == LoadCounts(3, 0, 1, 1)
    assert second.labels == LoadCounts(3, 0, 1, 1)
    assert len([problem for problem in second.problems if "table.csv:4: skipped, id" in problem]) == 1


def test_missing_column_keeps_stored_values(engine: Engine, tmp_path: Path) -> None:
    load(engine, "kept", csv_file(tmp_path, "id,question,answer,user_id\n1,где?,там,7\n"))
    report = load(engine, "kept", csv_file(tmp_path, "id,question\n1,где же?\n"))
    assert report.questions == LoadCounts(1, 0, 1)
    assert query_rows(engine, "SELECT question, answer FROM source_kept.question_answer") == [("где же?", "там")]


def test_rows_without_labels_have_no_origin(engine: Engine, tmp_path: Path) -> None:
    """Expect no origin: it would mean that somebody looked and found nothing relevant."""
    load(engine, "unjudged", csv_file(tmp_path, "id,question,dialog_id,answerable\n1,а,d,\n2,б,d,нет\n"))
    assert query_rows(engine, "SELECT question_id, origin FROM source_unjudged.annotation ORDER BY 1") == [
        ("1", None),
        ("2", "imported"),
    ]


def test_unusable_rows_are_skipped_with_their_lines(engine: Engine, tmp_path: Path) -> None:
    content = (
        "id,question,score,created_at,answerable\n"
        '1,"две\nстроки",5,2026-01-01,да\n'
        "2,а,five,5 марта,maybe\n"
        "3,б\n"
        "4,в,1,2026-01-01,нет,лишнее\n"
        "\n"
        "5, ,1,2026-01-02,\n"
        "6,г,1,2026-01-03,да\n"
        "6,д,1,2026-01-04,нет\n"
    )
    report = load(engine, "ragged", csv_file(tmp_path, content))
    assert report.questions == LoadCounts(read=7, added=3, skipped=4)
    assert report.problems == [
        "score: 1 of 5 not read ('five' at table.csv:4): no whole number; left empty",
        "created_at: 1 of 5 not read ('5 марта' at table.csv:4): no date; write it like 2026-03-05T10:30:00+03:00; "
        "left empty",
        "answerable: 1 of 4 not read ('maybe' at table.csv:4): neither yes nor no; left empty",
        "table.csv:5: skipped, 2 fields where the header has 5; a text with the delimiter needs quotes",
        "table.csv:6: skipped, 6 fields where the header has 5; a text with the delimiter needs quotes",
        "table.csv:8: skipped, no question",
        "table.csv:10: skipped, id '6' was already at table.csv:9",
    ]


def test_skipped_row_loses_its_labels(engine: Engine, tmp_path: Path) -> None:
    content = "id,question,relevant_chunk_ids\n1,,a\n1,где?,b\n2,когда?,c\n2,когда же?,d\n3,кто?,e\n4,что?,f\n"
    report = load(engine, "labels_go", csv_file(tmp_path, content))
    assert (report.questions, report.labels) == (LoadCounts(6, 4, 0, 2), LoadCounts(6, 4, 0, 2))
    assert len(report.problems) == 2
    assert query_rows(engine, "SELECT question_id, relevant_chunk_ids FROM source_labels_go.annotation ORDER BY 1") == [
        ("1", ["b"]),
        ("2", ["c"]),
        ("3", ["e"]),
        ("4", ["f"]),
    ]


def test_twenty_problems_are_listed_and_others_counted(engine: Engine, tmp_path: Path) -> None:
    report = load(engine, "many", csv_file(tmp_path, "question,score\n" + "а,5\n" * 30 + "а\n" * 25))
    assert report.questions == LoadCounts(read=55, added=1, skipped=54)
    assert len(report.problems) == 21
    assert report.problems[-1] == "and 34 more"


def test_inconsistent_vectors_are_reported(engine: Engine, tmp_path: Path) -> None:
    chunks = [
        {"id": n, "text": "т", "embedding": vector} for n, vector in enumerate([[1, 2], [1, 2, 3], [0, 0], "x", [1e39]])
    ]
    report = load(engine, "mixed", write_table(tmp_path / "c.jsonl", chunks), kind="chunks")
    assert report.chunks == LoadCounts(read=5, added=5)
    assert report.problems == [
        "embedding: 2 of 5 not read ('x' at c.jsonl:4, '[1e+39]' at c.jsonl:5): no vector; write a list of 1 to 16,000 "
        "finite numbers; left empty",
        "chunk: vectors with different numbers of dimensions: 2 in 2 rows (id '0' and more), 3 in 1 rows (id '1' and "
        "more); embed all with one model",
        "chunk: 1 vectors of zeros (id '2' first), which are like no other vector",
    ]


CYRILLIC = "id,question\n1,Где взять справку?\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (CYRILLIC.encode("cp1251"), r"not UTF-8, and 15 letters .* it may be cp1251: add --encoding cp1251"),
        (b"", "the first line is empty"),
        (b"\n", "the first line is empty"),
        (b"id,qestion\n1,a\n", r"neither questions nor texts .*qestion \(a\).*--map question=NAME"),
        (b'question,answer\n"a"b,c\n', "the row at line 2: .*nothing was loaded"),
        (b'question,answer\na,b\n"c,d\ne,f\n', "the row at line 3: unexpected end of data"),
    ],
)
def test_unreadable_csv_loads_nothing(engine: Engine, tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(InputError, match=message):
        load(engine, "csv_nothing", tmp_path / "t.csv")
    assert query_rows(engine, "SELECT to_regclass('source_csv_nothing.question_answer')") == [(None,)]


@pytest.mark.parametrize("encoding", ["cp1251", "utf-16", "koi8-r"])
def test_encoding_option_is_used(engine: Engine, tmp_path: Path, encoding: str) -> None:
    name = f"encoded_{encoding.replace('-', '_')}"
    load(engine, name, csv_file(tmp_path, CYRILLIC, encoding), encoding=encoding)
    assert query_rows(engine, f"SELECT question FROM source_{name}.question_answer") == [("Где взять справку?",)]


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"scor": "b"}, "no column 'scor'; did you mean 'score'?"),
        ({"score": "c"}, "no column in .*: 'c'; there are: b, question"),
    ],
)
def test_wrong_mapping_suggests_nearest_name(tmp_path: Path, mapping: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        table.read_table(csv_file(tmp_path, "question,b\nа,б\n"), mapping=mapping)


def test_huge_numbers_are_reported_with_their_places(engine: Engine, tmp_path: Path) -> None:
    rows = [{"score": 10**400}, {"relevant_chunk_ids": {"c": 10**400}}, {"embedding": [10**400]}, {"turn": -(10**400)}]
    path = write_table(tmp_path / "t.jsonl", [{"id": "0", "question": "а"}, *({"question": "б"} | row for row in rows)])
    report = load(engine, "huge", path)
    assert report.questions == LoadCounts(read=5, added=2, skipped=3)  # three are one question without an id
    for row in rows:
        name = next(iter(row))
        assert any(problem.startswith((f"{name}: 1 of 1 ", "score: score. Not used")) for problem in report.problems)

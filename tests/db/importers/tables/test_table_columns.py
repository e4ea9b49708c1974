"""Test tables with unusual columns, dates or rows."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine

from tests.db.importers.tables.test_table import csv_file, load
from tests.support.database.dumps import query_rows
from yarus.db.errors import InputError


def test_columns_are_detected_by_name_others_are_reported(engine: Engine, tmp_path: Path) -> None:
    content = "question,ответ,оценка,дата,канал\nа,б,5,05.03.2026 10:30,vk\n"
    report = load(engine, "unused", csv_file(tmp_path, content))
    assert report.problems == ["table.csv: 1 of 5 columns are not used: канал (vk)"]
    rows = query_rows(engine, "SELECT answer, score, created_at::date::text FROM source_unused.question_answer")
    assert rows == [("б", 5, "2026-03-05")]


def test_column_with_other_values_is_not_detected(engine: Engine, tmp_path: Path) -> None:
    content = "question,score,relevance_score,total_tokens\nа,5,0.7,40\nб,1,0.2,50\n"
    (problem,) = load(engine, "unlike", csv_file(tmp_path, content)).problems
    assert problem == "table.csv: 2 of 4 columns are not used: relevance_score (0.7), total_tokens (40)"


def test_russian_dates_are_parsed(engine: Engine, tmp_path: Path) -> None:
    days = ["05.03.2026 10:30", "5.3.2026", "05.03.2026 9:05:10", "05.03.2026, 10:30"]
    content = "question,created_at\n" + "".join(f'q{n},"{day}"\n' for n, day in enumerate([*days, "31.02.2026"]))
    report = load(engine, "dotted", csv_file(tmp_path, content))
    assert (report.questions.added, report.questions.skipped) == (5, 0)
    assert any("'31.02.2026' at table.csv:6" in problem for problem in report.problems)
    rows = query_rows(engine, "SELECT created_at::text FROM source_dotted.question_answer WHERE created_at IS NOT NULL")
    utc_times = {row[0].replace("+00", "") for row in rows}
    assert utc_times == {"2026-03-05 10:30:00", "2026-03-05 00:00:00", "2026-03-05 09:05:10"}


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
def test_table_without_rows_is_rejected(engine: Engine, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "t.parquet":
        pq.write_table(pa.table({"question": pa.array([], pa.string())}), path)
    else:
        path.write_text("question,answer\n" if name == "t.csv" else "")
    with pytest.raises(InputError, match=f"{name}: (no row|the file is empty|the first line is empty)"):
        load(engine, "no_rows", path)
    assert query_rows(engine, "SELECT to_regclass('source_no_rows.question_answer')") == [(None,)]


def test_misspelt_column_is_reported(engine: Engine, tmp_path: Path) -> None:
    report = load(engine, "misspelt", csv_file(tmp_path, "question,anwser,zzz\nа,б,в\n"))
    assert report.problems == [
        "table.csv: 2 of 3 columns are not used: anwser (б), zzz (в); if they are what they seem to be, load again "
        "with --map answer=anwser"
    ]

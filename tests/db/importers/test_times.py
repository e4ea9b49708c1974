"""Test times that Python cannot represent: NULL or a rejected row, but never an exception."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool

from yarus.db.engine import read_only_engine
from yarus.db.importers import postgres, table
from yarus.db.loading.load_rows import load_rows
from yarus.db.source_rows import EARLIEST, LATEST, read_questions
from yarus.db.sources import Source, find_loaded_source, open_snapshot
from yarus.db.tables import source_tables

TABLES = """
CREATE TABLE question_answer (id bigint PRIMARY KEY, question text, answer text, confluence_url text, score int,
                              user_id text, created_at {kind});
CREATE TABLE chunk (id bigint PRIMARY KEY, confluence_url text, text text);
INSERT INTO chunk VALUES (1, NULL, 'a text');
"""
ODD = ["infinity", "-infinity", "4713-01-01 00:00:00 BC", "20000-01-01", "0001-01-01", "9999-12-31"]
KINDS = ["timestamp", "timestamptz", "date"]


@pytest.fixture(params=KINDS)
def production(request: pytest.FixtureRequest, engine: Engine) -> Iterator[Source]:
    """Create a database whose questions have odd times of that type, and one valid time."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"CREATE DATABASE times_{request.param}"))
    url = engine.url.set(database=f"times_{request.param}")
    owner = create_engine(url, poolclass=NullPool)
    row = f"INSERT INTO question_answer VALUES (:number, 'what?', '', '', 1, '', CAST(:moment AS {request.param}))"
    with owner.begin() as connection:
        connection.exec_driver_sql(TABLES.format(kind=request.param))
        for number, point_in_time in enumerate([*ODD, "2026-03-05"]):
            connection.execute(text(row), {"number": number, "moment": point_in_time})
    read_engine = read_only_engine(url.render_as_string(hide_password=False), timeout_s=60)
    yield Source("production", "production", "en", read_engine, source_tables(None))
    read_engine.dispose()
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"DROP DATABASE times_{request.param} WITH (FORCE)"))


def test_odd_source_times_become_null(production: Source) -> None:
    for zone in ("UTC", "Pacific/Kiritimati", "Etc/GMT+12"):
        with open_snapshot(production) as connection:
            connection.exec_driver_sql(f"SET LOCAL timezone = '{zone}'")
            times = [row["created_at"] for row in read_questions(connection, production)]
        assert times[: len(ODD)] == [None] * len(ODD)
        assert times[-1] is not None


def test_odd_source_times_are_reported_by_copy(engine: Engine, production: Source) -> None:
    with postgres.open_source_snapshot(production) as rows:
        report = load_rows(engine, "times_copied", rows, language="en", origin="test")
    expected = f"{len(ODD)} values of 'created_at' are no points in time (id '0' first), loaded as NULL"
    assert any(expected in problem for problem in report.problems)
    with open_snapshot(find_loaded_source(engine, "times_copied")) as connection:
        times = [row["created_at"] for row in read_questions(connection, find_loaded_source(engine, "times_copied"))]
    assert [time is None for time in times] == [True] * len(ODD) + [False]


def test_odd_table_times_are_left_empty_and_reported(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    odd = ["0001-01-01T00:00:00+14:00", "9999-12-31T23:00:00-12:00", "171210130"]
    valid = [
        "0001-01-02T00:00:00Z",
        "9999-12-29T00:00:00-12:00",
        "2026-03-05",
        "2026-03-05",
        "2026-03-05",
        "2026-03-05",
        "",
    ]
    path.write_text("question,created_at\n" + "".join(f"q{n},{time}\n" for n, time in enumerate([*odd, *valid])))
    report = load_rows(
        engine, "times_csv", table.read_table(path, mapping={"created_at": "created_at"}), language="en", origin="test"
    )
    assert (report.questions.added, report.questions.skipped) == (len(valid) + len(odd), 0)
    for number, time_text in enumerate(odd[:2], 2):
        assert any(
            f"created_at: 3 of 9 not read ({odd[0]!r}" in problem and f"{time_text!r} at odd.csv:{number}" in problem
            for problem in report.problems
        )
    with open_snapshot(find_loaded_source(engine, "times_csv")) as connection:
        times = {row["created_at"] for row in read_questions(connection, find_loaded_source(engine, "times_csv"))}
    assert times == {EARLIEST, datetime(2026, 3, 5, tzinfo=UTC), datetime(9999, 12, 29, 12, tzinfo=UTC), None}
    assert max(valid_time for valid_time in times if valid_time) <= LATEST - timedelta(hours=12)


@pytest.mark.parametrize(
    "times",
    [
        pa.array([-(2**62), 0], pa.timestamp("us", "UTC")),
        pa.array([2**30, 0], pa.date32()),
        pa.array([2**62, 0], pa.timestamp("ms")),
    ],
    ids=lambda times: str(times.type),
)
def test_odd_parquet_times_are_left_empty_and_reported(engine: Engine, tmp_path: Path, times: pa.Array) -> None:
    path = tmp_path / "odd.parquet"
    pq.write_table(pa.table({"id": ["1", "2"], "question": ["what?", "who?"], "created_at": times}), path)
    report = load_rows(
        engine,
        "times_parquet",
        table.read_table(path, mapping={"created_at": "created_at"}),
        language="en",
        origin="test",
    )
    assert report.questions.skipped == 0
    assert "created_at: 1 of 2 not read" in report.problems[0] and "odd.parquet: row 1" in report.problems[0]

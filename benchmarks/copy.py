"""`yarus load postgres`: 100,000 chunks and 100,000 log rows with vectors, from database to database, within a minute.

Both databases are on one embedded server here, which therefore reads and writes at the same time.
"""

import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from benchmarks import Row
from db.embedded.server import release
from db.engine import own, read_only
from db.importers.postgres import reading
from db.loading.fill import LoadReport, fill
from db.sources import Source
from db.tables import source_tables

N, DIMENSIONS = 100_000, 384
LIMIT_S = 60.0
MAKE = """
    CREATE EXTENSION vector;
    CREATE FUNCTION some_vector(seed int) RETURNS vector LANGUAGE sql
        AS 'SELECT array_agg(random())::vector FROM generate_series(1, DIMENSIONS) WHERE seed > 0';
    CREATE TABLE chunk AS SELECT n AS id,
        'https://wiki.example/pages/viewpage.action?pageId=' || n / 4 AS confluence_url,
        repeat('Студенческий билет выдают в деканате. ', 20) || n AS text, some_vector(n) AS embedding
        FROM generate_series(1, ROWS) AS n;
    CREATE TABLE question_answer AS SELECT n AS id, 'Где получить студенческий билет номер ' || n || '?' AS question,
        some_vector(n) AS embedding, repeat('В деканате, с паспортом. ', 10) AS answer,
        'https://wiki.example/pages/viewpage.action?pageId=' || n / 4 AS confluence_url, n % 2 * 4 + 1 AS score,
        n % 5000 AS user_id, now() - n * interval '1 minute' AS created_at FROM generate_series(1, ROWS) AS n;
"""


def run() -> Iterator[Row]:
    """The first load, which adds everything, and a second, which finds nothing new; both against the limit."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            yield from _loads(Path(folder))
        finally:
            release(Path(folder))


def _loads(home: Path) -> Iterator[Row]:
    engine = own(home, None)
    with create_engine(engine.url, isolation_level="AUTOCOMMIT", poolclass=NullPool).connect() as connection:
        connection.execute(text("CREATE DATABASE production"))
    url = engine.url.set(database="production")
    with create_engine(url, poolclass=NullPool).begin() as connection:
        connection.execute(text(MAKE.replace("ROWS", str(N)).replace("DIMENSIONS", str(DIMENSIONS))))
    there = read_only(url.render_as_string(hide_password=False), timeout_s=120)
    source = Source("production", "production", "ru", there, source_tables(None))
    for what, added in (("new", N), ("unchanged", 0)):
        start = time.perf_counter()
        with reading(source) as rows:
            report = fill(engine, "copied", rows, language="ru", origin="benchmark")
        seconds = time.perf_counter() - start
        _check(report, added)
        yield Row(f"{N:,} chunks and {N:,} questions, {what}", "the limit", seconds, LIMIT_S, 1.0, "at most")
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"copy: at most {megabytes:,.0f} MB in this process", file=sys.stderr)
    there.dispose()
    engine.dispose()


def _check(report: LoadReport, added: int) -> None:
    """Everything came over."""
    for counts in (report.chunks, report.questions):
        if (counts.read, counts.added, counts.updated, counts.skipped) != (N, added, 0, 0):
            raise AssertionError(report)
    if report.problems:
        raise AssertionError(report.problems)

"""`yarus load postgres`: 100,000 chunks and 100,000 log rows with vectors, from database to database, within a minute.

Both databases are on one embedded server here, which therefore reads and writes at the same time. Each load is its own
process, because its peak memory includes everything it held before.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from benchmarks import Row
from benchmarks.home import temporary_home

N, DIMENSIONS = 100_000, 384
LIMIT_S, LIMIT_MB = 60.0, 200.0
COPY = """
import json, resource, sys, time
from dataclasses import asdict
from pathlib import Path
from yarus.db.engine import open_own_database, read_only_engine
from yarus.db.importers.postgres import open_source_snapshot
from yarus.db.loading.load_rows import load_rows
from yarus.db.sources import Source
from yarus.db.tables import source_tables
home, url = sys.argv[1:]
engine, there = open_own_database(Path(home), None), read_only_engine(url, timeout_s=120)
start = time.perf_counter()
with open_source_snapshot(Source("production", "production", "ru", there, source_tables(None))) as rows:
    report = load_rows(engine, "copied", rows, language="ru", origin="benchmark")
seconds, most = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"report": asdict(report), "seconds": seconds, "megabytes": most / 1024}))
"""
# Started from a small process: peak memory includes that of the parent process.
SMALL = "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]], check=True)"
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
    """Yield the first load, which adds everything, and a second, which finds nothing new; both against the limit."""
    with temporary_home() as (home, engine):
        with create_engine(engine.url, isolation_level="AUTOCOMMIT", poolclass=NullPool).connect() as connection:
            connection.execute(text("CREATE DATABASE production"))
        url = engine.url.set(database="production")
        with create_engine(url, poolclass=NullPool).begin() as connection:
            connection.execute(text(MAKE.replace("ROWS", str(N)).replace("DIMENSIONS", str(DIMENSIONS))))
        command = [sys.executable, "-c", SMALL, "-c", COPY, str(home), url.render_as_string(hide_password=False)]
        for what, added in (("new", N), ("unchanged", 0)):
            result = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            _check(result["report"], added)
            rows = f"{N:,} chunks and {N:,} questions, {what}"
            yield Row(rows, "the limit", result["seconds"], LIMIT_S)
            yield Row("… memory in MB, not seconds", "the limit", result["megabytes"], LIMIT_MB)


def _check(report: dict[str, Any], added: int) -> None:
    """Raise if anything is missing in the copy."""
    expected = {"read": N, "added": added, "updated": 0, "skipped": 0}
    if report["chunks"] != expected or report["questions"] != expected or report["problems"]:
        raise AssertionError(report)

"""Dump databases in tests, and load the dumps as `yarus load postgres` does."""

import os
import subprocess
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import Engine, text

from yarus.db.embedded.cluster import find_programs
from yarus.db.importers.dump import open_dump
from yarus.db.importers.postgres import open_source_snapshot
from yarus.db.loading.load_rows import LoadReport, load_rows
from yarus.db.sources import Source
from yarus.db.tables import source_tables


def dump_database(url: str, path: Path, *more: str) -> Path:
    """Dump a database as its owner does, and return the path."""
    command = [str(find_programs("18") / "pg_dump"), f"--dbname={url.replace('+psycopg', '')}", f"--file={path}", *more]
    subprocess.run(command, check=True, env={"PATH": os.environ["PATH"], "LC_ALL": "C"})
    return path


def load_dump(engine: Engine, name: str, path: Path, **mapping: Any) -> LoadReport:
    """Load a dump into the source of that name."""
    source = Source("helpdesk", "loaded", "ru", engine, source_tables(None, **mapping))
    with open_dump(path, source) as database, open_source_snapshot(database) as rows:
        return load_rows(engine, name, rows, language="ru", origin="test")


def query_rows(engine: Engine, statement: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query on the database of Yarus."""
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def run_statements(url: str, *statements: str) -> None:
    """Run statements as the owner of a database, each in its own transaction."""
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)

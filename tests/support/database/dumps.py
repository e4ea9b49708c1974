"""Dumps of databases that tests make, and loading them as `yarus load postgres` does."""

import os
import subprocess
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import Engine, text

from yarus.db.embedded.cluster import programs
from yarus.db.importers.dump import unpacked
from yarus.db.importers.postgres import reading
from yarus.db.loading.fill import LoadReport, fill
from yarus.db.sources import Source
from yarus.db.tables import source_tables


def dump(url: str, path: Path, *options: str) -> Path:
    """A dump of a database as its owner makes it."""
    command = [str(programs("18") / "pg_dump"), f"--dbname={url.replace('+psycopg', '')}", f"--file={path}", *options]
    subprocess.run(command, check=True, env={"PATH": os.environ["PATH"], "LC_ALL": "C"})
    return path


def load(engine: Engine, name: str, path: Path, **mapping: Any) -> LoadReport:
    """Loads a dump into the source of that name."""
    source = Source("helpdesk", "loaded", "ru", engine, source_tables(None, **mapping))
    with unpacked(path, source) as there, reading(there) as rows:
        return fill(engine, name, rows, language="ru", origin="test")


def rows(engine: Engine, statement: str) -> list[tuple[Any, ...]]:
    """What a query of our own database finds."""
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def alter(url: str, *statements: str) -> None:
    """Runs statements as the owner of a database, each in a transaction of its own."""
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)

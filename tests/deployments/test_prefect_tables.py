"""A new Prefect database is made from a file: the same tables as Prefect's migrations make, and only where none are."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

from yarus.deployments.prefect.server_process import SQLITE, TABLES, as_made, make_tables
from yarus.deployments.prefect_tables import made_by_prefect

WAY = "run python -m yarus.deployments.prefect_tables"


def tables(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as database:
        return {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def lines(sql: str) -> list[str]:
    """Without their order: that of a table's constraints differs from one run of the migrations to the next."""
    return sorted(line.strip().rstrip(",") for line in sql.splitlines())


def test_they_are_of_prefects_newest_migration() -> None:
    from prefect.server import database

    migrations = Path(database.__file__).parent / "_migrations"
    newest = ScriptDirectory(str(migrations), version_locations=[str(migrations / "versions" / "sqlite")])
    assert f"INSERT INTO \"alembic_version\" VALUES('{newest.get_current_head()}');" in TABLES.read_text(), WAY


@pytest.mark.slow("process: Prefect's migrations take ten seconds")
def test_they_are_what_prefect_makes() -> None:
    assert lines(TABLES.read_text(encoding="utf-8")) == lines(made_by_prefect()), f"Prefect's tables changed: {WAY}"


@pytest.mark.parametrize("before", ["nothing", "an empty file"])
def test_a_new_database_gets_them(tmp_path: Path, before: str) -> None:
    path = tmp_path / "prefect.db"
    if before != "nothing":
        path.touch()
    (tmp_path / "prefect.db.new").write_bytes(b"half of one, of a process that was killed")
    make_tables(f"{SQLITE}{path}")
    assert {"alembic_version", "flow_run", "task_run", "log"} <= tables(path)
    assert {each.name for each in tmp_path.iterdir()} == {"prefect.db", "prefect.db.made"}
    assert as_made(f"{SQLITE}{path}") == {"PREFECT_API_DATABASE_MIGRATE_ON_START": "0"}  # they are all there
    assert path.stat().st_mode & 0o077 == 0


def test_one_that_holds_something_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "prefect.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE of_somebody (text)")
    make_tables(f"{SQLITE}{path}")
    assert tables(path) == {"of_somebody"}


@pytest.mark.parametrize("url", [f"{SQLITE}:memory:", "postgresql+asyncpg://somebody@somewhere/prefect", ""])
def test_what_is_no_file_is_left_to_prefect(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_tables(url)
    assert list(tmp_path.iterdir()) == []


def test_where_it_cannot_be_made_nothing_is_tried_further(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        make_tables(f"{SQLITE}{tmp_path / 'nowhere' / 'prefect.db'}")
    assert list(tmp_path.iterdir()) == []

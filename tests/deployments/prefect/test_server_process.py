"""Templates of Prefect databases: a new database is a copy of one that Prefect has made for this user."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.prefect_servers import create_prefect_database
from yarus.deployments.prefect.server_process import (
    SQLITE,
    copy_template,
    find_template,
    keep_template,
    migration_settings,
)

HERE = ("CREATE TABLE alembic_version (version_num)", "INSERT INTO alembic_version VALUES ('head')")
ROWS = ("CREATE TABLE log (text)", "CREATE INDEX by_text ON log (text)", "INSERT INTO log VALUES ('secret')")


def make(path: Path, *statements: str) -> str:
    with closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()
    return f"{SQLITE}{path}"


def dump(path: Path) -> list[str]:
    """Return the sorted lines of a dump: the order of constraints differs between runs of the migrations."""
    with closing(sqlite3.connect(path)) as database:
        return sorted(line.strip().rstrip(",") for sql in database.iterdump() for line in sql.splitlines())


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("before", ["nothing", "an empty file"])
def test_copy_template_makes_tables_without_rows(tmp_path: Path, before: str) -> None:
    keep_template(make(tmp_path / "first.db", *HERE, *ROWS))
    home = tmp_path / "home"
    home.mkdir()
    path = home / "prefect.db"
    if before != "nothing":
        path.touch()
    (home / "prefect.db.new").write_bytes(b"half of one, of a process that was killed")
    copy_template(f"{SQLITE}{path}")
    assert dump(path) == [line for line in dump(tmp_path / "first.db") if "secret" not in line]
    assert b"secret" not in path.read_bytes()
    assert {file.name for file in home.iterdir()} == {"prefect.db", "prefect.db.made"}
    assert migration_settings(f"{SQLITE}{path}") == {"PREFECT_API_DATABASE_MIGRATE_ON_START": "0"}
    assert path.stat().st_mode & 0o077 == 0


def test_copy_template_keeps_a_database(tmp_path: Path) -> None:
    keep_template(make(tmp_path / "first.db", *HERE))
    other = make(path := tmp_path / "other.db", "CREATE TABLE of_somebody (text)")
    copy_template(other)
    assert any("of_somebody" in line for line in dump(path))


def test_copy_template_does_nothing_without_template(tmp_path: Path, cache: Path) -> None:
    copy_template(f"{SQLITE}{tmp_path / 'prefect.db'}")
    assert list(tmp_path.iterdir()) == []


def test_keep_template_survives_an_unwritable_cache(tmp_path: Path, cache: Path) -> None:
    cache.write_text("no folder")
    keep_template(make(tmp_path / "first.db", *HERE))
    assert cache.read_text() == "no folder"


@pytest.mark.parametrize("url", [f"{SQLITE}:memory:", "postgresql+asyncpg://somebody@somewhere/prefect", ""])
def test_other_databases_are_left_to_prefect(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    keep_template(url)
    copy_template(url)
    assert list(tmp_path.iterdir()) == []


def test_copy_template_reports_a_missing_folder(tmp_path: Path) -> None:
    keep_template(make(tmp_path / "first.db", *HERE))
    with pytest.raises(FileNotFoundError, match="nowhere"):
        copy_template(f"{SQLITE}{tmp_path / 'nowhere' / 'prefect.db'}")


@pytest.mark.slow("process: Prefect's migrations take ten seconds")
def test_template_has_what_prefect_makes(tmp_path: Path) -> None:
    create_prefect_database(tmp_path / "prefect.db")
    keep_template(f"{SQLITE}{tmp_path / 'prefect.db'}")
    assert dump(find_template()) == dump(tmp_path / "prefect.db")

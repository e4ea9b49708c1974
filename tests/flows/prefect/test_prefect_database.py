"""Check that an invalid Prefect database is named at once, with a remedy, and that nothing is left running."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.command_line import ENGLISH, CommandLine
from tests.support.prefect_servers import create_prefect_database
from tests.support.processes import find_free_port
from yarus.deployments.prefect.server_process import ServerUnavailable, require_intact

PAGES = 200


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Make a valid SQLite file of many pages, in a folder with an awkward name."""
    path = tmp_path / "дом #1 ?x=y" / "prefect.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE filler (text)")
        connection.executemany("INSERT INTO filler VALUES (?)", [("x" * 4000,)] * PAGES)
    return path


def make_url(path: Path) -> str:
    return f"sqlite+aiosqlite:///{path}"


def damage(path: Path, how: str) -> None:
    if how == "truncated":
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size // 2)
    elif how == "garbage":
        path.write_bytes(b"\x93garbage" * 1000)
    elif how == "text":
        path.write_text("hello")
    elif how == "schema":
        with path.open("r+b") as file:
            file.seek(100)
            file.write(b"\xff" * 3000)
    else:
        path.unlink()
        path.mkdir()


KINDS_OF_DAMAGE = ("truncated", "garbage", "text", "schema", "folder")


@pytest.mark.parametrize("how", KINDS_OF_DAMAGE)
def test_damage_is_found_before_server_starts(database: Path, how: str) -> None:
    require_intact(make_url(database))
    damage(database, how)
    with pytest.raises(ServerUnavailable) as error:
        require_intact(make_url(database))
    assert str(database) in str(error.value)
    assert "remove it" in str(error.value)
    assert "no evaluation" in str(error.value)


def test_missing_or_empty_file_is_accepted(tmp_path: Path) -> None:
    require_intact(make_url(tmp_path / "none.db"))
    (tmp_path / "empty.db").touch()
    require_intact(make_url(tmp_path / "empty.db"))
    require_intact("postgresql+asyncpg://prefect@127.0.0.1/prefect")


def test_locked_database_is_accepted(database: Path) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        writer.execute("INSERT INTO filler VALUES ('y')")
        require_intact(make_url(database))


def test_unwritable_file_is_named(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)  # root may do everything
    with pytest.raises(ServerUnavailable, match="cannot be read and written by you"):
        require_intact(make_url(database))


@pytest.mark.parametrize("words", [("run", "tier0", "--json"), ("serve", "--no-schedule")])
def test_command_reports_damage_in_one_line(yarus_alone: CommandLine, database: Path, words: tuple[str, ...]) -> None:
    damage(database, "truncated")
    ports = ("--port", str(find_free_port()), "--report-port", str(find_free_port())) if words[0] == "serve" else ()
    refusal = yarus_alone(
        *words, *ports, env=ENGLISH | {"PREFECT_API_DATABASE_CONNECTION_URL": make_url(database)}, ok=False
    )
    assert (refusal.code, refusal.out) == (3, ""), refusal.err
    assert f"{database} is damaged (it is truncated)" in refusal.err
    assert "Traceback" not in refusal.err


@pytest.mark.slow("process: a server that cannot start")
def test_damage_found_by_server_is_reported(yarus_alone: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "prefect.db"
    env = ENGLISH | {"PREFECT_API_DATABASE_CONNECTION_URL": make_url(path)}
    create_prefect_database(path)
    with closing(sqlite3.connect(path)) as connection:
        [root] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
        [size] = connection.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)
    refusal = yarus_alone("run", "tier0", env=env, ok=False)
    assert refusal.code == 3, refusal.err
    assert "malformed" in refusal.err
    assert f"{path} is damaged" in refusal.err
    assert "Traceback" not in refusal.err

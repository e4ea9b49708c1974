"""A file that cannot be Prefect's database is named at once, with the way out, and nothing is left running."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.command_line import ENGLISH, CommandLine
from tests.support.prefect_servers import migrate
from tests.support.processes import free_port
from yarus.deployments.prefect.server_process import ServerUnavailable, require_sound

PAGES = 200


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A sound SQLite file of many pages, in a folder with an awkward name."""
    path = tmp_path / "дом #1 ?x=y" / "prefect.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE filler (text)")
        connection.executemany("INSERT INTO filler VALUES (?)", [("x" * 4000,)] * PAGES)
    return path


def url(path: Path) -> str:
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


HOW = ("truncated", "garbage", "text", "schema", "folder")


@pytest.mark.parametrize("how", HOW)
def test_damage_is_found_before_a_server_starts(database: Path, how: str) -> None:
    require_sound(url(database))
    damage(database, how)
    with pytest.raises(ServerUnavailable) as error:
        require_sound(url(database))
    assert str(database) in str(error.value)
    assert "remove it" in str(error.value)
    assert "no evaluation" in str(error.value)


def test_a_file_that_is_not_there_or_empty_will_be_made(tmp_path: Path) -> None:
    require_sound(url(tmp_path / "none.db"))
    (tmp_path / "empty.db").touch()
    require_sound(url(tmp_path / "empty.db"))
    require_sound("postgresql+asyncpg://prefect@127.0.0.1/prefect")


def test_a_database_that_another_process_writes_is_sound(database: Path) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        other.execute("INSERT INTO filler VALUES ('y')")
        require_sound(url(database))


def test_a_file_that_is_not_ours_to_write_is_named(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)  # root may do everything
    with pytest.raises(ServerUnavailable, match="cannot be read and written by you"):
        require_sound(url(database))


@pytest.mark.parametrize("words", [("run", "tier0", "--json"), ("serve", "--no-schedule")])
def test_commands_say_it_in_one_line(yarus_alone: CommandLine, database: Path, words: tuple[str, ...]) -> None:
    damage(database, "truncated")
    ports = ("--port", str(free_port()), "--report-port", str(free_port())) if words[0] == "serve" else ()
    refused = yarus_alone(
        *words, *ports, env=ENGLISH | {"PREFECT_API_DATABASE_CONNECTION_URL": url(database)}, ok=False
    )
    assert (refused.code, refused.out) == (3, ""), refused.err
    assert f"{database} is damaged (it is truncated)" in refused.err
    assert "Traceback" not in refused.err


@pytest.mark.slow("process: a server that cannot start")
def test_damage_that_only_the_server_meets_ends_the_command_with_its_words(
    yarus_alone: CommandLine, tmp_path: Path
) -> None:
    path = tmp_path / "prefect.db"
    env = ENGLISH | {"PREFECT_API_DATABASE_CONNECTION_URL": url(path)}
    migrate(path)
    with closing(sqlite3.connect(path)) as connection:
        [root] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
        [size] = connection.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)
    refused = yarus_alone("run", "tier0", env=env, ok=False)
    assert refused.code == 3, refused.err
    assert "malformed" in refused.err
    assert f"{path} is damaged" in refused.err
    assert "Traceback" not in refused.err

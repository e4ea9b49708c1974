"""Attacks by sources: the owner of the tables, not a superuser, plants code that a reading superuser would run."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from tests.support.database.dumps import run_statements
from yarus.db.engine import read_only_engine
from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.db.importers.postgres import open_source_snapshot
from yarus.db.loading.load_rows import load_rows
from yarus.db.source_rows import read_corpus, read_questions
from yarus.db.sources import Source, open_snapshot
from yarus.db.tables import source_tables

Production = Callable[..., str]
MALICIOUS_FUNCTIONS = """
    CREATE FUNCTION program() RETURNS text LANGUAGE plpgsql AS $$ BEGIN
        EXECUTE 'COPY (SELECT 1) TO PROGRAM ''cat > {marker}'''; RETURN 'x';
        EXCEPTION WHEN insufficient_privilege THEN RETURN 'x'; END $$;
    CREATE FUNCTION evil() RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN public.program(); END $$;
"""
ATTACKS = {
    "view": (
        "ALTER TABLE chunk RENAME TO c;"
        "CREATE VIEW chunk AS SELECT id, confluence_url, evil() AS text, embedding FROM c",
        "chunk in source 'production' is a view",
    ),
    "index": ("CREATE INDEX ON chunk ((text || evil()))", "is a table with an index or a partition key that calls"),
    "operator in an index": (
        "CREATE FUNCTION o(text, text) RETURNS text IMMUTABLE LANGUAGE sql RETURN evil();"
        "CREATE OPERATOR public.@@@@ (FUNCTION = o, LEFTARG = text, RIGHTARG = text);"
        "CREATE INDEX ON chunk ((text || ('a' @@@@ 'b')))",
        "with an index|could reach operator",
    ),
    "statistics": ("CREATE STATISTICS s ON (text || evil()) FROM chunk; ANALYZE chunk", "is a table with statistics"),
    "partition": (
        "DROP TABLE chunk; CREATE TABLE chunk (id bigint, confluence_url text, text text, embedding vector) "
        "PARTITION BY RANGE ((id + length(evil())))",
        "with an index or a partition key",
    ),
    "function": (
        "CREATE FUNCTION concat(text, text) RETURNS text LANGUAGE sql RETURN evil()",
        "could reach function public.concat, which another role has made",
    ),
    "aggregate's name": (
        "CREATE FUNCTION count(text) RETURNS text LANGUAGE sql RETURN evil()", "could reach function public.count",
    ),
    "cast": (
        "CREATE TYPE mood AS ENUM ('a'); CREATE FUNCTION c(mood) RETURNS text LANGUAGE sql RETURN evil();"
        "CREATE CAST (mood AS text) WITH FUNCTION c(mood) AS IMPLICIT; ALTER TABLE chunk ADD m mood DEFAULT 'a';"
        "ALTER TABLE chunk DROP text; ALTER TABLE chunk RENAME m TO text",
        "in a database with a cast of another role",
    ),
    "path": (
        "CREATE SCHEMA e; CREATE FUNCTION e.current_schema() RETURNS name LANGUAGE sql RETURN evil()::name;"
        "ALTER DATABASE {database} SET search_path = e, public, pg_catalog",
        "could reach",
    ),
    "foreign": (
        "CREATE TABLE p (LIKE chunk) PARTITION BY LIST (id); DROP TABLE chunk; ALTER TABLE p RENAME TO chunk;"
        "CREATE FOREIGN TABLE f PARTITION OF chunk DEFAULT SERVER {database}_s",
        "is a foreign table as a part of it",
    ),
}  # fmt: skip


@pytest.fixture
def marker() -> Iterator[Path]:
    """Return a file that an attack creates; any account can create it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder, "was_here")


def make_hostile_database(production: Production, name: str, *statements: str) -> str:
    """Create a database of an ordinary role that has run these statements."""
    url = production(name)
    with suppress(psycopg.errors.DuplicateObject):
        run_statements(url, "CREATE ROLE villain LOGIN", "CREATE ROLE harmless LOGIN")
    run_statements(url, f"ALTER DATABASE {name} OWNER TO villain", "GRANT ALL ON SCHEMA public TO villain",
          "ALTER TABLE chunk OWNER TO villain", "ALTER TABLE question_answer OWNER TO villain",
          f"CREATE FOREIGN DATA WRAPPER w; CREATE SERVER {name}_s FOREIGN DATA WRAPPER w",
          f"GRANT USAGE ON FOREIGN SERVER {name}_s TO villain")  # fmt: skip
    run_statements(url.replace("yarus@", "villain@"), *statements)
    run_statements(url, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO harmless")
    return url


def read_everything(url: str, engine: Engine, name: str) -> None:
    """Read everything of a source: as an evaluation does, and as a copy does."""
    source_engine = read_only_engine.__wrapped__(url, timeout_s=20)
    source = Source("production", "production", "ru", source_engine, source_tables(None))
    try:
        with open_snapshot(source) as connection:
            read_questions(connection, source)
            read_corpus(connection, source, vectors=False)
        with open_source_snapshot(source) as rows:
            load_rows(engine, name, rows, language="ru", origin="test")
    finally:
        source_engine.dispose()


@pytest.mark.parametrize("attack", ATTACKS)
def test_superuser_runs_no_foreign_code(engine: Engine, production: Production, marker: Path, attack: str) -> None:
    name = f"hostile_{list(ATTACKS).index(attack)}"
    statements, message = ATTACKS[attack]
    url = make_hostile_database(
        production, name, MALICIOUS_FUNCTIONS.format(marker=marker), statements.format(database=name)
    )
    marker.unlink(missing_ok=True)
    with pytest.raises(
        InputError, match=rf"the role is yarus, a superuser.*{message}.*CREATE ROLE yarus_reader"
    ) as refused:
        read_everything(url, engine, name)
    assert not marker.exists(), refused.value
    with suppress(InputError, DatabaseUnavailable, DBAPIError):
        read_everything(url.replace("yarus@", "harmless@"), engine, name)
    assert not marker.exists()


@pytest.mark.parametrize("attack", ["view", "index"])
def test_attacks_run_code_without_the_guard(engine: Engine, production: Production, marker: Path, attack: str) -> None:
    """Without the guard the code runs; in an index even if no statement uses it."""
    url = make_hostile_database(
        production, f"armed_{attack}", MALICIOUS_FUNCTIONS.format(marker=marker), ATTACKS[attack][0]
    )
    run_statements(url, "BEGIN READ ONLY; SELECT text FROM chunk; ROLLBACK")
    assert marker.exists()


def test_role_that_may_run_programs_is_guarded(engine: Engine, production: Production, marker: Path) -> None:
    """The role is not a superuser, so row policies apply to it and run."""
    url = make_hostile_database(
        production,
        "programs",
        MALICIOUS_FUNCTIONS.format(marker=marker),
        "ALTER TABLE chunk ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY p ON chunk USING (evil() = 'x')",
    )
    run_statements(
        url,
        "CREATE ROLE runner LOGIN IN ROLE pg_execute_server_program",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO runner",
        "CREATE ROLE disguised LOGIN SUPERUSER",
        "ALTER ROLE disguised SET role = harmless",
    )
    with pytest.raises(DatabaseUnavailable, match="would be affected by row-level security policy"):
        read_everything(url.replace("yarus@", "runner@"), engine, "programs")
    villain = url.replace("yarus@", "villain@")
    run_statements(villain, "ALTER TABLE chunk RENAME TO c", "CREATE VIEW chunk AS SELECT * FROM c")
    with pytest.raises(InputError, match="the role is runner, a member of pg_execute_server_program, and chunk in"):
        read_everything(url.replace("yarus@", "runner@"), engine, "programs")
    with pytest.raises(InputError, match="the role is disguised, a superuser, and chunk in"):
        read_everything(url.replace("yarus@", "disguised@"), engine, "programs")
    assert not marker.exists()


def test_server_refuses_a_view_created_after_the_check(engine: Engine, production: Production) -> None:
    url = make_hostile_database(production, "between")
    source_engine = read_only_engine.__wrapped__(url, timeout_s=20)
    with source_engine.connect() as connection:
        run_statements(url.replace("yarus@", "villain@"), "CREATE VIEW late AS SELECT 1")
        with pytest.raises(DBAPIError, match="access to non-system view"):
            connection.exec_driver_sql("SELECT * FROM late")
    source_engine.dispose()


def test_superuser_reads_harmless_databases(engine: Engine, production: Production) -> None:
    """Harmless: its own code, foreign code that is never run, partitions, a materialized view."""
    url = make_hostile_database(
        production, "harmless",
        "CREATE FUNCTION later(text) RETURNS text IMMUTABLE LANGUAGE sql RETURN 'x'",
        "ALTER TABLE chunk ADD extra text DEFAULT later('y')",
        "CREATE TABLE p (LIKE question_answer) PARTITION BY LIST (id); CREATE TABLE p1 PARTITION OF p DEFAULT;"
        "INSERT INTO p SELECT * FROM question_answer",
        "DROP TABLE question_answer; ALTER TABLE p RENAME TO question_answer",
    )  # fmt: skip
    run_statements(url, "CREATE FUNCTION round(double precision, integer) RETURNS numeric LANGUAGE sql RETURN 1",
          "CREATE FUNCTION plain(text) RETURNS text IMMUTABLE LANGUAGE sql RETURN 'x'",
          "CREATE INDEX ON chunk (plain(text))", "ALTER TABLE chunk RENAME TO c",
          "CREATE MATERIALIZED VIEW chunk AS SELECT * FROM c")  # fmt: skip
    read_everything(url, engine, "harmless")


EFFECTS = {
    "writes": ("INSERT INTO seen VALUES (1)", "cannot execute INSERT in a read-only transaction"),
    "counts": ("PERFORM nextval('counter')", r"cannot execute nextval\(\) in a read-only transaction"),
    "makes the transaction writable": (
        "PERFORM set_config('transaction_read_only', 'off', false); INSERT INTO seen VALUES (1)", "read-write mode",
    ),
    "makes a table": ("CREATE TEMP TABLE t (x int)", "cannot execute CREATE TABLE in a read-only transaction"),
    "sleeps": ("PERFORM pg_sleep(600)", "statement timeout"),
    "never ends": ("LOOP END LOOP", "statement timeout"),
    "reads files": ("PERFORM pg_read_file('/etc/passwd')", "permission denied"),
    "becomes another": ("SET ROLE villain", "permission denied"),
}  # fmt: skip


@pytest.mark.slow("breadth: a database of many views")
def test_view_with_side_effects_only_fails(engine: Engine, production: Production) -> None:
    """Evaluate and copy the view as a role that may only SELECT."""
    url = make_hostile_database(production, "effects", "CREATE TABLE seen (x int); CREATE SEQUENCE counter",
                  "CREATE FUNCTION effect() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN ''; END $$",
                  "ALTER TABLE chunk RENAME TO c",
                  "CREATE VIEW chunk AS SELECT id, confluence_url, text || effect() AS text, embedding FROM c",
                  "GRANT ALL ON seen, counter TO harmless")  # fmt: skip
    for statement, message in EFFECTS.values():
        run_statements(url, f"CREATE OR REPLACE FUNCTION effect() RETURNS text LANGUAGE plpgsql AS "
              f"$$ BEGIN {statement}; RETURN ''; END $$")  # fmt: skip
        source_engine = read_only_engine.__wrapped__(url.replace("yarus@", "harmless@"), timeout_s=1)
        source = Source("production", "production", "ru", source_engine, source_tables(None))
        with pytest.raises((InputError, DatabaseUnavailable), match=message), open_snapshot(source) as connection:
            read_corpus(connection, source, vectors=False)
        with pytest.raises((InputError, DatabaseUnavailable), match=message), open_source_snapshot(source) as rows:
            load_rows(engine, "effects", rows, language="ru", origin="test")
        source_engine.dispose()
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        effects = connection.execute("SELECT count(*), (SELECT is_called FROM counter) FROM seen").fetchone()
    assert effects == (0, False)

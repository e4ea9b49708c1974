"""Migrations create the tables of db/tables.py and can be undone."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, inspect, text

from yarus.db import engine as connections
from yarus.db.stores.calls import reserved_usd
from yarus.db.stores.corpora import corpus_version
from yarus.db.stores.labels import label
from yarus.db.tables import SCHEMA, YARUS_METADATA


@pytest.fixture
def fresh_engine(engine: Engine) -> Iterator[Engine]:
    """Create an empty database of its own."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("DROP DATABASE IF EXISTS fresh WITH (FORCE)"))
        connection.execute(text("CREATE DATABASE fresh"))
    created = create_engine(engine.url.set(database="fresh"))
    yield created
    created.dispose()


def schema_differences(connection: Connection) -> list[object]:
    def is_own(name: str | None, kind: str, parents: object) -> bool:
        return kind != "schema" or name == SCHEMA

    options = {"include_schemas": True, "include_name": is_own, "version_table_schema": SCHEMA, "compare_type": True}
    return list(compare_metadata(MigrationContext.configure(connection, opts=options), YARUS_METADATA))


def migrate_to(fresh_engine: Engine, revision: str, *statements: str) -> None:
    """Migrate a database to a revision, then run these statements."""
    config = connections.alembic_config()
    with fresh_engine.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {SCHEMA}; CREATE EXTENSION vector"))
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        for statement in statements:
            connection.exec_driver_sql(statement)


def test_migrations_create_the_declared_tables(fresh_engine: Engine) -> None:
    connections.migrate(fresh_engine)
    with fresh_engine.connect() as connection:
        assert label.metadata is corpus_version.metadata is YARUS_METADATA  # these two are declared in their stores
        assert schema_differences(connection) == []
        assert connections.current_revision(connection) == connections.head_revision()


@pytest.mark.slow("breadth: every migration, twice")
def test_migrations_can_be_undone_and_repeated(fresh_engine: Engine) -> None:
    connections.migrate(fresh_engine)
    config = connections.alembic_config()
    with fresh_engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
    with fresh_engine.begin() as connection:
        assert inspect(connection).get_table_names(schema=SCHEMA) == ["alembic_version"]
        assert connections.current_revision(connection) is None
    connections.migrate(fresh_engine)
    with fresh_engine.connect() as connection:
        assert schema_differences(connection) == []


def test_migrate_upgrades_an_older_database(fresh_engine: Engine) -> None:
    migrate_to(fresh_engine, "0001")
    connections.migrate(fresh_engine)
    with fresh_engine.connect() as connection:
        assert schema_differences(connection) == []


def test_migration_0007_books_earlier_spending(fresh_engine: Engine) -> None:
    migrate_to(
        fresh_engine,
        "0006",
        "INSERT INTO yarus.call (key, role, model, prompt, evaluation_id, reply, latency_ms, cost_usd) "
        "SELECT n::text::bytea, 'judge', 'm', 'p', of, '', 1, cost FROM (VALUES "
        "(1, 'a', 0.5), (2, 'a', 0.25), (3, 'a', NULL), (4, 'b', -1650), (5, NULL, 9)) AS t (n, of, cost)",
    )
    connections.migrate(fresh_engine)
    assert (reserved_usd(fresh_engine, "a"), reserved_usd(fresh_engine, "b")) == (0.75, 0)


OLD_HISTORIES = """
INSERT INTO yarus.evaluation (id, tier, source, state, parameters, settings, versions, resolved, comparability_key,
                              started_at, finished_at)
SELECT id, 'tier1', 's', state, '{}', '{}', '{}', resolved::jsonb, key,
       timestamptz '2026-01-01' + night * interval '1 day', timestamptz '2026-01-01 01:00' + night * interval '1 day'
FROM (VALUES ('invalid', 0, 'invalid', NULL, 'by hand'), ('first', 1, 'completed', NULL, 'by hand'),
             ('second', 2, 'completed', NULL, 'by hand'), ('arm', 0, 'completed', '{"part_of": "sweep"}', 'by hand'),
             ('anchor', 3, 'completed', '{"answers_of": "first"}', 'by hand'),
             ('old good', 1, 'completed', NULL, 'nights'), ('good', 2, 'completed', NULL, 'nights'),
             ('bad', 3, 'completed', NULL, 'nights')) AS old (id, night, state, resolved, key);
INSERT INTO yarus.nightly_verdict (evaluation_id, verdict, changes)
VALUES ('old good', 'good', '[]'), ('good', 'good', '[]'), ('bad', 'regressed', '[]')
"""


def test_migration_0009_keeps_nightly_baselines_or_the_first(fresh_engine: Engine) -> None:
    migrate_to(fresh_engine, "0008", OLD_HISTORIES)
    connections.migrate(fresh_engine)
    with fresh_engine.connect() as connection:
        accepted = connection.scalars(text("SELECT id FROM yarus.evaluation WHERE accepted_at IS NOT NULL"))
        assert set(accepted) == {"first", "anchor", "good"}


def test_migration_files_form_one_numbered_chain() -> None:
    scripts = list(ScriptDirectory.from_config(connections.alembic_config()).walk_revisions())
    assert [script.revision for script in scripts] == [f"{number:04d}" for number in range(len(scripts), 0, -1)]
    assert all(Path(script.path).name.startswith(f"{script.revision}_") for script in scripts)


def test_migrate_is_safe_in_several_threads(fresh_engine: Engine) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: connections.migrate(fresh_engine), range(4)))
    with fresh_engine.connect() as connection:
        assert connections.current_revision(connection) == connections.head_revision()


def test_migrate_reports_a_missing_pgvector(fresh_engine: Engine) -> None:
    # The wheel has pgvector, so the test hides the list of available extensions behind a view of that name.
    with fresh_engine.begin() as connection:
        connection.execute(text("CREATE SCHEMA bare"))
        connection.execute(text("CREATE VIEW bare.pg_available_extensions AS SELECT ''::text AS name"))
        connection.execute(text("ALTER DATABASE fresh SET search_path = bare, pg_catalog, public"))
    fresh_engine.dispose()
    with pytest.raises(connections.DatabaseUnavailable, match="pgvector is not installed there; install it, or unset"):
        connections.migrate(fresh_engine)


def test_migration_0014_adds_nuggets_to_loaded_sources(fresh_engine: Engine) -> None:
    migrate_to(
        fresh_engine,
        "0013",
        "CREATE SCHEMA source_old",
        "CREATE TABLE source_old.annotation (question_id text PRIMARY KEY, answerable boolean)",
        "INSERT INTO source_old.annotation VALUES ('1', true)",
        "CREATE SCHEMA sources",
        "CREATE TABLE sources.annotation (question_id text)",
    )
    connections.migrate(fresh_engine)
    with fresh_engine.connect() as connection:
        assert connection.execute(text("SELECT * FROM source_old.annotation")).all() == [("1", True, None)]
        assert len(connection.execute(text("SELECT * FROM sources.annotation")).keys()) == 1


def test_migration_0015_adds_recorded_to_loaded_sources(fresh_engine: Engine) -> None:
    migrate_to(
        fresh_engine,
        "0014",
        "CREATE SCHEMA source_old",
        "CREATE TABLE source_old.question_answer (id text PRIMARY KEY, question text)",
        "INSERT INTO source_old.question_answer VALUES ('1', 'Где?')",
    )
    connections.migrate(fresh_engine)
    with fresh_engine.connect() as connection:
        assert connection.execute(text("SELECT * FROM source_old.question_answer")).all() == [("1", "Где?", None)]

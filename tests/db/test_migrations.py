"""The migrations make what db/tables.py declares, and can be undone."""

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
from yarus.db.stores.calls import booked_usd
from yarus.db.stores.corpora import corpus_version
from yarus.db.stores.labels import label
from yarus.db.tables import OURS, SCHEMA


@pytest.fixture
def fresh(engine: Engine) -> Iterator[Engine]:
    """An empty database of its own."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("DROP DATABASE IF EXISTS fresh WITH (FORCE)"))
        connection.execute(text("CREATE DATABASE fresh"))
    made = create_engine(engine.url.set(database="fresh"))
    yield made
    made.dispose()


def differences(connection: Connection) -> list[object]:
    def ours(name: str | None, kind: str, parents: object) -> bool:
        return kind != "schema" or name == SCHEMA

    options = {"include_schemas": True, "include_name": ours, "version_table_schema": SCHEMA, "compare_type": True}
    return list(compare_metadata(MigrationContext.configure(connection, opts=options), OURS))


def migrated(fresh: Engine, revision: str, *statements: str) -> None:
    """A database as it was at a revision, after these statements."""
    config = connections.alembic_config()
    with fresh.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {SCHEMA}; CREATE EXTENSION vector"))
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        for statement in statements:
            connection.exec_driver_sql(statement)


def test_the_migrations_make_exactly_the_tables_that_are_declared(fresh: Engine) -> None:
    connections.migrate(fresh)
    with fresh.connect() as connection:
        assert label.metadata is corpus_version.metadata is OURS  # these are declared beside what reads them
        assert differences(connection) == []
        assert connections.current_revision(connection) == connections.head_revision()


@pytest.mark.slow("breadth: every migration, twice")
def test_they_can_be_undone_and_done_again(fresh: Engine) -> None:
    connections.migrate(fresh)
    config = connections.alembic_config()
    with fresh.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
    with fresh.begin() as connection:
        assert inspect(connection).get_table_names(schema=SCHEMA) == ["alembic_version"]
        assert connections.current_revision(connection) is None
    connections.migrate(fresh)
    with fresh.connect() as connection:
        assert differences(connection) == []


def test_an_older_database_is_brought_up_step_by_step(fresh: Engine) -> None:
    migrated(fresh, "0001")
    connections.migrate(fresh)
    with fresh.connect() as connection:
        assert differences(connection) == []


def test_what_was_spent_before_money_was_booked_counts(fresh: Engine) -> None:
    migrated(
        fresh,
        "0006",
        "INSERT INTO yarus.call (key, role, model, prompt, evaluation_id, reply, latency_ms, cost_usd) "
        "SELECT n::text::bytea, 'judge', 'm', 'p', of, '', 1, cost FROM (VALUES "
        "(1, 'a', 0.5), (2, 'a', 0.25), (3, 'a', NULL), (4, 'b', -1650), (5, NULL, 9)) AS t (n, of, cost)",
    )
    connections.migrate(fresh)
    assert (booked_usd(fresh, "a"), booked_usd(fresh, "b")) == (0.75, 0)


OLD = """
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


def test_existing_histories_keep_the_baseline_that_nights_compared_with_else_get_the_first(fresh: Engine) -> None:
    migrated(fresh, "0008", OLD)
    connections.migrate(fresh)
    with fresh.connect() as connection:
        accepted = connection.scalars(text("SELECT id FROM yarus.evaluation WHERE accepted_at IS NOT NULL"))
        assert set(accepted) == {"first", "anchor", "good"}


def test_the_files_are_one_line_of_descent_named_by_their_revision() -> None:
    scripts = list(ScriptDirectory.from_config(connections.alembic_config()).walk_revisions())
    assert [script.revision for script in scripts] == [f"{number:04d}" for number in range(len(scripts), 0, -1)]
    assert all(Path(script.path).name.startswith(f"{script.revision}_") for script in scripts)


def test_several_at_once_migrate_once(fresh: Engine) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: connections.migrate(fresh), range(4)))
    with fresh.connect() as connection:
        assert connections.current_revision(connection) == connections.head_revision()


def test_a_server_without_pgvector_is_refused_in_words(fresh: Engine) -> None:
    # The wheel has pgvector, so the list of available extensions is what is changed: a view of that name comes first.
    with fresh.begin() as connection:
        connection.execute(text("CREATE SCHEMA bare"))
        connection.execute(text("CREATE VIEW bare.pg_available_extensions AS SELECT ''::text AS name"))
        connection.execute(text("ALTER DATABASE fresh SET search_path = bare, pg_catalog, public"))
    fresh.dispose()
    with pytest.raises(connections.DatabaseUnavailable, match="pgvector is not installed there; install it, or unset"):
        connections.migrate(fresh)


def test_sources_that_are_loaded_get_a_place_for_nuggets(fresh: Engine) -> None:
    migrated(
        fresh,
        "0013",
        "CREATE SCHEMA source_old",
        "CREATE TABLE source_old.annotation (question_id text PRIMARY KEY, answerable boolean)",
        "INSERT INTO source_old.annotation VALUES ('1', true)",
        "CREATE SCHEMA sources",
        "CREATE TABLE sources.annotation (question_id text)",
    )
    connections.migrate(fresh)
    with fresh.connect() as connection:
        assert connection.execute(text("SELECT * FROM source_old.annotation")).all() == [("1", True, None)]
        assert len(connection.execute(text("SELECT * FROM sources.annotation")).keys()) == 1


def test_sources_that_are_loaded_get_a_place_for_recorded_answers(fresh: Engine) -> None:
    migrated(
        fresh,
        "0014",
        "CREATE SCHEMA source_old",
        "CREATE TABLE source_old.question_answer (id text PRIMARY KEY, question text)",
        "INSERT INTO source_old.question_answer VALUES ('1', 'Где?')",
    )
    connections.migrate(fresh)
    with fresh.connect() as connection:
        assert connection.execute(text("SELECT * FROM source_old.question_answer")).all() == [("1", "Где?", None)]

"""Wiping: rows that were deleted leave their bytes behind, and here these go too."""

import time
from collections.abc import Sequence
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import DBAPIError

from yarus.db.engine import reaching, shown
from yarus.db.words import Words

PATIENCE_S = 30.0
"""Longest wait for transactions that are older than the deletion: they can still see the rows, so that these stay."""


def beyond(engine: Engine) -> list[str]:
    """What a PostgreSQL that is not in our home keeps of what was in it, and only its administrator can end."""
    if engine.dialect.name == "sqlite":
        return []
    return [f"{shown(engine.url)}: its WAL until that is used again, and WAL archives, replicas and backups"]


def wipe(engine: Engine, schema: str | None, names: Sequence[str], *, embedded: bool = False) -> list[str]:
    """Writes tables of a database of ours anew, so that no byte of their deleted rows is left in its files.

    PostgreSQL: the tables, what the planner knows of their values, and the log of changes of an embedded server.
    SQLite: the whole file, and its log.

    Args:
        engine: of the database.
        schema: of the tables; None for the search path.
        names: of the tables; those that are not there are passed over.
        embedded: whether the server is the one in our home, whose log nobody else uses.

    Returns:
        What could not be wiped, in words.

    Raises:
        DatabaseUnavailable: no connection, or a full disk.
        OSError: somebody is reading, so that nothing can be wiped now.
    """
    with reaching(engine), engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if engine.dialect.name == "sqlite":
            _sqlite(connection)
            return []
        known = set(inspect(connection).get_table_names(schema=schema))
        quoted = engine.dialect.identifier_preparer.quote
        there = [
            quoted(name) if schema is None else f"{quoted(schema)}.{quoted(name)}" for name in names if name in known
        ]
        _wait_for_older(connection)
        return _postgresql(connection, there, embedded=embedded)


def _sqlite(connection: Connection) -> None:
    """The file is written anew without what was deleted, and so is its log."""
    connection.exec_driver_sql("PRAGMA secure_delete = ON")
    connection.exec_driver_sql("VACUUM")
    busy, *_ = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
    if busy:
        raise OSError(
            Words(
                "{database} is being read by another process: stop it and try again",
                database=connection.engine.url.database,
            )
        )


def _postgresql(connection: Connection, tables: Sequence[str], *, embedded: bool) -> list[str]:
    for table in tables:
        connection.exec_driver_sql(f"VACUUM (FULL) {table}")
    forget = text("DELETE FROM pg_statistic WHERE starelid = ANY(CAST(:tables AS regclass[]))")  # frequent values
    refused = [
        _refused(connection, "what the planner knows of frequent values", forget, {"tables": list(tables)}),
        _refused(connection, "what the planner knew of frequent values", text("VACUUM (FULL) pg_statistic")),
    ]
    for table in tables:
        connection.exec_driver_sql(f"ANALYZE {table}")
    refused.append(_refused(connection, "files that wait for a checkpoint", text("CHECKPOINT")))
    if embedded:
        _log_of_changes(connection)
    return [f"{shown(connection.engine.url)}: {what}" for what in refused if what]


def _log_of_changes(connection: Connection) -> None:
    """Goes through all segments of the log: what is behind is removed, what was kept for use again is overwritten."""
    for _ in range(connection.scalar(text("SELECT count(*) FROM pg_ls_waldir()")) or 0):
        connection.execute(text("SELECT pg_logical_emit_message(true, 'yarus', '')"))
        connection.execute(text("SELECT pg_switch_wal()"))
    connection.execute(text("CHECKPOINT"))


def _wait_for_older(connection: Connection) -> None:
    """Waits until nobody can see what was deleted.

    Raises:
        OSError: a transaction that began before does not end.
    """
    now = connection.scalar(text("SELECT CAST(CAST(pg_current_xact_id() AS text) AS bigint)"))
    older = text(
        "SELECT min(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
        "AND backend_xmin IS NOT NULL AND age(backend_xmin) > age(CAST(CAST(:now AS text) AS xid))"
    )
    deadline = time.monotonic() + PATIENCE_S
    while (pid := connection.scalar(older, {"now": now % 2**32 if now else 0})) is not None:
        if time.monotonic() > deadline:
            raise OSError(
                Words(
                    "database {engine}: process {pid} of the server is in a transaction that began before the "
                    "erasure, and keeps what was erased; the same command goes on when it has ended",
                    engine=shown(connection.engine.url),
                    pid=pid,
                )
            )
        time.sleep(0.1)


def _refused(connection: Connection, what: str, statement: Any, values: Any = None) -> str | None:
    """Runs what an ordinary role may not; what is left then."""
    try:
        connection.execute(statement, values)
    except DBAPIError as error:
        if not isinstance(error.orig, psycopg.errors.InsufficientPrivilege):
            raise
        return what
    return None

"""Wipe tables, because deleted rows leave their bytes in the files."""

import time
from collections.abc import Sequence
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import DBAPIError

from yarus.db.engine import redact_database_url, reporting_unreachable
from yarus.db.messages import Words

PATIENCE_S = 30.0
"""Longest wait for transactions older than the deletion: while they can see the rows, the bytes stay."""


def unerasable_copies(engine: Engine) -> list[str]:
    """Return the copies that a PostgreSQL outside the home keeps, and that only its administrator can delete."""
    if engine.dialect.name == "sqlite":
        return []
    return [
        f"{redact_database_url(engine.url)}: its WAL until that is used again, and WAL archives, replicas and backups"
    ]


def wipe_tables(engine: Engine, schema: str | None, names: Sequence[str], *, embedded: bool = False) -> list[str]:
    """Rewrite tables of Yarus's own database, so that no byte of their deleted rows remains in its files.

    PostgreSQL: the tables, the planner's statistics about their values, and the WAL of an embedded server.
    SQLite: the file and its log.

    Args:
        engine: engine of the database.
        schema: schema of the tables; None for the search path.
        names: names of the tables; missing ones are skipped.
        embedded: whether the server is the one in the home, whose WAL no other program uses.

    Returns:
        Descriptions of what could not be wiped.

    Raises:
        DatabaseUnavailable: no connection, or a full disk.
        OSError: another process is reading, so nothing can be wiped now.
    """
    with reporting_unreachable(engine), engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if engine.dialect.name == "sqlite":
            _wipe_sqlite(connection)
            return []
        existing = set(inspect(connection).get_table_names(schema=schema))
        quoted = engine.dialect.identifier_preparer.quote
        table_names = [
            quoted(name) if schema is None else f"{quoted(schema)}.{quoted(name)}" for name in names if name in existing
        ]
        _wait_for_older_transactions(connection)
        return _wipe_postgresql(connection, table_names, embedded=embedded)


def _wipe_sqlite(connection: Connection) -> None:
    """Rewrite the file without deleted rows, and truncate its log."""
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


def _wipe_postgresql(connection: Connection, tables: Sequence[str], *, embedded: bool) -> list[str]:
    for table in tables:
        connection.exec_driver_sql(f"VACUUM (FULL) {table}")
    # They hold frequent values.
    delete_statistics = text("DELETE FROM pg_statistic WHERE starelid = ANY(CAST(:tables AS regclass[]))")
    unwiped = [
        _try_privileged(
            connection, "what the planner knows of frequent values", delete_statistics, {"tables": list(tables)}
        ),
        _try_privileged(connection, "what the planner knew of frequent values", text("VACUUM (FULL) pg_statistic")),
    ]
    for table in tables:
        connection.exec_driver_sql(f"ANALYZE {table}")
    unwiped.append(_try_privileged(connection, "files that wait for a checkpoint", text("CHECKPOINT")))
    if embedded:
        _overwrite_wal(connection)
    return [f"{redact_database_url(connection.engine.url)}: {what}" for what in unwiped if what]


def _overwrite_wal(connection: Connection) -> None:
    """Switch through all WAL segments: old ones are removed, recycled ones overwritten."""
    for _ in range(connection.scalar(text("SELECT count(*) FROM pg_ls_waldir()")) or 0):
        connection.execute(text("SELECT pg_logical_emit_message(true, 'yarus', '')"))
        connection.execute(text("SELECT pg_switch_wal()"))
    connection.execute(text("CHECKPOINT"))


def _wait_for_older_transactions(connection: Connection) -> None:
    """Wait until no transaction can see the deleted rows.

    Raises:
        OSError: an older transaction does not end.
    """
    transaction_id = connection.scalar(text("SELECT CAST(CAST(pg_current_xact_id() AS text) AS bigint)"))
    older = text(
        "SELECT min(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
        "AND backend_xmin IS NOT NULL AND age(backend_xmin) > age(CAST(CAST(:now AS text) AS xid))"
    )
    deadline = time.monotonic() + PATIENCE_S
    while (pid := connection.scalar(older, {"now": transaction_id % 2**32 if transaction_id else 0})) is not None:
        if time.monotonic() > deadline:
            raise OSError(
                Words(
                    "database {engine}: process {pid} of the server is in a transaction that began before the "
                    "erasure, and keeps what was erased; the same command goes on when it has ended",
                    engine=redact_database_url(connection.engine.url),
                    pid=pid,
                )
            )
        time.sleep(0.1)


def _try_privileged(connection: Connection, what: str, statement: Any, values: Any = None) -> str | None:
    """Run a statement that ordinary roles may not run; return what stays unwiped if it is refused."""
    try:
        connection.execute(statement, values)
    except DBAPIError as error:
        if not isinstance(error.orig, psycopg.errors.InsufficientPrivilege):
            raise
        return what
    return None

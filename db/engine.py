"""Connections: Yarus's own database with an up-to-date schema, and sources, opened read-only."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError

from yarus.db.errors import DatabaseUnavailable
from yarus.db.messages import Words
from yarus.db.privileged import harden_connection

if TYPE_CHECKING:
    from alembic.config import Config

_MIGRATING = threading.Lock()
CONNECT_ARGS = {"connect_timeout": 10}
"""Arguments of every connection; the timeout is in seconds."""
CONFIDENTIAL_OPTIONS = (
    r"(?:[\w.-]*(?:passw(?:or)?d|passphrase|pwd|token|secret)"
    r"|(?:[\w.-]*[_.-])?(?:ssl|api|access)?(?:key|auth|authorization|credentials?|sig|signature)|code)"
)
"""Regular expression of the options of an address whose values are secret, such as api_key; case is ignored.

`code` is the key of Azure Functions.
"""


def open_own_database(home: Path, url: str | None) -> Engine:
    """Return the engine of Yarus's own tables, migrated to this version.

    Args:
        home: `YARUS_HOME`, the folder of the embedded PostgreSQL.
        url: a PostgreSQL server to use instead, or None for the embedded one.

    Raises:
        DatabaseUnavailable: no connection, or no right to create the schema.
    """
    with _MIGRATING:
        return own_at(home.absolute(), url)


@lru_cache
def own_at(home: Path, url: str | None) -> Engine:
    """Return the engine of a home or of an address; each has one."""
    if url is None:
        from yarus.db.embedded.server import acquire_server

        url = acquire_server(home)
    engine = create_engine(url, pool_pre_ping=True, connect_args=CONNECT_ARGS)
    event.listen(engine, "connect", _set_utc)
    try:
        with reporting_unreachable(engine):
            migrate(engine)
    except DatabaseUnavailable:
        engine.dispose()
        raise
    return engine


def _set_utc(connection: "psycopg.Connection[Any]", record: object) -> None:
    """Set the session's time zone to UTC. A connection option for it would override those of the address."""
    connection.execute("SET TIME ZONE 'UTC'")
    connection.commit()  # else the first rollback would undo it


@lru_cache
def read_only_engine(url: str, *, timeout_s: float) -> Engine:
    """Return the engine of a production database: each transaction is read-only and REPEATABLE READ, with a time limit.

    A role with rights over its server never runs code of other roles (db/privileged.py).
    """
    options = f"-c default_transaction_read_only=on -c statement_timeout={int(timeout_s * 1000)}"
    engine = create_engine(
        url,
        pool_pre_ping=True,
        isolation_level="REPEATABLE READ",
        connect_args={"options": options, **CONNECT_ARGS},
    )
    event.listen(engine, "do_connect", _connect_guarded)
    return engine


def _connect_guarded(dialect: Any, record: object, arguments: Any, options: Any) -> "psycopg.Connection[Any]":
    """Open a connection and guard it before SQLAlchemy sends anything."""
    connection: psycopg.Connection[Any] = dialect.connect(*arguments, **options)
    try:
        harden_connection(connection)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def reporting_unreachable(engine: Engine) -> Iterator[None]:
    """Turn a database's refusal into a message that names the database, the reason and a fix.

    Raises:
        DatabaseUnavailable: unreachable, an unknown option in the address, wrong password, missing right, a full
            disk, or a statement that took too long.
    """
    try:
        yield
    except DBAPIError as error:
        is_bad_address = isinstance(error, ProgrammingError) and error.statement is None  # the address is wrong
        is_unreachable = isinstance(error, OperationalError) or error.connection_invalidated or is_bad_address
        is_refused = isinstance(error.orig, psycopg.errors.InsufficientPrivilege)
        if not (is_unreachable or is_refused):
            raise
        reason = " ".join(str(error.orig).split())
        fix = Words("Check the address, the password and the role's rights (YARUS_DATABASE_URL, YARUS_SOURCE_URL)")
        if isinstance(error.orig, psycopg.errors.DiskFull):
            fix = Words("The disk under the database is full: make room there, then try again")
        unavailable = DatabaseUnavailable(
            "database {database}: {reason}. {way_out}",
            database=redact_database_url(engine.url),
            reason=reason,
            way_out=fix,
        )
        unavailable.connection_lost = error.connection_invalidated or error.statement is None
        raise unavailable from None


def driver_connection(connection: Connection) -> Any:
    """Return psycopg's connection below SQLAlchemy's, for COPY."""
    return connection.connection.driver_connection


@lru_cache
def get_autocommit_engine(engine: Engine) -> Engine:
    """Return an engine of the same database for frequent short statements, each its own transaction.

    It is disposed of with the given engine. Its connections are not reset between statements: BEGIN, COMMIT and a
    changed isolation level would cost as much CPU as a statement.
    """
    autocommit_engine = create_engine(
        engine.url,
        pool_pre_ping=True,
        isolation_level="AUTOCOMMIT",
        pool_reset_on_return=None,
        connect_args=CONNECT_ARGS,
    )
    event.listen(engine, "engine_disposed", lambda disposed: autocommit_engine.dispose())
    return autocommit_engine


def redact_database_url(url: URL) -> str:
    """Return the address of a database for messages and results, without its password and other secret options."""
    redacted = {name: "***" for name in url.query if re.fullmatch(CONFIDENTIAL_OPTIONS, name, re.IGNORECASE)}
    return url.update_query_dict(redacted).render_as_string(hide_password=True)


def migrate(engine: Engine) -> None:
    """Migrate the schema `yarus` to this version; safe if several processes do so at once."""
    head = head_revision()
    with engine.connect() as connection:
        if current_revision(connection) == head:
            return
    from alembic import command

    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('yarus.migrate'))"))
        if current_revision(connection) == head:
            return
        connection.execute(text("CREATE SCHEMA IF NOT EXISTS yarus"))
        _require_vector(connection, engine)
        config = alembic_config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _require_vector(connection: Connection, engine: Engine) -> None:
    query = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
    if connection.scalar(text(query)) is None:
        raise DatabaseUnavailable(
            "database {database}: the extension pgvector is not installed there; install it, or unset "
            "YARUS_DATABASE_URL to use the embedded PostgreSQL, which has it",
            database=redact_database_url(engine.url),
        )
    connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))


def current_revision(connection: Connection) -> str | None:
    """Return the database's revision; None before the first migration."""
    if connection.scalar(text("SELECT to_regclass('yarus.alembic_version')")) is None:
        return None
    version: str | None = connection.scalar(text("SELECT version_num FROM yarus.alembic_version"))
    return version


def head_revision() -> str:
    """Return the newest migration, by file name: 0001_first.py, 0002_…"""
    names = sorted(path.stem for path in (Path(__file__).parent / "migrations" / "versions").glob("[0-9]*.py"))
    return names[-1][:4]


def alembic_config() -> "Config":
    """Return the configuration with which Alembic finds the migrations."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    return config

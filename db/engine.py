"""Connections: our own database with its schema up to date, and sources opened read-only."""

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
from yarus.db.privileged import guard
from yarus.db.words import Words

if TYPE_CHECKING:
    from alembic.config import Config

_MIGRATING = threading.Lock()
CONNECTION = {"connect_timeout": 10}
"""Arguments of every connection; in seconds."""
CONFIDENTIAL = (
    r"(?:[\w.-]*(?:passw(?:or)?d|passphrase|pwd|token|secret)"
    r"|(?:[\w.-]*[_.-])?(?:ssl|api|access)?(?:key|auth|authorization|credentials?|sig|signature)|code)"
)
"""Regular expression of the options of an address whose values nobody else may see, such as api_key; any case.

`code` is the key of Azure Functions.
"""


def own(home: Path, url: str | None) -> Engine:
    """The engine of our own tables, migrated to this version.

    Args:
        home: `YARUS_HOME`; the embedded PostgreSQL lives there.
        url: a PostgreSQL server to use instead, or None for the embedded one.

    Raises:
        DatabaseUnavailable: no connection, or no right to create our schema.
    """
    with _MIGRATING:
        return own_at(home.absolute(), url)


@lru_cache
def own_at(home: Path, url: str | None) -> Engine:
    """The engine of a home, or of an address; one each."""
    if url is None:
        from yarus.db.embedded.server import running

        url = running(home)
    engine = create_engine(url, pool_pre_ping=True, connect_args=CONNECTION)
    event.listen(engine, "connect", _in_utc)
    try:
        with reaching(engine):
            migrate(engine)
    except DatabaseUnavailable:
        engine.dispose()
        raise
    return engine


def _in_utc(connection: "psycopg.Connection[Any]", record: object) -> None:
    """Times come as UTC, wherever the server is. No option of the connection, which would override the address's."""
    connection.execute("SET TIME ZONE 'UTC'")
    connection.commit()  # else the first rollback would undo it


@lru_cache
def read_only(url: str, *, timeout_s: float) -> Engine:
    """The engine of a production database: every transaction read-only and REPEATABLE READ, long statements ended.

    A role that rules its server reads no code of others (db/privileged.py).
    """
    options = f"-c default_transaction_read_only=on -c statement_timeout={int(timeout_s * 1000)}"
    engine = create_engine(
        url,
        pool_pre_ping=True,
        isolation_level="REPEATABLE READ",
        connect_args={"options": options, **CONNECTION},
    )
    event.listen(engine, "do_connect", _guarded)
    return engine


def _guarded(dialect: Any, record: object, arguments: Any, options: Any) -> "psycopg.Connection[Any]":
    """A connection that is guarded before SQLAlchemy asks it anything."""
    connection: psycopg.Connection[Any] = dialect.connect(*arguments, **options)
    try:
        guard(connection)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def reaching(engine: Engine) -> Iterator[None]:
    """Turns a database's refusal into a message that says which database, why, and what to do.

    Raises:
        DatabaseUnavailable: unreachable, an address with an option that there is none of, wrong password, missing
            right, a full disk, or a statement that took too long.
    """
    try:
        yield
    except DBAPIError as error:
        unconnected = isinstance(error, ProgrammingError) and error.statement is None  # the address is wrong
        unreachable = isinstance(error, OperationalError) or error.connection_invalidated or unconnected
        refused = isinstance(error.orig, psycopg.errors.InsufficientPrivilege)
        if not (unreachable or refused):
            raise
        reason = " ".join(str(error.orig).split())
        way_out = Words("Check the address, the password and the role's rights (YARUS_DATABASE_URL, YARUS_SOURCE_URL)")
        if isinstance(error.orig, psycopg.errors.DiskFull):
            way_out = Words("The disk under the database is full: make room there, then try again")
        unavailable = DatabaseUnavailable(
            "database {database}: {reason}. {way_out}", database=shown(engine.url), reason=reason, way_out=way_out
        )
        unavailable.connection_lost = error.connection_invalidated or error.statement is None
        raise unavailable from None


def driver_of(connection: Connection) -> Any:
    """Psycopg's connection below SQLAlchemy's, for COPY."""
    return connection.connection.driver_connection


@lru_cache
def autocommitting(engine: Engine) -> Engine:
    """The same database for frequent short statements, each a transaction of its own; disposed of with the engine.

    Its connections stay as they are between statements: BEGIN, COMMIT and a changed isolation level cost as much CPU.
    """
    found = create_engine(
        engine.url,
        pool_pre_ping=True,
        isolation_level="AUTOCOMMIT",
        pool_reset_on_return=None,
        connect_args=CONNECTION,
    )
    event.listen(engine, "engine_disposed", lambda disposed: found.dispose())
    return found


def shown(url: URL) -> str:
    """The address of a database for messages and results: without its password and other secret options."""
    secret = {name: "***" for name in url.query if re.fullmatch(CONFIDENTIAL, name, re.IGNORECASE)}
    return url.update_query_dict(secret).render_as_string(hide_password=True)


def migrate(engine: Engine) -> None:
    """Brings the schema `yarus` to this version; several processes may try at once."""
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
    known = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
    if connection.scalar(text(known)) is None:
        raise DatabaseUnavailable(
            "database {database}: the extension pgvector is not installed there; install it, or unset "
            "YARUS_DATABASE_URL to use the embedded PostgreSQL, which has it",
            database=shown(engine.url),
        )
    connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))


def current_revision(connection: Connection) -> str | None:
    """The revision that the database has; None before the first."""
    if connection.scalar(text("SELECT to_regclass('yarus.alembic_version')")) is None:
        return None
    version: str | None = connection.scalar(text("SELECT version_num FROM yarus.alembic_version"))
    return version


def head_revision() -> str:
    """The newest migration, by file name: 0001_first.py, 0002_…"""
    names = sorted(path.stem for path in (Path(__file__).parent / "migrations" / "versions").glob("[0-9]*.py"))
    return names[-1][:4]


def alembic_config() -> "Config":
    """How Alembic finds the migrations."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    return config

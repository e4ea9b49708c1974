"""Sources: loaded ones and a production database, each read in one snapshot."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, Engine, Table, select
from sqlalchemy.exc import DataError, InternalError, ProgrammingError

from yarus.db import privileged, tables
from yarus.db.engine import reporting_unreachable
from yarus.db.errors import InputError, SourceChanged, unknown
from yarus.db.messages import Words

SAMPLE, PRODUCTION = "sample", "production"
SCHEMA_PREFIX = "source_"


@dataclass(frozen=True)
class Source:
    """A source: its engine, and the names of its tables and columns there."""

    name: str
    kind: Literal["loaded", "production"]
    language: str
    engine: Engine
    tables: dict[str, Table]
    loaded_at: datetime | None = None
    """When a loaded source's rows were last changed, as read by `refresh_source`."""


def validate_source_name(name: str) -> str:
    """Return the name if a source can have it.

    Raises:
        InputError: it has other characters than a-z, 0-9 and _, is too long, or is reserved for YARUS_SOURCE_URL.
    """
    if name == PRODUCTION:
        raise InputError(
            "source name {name!r} is reserved for the database in YARUS_SOURCE_URL; choose another", name=name
        )
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name):
        raise InputError(
            "source name {name!r}: use a letter a-z, then up to 39 of a-z, 0-9 and _, for example 'helpdesk_2026'",
            name=name,
        )
    return name


def find_loaded_source(engine: Engine, name: str) -> Source:
    """Return a source that `yarus load` filled.

    Raises:
        InputError: no source has that name; the message names the nearest.
    """
    validate_source_name(name)
    with reporting_unreachable(engine), engine.connect() as connection:
        rows = connection.execute(select(tables.source.c.name, tables.source.c.language))
        languages = {row.name: row.language for row in rows}
    if name not in languages:
        raise unknown("source", name, languages, Words("Fill one with: yarus init FILE --into {name}", name=name))
    return Source(name, "loaded", languages[name], engine, tables.source_tables(SCHEMA_PREFIX + name))


def refresh_source(connection: Connection, source: Source) -> Source:
    """Return a loaded source with the language and load time that this transaction sees; others unchanged.

    Raises:
        InputError: it was removed.
    """
    if source.kind != "loaded":
        return source
    columns = tables.source.c
    row = connection.execute(
        select(columns.language, columns.loaded_at).where(columns.name == source.name)
    ).one_or_none()
    if row is None:
        raise InputError(
            "source {source!r} was removed meanwhile; fill it anew: yarus load … --into {source}", source=source.name
        )
    return replace(source, language=row.language, loaded_at=row.loaded_at)


def require_unchanged(connection: Connection, source: Source, loaded_at: datetime) -> None:
    """Check that this transaction reads the same load that the evaluation started with.

    Raises:
        SourceChanged: the source was loaded again.
    """
    if refresh_source(connection, source).loaded_at != loaded_at:
        raise SourceChanged(
            "source {source!r} was loaded anew while its vectors were searched: the rankings would be of two loads",
            source=source.name,
        )


@contextmanager
def open_snapshot(source: Source) -> Iterator[Connection]:
    """Open one read-only REPEATABLE READ transaction, so that questions and chunks belong together.

    Raises:
        DatabaseUnavailable: the database cannot be reached or refuses access.
        InputError: the query fails because a mapped column has another type; or a mapped table would run code of
            others with the rights of a privileged role.
    """
    try:
        with reporting_unreachable(source.engine), source.engine.connect() as connection:
            connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            if source.kind == "production":
                privileged.require_safe_tables(connection, source.tables.values(), source.name)
            yield connection
    except (ProgrammingError, DataError, InternalError) as error:
        raise InputError(
            "source {source!r}: its database refuses the query: {reason}. Check what the tables and columns are "
            "mapped to (YARUS_SOURCE_TABLES__…, YARUS_SOURCE_COLUMNS__…)",
            source=source.name,
            reason=" ".join(str(error.orig).split()),
        ) from None

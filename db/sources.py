"""The sources that can be read: loaded ones and a production database, each in one snapshot."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, Engine, Table, select
from sqlalchemy.exc import DataError, InternalError, ProgrammingError

from yarus.db import privileged, tables
from yarus.db.engine import reaching
from yarus.db.errors import InputError, SourceChanged, unknown
from yarus.db.words import Words

SAMPLE, PRODUCTION = "sample", "production"
SCHEMA_PREFIX = "source_"


@dataclass(frozen=True)
class Source:
    """A source that can be read: where it is, and what its tables and columns are called there."""

    name: str
    kind: Literal["loaded", "production"]
    language: str
    engine: Engine
    tables: dict[str, Table]
    loaded_at: datetime | None = None
    """When a loaded source's rows were last changed, as `registered` found it."""


def checked_name(name: str) -> str:
    """The name, if a source can have it.

    Raises:
        InputError: it has other characters than a-z, 0-9 and _, is too long, or stands for YARUS_SOURCE_URL.
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


def loaded(engine: Engine, name: str) -> Source:
    """A source that was filled by `yarus load`.

    Raises:
        InputError: there is none of that name; the nearest is named.
    """
    checked_name(name)
    with reaching(engine), engine.connect() as connection:
        known = connection.execute(select(tables.source.c.name, tables.source.c.language))
        languages = {row.name: row.language for row in known}
    if name not in languages:
        raise unknown("source", name, languages, Words("Fill one with: yarus init FILE --into {name}", name=name))
    return Source(name, "loaded", languages[name], engine, tables.source_tables(SCHEMA_PREFIX + name))


def registered(connection: Connection, source: Source) -> Source:
    """A loaded source with the language and the time of the rows that this transaction sees; another as it is.

    Raises:
        InputError: it is no longer there.
    """
    if source.kind != "loaded":
        return source
    known = tables.source.c
    row = connection.execute(select(known.language, known.loaded_at).where(known.name == source.name)).one_or_none()
    if row is None:
        raise InputError(
            "source {source!r} was removed meanwhile; fill it anew: yarus load … --into {source}", source=source.name
        )
    return replace(source, language=row.language, loaded_at=row.loaded_at)


def require_unchanged(connection: Connection, source: Source, loaded_at: datetime) -> None:
    """That what this transaction has read so far is of the load that the evaluation began with.

    Raises:
        SourceChanged: the source was loaded anew.
    """
    if registered(connection, source).loaded_at != loaded_at:
        raise SourceChanged(
            "source {source!r} was loaded anew while its vectors were searched: the rankings would be of two loads",
            source=source.name,
        )


@contextmanager
def snapshot(source: Source) -> Iterator[Connection]:
    """One read-only REPEATABLE READ transaction, so that questions and chunks belong together.

    Raises:
        DatabaseUnavailable: the database cannot be reached or refuses us.
        InputError: it cannot do what is asked, because a mapped column is of another kind; or what is mapped would run
            code of others with the rights of a role that rules its server.
    """
    try:
        with reaching(source.engine), source.engine.connect() as connection:
            connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            if source.kind == "production":
                privileged.check(connection, source.tables.values(), source.name)
            yield connection
    except (ProgrammingError, DataError, InternalError) as error:
        raise InputError(
            "source {source!r}: its database refuses the query: {reason}. Check what the tables and columns are "
            "mapped to (YARUS_SOURCE_TABLES__…, YARUS_SOURCE_COLUMNS__…)",
            source=source.name,
            reason=" ".join(str(error.orig).split()),
        ) from None

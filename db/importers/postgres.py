"""Copies the source tables of another PostgreSQL server, in one read-only snapshot of it; nothing is written there.

The rows go from server to server in PostgreSQL's binary COPY format and are never looked at here.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import psycopg
from pgvector.sqlalchemy import VECTOR
from sqlalchemy import (
    Boolean,
    Case,
    Column,
    ColumnElement,
    Connection,
    DateTime,
    Engine,
    Integer,
    Table,
    cast,
    func,
    inspect,
    or_,
    select,
    text,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from yarus.db import tables
from yarus.db.engine import driver_of, reaching
from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.db.loading.fill import Stream
from yarus.db.loading.staging import Packed
from yarus.db.source_rows import RECORDED, column_setting, has_annotations, missing_column, missing_table, moment, whole
from yarus.db.sources import SCHEMA_PREFIX, Source, snapshot
from yarus.db.words import Words

OPTIONAL = ("embedding", "nuggets", "review")
DIALECT = postgresql.dialect(paramstyle="named")  # type: ignore[no-untyped-call]  # leaves % in names as it is
TEXTS = {"text", "character varying", "character"}
INTEGERS = {"smallint", "integer"}
NUMBERS = INTEGERS | {"bigint", "numeric", "real", "double precision"}
TAKEN: dict[type, set[str]] = {
    Integer: NUMBERS | TEXTS,
    Boolean: {"boolean", "integer"} | TEXTS,
    DateTime: {"timestamp with time zone", "timestamp without time zone", "date"} | TEXTS,
    JSONB: {"jsonb", "json", "text[]", "character varying[]", "integer[]", "bigint[]", "uuid[]"} | TEXTS,
    VECTOR: {"vector", "halfvec", "real[]", "double precision[]"} | TEXTS,
}
"""What each of our types can be read from; a text is read from anything."""


Expressions = dict[str, ColumnElement[Any]]
"""Our column -> what has its value in our type."""


def checked_url(url: str) -> str:
    """The address of a PostgreSQL server, for SQLAlchemy.

    Raises:
        InputError: it is none; it is not repeated, because it may hold a password.
    """
    expected = Words("expected postgresql://user:password@host:5432/database, or the file of a dump that is there")
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise InputError("not a database's address; {expected}", expected=expected) from None
    if parsed.get_backend_name() not in {"postgresql", "postgres"}:
        raise InputError(
            "{kind!r} databases are not supported; {expected}", kind=parsed.get_backend_name(), expected=expected
        )
    return parsed.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


@contextmanager
def reading(source: Source, since: datetime | None = None) -> Iterator[Stream]:
    """The three tables of a source, to be stored while this context is open; `annotation` where it is there.

    Args:
        source: opened read-only, with its mapping of tables and columns.
        since: only log rows created then or later, and those without a time; chunks and annotations are copied always.

    Raises:
        DatabaseUnavailable: the server cannot be reached or refuses us.
        InputError: a table or column is missing or of the wrong type; the setting that maps it is named.
    """
    with snapshot(source) as connection:
        connection.execute(text("SET LOCAL TIME ZONE 'UTC'"))  # decides times that name no zone
        stream = Stream()
        names = [*tables.REQUIRED, *([tables.ANNOTATION] if has_annotations(connection, source) else [])]
        columns = {name: _columns(connection, source, name, stream.problems) for name in names}
        stream.chunks = _rows(connection, source, "chunk", columns["chunk"])
        questions = source.tables["question_answer"]
        recent = None if since is None else or_(questions.c.created_at >= since, questions.c.created_at.is_(None))
        for name in names:
            only = recent if name == "question_answer" else None
            stream.problems += _fractions(connection, source.tables[name], columns[name], only)
        stream.questions = _rows(connection, source, "question_answer", columns["question_answer"], recent)
        if tables.ANNOTATION in names:
            stream.annotations = _rows(connection, source, tables.ANNOTATION, columns[tables.ANNOTATION])
        yield stream


def newest(engine: Engine, name: str) -> datetime | None:
    """When the newest log row of a loaded source was created; None if there is none."""
    question = tables.source_tables(SCHEMA_PREFIX + name)["question_answer"]
    with reaching(engine), engine.connect() as connection:
        if not inspect(connection).has_table(question.name, schema=question.schema):
            return None
        found: datetime | None = connection.scalar(select(func.max(question.c.created_at)))
        return found


def _columns(connection: Connection, source: Source, ours: str, problems: list[str]) -> Expressions:
    """What has the value of each of our columns.

    Raises:
        InputError: the table or a column is missing, or a column cannot be of our type.
    """
    table = source.tables[ours]
    theirs = _types(connection, table)
    if not theirs:
        raise missing_table(connection, source, ours)
    found = {}
    for column in table.columns:
        setting = column_setting(ours, column.key)
        if column.key == RECORDED and theirs.get(column.name) not in ("json", "jsonb"):
            continue  # somebody else's column of that name is another thing
        if column.name in theirs:
            found[column.key] = _converted(column, theirs[column.name], setting)
        elif column.key not in OPTIONAL:
            raise missing_column(source, ours, column.key, theirs)
        elif column.key == "embedding":
            problems.append(
                Words(
                    "{table}: no column {column!r}, loaded without vectors ({setting})",
                    table=table.fullname,
                    column=column.name,
                    setting=setting,
                )
            )
    return found


def _types(connection: Connection, table: Table) -> dict[str, str]:
    """Column -> the name of its type, without length and schema; empty where there is no such table or view."""
    statement = text("""
        SELECT attname, regexp_replace(format_type(atttypid, NULL), '^.*[.]', '') FROM pg_attribute
        WHERE attrelid = to_regclass(:name) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
    """)
    rows = connection.execute(statement, {"name": DIALECT.identifier_preparer.format_table(table)})
    return {column: kind for column, kind in rows}  # noqa: C416 - dict() does not take rows by its types


def _converted(column: Column[Any], theirs: str, setting: str) -> ColumnElement[Any]:
    """The column's value in our type.

    Raises:
        InputError: its type cannot be read as ours; a yes/no score would turn a good mark into the worst.
    """
    kind = column.type
    taken = TAKEN.get(type(kind))
    if taken is not None and theirs not in taken:
        raise InputError(
            "column {table}.{column} is {theirs}, and {key} is read from: {taken}. Map another ({setting}), or a "
            "view that converts it",
            table=column.table.fullname,
            column=column.name,
            theirs=theirs,
            key=column.key,
            taken=", ".join(sorted(taken)),
            setting=setting,
        )
    if theirs == "vector" and isinstance(kind, VECTOR):
        return column
    if isinstance(kind, JSONB) and theirs.endswith("[]"):
        return func.to_jsonb(column)
    if isinstance(kind, Integer) and theirs in NUMBERS - INTEGERS:
        return whole(column)
    return moment(cast(column, kind)) if isinstance(kind, DateTime) else cast(column, type(kind))


def _fractions(
    connection: Connection, table: Table, columns: Expressions, only: ColumnElement[bool] | None
) -> Iterator[str]:
    """For every column whose numbers may not be whole or whose times may be none, how many are loaded as NULL."""
    key, identity = next(iter(columns.items()))
    for name, value in columns.items():
        if not isinstance(value, Case):
            continue
        lost = select(func.count(), func.min(identity)).where(table.c[name].is_not(None), value.is_(None))
        count, first = connection.execute(lost if only is None else lost.where(only)).one()
        if count:
            timed = isinstance(table.c[name].type, DateTime)
            yield Words(
                "{table}: {n:,} values of {column!r} are {wrong} ({key} {first!r} first), loaded as NULL; a view "
                "can say "
                "what they mean",
                table=table.fullname,
                n=count,
                column=table.c[name].name,
                wrong=Words("no points in time") if timed else Words("no whole numbers"),
                key=key,
                first=first,
            )


def _rows(
    connection: Connection, source: Source, ours: str, columns: Expressions, only: ColumnElement[bool] | None = None
) -> Packed:
    """The rows of a table as its server packs them, read when they are asked for."""
    table = source.tables[ours]
    key = next(iter(columns))
    place = func.concat(f"{table.fullname} {key}=", columns[key])
    statement = select(place, *columns.values())
    if only is not None:
        statement = statement.where(only)
    query = str(statement.compile(dialect=DIALECT, compile_kwargs={"literal_binds": True}))
    return Packed(list(columns), _blocks(connection, source, query))


def _blocks(connection: Connection, source: Source, query: str) -> Iterator[bytes | memoryview]:
    try:
        statement = f"COPY ({query}) TO STDOUT (FORMAT BINARY)"
        with driver_of(connection).cursor() as cursor, cursor.copy(statement) as copy:
            yield from copy
    except (psycopg.DataError, psycopg.ProgrammingError, psycopg.InternalError) as error:
        refused = isinstance(error, psycopg.errors.InsufficientPrivilege)
        raise (DatabaseUnavailable if refused else InputError)(
            "source {source!r}: {error}; nothing was loaded. Check the role's rights and what the columns are "
            "mapped to "
            "(YARUS_SOURCE_COLUMNS__…)",
            source=source.name,
            error=" ".join(str(error).split()),
        ) from None
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(
            "source {source!r}: {error}; nothing was loaded. If a statement took too long, raise "
            "YARUS_SOURCE_TIMEOUT_S",
            source=source.name,
            error=" ".join(str(error).split()),
        ) from None

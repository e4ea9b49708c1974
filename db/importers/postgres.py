"""Copy the source tables of another PostgreSQL server in one read-only snapshot; nothing is written there.

The rows go from server to server in PostgreSQL's binary COPY format, without being parsed here.
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
from yarus.db.engine import driver_connection, reporting_unreachable
from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.db.loading.load_rows import RowStream
from yarus.db.loading.staging import BinaryRows
from yarus.db.messages import Words
from yarus.db.source_rows import (
    RECORDED_COLUMN,
    column_setting,
    has_annotations,
    missing_column,
    missing_table,
    parse_integer_sql,
    parse_time_sql,
)
from yarus.db.sources import SCHEMA_PREFIX, Source, open_snapshot

OPTIONAL_COLUMNS = ("embedding", "nuggets", "review")
DIALECT = postgresql.dialect(paramstyle="named")  # type: ignore[no-untyped-call]  # leaves % in names as it is
TEXT_TYPES = {"text", "character varying", "character"}
INTEGER_TYPES = {"smallint", "integer"}
NUMBER_TYPES = INTEGER_TYPES | {"bigint", "numeric", "real", "double precision"}
ACCEPTED_TYPES: dict[type, set[str]] = {
    Integer: NUMBER_TYPES | TEXT_TYPES,
    Boolean: {"boolean", "integer"} | TEXT_TYPES,
    DateTime: {"timestamp with time zone", "timestamp without time zone", "date"} | TEXT_TYPES,
    JSONB: {"jsonb", "json", "text[]", "character varying[]", "integer[]", "bigint[]", "uuid[]"} | TEXT_TYPES,
    VECTOR: {"vector", "halfvec", "real[]", "double precision[]"} | TEXT_TYPES,
}
"""Our type -> types that it can be read from; a text is read from any type."""


Expressions = dict[str, ColumnElement[Any]]
"""Our column -> expression for its value in our type."""


def validate_url(url: str) -> str:
    """Return the address of a PostgreSQL server in the form of SQLAlchemy.

    Raises:
        InputError: the text is not such an address; it is not repeated, because it may contain a password.
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
def open_source_snapshot(source: Source, since: datetime | None = None) -> Iterator[RowStream]:
    """Open the three tables of a source, to be stored within this context; `annotation` only if it exists.

    Args:
        source: opened read-only, with its mapping of tables and columns.
        since: only log rows created then or later, and those without a time; all chunks and annotations are copied.

    Raises:
        DatabaseUnavailable: the server cannot be reached or refuses us.
        InputError: a table or column is missing or of the wrong type; the message has the setting that maps it.
    """
    with open_snapshot(source) as connection:
        connection.execute(text("SET LOCAL TIME ZONE 'UTC'"))  # for times without a time zone
        stream = RowStream()
        names = [*tables.REQUIRED_TABLES, *([tables.ANNOTATION_TABLE] if has_annotations(connection, source) else [])]
        columns = {name: _build_expressions(connection, source, name, stream.problems) for name in names}
        stream.chunks = _pack_rows(connection, source, "chunk", columns["chunk"])
        questions = source.tables["question_answer"]
        recent_only = None if since is None else or_(questions.c.created_at >= since, questions.c.created_at.is_(None))
        for name in names:
            condition = recent_only if name == "question_answer" else None
            stream.problems += _report_lost_values(connection, source.tables[name], columns[name], condition)
        stream.questions = _pack_rows(connection, source, "question_answer", columns["question_answer"], recent_only)
        if tables.ANNOTATION_TABLE in names:
            stream.annotations = _pack_rows(
                connection, source, tables.ANNOTATION_TABLE, columns[tables.ANNOTATION_TABLE]
            )
        yield stream


def newest_created_at(engine: Engine, name: str) -> datetime | None:
    """Return when the newest log row of a loaded source was created; None if there is none."""
    question = tables.source_tables(SCHEMA_PREFIX + name)["question_answer"]
    with reporting_unreachable(engine), engine.connect() as connection:
        if not inspect(connection).has_table(question.name, schema=question.schema):
            return None
        newest_time: datetime | None = connection.scalar(select(func.max(question.c.created_at)))
        return newest_time


def _build_expressions(connection: Connection, source: Source, table_name: str, problems: list[str]) -> Expressions:
    """Return an expression for each of our columns.

    Raises:
        InputError: the table or a column is missing, or a column cannot be converted to our type.
    """
    table = source.tables[table_name]
    column_types = _read_column_types(connection, table)
    if not column_types:
        raise missing_table(connection, source, table_name)
    expressions = {}
    for column in table.columns:
        setting = column_setting(table_name, column.key)
        if column.key == RECORDED_COLUMN and column_types.get(column.name) not in ("json", "jsonb"):
            continue  # a foreign column of that name has another meaning
        if column.name in column_types:
            expressions[column.key] = _convert_column(column, column_types[column.name], setting)
        elif column.key not in OPTIONAL_COLUMNS:
            raise missing_column(source, table_name, column.key, column_types)
        elif column.key == "embedding":
            problems.append(
                Words(
                    "{table}: no column {column!r}, loaded without vectors ({setting})",
                    table=table.fullname,
                    column=column.name,
                    setting=setting,
                )
            )
    return expressions


def _read_column_types(connection: Connection, table: Table) -> dict[str, str]:
    """Return column -> type name, without length and schema; empty if there is no such table or view."""
    statement = text("""
        SELECT attname, regexp_replace(format_type(atttypid, NULL), '^.*[.]', '') FROM pg_attribute
        WHERE attrelid = to_regclass(:name) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
    """)
    rows = connection.execute(statement, {"name": DIALECT.identifier_preparer.format_table(table)})
    return {column: kind for column, kind in rows}  # noqa: C416 - dict() does not take rows by its types


def _convert_column(column: Column[Any], source_type: str, setting: str) -> ColumnElement[Any]:
    """Return the column's value in our type.

    Raises:
        InputError: its type cannot be converted to ours; a boolean score would turn a good mark into the worst.
    """
    own_type = column.type
    accepted_types = ACCEPTED_TYPES.get(type(own_type))
    if accepted_types is not None and source_type not in accepted_types:
        raise InputError(
            "column {table}.{column} is {theirs}, and {key} is read from: {taken}. Map another ({setting}), or a "
            "view that converts it",
            table=column.table.fullname,
            column=column.name,
            theirs=source_type,
            key=column.key,
            taken=", ".join(sorted(accepted_types)),
            setting=setting,
        )
    if source_type == "vector" and isinstance(own_type, VECTOR):
        return column
    if isinstance(own_type, JSONB) and source_type.endswith("[]"):
        return func.to_jsonb(column)
    if isinstance(own_type, Integer) and source_type in NUMBER_TYPES - INTEGER_TYPES:
        return parse_integer_sql(column)
    return parse_time_sql(cast(column, own_type)) if isinstance(own_type, DateTime) else cast(column, type(own_type))


def _report_lost_values(
    connection: Connection, table: Table, columns: Expressions, condition: ColumnElement[bool] | None
) -> Iterator[str]:
    """Report for each column how many non-integer numbers or unreadable times are loaded as NULL."""
    key, identity = next(iter(columns.items()))
    for name, value in columns.items():
        if not isinstance(value, Case):
            continue
        lost_values = select(func.count(), func.min(identity)).where(table.c[name].is_not(None), value.is_(None))
        count, first = connection.execute(lost_values if condition is None else lost_values.where(condition)).one()
        if count:
            is_time = isinstance(table.c[name].type, DateTime)
            yield Words(
                "{table}: {n:,} values of {column!r} are {wrong} ({key} {first!r} first), loaded as NULL; a view "
                "can say "
                "what they mean",
                table=table.fullname,
                n=count,
                column=table.c[name].name,
                wrong=Words("no points in time") if is_time else Words("no whole numbers"),
                key=key,
                first=first,
            )


def _pack_rows(
    connection: Connection, source: Source, name: str, columns: Expressions, where: ColumnElement[bool] | None = None
) -> BinaryRows:
    """Return the rows of a table in the server's binary format, read on demand."""
    table = source.tables[name]
    key = next(iter(columns))
    place = func.concat(f"{table.fullname} {key}=", columns[key])
    statement = select(place, *columns.values())
    if where is not None:
        statement = statement.where(where)
    query = str(statement.compile(dialect=DIALECT, compile_kwargs={"literal_binds": True}))
    return BinaryRows(list(columns), _iter_blocks(connection, source, query))


def _iter_blocks(connection: Connection, source: Source, query: str) -> Iterator[bytes | memoryview]:
    try:
        statement = f"COPY ({query}) TO STDOUT (FORMAT BINARY)"
        with driver_connection(connection).cursor() as cursor, cursor.copy(statement) as copy:
            yield from copy
    except (psycopg.DataError, psycopg.ProgrammingError, psycopg.InternalError) as error:
        is_refused = isinstance(error, psycopg.errors.InsufficientPrivilege)
        raise (DatabaseUnavailable if is_refused else InputError)(
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

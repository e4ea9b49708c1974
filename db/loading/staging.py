"""Stage rows of an importer: copy them into a temporary table and check them there, before they are stored.

Only one row at a time is in memory. The temporary table is called `incoming`.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import psycopg
from psycopg.types.json import Jsonb
from pydantic_core import to_json
from sqlalchemy import Connection, Table, delete, func, or_, select, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.sql.expression import TableClause

from yarus.db.engine import driver_connection
from yarus.db.errors import InputError
from yarus.db.messages import Words

RowValues = dict[str, Any]
"""The values of a row: Yarus's column name -> value."""


class IncomingRow(NamedTuple):
    """A row to load, and the place that it came from, for messages."""

    place: str
    values: RowValues


class Rejected(NamedTuple):
    """A row that cannot be loaded, and why."""

    place: str
    reason: str


@dataclass(frozen=True)
class BinaryRows:
    """Rows in PostgreSQL's binary COPY format, as another server sends them; the first column is the place."""

    columns: Sequence[str]
    """Yarus's names of the columns after the place."""
    blocks: Iterable[bytes | memoryview]


IncomingRows = Iterable[IncomingRow | Rejected] | BinaryRows


def stage_rows(connection: Connection, into: Table, rows: IncomingRows, bad: list[Rejected]) -> list[str]:
    """Create the table `incoming` and copy the rows into it.

    Args:
        connection: in the transaction of the load.
        into: the table that the rows are for.
        rows: the importer's rows.
        bad: list to which the rows that PostgreSQL cannot store are added.

    Returns:
        Yarus's names of the rows' columns; empty without rows.

    Raises:
        InputError: a value has another type than its column.
    """
    key = into.primary_key.columns[0].name
    connection.execute(text(f'CREATE TEMP TABLE incoming (place text, LIKE "{into.schema}"."{into.name}")'))
    connection.execute(text(f"ALTER TABLE incoming ALTER COLUMN {key} DROP NOT NULL"))
    if isinstance(rows, BinaryRows):
        with _open_copy(connection, rows.columns, "(FORMAT BINARY)") as copy:
            for block in rows.blocks:
                copy.write(block)
        return list(rows.columns)
    usable = _storable_rows(rows, bad)
    first = next(usable, None)
    if first is None:
        return []
    names = list(first.values)
    columns = [(name, isinstance(into.c[name].type, JSONB)) for name in names]
    with _open_copy(connection, names) as copy:
        for place, values in chain((first,), usable):
            copy.write_row([place, *[_copy_value(values[name], is_json=is_json) for name, is_json in columns]])
    return names


@contextmanager
def _open_copy(connection: Connection, names: Sequence[str], options: str = "") -> Iterator[psycopg.Copy]:
    """Open a COPY into the staging table.

    Raises:
        InputError: a value has another type than its column.
    """
    columns = ", ".join(f'"{name}"' for name in ("place", *names))
    try:
        statement = f"COPY incoming ({columns}) FROM STDIN {options}"
        with driver_connection(connection).cursor() as cursor, cursor.copy(statement) as copy:
            yield copy
    except psycopg.DataError as error:
        place = (error.diag.context or "").replace("COPY incoming, ", "")
        raise InputError(
            "{place}: {reason}; nothing was loaded", place=place, reason=error.diag.message_primary or error
        ) from None


def _storable_rows(rows: Iterable[IncomingRow | Rejected], rejected: list[Rejected]) -> Iterator[IncomingRow]:
    """Yield the rows that PostgreSQL can store; add the others to `rejected`."""
    for row in rows:
        if isinstance(row, Rejected):
            rejected.append(row)
        elif defect := find_defect(row.values.values()):
            rejected.append(
                Rejected(row.place, Words("the text has {defect}, which PostgreSQL cannot store", defect=defect))
            )
        else:
            yield row


def find_defect(values: Iterable[Any]) -> Words | None:
    """Return what PostgreSQL cannot store in the texts, nested ones included; None if there is nothing."""
    for value in values:
        if isinstance(value, str):
            if "\0" in value:
                return Words("a NUL character")
            if not value.isascii():
                try:
                    value.encode()
                except UnicodeEncodeError:
                    return Words("half of a surrogate pair")
        elif isinstance(value, list | tuple | dict):
            parts = [*value, *value.values()] if isinstance(value, dict) else value
            if defect := find_defect(parts):
                return defect
    return None


def _copy_value(value: Any, *, is_json: bool) -> Any:
    """Return the value as COPY takes it; a vector as pgvector writes it."""
    if value is None:
        return None
    if is_json:
        return Jsonb(value)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return to_json(value).decode() if isinstance(value, list) else value


def drop_incomplete(connection: Connection, incoming: TableClause, required: Sequence[str]) -> list[Rejected]:
    """Delete rows with an empty required column from the table `incoming` and return them, in their order."""
    is_missing = [func.coalesce(~incoming.c[name].op("~")(r"\S"), True).label(name) for name in required]
    deleted = delete(incoming).where(or_(*is_missing)).returning(incoming.c.ctid, incoming.c.place, *is_missing).cte()
    rows = connection.execute(select(deleted).order_by(deleted.c.ctid)).all()
    missing_by_row = [[name for name, missing in zip(required, row[2:], strict=True) if missing] for row in rows]
    return [
        Rejected(row.place, Words("no {missing}", missing=" and no ".join(missing)))
        for row, missing in zip(rows, missing_by_row, strict=True)
    ]


def drop_duplicates(connection: Connection, key: str) -> list[Rejected]:
    """Delete rows from the table `incoming` whose key an earlier row has, and return them."""
    statement = f"""
        WITH first AS (SELECT DISTINCT ON ({key}) {key} AS key, place, ctid FROM incoming ORDER BY {key}, ctid),
        gone AS (
            DELETE FROM incoming USING first WHERE incoming.{key} = first.key AND incoming.ctid <> first.ctid
            RETURNING incoming.ctid AS position, incoming.place, first.key, first.place AS earlier
        )
        SELECT place, key, earlier FROM gone ORDER BY position
    """  # noqa: S608 - the key is a column of Yarus
    rows = connection.execute(text(statement)).all()
    return [
        Rejected(
            row.place, Words("{key} {given!r} was already at {earlier}", key=key, given=row.key, earlier=row.earlier)
        )
        for row in rows
    ]


def drop_orphans(connection: Connection, into: Table, skipped: Iterable[str]) -> list[Rejected]:
    """Delete annotations of missing questions, and those at the places of skipped rows, and return them."""
    statement = f"""
        WITH gone AS (
            DELETE FROM incoming WHERE place = ANY(:skipped) OR NOT EXISTS (
                SELECT FROM "{into.schema}".question_answer AS question WHERE question.id = question_id
            ) RETURNING ctid AS position, place, question_id
        )
        SELECT place, question_id FROM gone ORDER BY position
    """  # noqa: S608 - the schema's name is checked
    rows = connection.execute(text(statement), {"skipped": list(skipped)}).all()
    return [
        Rejected(row.place, Words("there is no question {question_id!r}", question_id=row.question_id)) for row in rows
    ]

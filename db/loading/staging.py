"""Staging: rows from an importer go by COPY into a temporary table and are checked there, before they are stored.

Memory holds one row at a time, however many there are; the temporary table is called `incoming`.
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

from yarus.db.engine import driver_of
from yarus.db.errors import InputError
from yarus.db.words import Words

Values = dict[str, Any]
"""The values of a row: our column -> value."""


class Row(NamedTuple):
    """One row to load and the place that it came from, for messages."""

    place: str
    values: Values


class Rejected(NamedTuple):
    """A row that an importer cannot use, and why."""

    place: str
    reason: str


@dataclass(frozen=True)
class Packed:
    """Rows in PostgreSQL's binary COPY format, as another server sends them; the first column is the place."""

    columns: Sequence[str]
    """Ours, of what follows the place."""
    blocks: Iterable[bytes | memoryview]


Incoming = Iterable[Row | Rejected] | Packed


def stage(connection: Connection, into: Table, rows: Incoming, bad: list[Rejected]) -> list[str]:
    """Makes the table `incoming` and copies the rows there.

    Args:
        connection: in the transaction of the whole load.
        into: the table that the rows are for.
        rows: what an importer reads.
        bad: gets the rows that PostgreSQL cannot take.

    Returns:
        Our names of the columns that the rows have; none where there is no row.

    Raises:
        InputError: a value is not of its column's type.
    """
    key = into.primary_key.columns[0].name
    connection.execute(text(f'CREATE TEMP TABLE incoming (place text, LIKE "{into.schema}"."{into.name}")'))
    connection.execute(text(f"ALTER TABLE incoming ALTER COLUMN {key} DROP NOT NULL"))
    if isinstance(rows, Packed):
        with _copying(connection, rows.columns, "(FORMAT BINARY)") as copy:
            for block in rows.blocks:
                copy.write(block)
        return list(rows.columns)
    usable = _usable(rows, bad)
    first = next(usable, None)
    if first is None:
        return []
    names = list(first.values)
    columns = [(name, isinstance(into.c[name].type, JSONB)) for name in names]
    with _copying(connection, names) as copy:
        for place, values in chain((first,), usable):
            copy.write_row([place, *[_packed(values[name], is_json=is_json) for name, is_json in columns]])
    return names


@contextmanager
def _copying(connection: Connection, names: Sequence[str], options: str = "") -> Iterator[psycopg.Copy]:
    """COPY into the staging table.

    Raises:
        InputError: a value is not of its column's type.
    """
    columns = ", ".join(f'"{name}"' for name in ("place", *names))
    try:
        statement = f"COPY incoming ({columns}) FROM STDIN {options}"
        with driver_of(connection).cursor() as cursor, cursor.copy(statement) as copy:
            yield copy
    except psycopg.DataError as error:
        place = (error.diag.context or "").replace("COPY incoming, ", "")
        raise InputError(
            "{place}: {reason}; nothing was loaded", place=place, reason=error.diag.message_primary or error
        ) from None


def _usable(rows: Iterable[Row | Rejected], bad: list[Rejected]) -> Iterator[Row]:
    """The rows that PostgreSQL can take."""
    for row in rows:
        if isinstance(row, Rejected):
            bad.append(row)
        elif defect := find_defect(row.values.values()):
            bad.append(
                Rejected(row.place, Words("the text has {defect}, which PostgreSQL cannot store", defect=defect))
            )
        else:
            yield row


def find_defect(values: Iterable[Any]) -> Words | None:
    """Return what PostgreSQL cannot store of texts, or of those in lists and objects, however deep; None if nothing."""
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


def _packed(value: Any, *, is_json: bool) -> Any:
    """The value as COPY takes it; a vector as pgvector writes it."""
    if value is None:
        return None
    if is_json:
        return Jsonb(value)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return to_json(value).decode() if isinstance(value, list) else value


def without(connection: Connection, incoming: TableClause, required: Sequence[str]) -> list[Rejected]:
    """Takes out the rows that lack what a row must have, in their order."""
    lacks = [func.coalesce(~incoming.c[name].op("~")(r"\S"), True).label(name) for name in required]
    gone = delete(incoming).where(or_(*lacks)).returning(incoming.c.ctid, incoming.c.place, *lacks).cte()
    rows = connection.execute(select(gone).order_by(gone.c.ctid)).all()
    names = [[name for name, missing in zip(required, row[2:], strict=True) if missing] for row in rows]
    return [
        Rejected(row.place, Words("no {missing}", missing=" and no ".join(missing)))
        for row, missing in zip(rows, names, strict=True)
    ]


def repeated(connection: Connection, key: str) -> list[Rejected]:
    """Takes out the rows whose key an earlier row has: the first wins."""
    statement = f"""
        WITH first AS (SELECT DISTINCT ON ({key}) {key} AS key, place, ctid FROM incoming ORDER BY {key}, ctid),
        gone AS (
            DELETE FROM incoming USING first WHERE incoming.{key} = first.key AND incoming.ctid <> first.ctid
            RETURNING incoming.ctid AS position, incoming.place, first.key, first.place AS earlier
        )
        SELECT place, key, earlier FROM gone ORDER BY position
    """  # noqa: S608 - the key is a column of ours
    rows = connection.execute(text(statement)).all()
    return [
        Rejected(
            row.place, Words("{key} {given!r} was already at {earlier}", key=key, given=row.key, earlier=row.earlier)
        )
        for row in rows
    ]


def orphans(connection: Connection, into: Table, skipped: Iterable[str]) -> list[Rejected]:
    """Takes out the annotations of questions that are not there, and those read from a row that was skipped."""
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

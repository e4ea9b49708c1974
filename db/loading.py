"""Fills a named source: rows from any importer go into tables shaped as in production, whole or not at all."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from psycopg.types.json import Jsonb
from sqlalchemy import Column, Connection, Engine, Table, column, func, or_, select, table, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.schema import CreateSchema

from db import tables
from db.errors import InputError

MAX_PROBLEMS = 20
SCHEMA_PREFIX = "source_"
PRODUCTION = "production"


class Row(NamedTuple):
    """One row to load and the place that it came from, for messages."""

    place: str
    values: dict[str, Any]


@dataclass
class Rows:
    """What an importer read: rows for each of the three tables, keyed by our column names."""

    questions: list[Row] = field(default_factory=list)
    chunks: list[Row] = field(default_factory=list)
    annotations: list[Row] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass
class Counts:
    """What became of the rows of one kind; rows that were there already, unchanged, are in `read` only."""

    read: int = 0
    added: int = 0
    updated: int = 0
    skipped: int = 0


@dataclass
class LoadReport:
    """What a load did."""

    source: str
    questions: Counts = field(default_factory=Counts)
    chunks: Counts = field(default_factory=Counts)
    problems: list[str] = field(default_factory=list)


def checked_name(name: str) -> str:
    """The name, if a source can have it.

    Raises:
        InputError: it has other characters than a-z, 0-9 and _, is too long, or stands for YARUS_SOURCE_URL.
    """
    if name == PRODUCTION:
        raise InputError(f"source name {name!r} stands for the database in YARUS_SOURCE_URL; choose another")
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name):
        raise InputError(
            f"source name {name!r}: use a letter a-z, then up to 39 of a-z, 0-9 and _, for example 'helpdesk_2026'"
        )
    return name


def fill(engine: Engine, name: str, rows: Rows, *, language: str, origin: str) -> LoadReport:
    """Adds the rows to a source, updating those whose content changed; other rows of the source stay.

    Args:
        engine: of our own database.
        name: of the source; it is made if it is not there.
        rows: from an importer.
        language: `ru` or `en`, for text search and prompts.
        origin: what to show as where the rows came from.

    Returns:
        Counts and up to 20 problems with their places.

    Raises:
        InputError: the name cannot be used.
    """
    checked_name(name)
    report = LoadReport(source=name)
    problems = list(rows.problems)
    chunks = _usable(rows.chunks, "text", problems, report.chunks)
    questions = _usable(rows.questions, "question", problems, report.questions)
    annotations = _usable_annotations(rows, questions, problems)
    with engine.begin() as connection:
        into = _prepare(connection, name)
        added, updated = _upsert(connection, into["chunk"], chunks)
        report.chunks.added, report.chunks.updated = len(added), len(updated)
        added, updated = _upsert(connection, into["question_answer"], questions)
        relabelled = set().union(*_upsert(connection, into["annotation"], annotations))
        report.questions.added, report.questions.updated = len(added), len((updated | relabelled) - added)
        if any((report.chunks.added, report.chunks.updated, report.questions.added, report.questions.updated)):
            _register(connection, name, language, origin)
    report.problems = problems[:MAX_PROBLEMS]
    if len(problems) > MAX_PROBLEMS:
        report.problems.append(f"and {len(problems) - MAX_PROBLEMS} more")
    return report


def _usable(rows: Sequence[Row], required: str, problems: list[str], counts: Counts) -> list[Row]:
    """The rows whose text is there and that can be stored, every id once."""
    there = []
    for row in rows:
        if str(row.values.get(required) or "").strip():
            there.append(row)
        else:
            problems.append(f"{row.place}: skipped, no {required}")
    kept = _storable(there, "id", problems)
    counts.read, counts.skipped = len(rows), len(rows) - len(kept)
    return kept


def _usable_annotations(rows: Rows, questions: Sequence[Row], problems: list[str]) -> list[Row]:
    """The annotations of the questions that are loaded; one that was read from a skipped question goes with it."""
    known = {row.values["id"] for row in questions}
    skipped = {row.place for row in rows.questions} - {row.place for row in questions}
    theirs = [row for row in rows.annotations if row.values["question_id"] in known and row.place not in skipped]
    return _storable(theirs, "question_id", problems)


def _storable(rows: Iterable[Row], key: str, problems: list[str]) -> list[Row]:
    """The rows that PostgreSQL can store, every key once: the first wins."""
    kept: dict[str, Row] = {}
    for row in rows:
        name = row.values[key]
        if name in kept:
            problems.append(f"{row.place}: skipped, {key} {name!r} was already at {kept[name].place}")
        elif (defect := _defect("".join(_texts(row.values)))) is not None:
            problems.append(f"{row.place}: skipped, the text has {defect}, which PostgreSQL cannot store")
        else:
            kept[name] = row
    return list(kept.values())


def _texts(value: Any) -> Iterator[str]:
    """All texts in a value, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple | dict):
        for part in value.items() if isinstance(value, dict) else value:
            yield from _texts(part)


def _defect(text: str) -> str | None:
    if "\0" in text:
        return "a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "half of a surrogate pair"
    return None


def _prepare(connection: Connection, name: str) -> dict[str, Table]:
    """The source's tables, made if they are not there; other loads of the same source wait."""
    schema = SCHEMA_PREFIX + name
    connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(schema))))
    connection.execute(CreateSchema(schema, if_not_exists=True))
    into = tables.source_tables(schema)
    for made in into.values():
        made.create(connection, checkfirst=True)
    return into


def _upsert(connection: Connection, into: Table, rows: Sequence[Row]) -> tuple[set[str], set[str]]:
    """Stores the rows by COPY and one statement; returns the keys that were added and those that were changed."""
    if not rows:
        return set(), set()
    connection.execute(text(f'CREATE TEMP TABLE incoming (LIKE "{into.schema}"."{into.name}") ON COMMIT DROP'))
    names = list(rows[0].values)
    _copy(connection, [into.c[name] for name in names], rows)
    incoming = table("incoming", *(column(name) for name in names))
    key = into.primary_key.columns[0]
    statement = insert(into).from_select(names, select(*incoming.c))
    new = statement.excluded
    others = [name for name in names if name != key.name]
    upsert = statement.on_conflict_do_update(
        index_elements=[key],
        set_={name: new[name] for name in others},
        where=or_(*(into.c[name].is_distinct_from(new[name]) for name in others)),
    ).returning(key, text("xmax = 0"))
    changed = connection.execute(upsert).all()
    connection.execute(text("DROP TABLE incoming"))
    return {row[0] for row in changed if row[1]}, {row[0] for row in changed if not row[1]}


def _copy(connection: Connection, columns: Sequence[Column[Any]], rows: Sequence[Row]) -> None:
    driver = connection.connection.driver_connection
    assert driver is not None  # noqa: S101 - a connection that is checked out has one
    names = ", ".join(f'"{column.name}"' for column in columns)
    with driver.cursor() as cursor, cursor.copy(f"COPY incoming ({names}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row([Jsonb(value) if isinstance(value, list | dict) else value for value in row.values.values()])


def _register(connection: Connection, name: str, language: str, origin: str) -> None:
    values = {"language": language, "origin": origin, "loaded_at": func.now()}
    statement = insert(tables.source).values(name=name, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_=values))

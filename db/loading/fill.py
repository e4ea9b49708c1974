"""Fills a named source: rows from any importer go into tables shaped as in production, whole or not at all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, Engine, Table, column, func, literal_column, or_, select, table, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.schema import CreateSchema
from sqlalchemy.sql.expression import TableClause

from yarus.db import tables
from yarus.db.loading.staging import Incoming, Rejected, orphans, repeated, stage, without
from yarus.db.loading.staging import Row as Row
from yarus.db.sources import SCHEMA_PREFIX, checked_name
from yarus.db.words import Words, joined

MAX_PROBLEMS = 20
REQUIRED = {"chunk": ("id", "text"), "question_answer": ("id", "question"), tables.ANNOTATION: ("question_id",)}


@dataclass
class Rows:
    """What an importer read: rows for each of the three tables, keyed by our column names."""

    questions: list[Row] = field(default_factory=list)
    chunks: list[Row] = field(default_factory=list)
    annotations: list[Row] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass
class Stream:
    """What an importer reads while it is stored: the chunks first, then the questions, then their annotations.

    All rows of one table have the same columns. Problems may be added as long as rows are read.
    """

    chunks: Incoming = ()
    questions: Incoming = ()
    annotations: Incoming = ()
    problems: list[str] = field(default_factory=list)
    new_chunks_only: bool = False
    """Chunks that are there stay as they are: what was retrieved from a corpus does not change it."""


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
    labels: Counts = field(default_factory=Counts)
    """Rows of `annotation`, one a question, and labels that could not be used."""
    problems: list[str] = field(default_factory=list)


def fill(engine: Engine, name: str, rows: Rows | Stream, *, language: str, origin: str) -> LoadReport:
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
        InputError: the name cannot be used, or a value is not of its column's type; nothing was loaded then.
    """
    checked_name(name)
    with engine.begin() as connection:
        return fill_within(connection, name, rows, language=language, origin=origin)


def fill_within(connection: Connection, name: str, rows: Rows | Stream, *, language: str, origin: str) -> LoadReport:
    """What `fill` does, in the transaction of a caller who has read under the source's lock what it writes."""
    report = LoadReport(source=name)
    refused: dict[str, str] = {}
    into = _prepare(connection, name)
    keep = isinstance(rows, Stream) and rows.new_chunks_only
    _store(connection, into["chunk"], rows.chunks, report.chunks, refused, keep=keep)
    added, updated = _store(connection, into["question_answer"], rows.questions, report.questions, refused)
    new, changed = _store(connection, into[tables.ANNOTATION], rows.annotations, report.labels, refused)
    report.questions.updated = len((updated | new | changed) - added)
    if any((report.chunks.added, report.chunks.updated, report.questions.added, report.questions.updated)):
        _register(connection, name, language, origin)
    warnings = [warning for stored in into.values() for warning in _odd_vectors(connection, stored)]
    problems = [
        *rows.problems,
        *warnings,
        *(Words("{place}: skipped, {problem}", place=place, problem=reason) for place, reason in refused.items()),
    ]
    report.problems = problems[:MAX_PROBLEMS]
    if len(problems) > MAX_PROBLEMS:
        report.problems.append(Words("and {n} more", n=len(problems) - MAX_PROBLEMS))
    return report


def lock(connection: Connection, name: str) -> None:
    """Other loads of the same source wait until this transaction ends; nothing happens where it has the lock."""
    connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(SCHEMA_PREFIX + name))))


def _prepare(connection: Connection, name: str) -> dict[str, Table]:
    """The source's tables, made if they are not there; other loads of the same source wait."""
    lock(connection, name)
    schema = SCHEMA_PREFIX + name
    connection.execute(CreateSchema(schema, if_not_exists=True))
    into = tables.source_tables(schema)
    for made in into.values():
        made.create(connection, checkfirst=True)
    return into


def _store(
    connection: Connection,
    into: Table,
    rows: Incoming,
    counts: Counts,
    refused: dict[str, str],
    *,
    keep: bool = False,
) -> tuple[set[str], set[str]]:
    """Stages, checks and stores rows of one table; returns the keys that were added and those that were changed.

    Args:
        connection: in the transaction of the whole load.
        into: the table.
        rows: what an importer reads.
        counts: gets what became of them.
        refused: gets place -> reason of the rows that were skipped; the first reason of a place is told.
        keep: rows that are there already stay as they are.
    """
    bad: list[Rejected] = []
    names = stage(connection, into, rows, bad)
    incoming = table("incoming", *(column(name) for name in ("ctid", "place", *names)))
    counts.read = len(bad) + (connection.scalar(select(func.count()).select_from(incoming)) or 0)
    added, updated = set[str](), set[str]()
    if names:
        bad += without(connection, incoming, REQUIRED[into.name])
        if (
            into.name == tables.ANNOTATION
        ):  # before the repeated ones: a skipped question's must not win over a kept one's
            bad += orphans(connection, into, refused)
        bad += repeated(connection, into.primary_key.columns[0].name)
        added, updated = _upsert(connection, into, incoming, names, keep=keep)
    connection.execute(text("DROP TABLE incoming"))
    counts.added, counts.updated, counts.skipped = len(added), len(updated), len(bad)
    for place, reason in bad:
        refused.setdefault(place, reason)
    return added, updated


def _upsert(
    connection: Connection, into: Table, incoming: TableClause, names: Sequence[str], *, keep: bool
) -> tuple[set[str], set[str]]:
    """Stores what is staged by one statement; returns the keys that were added and those that were changed."""
    key = into.primary_key.columns[0]
    statement = insert(into).from_select(names, select(*(incoming.c[name] for name in names)))
    new = statement.excluded
    others = [name for name in names if name != key.name]
    upsert = statement.on_conflict_do_update(
        index_elements=[key],
        set_={name: new[name] for name in others},
        where=or_(*(into.c[name].is_distinct_from(new[name]) for name in others)),
    )
    stored = statement.on_conflict_do_nothing() if keep else upsert
    changed = stored.returning(key, literal_column("xmax = 0").label("is_new")).cte("changed")
    keys, is_new = changed.c[key.name], changed.c.is_new
    both = select(*(func.array_agg(keys).filter(condition) for condition in (is_new, ~is_new)))
    added, updated = connection.execute(both).one()
    return set(added or ()), set(updated or ())


def _odd_vectors(connection: Connection, stored: Table) -> Iterator[str]:
    """What an evaluation with stored vectors would stumble over: several sizes, and vectors without a direction."""
    if "embedding" not in stored.c:
        return
    vector, key = stored.c.embedding, stored.c.id
    size = func.vector_dims(vector).label("size")
    zero = func.vector_norm(vector) == 0
    columns = (size, func.count(), func.min(key), func.count().filter(zero), func.min(key).filter(zero))
    found = connection.execute(select(*columns).where(vector.is_not(None)).group_by(size).order_by(size)).all()
    if len(found) > 1:
        sizes = joined(
            (Words("{size} in {n:,} rows (id {id!r} and more)", size=row[0], n=row[1], id=row[2]) for row in found),
            ", ",
        )
        yield Words(
            "{table}: vectors with different numbers of dimensions: {sizes}; embed all with one model",
            table=stored.name,
            sizes=sizes,
        )
    for row in found:
        if row[3]:
            yield Words(
                "{table}: {n:,} vectors of zeros (id {id!r} first), which are like no other vector",
                table=stored.name,
                n=row[3],
                id=row[4],
            )


def _register(connection: Connection, name: str, language: str, origin: str) -> None:
    values = {"language": language, "origin": origin, "loaded_at": func.now()}
    statement = insert(tables.source).values(name=name, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_=values))

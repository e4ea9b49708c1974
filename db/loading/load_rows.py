"""Load rows from any importer into a source, whose tables have the shape of production; all rows or none."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, Engine, Table, column, func, literal_column, or_, select, table, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.schema import CreateSchema
from sqlalchemy.sql.expression import TableClause

from yarus.db import tables
from yarus.db.loading.staging import IncomingRow as IncomingRow
from yarus.db.loading.staging import IncomingRows, Rejected, drop_duplicates, drop_incomplete, drop_orphans, stage_rows
from yarus.db.messages import Words, join_messages
from yarus.db.sources import SCHEMA_PREFIX, validate_source_name

MAX_PROBLEMS = 20
REQUIRED = {"chunk": ("id", "text"), "question_answer": ("id", "question"), tables.ANNOTATION_TABLE: ("question_id",)}


@dataclass
class ImportedRows:
    """The rows that an importer read for each of the three tables, keyed by Yarus's column names."""

    questions: list[IncomingRow] = field(default_factory=list)
    chunks: list[IncomingRow] = field(default_factory=list)
    annotations: list[IncomingRow] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass
class RowStream:
    """Rows that an importer reads while they are stored: chunks, then questions, then annotations.

    All rows of a table have the same columns. The importer may add problems until the last row is read.
    """

    chunks: IncomingRows = ()
    questions: IncomingRows = ()
    annotations: IncomingRows = ()
    problems: list[str] = field(default_factory=list)
    new_chunks_only: bool = False
    """Existing chunks stay unchanged: passages retrieved from a corpus must not change it."""


@dataclass
class LoadCounts:
    """Counts of the rows of one kind; unchanged rows are in `read` only."""

    read: int = 0
    added: int = 0
    updated: int = 0
    skipped: int = 0


@dataclass
class LoadReport:
    """The result of a load."""

    source: str
    questions: LoadCounts = field(default_factory=LoadCounts)
    chunks: LoadCounts = field(default_factory=LoadCounts)
    labels: LoadCounts = field(default_factory=LoadCounts)
    """Rows of `annotation`, one per question, and labels that could not be used."""
    problems: list[str] = field(default_factory=list)


def load_rows(engine: Engine, name: str, rows: ImportedRows | RowStream, *, language: str, origin: str) -> LoadReport:
    """Load the rows into a source: add new rows and update changed ones; other rows of the source stay.

    Args:
        engine: the engine of Yarus's own database.
        name: the source; it is created if it does not exist.
        rows: rows of an importer.
        language: `ru` or `en`, for text search and prompts.
        origin: the description of the rows' origin to show.

    Returns:
        Counts, and up to 20 problems with their places.

    Raises:
        InputError: the name is invalid, or a value has another type than its column; nothing is loaded then.
    """
    validate_source_name(name)
    with engine.begin() as connection:
        return load_rows_in_transaction(connection, name, rows, language=language, origin=origin)


def load_rows_in_transaction(
    connection: Connection, name: str, rows: ImportedRows | RowStream, *, language: str, origin: str
) -> LoadReport:
    """Load rows as `load_rows` does, in the transaction of a caller who has locked the source and read from it."""
    report = LoadReport(source=name)
    refused: dict[str, str] = {}
    tables_by_name = _prepare(connection, name)
    keep = isinstance(rows, RowStream) and rows.new_chunks_only
    _store(connection, tables_by_name["chunk"], rows.chunks, report.chunks, refused, keep=keep)
    added, updated = _store(connection, tables_by_name["question_answer"], rows.questions, report.questions, refused)
    new, changed = _store(connection, tables_by_name[tables.ANNOTATION_TABLE], rows.annotations, report.labels, refused)
    report.questions.updated = len((updated | new | changed) - added)
    if any((report.chunks.added, report.chunks.updated, report.questions.added, report.questions.updated)):
        _register(connection, name, language, origin)
    warnings = [warning for table in tables_by_name.values() for warning in _vector_warnings(connection, table)]
    problems = [
        *rows.problems,
        *warnings,
        *(Words("{place}: skipped, {problem}", place=place, problem=reason) for place, reason in refused.items()),
    ]
    report.problems = problems[:MAX_PROBLEMS]
    if len(problems) > MAX_PROBLEMS:
        report.problems.append(Words("and {n} more", n=len(problems) - MAX_PROBLEMS))
    return report


def lock_source(connection: Connection, name: str) -> None:
    """Lock a source until this transaction ends, so that other loads of it wait; the lock is reentrant."""
    connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(SCHEMA_PREFIX + name))))


def _prepare(connection: Connection, name: str) -> dict[str, Table]:
    """Lock the source and return its tables; create those that are missing."""
    lock_source(connection, name)
    schema = SCHEMA_PREFIX + name
    connection.execute(CreateSchema(schema, if_not_exists=True))
    source_tables = tables.source_tables(schema)
    for source_table in source_tables.values():
        source_table.create(connection, checkfirst=True)
    return source_tables


def _store(
    connection: Connection,
    target: Table,
    rows: IncomingRows,
    counts: LoadCounts,
    refused: dict[str, str],
    *,
    keep: bool = False,
) -> tuple[set[str], set[str]]:
    """Stage, check and store the rows of one table; return the keys of the added and of the updated rows.

    Args:
        connection: in the transaction of the load.
        target: the table to load into.
        rows: the importer's rows.
        counts: counts to fill in.
        refused: place -> reason, to which the skipped rows are added; the first reason of a place stays.
        keep: leave existing rows unchanged.
    """
    rejected: list[Rejected] = []
    column_names = stage_rows(connection, target, rows, rejected)
    incoming = table("incoming", *(column(name) for name in ("ctid", "place", *column_names)))
    counts.read = len(rejected) + (connection.scalar(select(func.count()).select_from(incoming)) or 0)
    added, updated = set[str](), set[str]()
    if column_names:
        rejected += drop_incomplete(connection, incoming, REQUIRED[target.name])
        # Before `drop_duplicates`, so that a skipped question's label never wins.
        if target.name == tables.ANNOTATION_TABLE:
            rejected += drop_orphans(connection, target, refused)
        rejected += drop_duplicates(connection, target.primary_key.columns[0].name)
        added, updated = _upsert(connection, target, incoming, column_names, keep=keep)
    connection.execute(text("DROP TABLE incoming"))
    counts.added, counts.updated, counts.skipped = len(added), len(updated), len(rejected)
    for place, reason in rejected:
        refused.setdefault(place, reason)
    return added, updated


def _upsert(
    connection: Connection, target: Table, incoming: TableClause, column_names: Sequence[str], *, keep: bool
) -> tuple[set[str], set[str]]:
    """Store the staged rows by one statement; return the keys of the added and of the updated rows."""
    key = target.primary_key.columns[0]
    statement = insert(target).from_select(column_names, select(*(incoming.c[name] for name in column_names)))
    excluded = statement.excluded
    other_names = [name for name in column_names if name != key.name]
    upsert = statement.on_conflict_do_update(
        index_elements=[key],
        set_={name: excluded[name] for name in other_names},
        where=or_(*(target.c[name].is_distinct_from(excluded[name]) for name in other_names)),
    )
    stored = statement.on_conflict_do_nothing() if keep else upsert
    changed = stored.returning(key, literal_column("xmax = 0").label("is_new")).cte("changed")
    keys, is_new = changed.c[key.name], changed.c.is_new
    added_and_updated = select(*(func.array_agg(keys).filter(condition) for condition in (is_new, ~is_new)))
    added, updated = connection.execute(added_and_updated).one()
    return set(added or ()), set(updated or ())


def _vector_warnings(connection: Connection, source_table: Table) -> Iterator[str]:
    """Yield warnings about vectors that an evaluation could not use: several sizes, or vectors of zeros."""
    if "embedding" not in source_table.c:
        return
    vector, key = source_table.c.embedding, source_table.c.id
    size = func.vector_dims(vector).label("size")
    is_zero = func.vector_norm(vector) == 0
    columns = (size, func.count(), func.min(key), func.count().filter(is_zero), func.min(key).filter(is_zero))
    rows = connection.execute(select(*columns).where(vector.is_not(None)).group_by(size).order_by(size)).all()
    if len(rows) > 1:
        sizes = join_messages(
            (Words("{size} in {n:,} rows (id {id!r} and more)", size=row[0], n=row[1], id=row[2]) for row in rows), ", "
        )
        yield Words(
            "{table}: vectors with different numbers of dimensions: {sizes}; embed all with one model",
            table=source_table.name,
            sizes=sizes,
        )
    for row in rows:
        if row[3]:
            yield Words(
                "{table}: {n:,} vectors of zeros (id {id!r} first), which are like no other vector",
                table=source_table.name,
                n=row[3],
                id=row[4],
            )


def _register(connection: Connection, name: str, language: str, origin: str) -> None:
    values = {"language": language, "origin": origin, "loaded_at": func.now()}
    statement = insert(tables.source).values(name=name, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_=values))

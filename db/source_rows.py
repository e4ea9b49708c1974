"""Read the rows of a source, loaded or production, by the same queries."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Date,
    DateTime,
    Integer,
    Numeric,
    Select,
    Table,
    Text,
    case,
    cast,
    func,
    inspect,
    literal_column,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB, JSONPATH
from sqlalchemy.exc import NoSuchTableError
from sqlalchemy.types import LargeBinary, TypeEngine

from yarus.db import tables
from yarus.db.errors import InputError, unknown
from yarus.db.loading.recorded import TEXT_KEYS
from yarus.db.messages import Words, join_messages
from yarus.db.sources import Source, open_snapshot

QuestionRow = dict[str, Any]
"""A question of a source with its annotation: Yarus's column name -> value."""
MAX_INTEGER = 2**31 - 1
EARLIEST, LATEST = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
"""Times between these bounds exist in every time zone."""

QUESTION_COLUMNS = ("id", "question", "answer", "confluence_url", "score", "user_id", "created_at")
CHUNK_COLUMNS = ("id", "confluence_url", "text")
ANSWER_COLUMNS = ("answer", "ground_truth_answer")
RECORDED_COLUMN = "recorded"
"""Column with how the answer came about, if the log records it (`yarus.db.loading.recorded`)."""
VISIBLE_TEXT_PATH = '{} ? (@ like_regex "[^[:space:]]")'
PASSAGES_WITHOUT_TEXT_PATH = "$[*] ? ({})".format(
    " && ".join(f"!exists({VISIBLE_TEXT_PATH.format(place)})" for place in ("@", *(f"@.{name}" for name in TEXT_KEYS)))
)
"""JSON path of the recorded passages without a text of their own (`yarus.db.loading.recorded.parse_passage`)."""
OUTLINED_PASSAGE = {"id": "…", "text": "…"}
"""Represents all recorded passages with a text in an outline."""
COMPATIBLE_TYPES: dict[type, tuple[type, ...]] = {
    Integer: (Integer, Numeric),
    Boolean: (Boolean,),
    DateTime: (DateTime, Date),
    JSONB: (JSON, JSONB),
}
"""Database types from which each of Yarus's types is read; text is read from any type."""


@dataclass(frozen=True)
class Corpus:
    """The chunks of a source, ordered by id, which decides ties."""

    ids: list[str]
    urls: list[str | None]
    texts: list[str]
    vectors: NDArray[np.float32] | None
    """(n, d) as stored in the source; NaN rows for chunks without a vector; None if no chunk has one."""


def has_annotations(connection: Connection, source: Source) -> bool:
    """Return whether the source has Yarus's table of labels; another table with that name does not count."""
    table = source.tables[tables.ANNOTATION_TABLE]
    return table.c.question_id.name in _column_types(connection, table)


def label_columns(connection: Connection, source: Source) -> list[str]:
    """Return the label columns that the annotation table has; the labels of missing columns are unknown.

    Labels mapped by settings are required; if the table has no label column at all, all are.
    """
    table = source.tables[tables.ANNOTATION_TABLE]
    types = _column_types(connection, table)
    labels = [column for column in table.columns if column.key != "question_id"]
    return [column.key for column in labels if column.name in types or column.name != column.key] or [
        column.key for column in labels
    ]


def _is_recorded(connection: Connection, question: Table) -> bool:
    """Return whether the log has Yarus's column `recorded`; a foreign column with that name is not JSON."""
    return isinstance(_column_types(connection, question).get(question.c[RECORDED_COLUMN].name), JSON)


def _column_types(connection: Connection, table: Table) -> dict[str, TypeEngine[Any]]:
    """Return the types of a table's columns by name; empty if there is no such table or view."""
    try:
        columns = inspect(connection).get_columns(table.name, schema=table.schema)
    except NoSuchTableError:
        return {}
    return {column["name"]: column["type"] for column in columns}


def require_source_tables(source: Source) -> None:
    """Check that the tables and columns that every tier reads exist.

    Raises:
        InputError: a table or column is missing or has another type; the message names the setting that maps it.
        DatabaseUnavailable: the source cannot be reached.
    """
    with open_snapshot(source) as connection:
        _check_columns(connection, source, "question_answer", QUESTION_COLUMNS)
        _check_columns(connection, source, "chunk", CHUNK_COLUMNS)


def is_source_empty(source: Source, table: str) -> bool:
    """Return whether a table of a source lacks any row that an evaluation could use.

    Raises:
        DatabaseUnavailable: the source cannot be reached.
    """
    text = source.tables[table].c["text" if table == "chunk" else "question"]
    with open_snapshot(source) as connection:
        return connection.execute(select(text).where(text.is_not(None)).limit(1)).first() is None


def read_questions(connection: Connection, source: Source, *, all_rows: bool = False) -> list[QuestionRow]:
    """Read the rows of `question_answer` with a question and their annotations, by id, under Yarus's column names.

    Ids become text, whatever their type in the database. Rows that an annotator has rejected are left out.

    Args:
        connection: in a snapshot of the source, or under its lock.
        source: the source to read.
        all_rows: also read rows without a question and rejected rows, with `review`, for an audit.

    Raises:
        InputError: a table or column is missing (the message names the setting that maps it), or an id is not unique.
    """
    return _read_questions(connection, source, all_rows=all_rows, outlined=False)


def outline_questions(connection: Connection, source: Source) -> list[QuestionRow]:
    """Read the questions with their labels, as `read_questions` does, but without long texts.

    Answers and references are cut to their first character, which shows whether they exist. Recorded passages are
    reduced to those without a text, and one that stands for all others. These rows are enough to decide which
    questions can be measured.

    Args:
        connection: in a snapshot of the source.
        source: the source to read.

    Raises:
        InputError: as `read_questions`.
    """
    rows = _read_questions(connection, source, all_rows=False, outlined=True)
    for row in rows:
        if (record := row.get(RECORDED_COLUMN)) is not None:
            textless, n = record["without_text"], record["n_contexts"]
            contexts = None if textless is None else [*textless, *([OUTLINED_PASSAGE] if n > len(textless) else [])]
            row[RECORDED_COLUMN] = {"error": record["error"], "contexts": contexts}
    return rows


def _read_questions(connection: Connection, source: Source, *, all_rows: bool, outlined: bool) -> list[QuestionRow]:
    question = source.tables["question_answer"]
    values = _check_columns(connection, source, "question_answer", QUESTION_COLUMNS)
    key = values["id"]
    columns: list[Any] = [key.label("question_id"), *_labelled_columns(values, QUESTION_COLUMNS[1:], outlined=outlined)]
    if _is_recorded(connection, question):
        record = question.c[RECORDED_COLUMN]
        columns.append((_outline_record(cast(record, JSONB)) if outlined else record).label(RECORDED_COLUMN))
    statement: Select[Any] = select(*columns).order_by(question.c.id)
    if not all_rows:
        statement = statement.where(values["question"].regexp_match(r"\S"))
    if has_annotations(connection, source):
        label = source.tables[tables.ANNOTATION_TABLE]
        present = label_columns(connection, source)
        labels = [name for name in present if name != "review"]
        values = _check_columns(connection, source, tables.ANNOTATION_TABLE, ["question_id", *labels])
        statement = statement.add_columns(*_labelled_columns(values, labels, outlined=outlined))
        statement = statement.outerjoin_from(question, label, values["question_id"] == key)
        if "review" in present and all_rows:
            statement = statement.add_columns(label.c.review)
        elif "review" in present:
            rejected = cast(label.c.review, JSONB)["rejected"].astext
            statement = statement.where(rejected.is_distinct_from("true"))
    stream = connection.execute(statement.execution_options(yield_per=5_000))
    names = list(stream.keys())
    rows = [dict(zip(names, row, strict=True)) for row in stream]
    _check_unique([row["question_id"] for row in rows], source, "question_answer")
    return rows


def _labelled_columns(
    values: Mapping[str, ColumnElement[Any]], names: Iterable[str], *, outlined: bool
) -> Iterator[ColumnElement[Any]]:
    """Yield the values under Yarus's names; an outline cuts answers to one visible character."""
    for name in names:
        value = values[name]
        if outlined and name in ANSWER_COLUMNS:
            value = func.coalesce(func.substring(value, r"\S"), func.left(value, 1))
        yield value.label(name)


def _outline_record(record: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return, as SQL, a record's error, number of passages, and passages without a text."""
    contexts = record["contexts"]
    is_list = func.jsonb_typeof(contexts) == "array"
    outline = func.jsonb_build_object(
        "error",
        record["error"],
        "without_text",
        case((is_list, func.jsonb_path_query_array(contexts, cast(PASSAGES_WITHOUT_TEXT_PATH, JSONPATH)))),
        "n_contexts",
        case((is_list, func.jsonb_array_length(contexts))),
        type_=JSONB,
    )
    return case((func.jsonb_typeof(record) == "object", outline))


def outline_corpus(connection: Connection, source: Source) -> Corpus:
    """Read ids and addresses of all chunks, by id; the texts stay empty.

    Args:
        connection: in a snapshot of the source.
        source: the source to read.

    Raises:
        InputError: a table or column is missing, or an id is not unique.
    """
    chunk = source.tables["chunk"]
    values = _check_columns(connection, source, "chunk", CHUNK_COLUMNS)
    statement = select(values["id"], values["confluence_url"]).where(chunk.c.text.is_not(None)).order_by(chunk.c.id)
    rows = connection.execute(statement).all()
    _check_unique([row[0] for row in rows], source, "chunk")
    return Corpus([row[0] for row in rows], [row[1] for row in rows], [""] * len(rows), None)


def read_chunk_texts(connection: Connection, source: Source, ids: Iterable[str]) -> dict[str, str]:
    """Read the texts of some chunks, by id."""
    values = _check_columns(connection, source, "chunk", CHUNK_COLUMNS)
    statement = select(values["id"], values["text"]).where(values["id"].in_(list(ids)), values["text"].is_not(None))
    return {row[0]: row[1] for row in connection.execute(statement)}


def has_recorded_contexts(source: Source) -> bool:
    """Return whether a source records the passages of any answer.

    Raises:
        DatabaseUnavailable: the source cannot be reached.
    """
    question = source.tables["question_answer"]
    with open_snapshot(source) as connection:
        if not _is_recorded(connection, question):
            return False
        contexts = cast(question.c[RECORDED_COLUMN], JSONB)["contexts"]
        passages = case((func.jsonb_typeof(contexts) == "array", func.jsonb_array_length(contexts)), else_=0)
        with_passages = select(question.c.id).where(passages > 0)
        return connection.execute(with_passages.limit(1)).first() is not None


def read_corpus(connection: Connection, source: Source, *, vectors: bool) -> Corpus:
    """Read all chunks, by id; with their stored vectors on request.

    Raises:
        InputError: a table or column is missing, an id is not unique, or the vectors have different dimensions.
    """
    chunk = source.tables["chunk"]
    values = _check_columns(connection, source, "chunk", [*CHUNK_COLUMNS, *(["embedding"] if vectors else [])])
    columns: list[Any] = [values[name] for name in CHUNK_COLUMNS]
    if vectors:
        columns.append(func.vector_send(chunk.c.embedding, type_=LargeBinary))
    stream = connection.execution_options(yield_per=5_000)
    corpus, buffer = Corpus([], [], [], None), _VectorBuffer()
    for row in stream.execute(select(*columns).where(chunk.c.text.is_not(None)).order_by(chunk.c.id)):
        corpus.ids.append(row[0])
        corpus.urls.append(row[1])
        corpus.texts.append(row[2])
        if vectors:
            buffer.append(row[0], row[3])
    _check_unique(corpus.ids, source, "chunk")
    return replace(corpus, vectors=buffer.matrix(source))


def parse_integer_sql(number: Column[Any]) -> ColumnElement[Any]:
    """Return, as SQL, a number as an integer; NULL if it has a fraction or is too large."""
    return case((number.between(-MAX_INTEGER, MAX_INTEGER) & (func.trunc(number) == number), cast(number, Integer)))


def parse_time_sql(time: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return, as SQL, a point in time; NULL if it is infinite, before Christ, or outside Python's range."""
    first, last = (literal_column(f"TIMESTAMPTZ '{bound.isoformat()}'", time.type) for bound in (EARLIEST, LATEST))
    return case((time.between(first, last), time))


class _VectorBuffer:
    """Buffer of vectors read in pgvector's wire format: two 16-bit numbers, then big-endian float32."""

    def __init__(self) -> None:
        self._missing: list[bool] = []
        self._numbers = bytearray()
        self._sizes: dict[int, str] = {}

    def append(self, chunk_id: str, vector: bytes | None) -> None:
        self._missing.append(vector is None)
        if vector is not None:
            self._sizes.setdefault((len(vector) - 4) // 4, chunk_id)
            self._numbers += memoryview(vector)[4:]

    def matrix(self, source: Source) -> NDArray[np.float32] | None:
        """Return the matrix; see `Corpus.vectors`."""
        if len(self._sizes) > 1:
            examples = join_messages(
                (
                    Words("{size} (chunk {id})", size=size, id=chunk_id)
                    for size, chunk_id in sorted(self._sizes.items())
                ),
                ", ",
            )
            raise InputError(
                "source {source!r}: the vectors in {table} have different numbers of dimensions: {examples}; embed "
                "the chunks again with one model, or give --vectors computed",
                source=source.name,
                table=source.tables["chunk"].fullname,
                examples=examples,
            )
        if not self._sizes:
            return None
        stored = np.frombuffer(self._numbers, dtype=">f4").reshape(-1, *self._sizes)
        vectors = stored.byteswap(inplace=True).view(stored.dtype.newbyteorder())
        if not any(self._missing):
            return vectors
        matrix = np.full((len(self._missing), vectors.shape[1]), np.nan, dtype=np.float32)
        matrix[~np.array(self._missing)] = vectors
        return matrix


def _check_unique(ids: Iterable[str], source: Source, table_name: str) -> None:
    counts = Counter(ids).most_common(1)
    if counts and counts[0][1] > 1:
        raise InputError(
            "source {source!r}: id {id!r} stands {n} times in {table!r} with its annotations: ids must be unique; "
            "map another column or a view: YARUS_SOURCE_COLUMNS__{variable}__ID=NAME",
            source=source.name,
            id=counts[0][0],
            n=counts[0][1],
            table=source.tables[table_name].fullname,
            variable=table_name.upper(),
        )


def _check_columns(
    connection: Connection, source: Source, table_name: str, column_keys: Iterable[str]
) -> dict[str, ColumnElement[Any]]:
    """Check that the table and its columns exist with compatible types.

    Returns:
        Yarus's column name -> its value in Yarus's type.

    Raises:
        InputError: a table or column is missing or has another type; the message names the setting that maps it.
    """
    table = source.tables[table_name]
    types = _column_types(connection, table)
    if not types:
        raise missing_table(connection, source, table_name)
    values = {}
    for key in column_keys:
        name, type_ = table.c[key].name, table.c[key].type
        if name not in types:
            raise missing_column(source, table_name, key, types)
        if not isinstance(types[name], COMPATIBLE_TYPES.get(type(type_), object)):
            raise InputError(
                "source {source!r}: column {name!r} of {table!r} is {type}, not {kind}; map another, or one of a "
                "view that converts it: {mapping}",
                source=source.name,
                name=name,
                table=table.fullname,
                type=types[name],
                kind=type_,
                mapping=column_setting(table_name, key),
            )
        values[key] = _convert_value(table.c[key], types[name])
    return values


def missing_table(connection: Connection, source: Source, table_name: str) -> InputError:
    """Return the error for a missing table; it names the setting that maps it."""
    table = source.tables[table_name]
    return unknown(
        Words("table in source {source!r}:", source=source.name),
        table.fullname,
        inspect(connection).get_table_names(table.schema),
        Words("Map it: YARUS_SOURCE_TABLES__{variable}=NAME", variable=table_name.upper()),
    )


def missing_column(source: Source, table_name: str, key: str, existing: Iterable[str]) -> InputError:
    """Return the error for a missing column; it names the setting that maps it."""
    table = source.tables[table_name]
    return unknown(
        Words("column in table {table!r} of source {source!r}:", table=table.fullname, source=source.name),
        table.c[key].name,
        existing,
        Words("Map it: {mapping}", mapping=column_setting(table_name, key)),
    )


def column_setting(table_name: str, key: str) -> str:
    """Return the setting that maps a column; both names are Yarus's."""
    return f"YARUS_SOURCE_COLUMNS__{table_name.upper()}__{key.upper()}=NAME"


def _convert_value(column: Column[Any], source_type: object) -> ColumnElement[Any]:
    """Return, as SQL, the column's value in Yarus's type; a date becomes midnight UTC.

    Values that Yarus's type cannot hold become NULL.
    """
    if isinstance(column.type, Text):
        return cast(column, Text)
    if isinstance(column.type, Integer):
        return parse_integer_sql(column)
    if isinstance(column.type, DateTime) and isinstance(source_type, Date):
        return parse_time_sql(func.timezone("UTC", cast(column, DateTime), type_=column.type))
    return parse_time_sql(column) if isinstance(column.type, DateTime) else column

"""Reading the rows of a source, a loaded one or a production database, by the same queries."""

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
from yarus.db.loading.recorded import TEXT_NAMES
from yarus.db.sources import Source, snapshot
from yarus.db.words import Words, joined

Row = dict[str, Any]
"""A question of a source with its annotation: our column -> value."""
LARGEST = 2**31 - 1
EARLIEST, LATEST = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
"""Between these a time is one in every time zone."""

QUESTION = ("id", "question", "answer", "confluence_url", "score", "user_id", "created_at")
CHUNK = ("id", "confluence_url", "text")
TEXTS_OF_ANSWERS = ("answer", "ground_truth_answer")
RECORDED = "recorded"
"""How the answer in the log came about, where the log says so (`yarus.db.loading.recorded`)."""
TEXT_HERE = '{} ? (@ like_regex "[^[:space:]]")'
WITHOUT_TEXT = "$[*] ? ({})".format(
    " && ".join(f"!exists({TEXT_HERE.format(place)})" for place in ("@", *(f"@.{name}" for name in TEXT_NAMES)))
)
"""JSON path of the passages of a record that have no text of their own (`yarus.db.loading.recorded.passage`)."""
ELLIPSIS = {"id": "…", "text": "…"}
"""In an outline, all passages of a record that have a text."""
READ_FROM: dict[type, tuple[type, ...]] = {
    Integer: (Integer, Numeric),
    Boolean: (Boolean,),
    DateTime: (DateTime, Date),
    JSONB: (JSON, JSONB),
}
"""What the values of our types are read from; a text from anything."""


@dataclass(frozen=True)
class Corpus:
    """The chunks of a source in the order of their ids, which decides ties."""

    ids: list[str]
    urls: list[str | None]
    texts: list[str]
    vectors: NDArray[np.float32] | None
    """(n, d) as stored in the source; rows of chunks without one are NaN; None if there is none at all."""


def has_annotations(connection: Connection, source: Source) -> bool:
    """Whether the source has our optional table of labels; another table of that name is not it."""
    table = source.tables[tables.ANNOTATION]
    return table.c.question_id.name in _column_types(connection, table)


def label_columns(connection: Connection, source: Source) -> list[str]:
    """Return which labels the table of annotations has: those that somebody else's lacks are not known there.

    A label that the settings map is expected; so are all, where the table has none of them.
    """
    table = source.tables[tables.ANNOTATION]
    there = _column_types(connection, table)
    labels = [column for column in table.columns if column.key != "question_id"]
    return [one.key for one in labels if one.name in there or one.name != one.key] or [one.key for one in labels]


def _is_recorded(connection: Connection, question: Table) -> bool:
    """Whether the log says how its answers came about; somebody else's column of that name may be another thing."""
    return isinstance(_column_types(connection, question).get(question.c[RECORDED].name), JSON)


def _column_types(connection: Connection, table: Table) -> dict[str, TypeEngine[Any]]:
    """The types of a table's columns by their names; none where there is no such table or view."""
    try:
        columns = inspect(connection).get_columns(table.name, schema=table.schema)
    except NoSuchTableError:
        return {}
    return {column["name"]: column["type"] for column in columns}


def verify(source: Source) -> None:
    """That what every tier reads is there.

    Raises:
        InputError: a table or column is missing or of another type; the setting that maps it is named.
        DatabaseUnavailable: the source cannot be reached.
    """
    with snapshot(source) as connection:
        _check(connection, source, "question_answer", QUESTION)
        _check(connection, source, "chunk", CHUNK)


def is_empty(source: Source, table: str) -> bool:
    """Whether a table of a source has no row that an evaluation could use.

    Raises:
        DatabaseUnavailable: the source cannot be reached.
    """
    text = source.tables[table].c["text" if table == "chunk" else "question"]
    with snapshot(source) as connection:
        return connection.execute(select(text).where(text.is_not(None)).limit(1)).first() is None


def read_questions(connection: Connection, source: Source, *, all_rows: bool = False) -> list[Row]:
    """The rows of `question_answer` that have a question, with their annotation, by id; columns under our names.

    Ids become text, whatever they are in the database. What an annotator has rejected is left out.

    Args:
        connection: in a snapshot of the source, or under its lock.
        source: where to read.
        all_rows: also those without a question and those rejected, with `review`, for an audit.

    Raises:
        InputError: a table or column is missing (the setting that maps it is named), or an id is there twice.
    """
    return _read_questions(connection, source, all_rows=all_rows, outlined=False)


def outline_questions(connection: Connection, source: Source) -> list[Row]:
    """Read the questions with their labels, as `read_questions` does, but leave long texts where they are.

    Of an answer or a reference only its first character is read: whether there is one. Of the passages recorded with an
    answer, only those without a text are read, and one in the place of all others. So whatever decides whether a
    question can be measured decides the same on these rows.

    Args:
        connection: in a snapshot of the source.
        source: where to read.

    Raises:
        InputError: as `read_questions`.
    """
    rows = _read_questions(connection, source, all_rows=False, outlined=True)
    for row in rows:
        if (record := row.get(RECORDED)) is not None:
            without, n = record["without_text"], record["n_contexts"]
            contexts = None if without is None else [*without, *([ELLIPSIS] if n > len(without) else [])]
            row[RECORDED] = {"error": record["error"], "contexts": contexts}
    return rows


def _read_questions(connection: Connection, source: Source, *, all_rows: bool, outlined: bool) -> list[Row]:
    question = source.tables["question_answer"]
    values = _check(connection, source, "question_answer", QUESTION)
    key = values["id"]
    columns: list[Any] = [key.label("question_id"), *_labelled(values, QUESTION[1:], outlined=outlined)]
    if _is_recorded(connection, question):
        record = question.c[RECORDED]
        columns.append((_outlined_record(cast(record, JSONB)) if outlined else record).label(RECORDED))
    statement: Select[Any] = select(*columns).order_by(question.c.id)
    if not all_rows:
        statement = statement.where(values["question"].regexp_match(r"\S"))
    if has_annotations(connection, source):
        label = source.tables[tables.ANNOTATION]
        there = label_columns(connection, source)
        labels = [name for name in there if name != "review"]
        values = _check(connection, source, tables.ANNOTATION, ["question_id", *labels])
        statement = statement.add_columns(*_labelled(values, labels, outlined=outlined))
        statement = statement.outerjoin_from(question, label, values["question_id"] == key)
        if "review" in there and all_rows:
            statement = statement.add_columns(label.c.review)
        elif "review" in there:
            rejected = cast(label.c.review, JSONB)["rejected"].astext
            statement = statement.where(rejected.is_distinct_from("true"))
    stream = connection.execute(statement.execution_options(yield_per=5_000))
    names = list(stream.keys())
    rows = [dict(zip(names, row, strict=True)) for row in stream]
    _check_unique([row["question_id"] for row in rows], source, "question_answer")
    return rows


def _labelled(
    values: Mapping[str, ColumnElement[Any]], names: Iterable[str], *, outlined: bool
) -> Iterator[ColumnElement[Any]]:
    """The values under our names; of an outlined answer its first character, not white space if it has another."""
    for name in names:
        value = values[name]
        if outlined and name in TEXTS_OF_ANSWERS:
            value = func.coalesce(func.substring(value, r"\S"), func.left(value, 1))
        yield value.label(name)


def _outlined_record(record: ColumnElement[Any]) -> ColumnElement[Any]:
    """How many passages a record has, those of them that have no text, and why there was no answer."""
    contexts = record["contexts"]
    is_list = func.jsonb_typeof(contexts) == "array"
    outline = func.jsonb_build_object(
        "error",
        record["error"],
        "without_text",
        case((is_list, func.jsonb_path_query_array(contexts, cast(WITHOUT_TEXT, JSONPATH)))),
        "n_contexts",
        case((is_list, func.jsonb_array_length(contexts))),
        type_=JSONB,
    )
    return case((func.jsonb_typeof(record) == "object", outline))


def outline_corpus(connection: Connection, source: Source) -> Corpus:
    """Read ids and addresses of all chunks, by id; their texts are empty here.

    Args:
        connection: in a snapshot of the source.
        source: where to read.

    Raises:
        InputError: a table or column is missing, or an id is there twice.
    """
    chunk = source.tables["chunk"]
    values = _check(connection, source, "chunk", CHUNK)
    statement = select(values["id"], values["confluence_url"]).where(chunk.c.text.is_not(None)).order_by(chunk.c.id)
    rows = connection.execute(statement).all()
    _check_unique([row[0] for row in rows], source, "chunk")
    return Corpus([row[0] for row in rows], [row[1] for row in rows], [""] * len(rows), None)


def read_chunk_texts(connection: Connection, source: Source, ids: Iterable[str]) -> dict[str, str]:
    """Read the texts of some chunks, by id."""
    values = _check(connection, source, "chunk", CHUNK)
    statement = select(values["id"], values["text"]).where(values["id"].in_(list(ids)), values["text"].is_not(None))
    return {row[0]: row[1] for row in connection.execute(statement)}


def has_recorded_contexts(source: Source) -> bool:
    """Return whether a source records, for any answer, the passages that it was given.

    Raises:
        DatabaseUnavailable: the source cannot be reached.
    """
    question = source.tables["question_answer"]
    with snapshot(source) as connection:
        if not _is_recorded(connection, question):
            return False
        contexts = cast(question.c[RECORDED], JSONB)["contexts"]
        passages = case((func.jsonb_typeof(contexts) == "array", func.jsonb_array_length(contexts)), else_=0)
        some = select(question.c.id).where(passages > 0)
        return connection.execute(some.limit(1)).first() is not None


def read_corpus(connection: Connection, source: Source, *, vectors: bool) -> Corpus:
    """All chunks, by id; with their stored vectors if asked for.

    Raises:
        InputError: a table or column is missing, an id is there twice, or the vectors differ in their dimensions.
    """
    chunk = source.tables["chunk"]
    values = _check(connection, source, "chunk", [*CHUNK, *(["embedding"] if vectors else [])])
    columns: list[Any] = [values[name] for name in CHUNK]
    if vectors:
        columns.append(func.vector_send(chunk.c.embedding, type_=LargeBinary))
    stream = connection.execution_options(yield_per=5_000)
    corpus, packed = Corpus([], [], [], None), _Packed()
    for row in stream.execute(select(*columns).where(chunk.c.text.is_not(None)).order_by(chunk.c.id)):
        corpus.ids.append(row[0])
        corpus.urls.append(row[1])
        corpus.texts.append(row[2])
        if vectors:
            packed.append(row[0], row[3])
    _check_unique(corpus.ids, source, "chunk")
    return replace(corpus, vectors=packed.matrix(source))


def whole(number: Column[Any]) -> ColumnElement[Any]:
    """A number as an integer, or NULL where it is not whole or too large: 4.5 stars are no verdict, nor are they 5."""
    return case((number.between(-LARGEST, LARGEST) & (func.trunc(number) == number), cast(number, Integer)))


def moment(time: ColumnElement[Any]) -> ColumnElement[Any]:
    """A point in time, or NULL where it is infinite, before Christ or beyond what Python can say: when is not known."""
    first, last = (literal_column(f"TIMESTAMPTZ '{bound.isoformat()}'", time.type) for bound in (EARLIEST, LATEST))
    return case((time.between(first, last), time))


class _Packed:
    """Vectors in pgvector's wire format, two 16-bit numbers and then big-endian float32, each let go of at once."""

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
        """See `Corpus.vectors`."""
        if len(self._sizes) > 1:
            examples = joined(
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
        there = stored.byteswap(inplace=True).view(stored.dtype.newbyteorder())
        if not any(self._missing):
            return there
        matrix = np.full((len(self._missing), there.shape[1]), np.nan, dtype=np.float32)
        matrix[~np.array(self._missing)] = there
        return matrix


def _check_unique(ids: Iterable[str], source: Source, ours: str) -> None:
    counts = Counter(ids).most_common(1)
    if counts and counts[0][1] > 1:
        raise InputError(
            "source {source!r}: id {id!r} stands {n} times in {table!r} with its annotations: ids must be unique; "
            "map another column or a view: YARUS_SOURCE_COLUMNS__{variable}__ID=NAME",
            source=source.name,
            id=counts[0][0],
            n=counts[0][1],
            table=source.tables[ours].fullname,
            variable=ours.upper(),
        )


def _check(connection: Connection, source: Source, ours: str, wanted: Iterable[str]) -> dict[str, ColumnElement[Any]]:
    """That the table and its columns are there, and hold what they should: a score of true is not a 1.

    Returns:
        Our column name -> its value in our type.

    Raises:
        InputError: naming what is missing or of another type, and the setting that maps it.
    """
    table = source.tables[ours]
    types = _column_types(connection, table)
    if not types:
        raise missing_table(connection, source, ours)
    values = {}
    for key in wanted:
        name, kind = table.c[key].name, table.c[key].type
        if name not in types:
            raise missing_column(source, ours, key, types)
        if not isinstance(types[name], READ_FROM.get(type(kind), object)):
            raise InputError(
                "source {source!r}: column {name!r} of {table!r} is {type}, not {kind}; map another, or one of a "
                "view that converts it: {mapping}",
                source=source.name,
                name=name,
                table=table.fullname,
                type=types[name],
                kind=kind,
                mapping=column_setting(ours, key),
            )
        values[key] = _converted(table.c[key], types[name])
    return values


def missing_table(connection: Connection, source: Source, ours: str) -> InputError:
    """Return the error for a table that is not there; the setting that maps it is named."""
    table = source.tables[ours]
    return unknown(
        Words("table in source {source!r}:", source=source.name),
        table.fullname,
        inspect(connection).get_table_names(table.schema),
        Words("Map it: YARUS_SOURCE_TABLES__{variable}=NAME", variable=ours.upper()),
    )


def missing_column(source: Source, ours: str, key: str, there: Iterable[str]) -> InputError:
    """Return the error for a column that is not there; the setting that maps it is named."""
    table = source.tables[ours]
    return unknown(
        Words("column in table {table!r} of source {source!r}:", table=table.fullname, source=source.name),
        table.c[key].name,
        there,
        Words("Map it: {mapping}", mapping=column_setting(ours, key)),
    )


def column_setting(ours: str, key: str) -> str:
    """Return the setting that maps a column, both by our names."""
    return f"YARUS_SOURCE_COLUMNS__{ours.upper()}__{key.upper()}=NAME"


def _converted(column: Column[Any], theirs: object) -> ColumnElement[Any]:
    """The column's value in our type; a day begins at midnight UTC, a time without a zone is left without.

    What is no value of our type is NULL, as if it were not known.
    """
    if isinstance(column.type, Text):
        return cast(column, Text)
    if isinstance(column.type, Integer):
        return whole(column)
    if isinstance(column.type, DateTime) and isinstance(theirs, Date):
        return moment(func.timezone("UTC", cast(column, DateTime), type_=column.type))
    return moment(column) if isinstance(column.type, DateTime) else column

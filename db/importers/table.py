"""A table of questions or chunks: CSV, JSON Lines or Parquet, one row each, columns by our names or a mapping."""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from db.errors import InputError, unknown
from db.importers.lines import UTF8, json_lines, lines
from db.importers.recognise import REQUIRED, SAMPLED, Kind, propose, shell_word
from db.importers.values import KINDS, BadValue, parse
from db.loading.fill import Stream
from db.loading.recorded import PARTS, chunks, content_id, record
from db.loading.staging import Rejected, Row
from db.tables import ANNOTATION, source_tables
from db.words import Words, joined

if TYPE_CHECKING:
    from _csv import Reader

Read = tuple[str, Mapping[str, Any] | Rejected]
"""A place and what was read there: values by the file's own column names."""

DELIMITERS = ",;\t"
LONGEST_FIELD = 10_000_000  # characters; a text of a whole page, or the vector of a large model as JSON
# What makes a row the same row when it has no id: never its labels, so that relabelling keeps it.
IDENTITY = {
    "questions": ("question", "user_id", "created_at", "dialog_id", "turn"),
    "chunks": ("text", "confluence_url"),
}


@dataclass(frozen=True)
class Columns:
    """Our columns that a file has: their name there, and where they go."""

    main: dict[str, str]
    annotation: dict[str, str]
    recorded: dict[str, str]
    """Parts of the record of an answer."""


def read(
    path: Path, kind: Kind = "questions", mapping: Mapping[str, str] | None = None, encoding: str = UTF8
) -> Stream:
    """Reads a table while it is stored.

    A row without an id gets the hash of its content. Rows with a value of the wrong type, and rows of a CSV file with
    more or fewer fields than its header, are skipped with their place.

    Args:
        path: ends in .csv, .tsv, .jsonl or .parquet; the delimiter of a CSV file is the one that parts its header.
        kind: of the rows.
        mapping: our column name -> the file's.
        encoding: of a text file.

    Raises:
        InputError: unreadable, of another format or encoding, a column is missing, or the mapping names none.
    """
    names, rows = opened(path, encoding)
    stream = Stream()
    first, rows = _first(path, rows)
    columns = _columns(path, kind, names, mapping or {}, first, stream.problems)
    if kind == "chunks":
        stream.chunks = _rows(rows, kind, columns)
        return stream
    labels: list[Row] = []
    if "contexts" in columns.recorded:
        _, again = opened(path, encoding)
        stream.chunks, stream.new_chunks_only = chunks(_contexts(again, columns), stream.problems), True
    stream.questions = _rows(rows, kind, columns, labels)
    stream.annotations = labels
    return stream


def opened(path: Path, encoding: str = UTF8) -> tuple[Sequence[str], Iterable[Read]]:
    """The names of a table's columns, and its rows as they are read.

    Raises:
        InputError: unreadable, or of another format or encoding.
    """
    formats: dict[str, Callable[[Path, str], tuple[Sequence[str], Iterable[Read]]]] = {
        ".csv": _csv, ".tsv": _csv, ".jsonl": _jsonl, ".ndjson": _jsonl, ".parquet": _parquet,
    }  # fmt: skip
    if path.suffix.lower() not in formats:
        raise InputError(
            "{path}: expected a name that ends in {formats}; save a spreadsheet as CSV (UTF-8)",
            path=path,
            formats=", ".join(formats),
        )
    return formats[path.suffix.lower()](path, encoding)


def _first(path: Path, rows: Iterable[Read]) -> tuple[list[Mapping[str, Any]], Iterable[Read]]:
    """The first rows, by which columns are told, and all of them.

    Raises:
        InputError: there is none.
    """
    rows = iter(rows)
    head = list(islice(rows, SAMPLED))
    if not head:
        raise InputError("{path}: names of columns, and no row below them; nothing was loaded", path=path)
    return [cells for _, cells in head if not isinstance(cells, Rejected)], chain(head, rows)


def sample(path: Path, encoding: str = UTF8) -> tuple[Sequence[str], list[Mapping[str, Any]]]:
    """The names of a table's columns, and its first rows.

    Raises:
        InputError: as `opened`, or there is no row.
    """
    names, rows = opened(path, encoding)
    return names, _first(path, rows)[0]


def _columns(
    path: Path,
    kind: Kind,
    names: Sequence[str],
    mapping: Mapping[str, str],
    first: Sequence[Mapping[str, Any]],
    problems: list[str],
) -> Columns:
    """Which of our columns the file has; those that are not used are among the problems, with what they may be.

    Raises:
        InputError: the required one is missing, the mapping names a column that is not ours or not there, or a name
            appears twice in the header.
    """
    tables = source_tables(None)
    of_kind = tables["question_answer" if kind == "questions" else "chunk"]
    main = [key for key in of_kind.columns.keys() if key in KINDS]  # noqa: SIM118
    labels = [] if kind == "chunks" else [key for key in tables[ANNOTATION].columns.keys() if key in KINDS]  # noqa: SIM118
    labels += [] if kind == "chunks" else PARTS
    if repeated := sorted({name for name in names if name and names.count(name) > 1}):
        raise InputError(
            "{path}: the column {name!r} appears twice in the header; nothing was loaded", path=path, name=repeated[0]
        )
    for ours, theirs in mapping.items():
        if ours not in (*main, *labels):
            raise unknown(Words("column of {kind}:", kind=kind), ours, (*main, *labels), "(--map OURS=THEIRS)")
        if theirs not in names:
            raise unknown(Words("column in {path}:", path=path), theirs, names)
    found = {ours: mapping.get(ours, ours) for ours in (*main, *labels) if mapping.get(ours, ours) in names}
    proposed = propose([name for name in names if name not in found.values()], first, kind).mapping
    free = [ours for ours in (*main, *labels) if ours not in found and ours not in proposed]
    maps = {ours: theirs for ours, theirs in proposed.items() if ours not in found}
    unused = [name for name in names if name not in found.values()]
    for name in unused:
        if name not in maps.values() and (near := get_close_matches(name, free, n=1)):
            maps.setdefault(near[0], name)
    said = " ".join(f"--map {shell_word(f'{ours}={theirs}')}" for ours, theirs in maps.items())
    if (required := REQUIRED[kind]) not in found:
        how = said if required in maps else f"--map {required}=NAME {said}".strip()
        raise unknown(Words("column in {path}:", path=path), required, names, Words("Map it: {maps}", maps=how))
    if unused:
        told = Words(
            "{file}: {n} of {total} columns are not used: {names}",
            file=path.name,
            n=len(unused),
            total=len(names),
            names=", ".join(unused),
        )
        again = Words("if they are what they seem to be, load again with {maps}", maps=said)
        problems.append(joined((told, again)) if said else told)
    return Columns(
        {ours: theirs for ours, theirs in found.items() if ours in main},
        {ours: theirs for ours, theirs in found.items() if ours in labels and ours not in PARTS},
        {ours: theirs for ours, theirs in found.items() if ours in PARTS and ours not in main},
    )


def _rows(
    rows: Iterable[Read], kind: Kind, columns: Columns, labels: list[Row] | None = None
) -> Iterator[Row | Rejected]:
    """The rows for the main table; their annotations go to `labels`."""
    for place, cells in rows:
        if isinstance(cells, Rejected):
            yield cells
            continue
        values, faults = _parsed(cells, columns)
        if faults:
            yield Rejected(place, "; ".join(faults))
            continue
        row_id = values.get("id") or content_id({name: values.get(name) for name in IDENTITY[kind]})
        kept = {"id": row_id, **{ours: values[ours] for ours in columns.main if ours != "id"}}
        yield Row(place, kept | ({"recorded": record(values)} if columns.recorded else {}))
        if labels is not None and columns.annotation:
            labels.append(Row(place, _annotation(row_id, {ours: values[ours] for ours in columns.annotation})))


def _contexts(rows: Iterable[Read], columns: Columns) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """What is recorded in the rows that can be used."""
    for place, cells in rows:
        if not isinstance(cells, Rejected):
            values, faults = _parsed(cells, columns)
            yield place, None if faults else record(values)


def _parsed(cells: Mapping[str, Any], columns: Columns) -> tuple[dict[str, Any], list[str]]:
    """The values by our names, and what is wrong with those that cannot be used."""
    values: dict[str, Any] = {}
    faults: list[str] = []
    for ours, theirs in (columns.main | columns.annotation | columns.recorded).items():
        try:
            values[ours] = parse(ours, cells.get(theirs))
        except BadValue as error:
            faults.append(Words("{column} = {value}: {error}", column=theirs, value=_short(cells[theirs]), error=error))
    return values, faults


def _annotation(question_id: str, values: dict[str, Any]) -> dict[str, Any]:
    """A row of `annotation`; it has an origin only if somebody judged, for else the log's own page is the label."""
    judged = any(values.get(name) is not None for name in ("relevant_chunk_ids", "relevant_urls", "answerable"))
    origin = values.get("origin") or ("imported" if judged else None)
    return {"question_id": question_id, **values, "origin": origin}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _csv(path: Path, encoding: str) -> tuple[Sequence[str], Iterable[Read]]:
    text = lines(path, encoding)
    header = next(text, "")
    if not header.strip():
        raise InputError("{path}: the first line is empty; expected the names of the columns", path=path)
    csv.field_size_limit(LONGEST_FIELD)
    delimiter = max(DELIMITERS, key=lambda sign: len(next(csv.reader([header], delimiter=sign))))
    reader = csv.reader(chain((header,), text), delimiter=delimiter, strict=True)
    try:
        names = [name.strip() for name in next(reader)]
    except csv.Error as error:
        raise InputError("{path}: line 1: {error}; nothing was loaded", path=path, error=error) from None
    return names, _csv_rows(path, names, reader)


def _csv_rows(path: Path, names: Sequence[str], reader: "Reader") -> Iterator[Read]:
    """Rows with the line that they begin in; a text may go over several."""
    line = reader.line_num + 1
    try:
        for fields in reader:
            place, line = f"{path.name}:{line}", reader.line_num + 1
            if len(fields) == len(names):
                yield place, dict(zip(names, fields, strict=True))
            elif fields:
                reason = Words(
                    "{n_fields} fields where the header has {n_names}; a text with the delimiter needs quotes",
                    n_fields=len(fields),
                    n_names=len(names),
                )
                yield place, Rejected(place, reason)
    except csv.Error as error:
        raise InputError(
            "{path}: the row at line {line}: {error}; nothing was loaded. A text with quotes in it needs quotes "
            'around it, and its own doubled: "the ""new"" one"',
            path=path,
            line=line,
            error=error,
        ) from None


def _jsonl(path: Path, encoding: str) -> tuple[Sequence[str], Iterable[Read]]:
    names = dict.fromkeys(key for _, values in json_lines(path, encoding) for key in values)
    return list(names), json_lines(path, encoding)


def _parquet(path: Path, encoding: str) -> tuple[Sequence[str], Iterable[Read]]:
    with _reading_parquet(path):
        file = pq.ParquetFile(path)
    return file.schema_arrow.names, _parquet_rows(path, file)


def _parquet_rows(path: Path, file: pq.ParquetFile) -> Iterator[Read]:
    number = 0
    with _reading_parquet(path), file:
        for batch in file.iter_batches(batch_size=1_000):
            for cells in _cells(batch):
                number += 1
                yield f"{path.name}: row {number}", cells


def _cells(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows; for a value that Python cannot say there are bytes, so that its row is refused and no other."""
    try:
        yield from batch.to_pylist()
    except (OverflowError, ValueError, LookupError):  # beyond the year 9999, or in no time zone that is known
        for number in range(len(batch)):
            yield {name: _cell(batch[name][number]) for name in batch.schema.names}


def _cell(value: "pa.Scalar[Any]") -> Any:
    try:
        return value.as_py()
    except (OverflowError, ValueError, LookupError):
        return f"{value.type} out of range".encode()  # which no column takes


@contextmanager
def _reading_parquet(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise InputError("{path}: there is no such file", path=path) from None
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            "{path}: not a complete Parquet file ({error}); nothing was loaded", path=path, error=error
        ) from None
    except (OverflowError, UnicodeDecodeError, LookupError) as error:  # a year above 9999, a damaged text, no such zone
        raise InputError(
            "{path}: a value that cannot be read ({error}); nothing was loaded", path=path, error=error
        ) from None

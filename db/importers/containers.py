"""Read rows from files of any format: CSV, JSON, JSON Lines, YAML, Parquet or an Excel workbook.

The content decides the format of a file, not its name. Every call reads the rows again, one at a time if the format
allows it; formats that are read at once are limited in size.
"""

import csv
import json
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from yarus.db.errors import InputError
from yarus.db.importers.archives import open_archive
from yarus.db.importers.encodings import guess_encoding
from yarus.db.importers.files import MAX_BYTES, parse_json
from yarus.db.importers.lines import (
    UNREADABLE,
    UTF8_WITH_OPTIONAL_BOM,
    name_file,
    open_binary,
    read_json_objects,
    read_lines,
)
from yarus.db.importers.recognise import find_columns, is_known
from yarus.db.importers.records import find_records, is_row
from yarus.db.loading.staging import Rejected
from yarus.db.messages import Words

if TYPE_CHECKING:
    from _csv import Reader

Cells = Mapping[str, Any]
PlacedRow = tuple[str, Cells | Rejected]
"""A place and the row there: its values by the names in the file, or why it is rejected."""

DELIMITERS = ",;\t|"
MAX_FIELD_LENGTH = 10_000_000
"""Characters: a text of a whole page, or the vector of a large model as JSON."""
MAX_COLUMNS = 2_000
MAX_UNPACKED_BYTES = 1 << 30
"""Bytes that a packed file may unpack to, or 50 times its size if that is more."""
BATCH_BYTES = 64 << 20
"""Bytes of values that are unpacked from Parquet at once."""
EXCEL_ERRORS = ("#N/A", "#REF!", "#NAME?", "#VALUE!", "#DIV/0!", "#NUM!", "#NULL!")
HEADER_ROWS = 20
"""First rows of a sheet that are searched for its header."""
GROUP_COLUMNS = frozenset({"question", "text", "dialog_id"})
"""Columns whose name in an upper header does not change the meaning of the lower header."""
YAML_SCALARS = (
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", "~|null|Null|NULL|", ("~", "n", "N", "")),
    ("merge", "<<", "<"),
    ("int", r"0|-?[1-9]\d{0,17}", "-0123456789"),
    ("float", r"-?(?:0|[1-9]\d{0,7})\.(?!0000)\d{0,6}[1-9]", "-0123456789"),
)
"""YAML scalars that are not texts: tag, pattern, first characters. A number is one only if Python writes it the same
way; `10:30`, `0112`, `1.10` and dates stay texts."""
MERGED_TAG = re.compile(rb'mergeCell\s[^<>]*?ref="([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})"')
MAX_TAG_LENGTH, MAX_MERGED = 1_000, 200_000
"""Limits for the bytes of a tag with a range of merged cells, and for the ranges of a sheet."""
PARQUET_MAGIC, ZIP_MAGIC, OLE_MAGIC = b"PAR1", b"PK\x03\x04", b"\xd0\xcf\x11\xe0"


@dataclass(frozen=True)
class Container:
    """A file with rows."""

    path: Path
    format: str
    names: Sequence[str]
    """Names of the columns as in the file; for JSON, those of all rows."""
    rows: Callable[[], Iterator[PlacedRow]]
    encoding: str = UTF8_WITH_OPTIONAL_BOM
    notes: list[str] = field(default_factory=list)
    """Choices among several, such as the sheet."""
    document: Any = None
    """A JSON document that has more than rows."""


def open_container(path: Path, encoding: str | None = None) -> Container:
    """Open a file with rows.

    Args:
        path: of the file; plain or packed by gzip.
        encoding: of a text file; None to detect it.

    Raises:
        InputError: the file is missing, not readable, damaged, of an unknown format, too large, or without columns; or
            its encoding must be guessed from too few letters.
    """
    with name_file(path), open_binary(path) as file:
        head = file.read(1 << 16)
    if head.startswith(PARQUET_MAGIC):
        return _open_parquet(path)
    if head.startswith(ZIP_MAGIC):
        return _open_workbook(path)
    if head.startswith(OLE_MAGIC):
        raise InputError("{path}: an old Excel file; save it as .xlsx or CSV; nothing was loaded", path=path)
    notes: list[str] = []
    encoding = encoding or _detect_encoding(path, head, notes)
    with name_file(path, encoding):
        text = head.decode(encoding, "replace").lstrip("\ufeff \t\r\n")
    if text.startswith("["):
        return _open_document(path, encoding, notes)
    if text.startswith("{"):
        return (
            _open_json_lines(path, encoding, notes)
            if _is_by_line(path, encoding)
            else _open_document(path, encoding, notes)
        )
    if text.startswith("<"):
        raise InputError(
            "{path}: XML or HTML, no table; give a folder of pages, or save it as CSV or JSON; nothing was loaded",
            path=path,
        )
    if _is_yaml(path, text):
        return _open_document(path, encoding, notes)
    return _open_delimited(path, encoding, notes)


def _detect_encoding(path: Path, head: bytes, notes: list[str]) -> str:
    """Detect the encoding of a text file.

    Raises:
        InputError: the encoding is guessed from too few letters.
    """
    if not any(byte >= 0x80 for byte in head):  # later bytes may have letters
        with name_file(path), open_binary(path) as file:
            head = file.read(1 << 24)
    guess = guess_encoding(head)
    if guess.letters is None:
        return UTF8_WITH_OPTIONAL_BOM if guess.encoding.startswith("utf-8") else guess.encoding
    if guess.is_uncertain:
        raise InputError(
            "{path}: not UTF-8, and {letters} letters beyond ASCII are too few to tell its encoding; it may be "
            "{guess}: add --encoding {guess}, or convert it to UTF-8; nothing was loaded",
            path=path, letters=guess.letters, guess=guess.encoding,
        )  # fmt: skip
    notes.append(Words("{name}: read as {encoding}", name=path.name, encoding=guess.encoding))
    return guess.encoding


def _check_width(path: Path, names: Sequence[str]) -> Sequence[str]:
    if len(names) > MAX_COLUMNS:
        raise InputError(
            "{path}: {n:,} columns; at most {most:,} are read: keep those that are needed; nothing was loaded",
            path=path, n=len(names), most=MAX_COLUMNS,
        )  # fmt: skip
    return names


# Delimited text


def _open_delimited(path: Path, encoding: str, notes: list[str]) -> Container:
    """Open a text with one row per line; its header determines the delimiter."""
    lines = read_lines(path, encoding)
    header, skipped, delimiter = next(lines, ""), 0, ""
    if declared := re.fullmatch(r"sep=(.)\s*", header.lstrip("\ufeff")):  # written by Excel
        delimiter, header, skipped = declared[1], next(lines, ""), 1
    if not header.strip():
        raise InputError("{path}: the first line is empty; expected the names of the columns", path=path)
    csv.field_size_limit(MAX_FIELD_LENGTH)
    delimiter = delimiter or _find_delimiter([header, *islice(read_lines(path, encoding), 1, HEADER_ROWS)])
    try:
        names = [name.strip() for name in next(csv.reader(chain((header,), lines), delimiter=delimiter, strict=True))]
    except csv.Error as error:
        raise InputError("{path}: line 1: {error}; nothing was loaded", path=path, error=error) from None
    names = _unique_names(path, names, notes)

    def rows() -> Iterator[PlacedRow]:
        reader = csv.reader(islice(read_lines(path, encoding), skipped, None), delimiter=delimiter, strict=True)
        return _iter_delimited_rows(path, names, reader, skipped)

    return Container(path, "csv", names, rows, encoding, notes)


def _find_delimiter(rows: Sequence[str]) -> str:
    """Return the delimiter of the header; of several, the one that divides all first rows alike."""

    def rank_delimiter(delimiter: str) -> tuple[bool, int]:
        fields = [len(row) for row in csv.reader(rows[:1], delimiter=delimiter)]
        field_counts = [row.count(delimiter) + 1 for row in rows[1:] if row.strip() and '"' not in row]
        return fields[0] > 1 and all(count == fields[0] for count in field_counts), fields[0]

    return max(DELIMITERS, key=rank_delimiter)


def _unique_names(path: Path, names: Sequence[str], notes: list[str]) -> list[str]:
    """Make the names unique, because exports of Jira repeat some: the second `name` becomes `name (2)`."""
    counts: dict[str, int] = {}
    unique = []
    for name in _check_width(path, names):
        counts[name] = counts.get(name, 0) + 1
        unique.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    repeated = [name for name, count in counts.items() if count > 1 and name]
    if repeated:
        notes.append(
            Words("{file}: columns that stand twice in the header: {names}; the first of each is read",
                  file=path.name, names=", ".join(repeated[:5]))
        )  # fmt: skip
    return unique


def _iter_delimited_rows(path: Path, names: Sequence[str], reader: "Reader", skipped: int) -> Iterator[PlacedRow]:
    """Yield the rows with the lines that they begin in; a text may have several lines."""
    width, line = len(names), 1
    try:
        next(reader)
        line = reader.line_num + 1
        for fields in reader:
            place, line = f"{path.name}:{line + skipped}", reader.line_num + 1
            if len(fields) > width and not any(fields[width:]):
                fields = fields[:width]
            if len(fields) == width:
                if any(fields):
                    yield place, dict(zip(names, fields, strict=True))
            elif fields:
                reason = Words(
                    "{n_fields} fields where the header has {n_names}; a text with the delimiter needs quotes",
                    n_fields=len(fields),
                    n_names=width,
                )
                yield place, Rejected(place, reason)
    except csv.Error as error:
        raise InputError(
            "{path}: the row at line {line}: {error}; nothing was loaded. A text with quotes in it needs quotes "
            'around it, and its own doubled: "the ""new"" one"',
            path=path,
            line=line + skipped,
            error=error,
        ) from None


# JSON and YAML


def _is_by_line(path: Path, encoding: str) -> bool:
    """Return whether the first line that is not empty is a JSON object, and another follows or it is a row."""
    rows = (line for line in read_lines(path, encoding) if line.strip())
    try:
        first = json.loads(next(rows, "").lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return False
    if next(rows, None) is not None:
        return True
    return isinstance(first, dict) and is_row(first)  # one object alone may be a document with rows in it


def _open_json_lines(path: Path, encoding: str, notes: list[str]) -> Container:
    names = dict.fromkeys(key for _, cells in read_json_objects(path, encoding) for key in cells)
    return Container(
        path, "jsonl", _check_width(path, list(names)), lambda: iter(read_json_objects(path, encoding)), encoding, notes
    )


def _is_yaml(path: Path, text: str) -> bool:
    if path.suffix.lower() in (".yaml", ".yml"):
        return True
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    return path.suffix.lower() not in (".csv", ".tsv") and bool(re.match(r"(---\s*$|- \w|[A-Za-z_][\w-]*:\s*$)", first))


def _open_document(path: Path, encoding: str, notes: list[str]) -> Container:
    """Open a document that is read at once."""
    with name_file(path, encoding):
        with open_binary(path) as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise InputError(
                "{path}: more than {most:,} bytes, the most that is read at once; nothing was loaded. Write one JSON "
                "object a line (JSON Lines), which is read line by line",
                path=path, most=MAX_BYTES,
            )  # fmt: skip
        text = content.decode(encoding).lstrip("\ufeff")
    is_json = text.lstrip()[:1] in ("{", "[")
    document = parse_json(path, text) if is_json else _parse_yaml(path, text)
    del content, text
    records = find_records(document, path)
    if records is None:
        raise InputError(
            "{path}: no list of objects in it ({kind}); expected a list of objects, an object with one such list, "
            "or lists of equal length by name; nothing was loaded",
            path=path, kind=_describe_document(document),
        )  # fmt: skip
    names = dict.fromkeys(str(key) for record in records.records for key in record)
    notes += records.notes

    def rows() -> Iterator[PlacedRow]:
        for number, record in enumerate(records.records, start=1):
            yield Words("{file}: item {number}", file=path.name, number=number), record

    return Container(
        path, "json" if is_json else "yaml", _check_width(path, list(names)), rows, encoding, notes, document
    )


def _parse_yaml(path: Path, text: str) -> Any:
    import yaml  # type: ignore[import-untyped]

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        yaml_implicit_resolvers: ClassVar[dict[str, list[Any]]] = {}

    for tag, pattern, first in YAML_SCALARS:
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"(?:{pattern})\Z"), list(first))
    try:
        return yaml.load(text, Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError("{path}: not valid YAML ({reason}); nothing was loaded", path=path, reason=reason) from None
    except (ValueError, RecursionError):
        raise InputError("{path}: {unreadable}; nothing was loaded", path=path, unreadable=UNREADABLE) from None


def _describe_document(document: Any) -> str:
    if isinstance(document, dict):
        return "an object with " + (", ".join(map(repr, list(document)[:5])) or "nothing in it")
    if isinstance(document, list):
        return f"a list of {type(document[0]).__name__}" if document else "an empty list"
    return type(document).__name__


# Parquet


def _open_parquet(path: Path) -> Container:
    import pyarrow.parquet as pq

    with _name_parquet_file(path):
        file = pq.ParquetFile(path)
        names = list(file.schema_arrow.names)
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    _check_unpacked(path, sum(group.total_byte_size for group in groups))
    if not names:
        raise InputError("{path}: no columns; nothing was loaded", path=path)
    nested_sizes = [
        group.column(number).total_uncompressed_size
        for group in groups
        for number in range(group.num_columns)
        if "." in group.column(number).path_in_schema
    ]
    batch_size = max(16, min(1_000, BATCH_BYTES // max(1, *nested_sizes, 1)))
    return Container(path, "parquet", _check_width(path, names), lambda: _iter_parquet_rows(path, batch_size))


def _max_unpacked_bytes(path: Path) -> int:
    """Return the limit for the unpacked bytes of a file."""
    return max(MAX_UNPACKED_BYTES, 50 * path.stat().st_size)


def _check_unpacked(path: Path, unpacked: int) -> None:
    """Refuse a packed file that declares an unpacked size above the limit."""
    if unpacked > (most := _max_unpacked_bytes(path)):
        raise InputError(
            "{path}: {size:,} bytes that unpack to {unpacked:,}; at most {most:,} are read; nothing was loaded. Split "
            "it, or keep the columns that are needed",
            path=path, size=path.stat().st_size, unpacked=unpacked, most=most,
        )  # fmt: skip


def _iter_parquet_rows(path: Path, batch_size: int) -> Iterator[PlacedRow]:
    """Yield the rows. A small file may repeat a long text, which is once in memory and counted every time."""
    import pyarrow.parquet as pq

    number, n_bytes, limit = 0, 0, _max_unpacked_bytes(path)
    with _name_parquet_file(path), pq.ParquetFile(path) as parquet_file:
        text_columns = [field.name for field in parquet_file.schema_arrow if _is_text(field.type)]
    with _name_parquet_file(path), pq.ParquetFile(path, read_dictionary=text_columns) as file:
        for batch in file.iter_batches(batch_size=batch_size):
            n_bytes += sum(map(_count_bytes, batch.columns))
            if n_bytes > limit:
                raise InputError(
                    "{path}: its first {n:,} rows unpack to more than {most:,} bytes, the most that is read; nothing "
                    "was loaded",
                    path=path, n=number + len(batch), most=limit,
                )  # fmt: skip
            for cells in _iter_cells(batch):
                number += 1
                yield f"{path.name}: row {number}", cells


def _is_text(kind: "pa.DataType") -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _count_bytes(column: "pa.Array[Any]") -> int:
    """Return the bytes of a column's values, each counted in every row that has it."""
    if not isinstance(column, pa.DictionaryArray) or not _is_text(column.type.value_type):
        return int(column.nbytes)
    counts = pc.value_counts(column.indices.drop_null())
    lengths = pc.binary_length(column.dictionary.take(counts.field("values")))
    return int(pc.sum(pc.multiply(pc.cast(lengths, pa.int64()), counts.field("counts"))).as_py() or 0)


def _iter_cells(batch: "pa.RecordBatch") -> Iterator[Cells]:
    """Yield the rows; a value that Python cannot represent becomes bytes, which no column accepts."""
    names = batch.schema.names
    try:
        values = [_to_list(column) for column in batch.columns]
    except (OverflowError, ValueError, LookupError):  # beyond the year 9999, or in an unknown time zone
        values = [[_to_python(value) for value in column] for column in batch.columns]
    yield from (dict(zip(names, row, strict=True)) for row in zip(*values, strict=True))


def _to_list(column: "pa.Array[Any]") -> list[Any]:
    """Return the values of a column; a text that is in many rows is created once."""
    if not isinstance(column, pa.DictionaryArray):
        return list(column.to_pylist())
    encoded = column.indices.dictionary_encode()  # the entries of the group's dictionary that these rows use
    values = [*column.dictionary.take(encoded.dictionary).to_numpy(zero_copy_only=False).tolist(), None]
    return [values[number] for number in pc.fill_null(encoded.indices, len(values) - 1).to_pylist()]


def _to_python(value: "pa.Scalar[Any]") -> Any:
    try:
        return value.as_py()
    except (OverflowError, ValueError, LookupError):
        return f"{value.type} out of range".encode()


@contextmanager
def _name_parquet_file(path: Path) -> Iterator[None]:
    """Name the file in errors of reading it."""
    try:
        yield
    except FileNotFoundError:
        raise InputError("{path}: there is no such file", path=path) from None
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            "{path}: not a complete Parquet file ({error}); nothing was loaded", path=path, error=error
        ) from None
    # A year above 9999, a damaged text, an unknown time zone.
    except (OverflowError, UnicodeDecodeError, LookupError) as error:
        raise InputError(
            "{path}: a value that cannot be read ({error}); nothing was loaded", path=path, error=error
        ) from None


# Excel


def _open_workbook(path: Path) -> Container:
    """Open the sheet and header row with the most known column names."""
    _check_archive(path)
    with _open_openpyxl(path) as book:
        sheets = {
            sheet.title: list(islice(sheet.iter_rows(values_only=True), HEADER_ROWS)) for sheet in book.worksheets
        }
        members = {sheet.title: sheet._worksheet_path for sheet in book.worksheets}
    candidates = [
        (sum(is_known(str(cell)) for cell in row if cell is not None), -number, title)
        for title, rows in sheets.items()
        for number, row in enumerate(rows)
        if any(cell is not None for cell in row)
    ]
    if not candidates:
        raise InputError("{path}: no sheet has a row; nothing was loaded", path=path)
    best = max(score for score, _, _ in candidates)
    _, number, title = next(row for row in candidates if row[0] == best) if best else candidates[0]
    header = -number
    if header and _is_second_header(*sheets[title][header - 1 : header + 1]):
        header -= 1
    top = sheets[title][header]
    second = sheets[title][header + 1] if header + 1 < len(sheets[title]) else ()
    names = [str(cell).strip() if cell is not None else "" for cell in top]
    merged = _find_merged_cells(path, members[title])
    if _is_second_header(top, second):
        names = _join_headers(_repeat_merged_names(top, [cells for cells in merged if cells.row == header + 1]), second)
        header += 1
    while names and not names[-1]:
        names.pop()
    other_sheets = ", ".join(candidate for candidate in sheets if candidate != title)
    notes: list[str] = [
        Words("{file}: sheet {sheet!r}, header in row {row}", file=path.name, sheet=title, row=header + 1)
    ]
    if other_sheets:
        notes.append(Words("{file}: sheets that are not read: {names}", file=path.name, names=other_sheets))
    unique = _unique_names(path, names, notes)
    merged = [
        cells for cells in sorted(merged)
        if header + 1 < cells.row < cells.last_row and cells.column == cells.last_column < len(unique)
    ]  # fmt: skip
    if merged:
        notes.append(
            Words("{file}: cells merged over several rows: {n} ({examples}); each of these rows has their value",
                  file=path.name, n=len(merged), examples=", ".join(cells.name for cells in merged[:2]))
        )  # fmt: skip
    return Container(path, "xlsx", unique, lambda: _iter_sheet(path, title, header + 1, unique, merged), notes=notes)


@contextmanager
def _open_openpyxl(path: Path) -> Iterator[Any]:
    """Open a workbook, and name the file in errors of reading it."""
    from openpyxl import load_workbook

    try:
        with closing(load_workbook(path, read_only=True, data_only=True)) as book:
            yield book
    except (OSError, ValueError, KeyError, SyntaxError, EOFError, zipfile.BadZipFile) as error:
        raise InputError("{path}: damaged workbook ({error}); nothing was loaded", path=path, error=error) from None


class MergedCells(NamedTuple):
    """Merged cells of a sheet: rows from 1, columns from 0."""

    row: int
    column: int
    last_row: int
    last_column: int
    name: str


def _is_second_header(top: Sequence[Any], second: Sequence[Any]) -> bool:
    """Return whether a row names parts of the row above: texts below merged cells, and nothing elsewhere."""
    below_merged = [number for number, cell in enumerate(top) if cell is None and any(top[:number])]
    filled = [number for number, cell in enumerate(second) if cell is not None]
    has_gap = any(top[number] is not None and number not in filled for number in range(min(len(top), len(second))))
    return (
        bool(below_merged)
        and has_gap
        and set(below_merged) <= set(filled)
        and all(isinstance(second[index], str) for index in filled)
    )


def _repeat_merged_names(header: Sequence[Any], merged: Sequence[MergedCells]) -> list[Any]:
    """Return the names of a header row, each repeated in all columns of its merged cell."""
    names = list(header)
    for cells in merged:
        for column in range(cells.column, min(cells.last_column + 1, len(names))):
            names[column] = names[cells.column]
    return names


def _join_headers(top: Sequence[Any], second: Sequence[Any]) -> list[str]:
    """Join the names of two header rows: the lower name if it is clear by itself, else both."""
    upper_names, lower_names = (["" if cell is None else str(cell).strip() for cell in row] for row in (top, second))
    names: list[str] = []
    for upper, lower in zip_longest(upper_names, lower_names, fillvalue=""):
        if not upper or not lower:
            names.append(upper or lower)
        elif is_known(lower) and find_columns(upper) <= find_columns(lower) | GROUP_COLUMNS:
            names.append(lower if lower_names.count(lower) == 1 else f"{upper}.{lower}")
        else:  # a user below a mark is no user
            names.append(f"{upper}: {lower}")
    return names


def _find_merged_cells(path: Path, member: str) -> list[MergedCells]:
    """Return the merged cells of a sheet, which openpyxl does not report in streaming mode."""
    from openpyxl.utils import column_index_from_string as parse_column

    ranges: dict[tuple[bytes, ...], None] = {}
    try:
        with open_archive(path) as archive, archive.open(member) as file:
            tail = b""
            while block := file.read(1 << 20):
                ranges |= dict.fromkeys(match.groups() for match in MERGED_TAG.finditer(tail + block))
                tail = (tail + block)[-MAX_TAG_LENGTH:]
                if len(ranges) > MAX_MERGED:
                    raise InputError("more than {most:,} merged cells; unmerge them", most=MAX_MERGED)
    except (OSError, InputError) as error:
        raise InputError("{path}: {reason}; nothing was loaded", path=path, reason=error) from None
    return [
        MergedCells(int(row), parse_column(column.decode()) - 1, int(last_row), parse_column(last_column.decode()) - 1,
               (column + row + b":" + last_column + last_row).decode())
        for column, row, last_column, last_row in ranges
    ]  # fmt: skip


def _check_archive(path: Path) -> None:
    """Check that a packed file is a workbook, and unpacks to no more than the limit."""
    try:
        with open_archive(path) as archive:
            members = archive.infolist()
    except (OSError, InputError) as error:
        raise InputError("{path}: {reason}; nothing was loaded", path=path, reason=error) from None
    if not any(member.filename.startswith("xl/workbook") for member in members):
        raise InputError("{path}: a zip file; unpack it, and name what is in it; nothing was loaded", path=path)
    _check_unpacked(path, sum(member.file_size for member in members))


def _iter_sheet(
    path: Path, title: str, header: int, names: Sequence[str], merged: Sequence[MergedCells]
) -> Iterator[PlacedRow]:
    merged_by_row: dict[int, list[MergedCells]] = {}
    for cells in merged:
        merged_by_row.setdefault(cells.row, []).append(cells)
    active: dict[int, tuple[int, Any]] = {}  # column -> last row of merged cells, and their value
    with _open_openpyxl(path) as book:
        for number, row in enumerate(book[title].iter_rows(min_row=header + 1, values_only=True), start=header + 1):
            values = _pad_row(row, len(names))
            is_filled = any(value is not None and value != "" for value in values)
            active |= {cells.column: (cells.last_row, values[cells.column]) for cells in merged_by_row.get(number, ())}
            for column, (last, value) in active.items():
                if values[column] is None and number <= last:
                    values[column] = value
            if is_filled:
                yield (
                    Words("{file}: row {number}", file=path.name, number=number),
                    dict(zip(names, values, strict=True)),
                )


def _pad_row(row: Iterable[Any], width: int) -> list[Any]:
    values = [None if value in EXCEL_ERRORS else value for value in islice(row, width)]
    return values + [None] * (width - len(values))

"""Rows of a file, whatever it is written in: CSV, JSON, JSON Lines, YAML, Parquet or an Excel workbook.

The content decides what a file is, not its name. Rows are read again at every call, one at a time where the format
allows it; what must be read at once is limited in size.
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
from yarus.db.importers.files import LARGEST_BYTES, parse_json
from yarus.db.importers.lines import UNREADABLE, UTF8, json_lines, lines, name_file, opened
from yarus.db.importers.recognise import find_columns, is_known
from yarus.db.importers.records import is_row, records_in
from yarus.db.loading.staging import Rejected
from yarus.db.words import Words

if TYPE_CHECKING:
    from _csv import Reader

Cells = Mapping[str, Any]
Read = tuple[str, Cells | Rejected]
"""A place, and what was read there: values by the file's own names."""

DELIMITERS = ",;\t|"
LONGEST_FIELD = 10_000_000
"""Characters: a text of a whole page, or the vector of a large model as JSON."""
MAX_COLUMNS = 2_000
MAX_UNPACKED = 1 << 30
"""Bytes that a packed file may unpack to, or 50 times its size where that is more."""
BATCH_BYTES = 64 << 20
"""Of values that are unpacked from Parquet at once."""
EXCEL_ERRORS = ("#N/A", "#REF!", "#NAME?", "#VALUE!", "#DIV/0!", "#NUM!", "#NULL!")
HEADER_ROWS = 20
"""First rows of a sheet among which its header is looked for."""
GROUPS = frozenset({"question", "text", "dialog_id"})
"""Columns whose name, in an upper header, does not change what the lower header means."""
YAML_SCALARS = (
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", "~|null|Null|NULL|", ("~", "n", "N", "")),
    ("merge", "<<", "<"),
    ("int", r"0|-?[1-9]\d{0,17}", "-0123456789"),
    ("float", r"-?(?:0|[1-9]\d{0,7})\.(?!0000)\d{0,6}[1-9]", "-0123456789"),
)
"""What YAML takes for more than a text: tag, pattern, first characters. A number is one only where Python writes it as
it stands in the file; `10:30`, `0112`, `1.10` and dates stay texts."""
MERGED = re.compile(rb'mergeCell\s[^<>]*?ref="([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})"')
LONGEST_TAG, MOST_MERGED = 1_000, 200_000
"""Bytes of a tag with a range of merged cells, and such ranges of a sheet, at the most."""
PARQUET, ZIP, OLD_OFFICE = b"PAR1", b"PK\x03\x04", b"\xd0\xcf\x11\xe0"


@dataclass(frozen=True)
class Container:
    """A file with rows."""

    path: Path
    format: str
    names: Sequence[str]
    """Of the columns, as they stand there; of JSON those of all rows."""
    rows: Callable[[], Iterator[Read]]
    encoding: str = UTF8
    notes: list[str] = field(default_factory=list)
    """What was chosen among several, such as the sheet."""
    document: Any = None
    """A JSON document that has more than rows in it."""


def open_container(path: Path, encoding: str | None = None) -> Container:
    """Opens a file with rows.

    Args:
        path: of the file; plain or packed by gzip.
        encoding: of a text file; None for what its bytes say.

    Raises:
        InputError: not there, not readable, damaged, of no known format, larger than is read, or without columns; or
            its encoding can only be guessed and has few letters to guess by.
    """
    with name_file(path), opened(path) as file:
        head = file.read(1 << 16)
    if head.startswith(PARQUET):
        return _parquet(path)
    if head.startswith(ZIP):
        return _workbook(path)
    if head.startswith(OLD_OFFICE):
        raise InputError("{path}: an old Excel file; save it as .xlsx or CSV; nothing was loaded", path=path)
    notes: list[str] = []
    encoding = encoding or _encoding(path, head, notes)
    with name_file(path, encoding):
        text = head.decode(encoding, "replace").lstrip("\ufeff \t\r\n")
    if text.startswith("["):
        return _document(path, encoding, notes)
    if text.startswith("{"):
        return _json_lines(path, encoding, notes) if _is_by_line(path, encoding) else _document(path, encoding, notes)
    if text.startswith("<"):
        raise InputError(
            "{path}: XML or HTML, no table; give a folder of pages, or save it as CSV or JSON; nothing was loaded",
            path=path,
        )
    if _is_yaml(path, text):
        return _document(path, encoding, notes)
    return _delimited(path, encoding, notes)


def _encoding(path: Path, head: bytes, notes: list[str]) -> str:
    """The encoding of a text file.

    Raises:
        InputError: it is guessed from too few letters.
    """
    if not any(byte >= 0x80 for byte in head):  # what follows may have letters
        with name_file(path), opened(path) as file:
            head = file.read(1 << 24)
    guess = guess_encoding(head)
    if guess.letters is None:
        return UTF8 if guess.encoding.startswith("utf-8") else guess.encoding
    if guess.is_uncertain:
        raise InputError(
            "{path}: not UTF-8, and {letters} letters beyond ASCII are too few to tell its encoding; it may be "
            "{guess}: add --encoding {guess}, or convert it to UTF-8; nothing was loaded",
            path=path, letters=guess.letters, guess=guess.encoding,
        )  # fmt: skip
    notes.append(Words("{name}: read as {encoding}", name=path.name, encoding=guess.encoding))
    return guess.encoding


def _checked(path: Path, names: Sequence[str]) -> Sequence[str]:
    if len(names) > MAX_COLUMNS:
        raise InputError(
            "{path}: {n:,} columns; at most {most:,} are read: keep those that are needed; nothing was loaded",
            path=path, n=len(names), most=MAX_COLUMNS,
        )  # fmt: skip
    return names


# Delimited text


def _delimited(path: Path, encoding: str, notes: list[str]) -> Container:
    """A text with one row a line, its columns parted by a sign that the header tells."""
    text = lines(path, encoding)
    header, skipped, delimiter = next(text, ""), 0, ""
    if declared := re.fullmatch(r"sep=(.)\s*", header.lstrip("\ufeff")):  # as Excel begins a file
        delimiter, header, skipped = declared[1], next(text, ""), 1
    if not header.strip():
        raise InputError("{path}: the first line is empty; expected the names of the columns", path=path)
    csv.field_size_limit(LONGEST_FIELD)
    delimiter = delimiter or _delimiter([header, *islice(lines(path, encoding), 1, HEADER_ROWS)])
    try:
        names = [name.strip() for name in next(csv.reader(chain((header,), text), delimiter=delimiter, strict=True))]
    except csv.Error as error:
        raise InputError("{path}: line 1: {error}; nothing was loaded", path=path, error=error) from None
    names = _unique(path, names, notes)

    def rows() -> Iterator[Read]:
        reader = csv.reader(islice(lines(path, encoding), skipped, None), delimiter=delimiter, strict=True)
        return _delimited_rows(path, names, reader, skipped)

    return Container(path, "csv", names, rows, encoding, notes)


def _delimiter(rows: Sequence[str]) -> str:
    """The sign that parts the header; of two the one that parts all of the first rows alike."""

    def fit(sign: str) -> tuple[bool, int]:
        fields = [len(row) for row in csv.reader(rows[:1], delimiter=sign)]
        others = [row.count(sign) + 1 for row in rows[1:] if row.strip() and '"' not in row]
        return fields[0] > 1 and all(n == fields[0] for n in others), fields[0]

    return max(DELIMITERS, key=fit)


def _unique(path: Path, names: Sequence[str], notes: list[str]) -> list[str]:
    """The names, each once: of a repeated one the second is `name (2)`, as in exports of Jira."""
    seen: dict[str, int] = {}
    unique = []
    for name in _checked(path, names):
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    repeated = [name for name, times in seen.items() if times > 1 and name]
    if repeated:
        notes.append(
            Words("{file}: columns that stand twice in the header: {names}; the first of each is read",
                  file=path.name, names=", ".join(repeated[:5]))
        )  # fmt: skip
    return unique


def _delimited_rows(path: Path, names: Sequence[str], reader: "Reader", skipped: int) -> Iterator[Read]:
    """Rows with the line that they begin in; a text may go over several."""
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
    """Whether the first line that is not empty is a JSON object of its own, and another follows or it is a row."""
    rows = (line for line in lines(path, encoding) if line.strip())
    try:
        first = json.loads(next(rows, "").lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return False
    if next(rows, None) is not None:
        return True
    return isinstance(first, dict) and is_row(first)  # one object alone may be a document with rows in it


def _json_lines(path: Path, encoding: str, notes: list[str]) -> Container:
    names = dict.fromkeys(key for _, cells in json_lines(path, encoding) for key in cells)
    return Container(
        path, "jsonl", _checked(path, list(names)), lambda: iter(json_lines(path, encoding)), encoding, notes
    )


def _is_yaml(path: Path, text: str) -> bool:
    if path.suffix.lower() in (".yaml", ".yml"):
        return True
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    return path.suffix.lower() not in (".csv", ".tsv") and bool(re.match(r"(---\s*$|- \w|[A-Za-z_][\w-]*:\s*$)", first))


def _document(path: Path, encoding: str, notes: list[str]) -> Container:
    """A document that is read at once."""
    with name_file(path, encoding):
        with opened(path) as file:
            content = file.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            raise InputError(
                "{path}: more than {most:,} bytes, the most that is read at once; nothing was loaded. Write one JSON "
                "object a line (JSON Lines), which is read line by line",
                path=path, most=LARGEST_BYTES,
            )  # fmt: skip
        text = content.decode(encoding).lstrip("\ufeff")
    is_json = text.lstrip()[:1] in ("{", "[")
    document = parse_json(path, text) if is_json else _of_yaml(path, text)
    del content, text
    records = records_in(document, path)
    if records is None:
        raise InputError(
            "{path}: no list of objects in it ({kind}); expected a list of objects, an object with one such list, "
            "or lists of equal length by name; nothing was loaded",
            path=path, kind=_described(document),
        )  # fmt: skip
    names = dict.fromkeys(str(key) for record in records.records for key in record)
    notes += records.notes

    def rows() -> Iterator[Read]:
        for number, record in enumerate(records.records, start=1):
            yield Words("{file}: item {number}", file=path.name, number=number), record

    return Container(path, "json" if is_json else "yaml", _checked(path, list(names)), rows, encoding, notes, document)


def _of_yaml(path: Path, text: str) -> Any:
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


def _described(document: Any) -> str:
    if isinstance(document, dict):
        return "an object with " + (", ".join(map(repr, list(document)[:5])) or "nothing in it")
    if isinstance(document, list):
        return f"a list of {type(document[0]).__name__}" if document else "an empty list"
    return type(document).__name__


# Parquet


def _parquet(path: Path) -> Container:
    import pyarrow.parquet as pq

    with _reading(path):
        file = pq.ParquetFile(path)
        names = list(file.schema_arrow.names)
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    _check_unpacked(path, sum(group.total_byte_size for group in groups))
    if not names:
        raise InputError("{path}: no columns; nothing was loaded", path=path)
    nested = [
        group.column(number).total_uncompressed_size
        for group in groups
        for number in range(group.num_columns)
        if "." in group.column(number).path_in_schema
    ]
    at_once = max(16, min(1_000, BATCH_BYTES // max(1, *nested, 1)))
    return Container(path, "parquet", _checked(path, names), lambda: _parquet_rows(path, at_once))


def _most(path: Path) -> int:
    """Bytes that are read of a packed file."""
    return max(MAX_UNPACKED, 50 * path.stat().st_size)


def _check_unpacked(path: Path, unpacked: int) -> None:
    """Refuse a packed file that says itself that it unpacks to more than is read."""
    if unpacked > (most := _most(path)):
        raise InputError(
            "{path}: {size:,} bytes that unpack to {unpacked:,}; at most {most:,} are read; nothing was loaded. Split "
            "it, or keep the columns that are needed",
            path=path, size=path.stat().st_size, unpacked=unpacked, most=most,
        )  # fmt: skip


def _parquet_rows(path: Path, at_once: int) -> Iterator[Read]:
    """The rows. A small file may repeat one long text: it is in memory once, and counted every time."""
    import pyarrow.parquet as pq

    number, total, most = 0, 0, _most(path)
    with _reading(path), pq.ParquetFile(path) as plain:
        texts = [field.name for field in plain.schema_arrow if _is_text(field.type)]
    with _reading(path), pq.ParquetFile(path, read_dictionary=texts) as file:
        for batch in file.iter_batches(batch_size=at_once):
            total += sum(map(_unpacked, batch.columns))
            if total > most:
                raise InputError(
                    "{path}: its first {n:,} rows unpack to more than {most:,} bytes, the most that is read; nothing "
                    "was loaded",
                    path=path, n=number + len(batch), most=most,
                )  # fmt: skip
            for cells in _cells(batch):
                number += 1
                yield f"{path.name}: row {number}", cells


def _is_text(kind: "pa.DataType") -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _unpacked(column: "pa.Array[Any]") -> int:
    """Bytes of the values of a column, each counted in every row that has it."""
    if not isinstance(column, pa.DictionaryArray) or not _is_text(column.type.value_type):
        return int(column.nbytes)
    counts = pc.value_counts(column.indices.drop_null())
    lengths = pc.binary_length(column.dictionary.take(counts.field("values")))
    return int(pc.sum(pc.multiply(pc.cast(lengths, pa.int64()), counts.field("counts"))).as_py() or 0)


def _cells(batch: "pa.RecordBatch") -> Iterator[Cells]:
    """The rows; for a value that Python cannot say there are bytes, which no column takes."""
    names = batch.schema.names
    try:
        values = [_listed(column) for column in batch.columns]
    except (OverflowError, ValueError, LookupError):  # beyond the year 9999, or in no time zone that is known
        values = [[_cell(value) for value in column] for column in batch.columns]
    yield from (dict(zip(names, row, strict=True)) for row in zip(*values, strict=True))


def _listed(column: "pa.Array[Any]") -> list[Any]:
    """The values of a column; a text that stands in many rows is made once."""
    if not isinstance(column, pa.DictionaryArray):
        return list(column.to_pylist())
    encoded = column.indices.dictionary_encode()  # of a group's dictionary the entries that these rows have
    values = [*column.dictionary.take(encoded.dictionary).to_numpy(zero_copy_only=False).tolist(), None]
    return [values[number] for number in pc.fill_null(encoded.indices, len(values) - 1).to_pylist()]


def _cell(value: "pa.Scalar[Any]") -> Any:
    try:
        return value.as_py()
    except (OverflowError, ValueError, LookupError):
        return f"{value.type} out of range".encode()


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Names the file of what cannot be read."""
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


# Excel


def _workbook(path: Path) -> Container:
    """The sheet and its header row that have most names which somebody knows."""
    _check_archive(path)
    with _open_book(path) as book:
        sheets = {
            sheet.title: list(islice(sheet.iter_rows(values_only=True), HEADER_ROWS)) for sheet in book.worksheets
        }
        members = {sheet.title: sheet._worksheet_path for sheet in book.worksheets}
    ranked = [
        (sum(is_known(str(cell)) for cell in row if cell is not None), -number, title)
        for title, rows in sheets.items()
        for number, row in enumerate(rows)
        if any(cell is not None for cell in row)
    ]
    if not ranked:
        raise InputError("{path}: no sheet has a row; nothing was loaded", path=path)
    most = max(score for score, _, _ in ranked)
    _, number, title = next(candidate for candidate in ranked if candidate[0] == most) if most else ranked[0]
    header = -number
    if header and _is_second_header(*sheets[title][header - 1 : header + 1]):
        header -= 1
    top = sheets[title][header]
    below = sheets[title][header + 1] if header + 1 < len(sheets[title]) else ()
    names = [str(cell).strip() if cell is not None else "" for cell in top]
    merged = _merged_cells(path, members[title])
    if _is_second_header(top, below):
        names = _joined_headers(_spread(top, [cells for cells in merged if cells.row == header + 1]), below)
        header += 1
    while names and not names[-1]:
        names.pop()
    others = ", ".join(candidate for candidate in sheets if candidate != title)
    notes: list[str] = [
        Words("{file}: sheet {sheet!r}, header in row {row}", file=path.name, sheet=title, row=header + 1)
    ]
    if others:
        notes.append(Words("{file}: sheets that are not read: {names}", file=path.name, names=others))
    unique = _unique(path, names, notes)
    merged = [
        cells for cells in sorted(merged)
        if header + 1 < cells.row < cells.last_row and cells.column == cells.last_column < len(unique)
    ]  # fmt: skip
    if merged:
        notes.append(
            Words("{file}: cells merged over several rows: {n} ({examples}); each of these rows has their value",
                  file=path.name, n=len(merged), examples=", ".join(cells.name for cells in merged[:2]))
        )  # fmt: skip
    return Container(path, "xlsx", unique, lambda: _sheet_rows(path, title, header + 1, unique, merged), notes=notes)


@contextmanager
def _open_book(path: Path) -> Iterator[Any]:
    """Open a workbook, and name the file of what cannot be read in it."""
    from openpyxl import load_workbook

    try:
        with closing(load_workbook(path, read_only=True, data_only=True)) as book:
            yield book
    except (OSError, ValueError, KeyError, SyntaxError, EOFError, zipfile.BadZipFile) as error:
        raise InputError("{path}: damaged workbook ({error}); nothing was loaded", path=path, error=error) from None


class Merged(NamedTuple):
    """Cells of a sheet that are merged: rows from 1, columns from 0."""

    row: int
    column: int
    last_row: int
    last_column: int
    name: str


def _is_second_header(top: Sequence[Any], below: Sequence[Any]) -> bool:
    """Whether a row names parts of what the row above names: texts below merged cells, and nothing elsewhere."""
    inside = [number for number, cell in enumerate(top) if cell is None and any(top[:number])]
    filled = [number for number, cell in enumerate(below) if cell is not None]
    alone = any(top[number] is not None and number not in filled for number in range(min(len(top), len(below))))
    return bool(inside) and alone and set(inside) <= set(filled) and all(isinstance(below[n], str) for n in filled)


def _spread(top: Sequence[Any], merged: Sequence[Merged]) -> list[Any]:
    """The names of a header row, each in all columns that its cell is merged over."""
    names = list(top)
    for cells in merged:
        for column in range(cells.column, min(cells.last_column + 1, len(names))):
            names[column] = names[cells.column]
    return names


def _joined_headers(top: Sequence[Any], below: Sequence[Any]) -> list[str]:
    """The names of two header rows: the lower where it says alone what the column is, else both."""
    uppers, lowers = (["" if cell is None else str(cell).strip() for cell in row] for row in (top, below))
    names: list[str] = []
    for upper, lower in zip_longest(uppers, lowers, fillvalue=""):
        if not upper or not lower:
            names.append(upper or lower)
        elif is_known(lower) and find_columns(upper) <= find_columns(lower) | GROUPS:
            names.append(lower if lowers.count(lower) == 1 else f"{upper}.{lower}")
        else:  # a user below a mark is no user
            names.append(f"{upper}: {lower}")
    return names


def _merged_cells(path: Path, member: str) -> list[Merged]:
    """The merged cells of a sheet, which openpyxl does not tell while it streams."""
    from openpyxl.utils import column_index_from_string as number

    found: dict[tuple[bytes, ...], None] = {}
    try:
        with open_archive(path) as archive, archive.open(member) as file:
            tail = b""
            while block := file.read(1 << 20):
                found |= dict.fromkeys(match.groups() for match in MERGED.finditer(tail + block))
                tail = (tail + block)[-LONGEST_TAG:]
                if len(found) > MOST_MERGED:
                    raise InputError("more than {most:,} merged cells; unmerge them", most=MOST_MERGED)
    except (OSError, InputError) as error:
        raise InputError("{path}: {reason}; nothing was loaded", path=path, reason=error) from None
    return [
        Merged(int(row), number(column.decode()) - 1, int(last_row), number(last_column.decode()) - 1,
               (column + row + b":" + last_column + last_row).decode())
        for column, row, last_column, last_row in found
    ]  # fmt: skip


def _check_archive(path: Path) -> None:
    """That a packed file is a workbook, and unpacks to no more than is read."""
    try:
        with open_archive(path) as archive:
            members = archive.infolist()
    except (OSError, InputError) as error:
        raise InputError("{path}: {reason}; nothing was loaded", path=path, reason=error) from None
    if not any(member.filename.startswith("xl/workbook") for member in members):
        raise InputError("{path}: a zip file; unpack it, and name what is in it; nothing was loaded", path=path)
    _check_unpacked(path, sum(member.file_size for member in members))


def _sheet_rows(path: Path, title: str, header: int, names: Sequence[str], merged: Sequence[Merged]) -> Iterator[Read]:
    begun: dict[int, list[Merged]] = {}
    for cells in merged:
        begun.setdefault(cells.row, []).append(cells)
    over: dict[int, tuple[int, Any]] = {}  # column -> last row of merged cells, and their value
    with _open_book(path) as book:
        for number, row in enumerate(book[title].iter_rows(min_row=header + 1, values_only=True), start=header + 1):
            values = _padded(row, len(names))
            is_filled = any(value is not None and value != "" for value in values)
            over |= {cells.column: (cells.last_row, values[cells.column]) for cells in begun.get(number, ())}
            for column, (last, value) in over.items():
                if values[column] is None and number <= last:
                    values[column] = value
            if is_filled:
                yield (
                    Words("{file}: row {number}", file=path.name, number=number),
                    dict(zip(names, values, strict=True)),
                )


def _padded(row: Iterable[Any], width: int) -> list[Any]:
    values = [None if value in EXCEL_ERRORS else value for value in islice(row, width)]
    return values + [None] * (width - len(values))

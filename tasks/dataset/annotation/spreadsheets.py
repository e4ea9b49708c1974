"""Tables that people fill in: CSV and XLSX as Excel writes and reads them, every cell a text; what is wrong in them."""

import csv
import io
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from yarus.db.errors import InputError
from yarus.tasks.cases.text import folded
from yarus.tasks.config.redaction import encodable, quoted, unquoted
from yarus.tasks.config.settings import settings
from yarus.tasks.config.texts import LANGUAGES, texts
from yarus.tasks.dataset.annotation.workbook import Look, Passage, write_workbook


def said(name: str, /, **values: Any) -> str:
    """What is wrong, in the language of the settings."""
    return texts("annotation.problems", settings().language)[name].format(**values)


def wrong(name: str, /, **values: Any) -> InputError:
    """The error that says so."""
    return InputError(said(name, **values))


def unusable(name: str, path: object, error: OSError) -> InputError:
    """The error for a file that the system does not let us read or write."""
    why = texts("annotation.problems", settings().language).get(type(error).__name__, error.strerror or error)
    return wrong(name, path=path, why=why)


MOST_PROBLEMS = 20
LONGEST = 32_000
"""Characters of a cell; Excel's limit is 32,767."""
LARGEST_BYTES = 64 << 20
"""Of a table, unpacked: more than people fill in by hand, and the most whose XML fits into memory."""
MOST_CELLS = 500_000
"""Of a table, empty ones between filled ones too; a row without any counts as one."""
TAGS = 8
"""Of XML that a cell of a workbook needs; a workbook whose cells are smaller holds more in memory than in the file."""
HEADER_WITHIN = 50
"""Rows of a sheet in which its header is looked for."""
DELIMITERS = (";", ",", "\t")


class Cell(NamedTuple):
    """What a cell of a filled table holds: its text, or that a spreadsheet has made a date of it."""

    text: str
    is_date: bool = False


Line = tuple[int, list[Cell]]
"""The number of a row as a spreadsheet shows it, and its cells."""


def write(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]], look: Look | None = None) -> None:
    """Writes a table; nothing in it is taken for a formula.

    Args:
        path: a .csv or .xlsx.
        header, rows: of the table.
        look: what a workbook has beside it.

    Raises:
        InputError: the file is neither .csv nor .xlsx, or cannot be written.
    """
    lines = [[_safe(text) for text in row] for row in rows]
    try:
        if path.suffix.lower() == ".csv":
            with path.open("w", encoding="utf-8-sig", newline="") as file:
                csv.writer(file, delimiter=";").writerows([header, *lines])
        elif path.suffix.lower() == ".xlsx":
            write_workbook(path, header, lines, look and _harmless(look))
        else:
            raise wrong("suffix", path=path)
    except OSError as error:
        raise unusable("unwritten", path, error) from None


def read(path: Path) -> tuple[list[str], list[Line]]:
    """The header and the rows of a table that somebody has filled in and saved again, but for rows without any text.

    CSV may be UTF-8 or UTF-16 (with or without a mark), or Windows-1251, with semicolons, commas or tabs.

    Raises:
        InputError: the file is not there, cannot be read, is larger than people's tables are, or has no header.
    """
    try:
        lines = _read_xlsx(path) if path.suffix.lower() == ".xlsx" else _read_csv(path)
        filled = [(number, cells) for number, cells in _counted(lines, path) if any(cell.text for cell in cells)]
    except OSError as error:
        raise unusable("unread", path, error) from None
    if not filled:
        raise wrong("empty", path=path)
    return [cell.text for cell in filled[0][1]], filled[1:]


def heading(section: str, name: str) -> str:
    """What a column is called, without what explains it; `section` is that of the texts with the headings."""
    return texts(section, settings().language)[name].partition(":")[0]


def positions(header: Sequence[str], section: str) -> dict[str, int]:
    """Where each of our columns stands, whatever the language and order; columns of people's own are passed over."""
    known = [item for language in LANGUAGES for item in texts(section, language).items()]
    names = {folded(text.partition(":")[0]): name for name, text in known}
    found: dict[str, int] = {}
    for position, text in enumerate(header):
        name = names.get(folded(text.partition(":")[0]))
        if name is not None:
            found.setdefault(name, position)
    return found


def cell_of(cells: Sequence[Cell], at: Mapping[str, int], name: str) -> Cell:
    """The cell of a column in a row, by the positions of the columns; empty where the row or the table ends before."""
    position = at.get(name, len(cells))
    return cells[position] if position < len(cells) else Cell("")


def rejected(path: Path, problems: Sequence[str]) -> InputError:
    """The error for a table of which nothing is imported, with up to 20 problems."""
    more = [said("more", n=len(problems) - MOST_PROBLEMS)] if len(problems) > MOST_PROBLEMS else []
    return InputError("\n  ".join((said("nothing", path=path), *problems[:MOST_PROBLEMS], *more)))


def _counted(lines: Iterable[Line], path: Path) -> Iterator[Line]:
    """The lines, until they have too many cells: a row of a few bytes can name a place far down or right."""
    seen = 0
    for number, cells in lines:
        seen += max(1, len(cells))
        if seen > MOST_CELLS:
            raise wrong("cells", path=path, number=number, most=f"{MOST_CELLS:,}")
        yield number, cells


def _safe(text: str) -> str:
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    plain: str = ILLEGAL_CHARACTERS_RE.sub("\N{REPLACEMENT CHARACTER}", text)[:LONGEST]
    return quoted(encodable(plain))


def _harmless(look: Look) -> Look:
    name, header, passages = look.passages
    return look._replace(passages=(name, header, [Passage(*map(_safe, passage)) for passage in passages]))


def _read_xlsx(path: Path) -> Iterator[Line]:
    from openpyxl.utils.exceptions import InvalidFileException

    damaged = (InvalidFileException, zipfile.BadZipFile, zlib.error, EOFError, LookupError, ValueError, TypeError)
    try:
        _require_modest(path)
        yield from _rows_of_widest_sheet(path)
    except InputError:
        raise
    except (*damaged, SyntaxError, RuntimeError):  # parsers of XML: cut off, nested too deeply; zipfile: a password
        raise wrong("workbook", path=path) from None


def _require_modest(path: Path) -> None:
    """Counts before anything is built of it; what an archive says of its sizes holds, for no more is read of it."""
    with zipfile.ZipFile(path) as book:
        size = sum(part.file_size for part in book.infolist())
        if size > LARGEST_BYTES:
            raise _too_large(path, size)
        tags = 0
        for part in book.infolist():
            with book.open(part) as file:
                tags += sum(block.count(b"<") for block in iter(partial(file.read, 1 << 20), b""))
    if tags > TAGS * MOST_CELLS:
        raise wrong("tags", path=path, tags=f"{tags:,}", most=f"{TAGS * MOST_CELLS:,}")


def _too_large(path: Path, size: int) -> InputError:
    return wrong("large", path=path, size=f"{size:,}", most=f"{LARGEST_BYTES:,}")


def _rows_of_widest_sheet(path: Path) -> Iterator[Line]:
    from openpyxl import load_workbook

    book = load_workbook(path, read_only=True, data_only=True, keep_links=False)
    try:
        if not book.worksheets:
            return
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # what a file says of its size may be out of date, and would cut off rows
        sheet = max(book.worksheets, key=_columns)  # the table, wherever people have put it among the other sheets
        for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
            yield number, [_cell(value) for value in row]
    finally:
        book.close()


def _columns(sheet: Any) -> int:
    """How many cells of the first row with any are filled."""
    rows = islice(sheet.iter_rows(values_only=True), HEADER_WITHIN)
    return next((n for row in rows if (n := sum(value is not None for value in row))), 0)


def _cell(value: Any) -> Cell:
    if value is None:
        return Cell("")
    if isinstance(value, bool):
        return Cell("1" if value else "0")
    if isinstance(value, datetime | date):
        return Cell(str(value), is_date=True)
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 1001.0 was the id 1001
    return Cell(unquoted(str(value).strip()))


def _read_csv(path: Path) -> Iterator[Line]:
    with path.open("rb") as file:
        content = file.read(LARGEST_BYTES + 1)
    if len(content) > LARGEST_BYTES:
        raise _too_large(path, path.stat().st_size)
    text = _decoded(content, path)
    first = text.lstrip("\n").partition("\n")[0]
    delimiter = max(DELIMITERS, key=first.count)
    number = 0
    try:
        # Rows are counted, not lines: a cell may have several, and a spreadsheet shows it as one row all the same.
        for number, row in enumerate(csv.reader(io.StringIO(text), delimiter=delimiter, strict=True), start=1):
            yield number, [Cell(unquoted(cell.strip())) for cell in row]
    except csv.Error:
        raise wrong("quotes", path=path, number=number + 1) from None


def _decoded(content: bytes, path: Path) -> str:
    """By its byte-order mark; else UTF-16 where every second byte is 0 or 4, UTF-8 where it is valid, Windows-1251."""
    marked = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    sample = content[:4000]
    high = {name: sample[at::2] for name, at in (("utf-16-le", 1), ("utf-16-be", 0))}
    guessed = [name for name, half in high.items() if half and sum(byte in (0, 4) for byte in half) > 0.8 * len(half)]
    for encoding in ("utf-16",) if marked else (*guessed, "utf-8-sig", "cp1251"):
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise wrong("encoding", path=path)

"""Tables that people fill in: CSV and XLSX, with text cells, and their problems."""

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
from yarus.tasks.cases.text import fold_text
from yarus.tasks.config.redaction import escape_formula, replace_surrogates, unescape_formula
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.texts import LANGUAGES, texts
from yarus.tasks.dataset.annotation_tables.workbook import Passage, WorkbookLayout, write_workbook


def annotation_problem(name: str, /, **values: Any) -> str:
    """Return a problem in the language of the settings."""
    return texts("annotation.problems", get_settings().language)[name].format(**values)


def annotation_error(name: str, /, **values: Any) -> InputError:
    """Return the error for a problem."""
    return InputError(annotation_problem(name, **values))


def file_access_error(name: str, path: object, error: OSError) -> InputError:
    """Return the error for a file that cannot be read or written."""
    reason = texts("annotation.problems", get_settings().language).get(type(error).__name__, error.strerror or error)
    return annotation_error(name, path=path, why=reason)


MAX_PROBLEMS = 20
MAX_CELL_CHARS = 32_000
"""Maximum characters of a cell; Excel's limit is 32,767."""
MAX_BYTES = 64 << 20
"""Maximum unpacked size of a table: more than people fill in by hand, and the most whose XML fits into memory."""
MAX_CELLS = 500_000
"""Maximum cells of a table, including empty ones between filled ones; a row without cells counts as one."""
TAGS_PER_CELL = 8
"""XML tags per cell of a workbook; a workbook with smaller cells needs more memory than its file size."""
MAX_HEADER_ROWS = 50
"""Rows of a sheet in which the header is searched for."""
DELIMITERS = (";", ",", "\t")


class Cell(NamedTuple):
    """Content of a cell: its text, and whether a spreadsheet has turned it into a date."""

    text: str
    is_date: bool = False


Line = tuple[int, list[Cell]]
"""Row number as a spreadsheet shows it, and the cells of the row."""


def write_table(
    path: Path, header: Sequence[str], rows: Iterable[Sequence[str]], layout: WorkbookLayout | None = None
) -> None:
    """Write a table; no text is interpreted as a formula.

    Args:
        path: path of a .csv or .xlsx file.
        header, rows: content of the table.
        layout: layout of a workbook around the table.

    Raises:
        InputError: the file is neither .csv nor .xlsx, or cannot be written.
    """
    lines = [[_sanitize_text(text) for text in row] for row in rows]
    try:
        if path.suffix.lower() == ".csv":
            with path.open("w", encoding="utf-8-sig", newline="") as file:
                csv.writer(file, delimiter=";").writerows([header, *lines])
        elif path.suffix.lower() == ".xlsx":
            write_workbook(path, header, lines, layout and _sanitize_layout(layout))
        else:
            raise annotation_error("suffix", path=path)
    except OSError as error:
        raise file_access_error("unwritten", path, error) from None


def read_table(path: Path) -> tuple[list[str], list[Line]]:
    """Return the header and the rows of a filled table, without empty rows.

    CSV may be UTF-8, UTF-16 or Windows-1251, with or without a byte-order mark, with semicolons, commas or tabs.

    Raises:
        InputError: the file does not exist, cannot be read, is too large, or has no header.
    """
    try:
        lines = _read_xlsx(path) if path.suffix.lower() == ".xlsx" else _read_csv(path)
        filled = [(number, cells) for number, cells in _limit_cells(lines, path) if any(cell.text for cell in cells)]
    except OSError as error:
        raise file_access_error("unread", path, error) from None
    if not filled:
        raise annotation_error("empty", path=path)
    return [cell.text for cell in filled[0][1]], filled[1:]


def column_heading(section: str, name: str) -> str:
    """Return the heading of a column without its explanation; `section` is the section of the headings' texts."""
    return texts(section, get_settings().language)[name].partition(":")[0]


def column_positions(header: Sequence[str], section: str) -> dict[str, int]:
    """Return column -> position in any language and order; ignore unknown columns."""
    headings = [item for language in LANGUAGES for item in texts(section, language).items()]
    names = {fold_text(text.partition(":")[0]): name for name, text in headings}
    positions_by_column: dict[str, int] = {}
    for position, text in enumerate(header):
        name = names.get(fold_text(text.partition(":")[0]))
        if name is not None:
            positions_by_column.setdefault(name, position)
    return positions_by_column


def find_cell(cells: Sequence[Cell], columns: Mapping[str, int], name: str) -> Cell:
    """Return the cell of a column in a row, by the positions of the columns; empty if the row is shorter."""
    position = columns.get(name, len(cells))
    return cells[position] if position < len(cells) else Cell("")


def rejected_table_error(path: Path, problems: Sequence[str]) -> InputError:
    """Return the error for a table that is not imported, with up to 20 problems."""
    more = [annotation_problem("more", n=len(problems) - MAX_PROBLEMS)] if len(problems) > MAX_PROBLEMS else []
    return InputError("\n  ".join((annotation_problem("nothing", path=path), *problems[:MAX_PROBLEMS], *more)))


def _limit_cells(lines: Iterable[Line], path: Path) -> Iterator[Line]:
    """Yield the lines; raise an error at too many cells, because a short row may refer to a distant position."""
    n_cells = 0
    for number, cells in lines:
        n_cells += max(1, len(cells))
        if n_cells > MAX_CELLS:
            raise annotation_error("cells", path=path, number=number, most=f"{MAX_CELLS:,}")
        yield number, cells


def _sanitize_text(text: str) -> str:
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    printable: str = ILLEGAL_CHARACTERS_RE.sub("\N{REPLACEMENT CHARACTER}", text)[:MAX_CELL_CHARS]
    return escape_formula(replace_surrogates(printable))


def _sanitize_layout(layout: WorkbookLayout) -> WorkbookLayout:
    name, header, passages = layout.passages
    return layout._replace(passages=(name, header, [Passage(*map(_sanitize_text, passage)) for passage in passages]))


def _read_xlsx(path: Path) -> Iterator[Line]:
    from openpyxl.utils.exceptions import InvalidFileException

    damaged = (InvalidFileException, zipfile.BadZipFile, zlib.error, EOFError, LookupError, ValueError, TypeError)
    try:
        _check_size(path)
        yield from _rows_of_widest_sheet(path)
    except InputError:
        raise
    except (*damaged, SyntaxError, RuntimeError):  # XML that is cut off or too deeply nested; a ZIP password
        raise annotation_error("workbook", path=path) from None


def _check_size(path: Path) -> None:
    """Check sizes before anything is parsed; the sizes in the archive are reliable, because no more is read."""
    with zipfile.ZipFile(path) as book:
        size = sum(part.file_size for part in book.infolist())
        if size > MAX_BYTES:
            raise _too_large(path, size)
        tags = 0
        for part in book.infolist():
            with book.open(part) as file:
                tags += sum(block.count(b"<") for block in iter(partial(file.read, 1 << 20), b""))
    if tags > TAGS_PER_CELL * MAX_CELLS:
        raise annotation_error("tags", path=path, tags=f"{tags:,}", most=f"{TAGS_PER_CELL * MAX_CELLS:,}")


def _too_large(path: Path, size: int) -> InputError:
    return annotation_error("large", path=path, size=f"{size:,}", most=f"{MAX_BYTES:,}")


def _rows_of_widest_sheet(path: Path) -> Iterator[Line]:
    from openpyxl import load_workbook

    book = load_workbook(path, read_only=True, data_only=True, keep_links=False)
    try:
        if not book.worksheets:
            return
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # an outdated size in the file would cut off rows
        sheet = max(book.worksheets, key=_count_header_cells)  # the sheet with the table, in any position
        for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
            yield number, [_to_cell(value) for value in row]
    finally:
        book.close()


def _count_header_cells(sheet: Any) -> int:
    """Return the number of filled cells in the first row that has any."""
    rows = islice(sheet.iter_rows(values_only=True), MAX_HEADER_ROWS)
    return next((n for row in rows if (n := sum(value is not None for value in row))), 0)


def _to_cell(value: Any) -> Cell:
    if value is None:
        return Cell("")
    if isinstance(value, bool):
        return Cell("1" if value else "0")
    if isinstance(value, datetime | date):
        return Cell(str(value), is_date=True)
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 1001.0 was the id 1001
    return Cell(unescape_formula(str(value).strip()))


def _read_csv(path: Path) -> Iterator[Line]:
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise _too_large(path, path.stat().st_size)
    text = _decode_csv(content, path)
    first_line = text.lstrip("\n").partition("\n")[0]
    delimiter = max(DELIMITERS, key=first_line.count)
    number = 0
    try:
        # Rows are counted, not lines, because a cell may contain several lines.
        for number, row in enumerate(csv.reader(io.StringIO(text), delimiter=delimiter, strict=True), start=1):
            yield number, [Cell(unescape_formula(cell.strip())) for cell in row]
    except csv.Error:
        raise annotation_error("quotes", path=path, number=number + 1) from None


def _decode_csv(content: bytes, path: Path) -> str:
    """Decode by byte-order mark; or else UTF-16 if every second byte is 0 or 4, valid UTF-8, or Windows-1251."""
    has_mark = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    sample = content[:4000]
    high = {name: sample[offset::2] for name, offset in (("utf-16-le", 1), ("utf-16-be", 0))}
    guessed = [name for name, half in high.items() if half and sum(byte in (0, 4) for byte in half) > 0.8 * len(half)]
    for encoding in ("utf-16",) if has_mark else (*guessed, "utf-8-sig", "cp1251"):
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise annotation_error("encoding", path=path)

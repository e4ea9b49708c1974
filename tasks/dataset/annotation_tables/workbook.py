"""Workbook that people fill in: named sheets, choices, passages with links, and a guide."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from openpyxl import Workbook
    from openpyxl.cell import Cell
    from openpyxl.worksheet.worksheet import Worksheet

MAX_WIDTH, MIN_WIDTH, FILLED_WIDTH = 60, 12, 24
"""Column widths in characters; columns that people fill in are at least `FILLED_WIDTH` wide."""
FILLED_COLOUR, SHOWN_COLOUR = "FFF2CC", "E7E6E6"
"""Colours of headings: of columns that people fill in, and of the other columns."""
MAX_LINK_CHARS = 2_000
"""Maximum characters of a link in Excel."""
MAX_TITLE_CHARS = 31
"""Maximum characters of a sheet's name."""


class Passage(NamedTuple):
    """A passage that may answer a question, as a row of the passage sheet."""

    question_id: str
    question: str
    name: str
    """Its id or page, which people enter as relevant."""
    url: str
    text: str


class WorkbookLayout(NamedTuple):
    """Layout of a workbook around the table; CSV files have none."""

    title: str
    """Name of the sheet with the table."""
    choices: Mapping[int, Sequence[str]]
    """Column of the table -> choices; other values are accepted too."""
    input_columns: frozenset[int]
    """Columns that people fill in."""
    guide: tuple[str, Sequence[str]]
    """Name and lines of the sheet with the instructions."""
    passages: tuple[str, Sequence[str], Sequence[Passage]] = ("", (), ())
    """Name, headings and rows of the passage sheet; the rows of a question are consecutive."""
    choice_column: int | None = None
    """Column of the table in which a passage of the question can be chosen by name."""


def write_workbook(
    path: Path, header: Sequence[str], rows: Sequence[Sequence[str]], layout: WorkbookLayout | None
) -> None:
    """Write a workbook; every cell is a text, and there are no formulas.

    Args:
        path: path of the file.
        header, rows: sanitised content of the table; the first cell of a row is the question's id.
        layout: layout around the table; None for the table alone.
    """
    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    _fill_sheet(sheet, header, rows, inputs=layout.input_columns if layout else frozenset())
    if layout is not None:
        sheet.title = layout.title[:MAX_TITLE_CHARS]
        for column, choices in layout.choices.items():
            _add_choices(sheet, column, 2, len(rows) + 1, f'"{",".join(choices)}"')
        if layout.passages[2]:
            _add_passages(book, sheet, rows, layout)
        _add_guide(book, layout)
    book.save(path)


def _fill_sheet(
    sheet: "Worksheet", header: Sequence[str], rows: Sequence[Sequence[str]], *, inputs: frozenset[int] = frozenset()
) -> None:
    from openpyxl.styles import Alignment, Font, PatternFill
    from openpyxl.utils import get_column_letter

    wrapped, bold = Alignment(wrap_text=True, vertical="top"), Font(bold=True)
    for number, line in enumerate([header, *rows], start=1):
        for column, text in enumerate(line, start=1):
            cell = sheet.cell(number, column)
            _write_text(cell, text)
            cell.alignment = wrapped
            if number == 1:
                cell.font = bold
                cell.fill = PatternFill("solid", fgColor=FILLED_COLOUR if column - 1 in inputs else SHOWN_COLOUR)
    sheet.freeze_panes = "B2"
    sheet.auto_filter.ref = f"A1:{get_column_letter(len(header))}{len(rows) + 1}"
    for column in range(len(header)):
        longest = max((len(row[column]) for row in rows), default=0)
        width = min(MAX_WIDTH, max(FILLED_WIDTH if column in inputs else MIN_WIDTH, longest // 2))
        sheet.column_dimensions[get_column_letter(column + 1)].width = width


def _write_text(cell: "Cell", text: str) -> None:
    cell.value, cell.data_type = text, "s"
    cell.number_format = "@"  # text format, so that an edited id like 1-2 does not become a date


def _add_choices(sheet: "Worksheet", column: int, first: int, last: int, formula: str) -> None:
    """Add a list of choices; other values are allowed, because the import accepts more."""
    from openpyxl.utils import get_column_letter
    from openpyxl.worksheet.datavalidation import DataValidation

    if last < first:
        return
    letter = get_column_letter(column + 1)
    validation = DataValidation(type="list", formula1=formula, allow_blank=True, showErrorMessage=False)
    validation.add(f"{letter}{first}:{letter}{last}")
    sheet.add_data_validation(validation)


def _add_passages(book: "Workbook", sheet: "Worksheet", rows: Sequence[Sequence[str]], layout: WorkbookLayout) -> None:
    """Add a sheet of passages with links to their pages, and offer a question's passages as choices in its row."""
    from openpyxl.utils import get_column_letter, quote_sheetname

    name, header, passages = layout.passages
    passage_sheet = book.create_sheet(name[:MAX_TITLE_CHARS])
    _fill_sheet(passage_sheet, header, [list(passage) for passage in passages])
    rows_by_question: dict[str, list[int]] = defaultdict(list)
    url_column = Passage._fields.index("url") + 1
    letter = get_column_letter(Passage._fields.index("name") + 1)
    for number, passage in enumerate(passages, start=2):
        rows_by_question[passage.question_id].append(number)
        if passage.url.startswith(("http://", "https://")) and len(passage.url) <= MAX_LINK_CHARS:
            cell = passage_sheet.cell(number, url_column)
            cell.hyperlink, cell.style = passage.url, "Hyperlink"
            _write_text(cell, passage.url)
    if layout.choice_column is None:
        return
    for number, row in enumerate(rows, start=2):
        if passage_rows := rows_by_question.get(row[0]):
            names = f"{quote_sheetname(passage_sheet.title)}!${letter}${passage_rows[0]}:${letter}${passage_rows[-1]}"
            _add_choices(sheet, layout.choice_column, number, number, names)


def _add_guide(book: "Workbook", layout: WorkbookLayout) -> None:
    from openpyxl.styles import Alignment

    guide_sheet = book.create_sheet(layout.guide[0][:MAX_TITLE_CHARS])
    guide_sheet.column_dimensions["A"].width = 2 * MAX_WIDTH
    for number, line in enumerate(layout.guide[1], start=1):
        cell = guide_sheet.cell(number, 1)
        _write_text(cell, line)
        cell.alignment = Alignment(wrap_text=True, vertical="top")

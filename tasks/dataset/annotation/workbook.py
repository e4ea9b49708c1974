"""A table as a workbook that people fill in: named sheets, lists to choose from, passages with links, how to label."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from openpyxl import Workbook
    from openpyxl.cell import Cell
    from openpyxl.worksheet.worksheet import Worksheet

WIDEST, NARROWEST, WIDE = 60, 12, 24
"""Widths of columns, in characters; from WIDE on a column holds texts."""
ASKED, GIVEN = "FFF2CC", "E7E6E6"
"""Colours of headings: of what people fill in, and of what they are shown."""
LONGEST_LINK = 2_000
"""Characters; Excel takes no longer ones."""
TITLE = 31
"""Characters of a sheet's name at most."""


class Passage(NamedTuple):
    """What may answer a question, as a row of its own."""

    question_id: str
    question: str
    name: str
    """Its id, or its page: what people write as relevant."""
    url: str
    text: str


class Look(NamedTuple):
    """What a workbook has beside the table; CSV has nothing of it."""

    title: str
    """Of the sheet with the table."""
    choices: Mapping[int, Sequence[str]]
    """Column of the table -> what may be chosen there; other answers are taken too."""
    asked: frozenset[int]
    """Columns that people fill in."""
    guide: tuple[str, Sequence[str]]
    """Name and lines of the sheet that says how to label."""
    passages: tuple[str, Sequence[str], Sequence[Passage]] = ("", (), ())
    """Name, headings and rows of the sheet of passages; those of a question follow one another."""
    named_in: int | None = None
    """Column of the table in which a passage of the question may be chosen by its name."""


def write_workbook(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]], look: Look | None) -> None:
    """Writes it; every cell is a text, and nothing is a formula.

    Args:
        path: where to.
        header, rows: of the table, already harmless; the first cell of a row is the question's id.
        look: what is beside it; None: the table alone.
    """
    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    _fill(sheet, header, rows, asked=look.asked if look else frozenset())
    if look is not None:
        sheet.title = look.title[:TITLE]
        for column, choices in look.choices.items():
            _offer(sheet, column, 2, len(rows) + 1, f'"{",".join(choices)}"')
        if look.passages[2]:
            _add_passages(book, sheet, rows, look)
        _add_guide(book, look)
    book.save(path)


def _fill(
    sheet: "Worksheet", header: Sequence[str], rows: Sequence[Sequence[str]], *, asked: frozenset[int] = frozenset()
) -> None:
    from openpyxl.styles import Alignment, Font, PatternFill
    from openpyxl.utils import get_column_letter

    wrapped, bold = Alignment(wrap_text=True, vertical="top"), Font(bold=True)
    for number, line in enumerate([header, *rows], start=1):
        for column, text in enumerate(line, start=1):
            cell = sheet.cell(number, column)
            _put(cell, text)
            cell.alignment = wrapped
            if number == 1:
                cell.font = bold
                cell.fill = PatternFill("solid", fgColor=ASKED if column - 1 in asked else GIVEN)
    sheet.freeze_panes = "B2"
    sheet.auto_filter.ref = f"A1:{get_column_letter(len(header))}{len(rows) + 1}"
    for column in range(len(header)):
        longest = max((len(row[column]) for row in rows), default=0)
        width = min(WIDEST, max(WIDE if column in asked else NARROWEST, longest // 2))
        sheet.column_dimensions[get_column_letter(column + 1)].width = width


def _put(cell: "Cell", text: str) -> None:
    cell.value, cell.data_type = text, "s"
    cell.number_format = "@"  # a text: an id like 1-2 does not become a date when it is edited


def _offer(sheet: "Worksheet", column: int, first: int, last: int, what: str) -> None:
    """A list to choose from; whoever writes something else is not stopped, for the import takes more."""
    from openpyxl.utils import get_column_letter
    from openpyxl.worksheet.datavalidation import DataValidation

    if last < first:
        return
    letter = get_column_letter(column + 1)
    offered = DataValidation(type="list", formula1=what, allow_blank=True, showErrorMessage=False)
    offered.add(f"{letter}{first}:{letter}{last}")
    sheet.add_data_validation(offered)


def _add_passages(book: "Workbook", sheet: "Worksheet", rows: Sequence[Sequence[str]], look: Look) -> None:
    """The passages in a sheet of their own, each linked to its page; those of a question are offered in its row."""
    from openpyxl.utils import get_column_letter, quote_sheetname

    name, header, passages = look.passages
    own = book.create_sheet(name[:TITLE])
    _fill(own, header, [list(passage) for passage in passages])
    places: dict[str, list[int]] = defaultdict(list)
    url = Passage._fields.index("url") + 1
    letter = get_column_letter(Passage._fields.index("name") + 1)
    for number, passage in enumerate(passages, start=2):
        places[passage.question_id].append(number)
        if passage.url.startswith(("http://", "https://")) and len(passage.url) <= LONGEST_LINK:
            cell = own.cell(number, url)
            cell.hyperlink, cell.style = passage.url, "Hyperlink"
            _put(cell, passage.url)
    if look.named_in is None:
        return
    for number, row in enumerate(rows, start=2):
        if at := places.get(row[0]):
            names = f"{quote_sheetname(own.title)}!${letter}${at[0]}:${letter}${at[-1]}"
            _offer(sheet, look.named_in, number, number, names)


def _add_guide(book: "Workbook", look: Look) -> None:
    from openpyxl.styles import Alignment

    own = book.create_sheet(look.guide[0][:TITLE])
    own.column_dimensions["A"].width = 2 * WIDEST
    for number, line in enumerate(look.guide[1], start=1):
        cell = own.cell(number, 1)
        _put(cell, line)
        cell.alignment = Alignment(wrap_text=True, vertical="top")

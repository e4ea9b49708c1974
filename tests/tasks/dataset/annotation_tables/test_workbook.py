"""The annotation workbook: sheets, choices, links and texts, and its import after other programs saved it."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook, load_workbook
from openpyxl.worksheet.worksheet import Worksheet
from sqlalchemy import Engine

from tests.support.evaluations import load, read_questions_by_id
from yarus.tasks.dataset.annotation_tables import spreadsheets
from yarus.tasks.dataset.annotation_tables.columns import COLUMNS, VERDICT_COLUMNS, YES_NO, column_headings
from yarus.tasks.dataset.annotation_tables.round_trip import export_annotation_file, import_annotation_file

WIKI = "https://wiki.example/pages/viewpage.action?pageId={}"
EVIL = '=HYPERLINK("http://x.example";"нажми")'
POSITIONS = {name: position for position, name in enumerate(COLUMNS)}


@pytest.fixture
def page_source(at_home: Path, tmp_path: Path) -> str:
    """Load a source with page URLs only: no annotations, no evaluations, two chunks per page."""
    chunks = [
        {"id": f"c{page}{part}", "confluence_url": WIKI.format(page), "text": f"{text} Страница {page}, часть {part}."}
        for page, text in ((1, "Справку выдают в деканате."), (2, EVIL))
        for part in (1, 2)
    ]
    log = [
        {"id": "7", "question": "Где взять справку?", "answer": "В деканате.", "confluence_url": WIKI.format(1)},
        {"id": "-8", "question": "@что нажать", "answer": "+7", "confluence_url": WIKI.format(2)},
        {"id": "9", "question": "Кто ректор?", "answer": None, "confluence_url": None},
    ]
    rows = [row | {"score": None, "user_id": 1, "created_at": None} for row in log]
    return load(tmp_path, f"by_page_{tmp_path.name[-8:].strip('_').lower()}", rows, chunks)


def load_sheets(path: Path) -> dict[str, Worksheet]:
    book = load_workbook(path)
    return {sheet.title: sheet for sheet in book.worksheets}


def choices_of(sheet: Worksheet, column: str, row: int) -> str | None:
    """Return the choices of a cell."""
    coordinate = sheet.cell(row, POSITIONS[column] + 1).coordinate
    return next((rule.formula1 for rule in sheet.data_validations.dataValidation if coordinate in rule.sqref), None)


def test_export_shows_page_texts_with_urls(page_source: str, tmp_path: Path) -> None:
    for suffix in (".csv", ".xlsx"):
        path = tmp_path / f"out{suffix}"
        export_annotation_file(path, page_source)
        _, lines = spreadsheets.read_table(path)
        texts_by_question = {cells[0].text: cells[POSITIONS["retrieved"]].text for _, cells in lines}
        assert texts_by_question["7"].startswith(f"[{WIKI.format(1)}] Справку выдают в деканате.")
        assert "часть 1." in texts_by_question["7"] and "часть 2." in texts_by_question["7"]


def test_workbook_has_named_sheets_frozen_headings_and_choices(page_source: str, tmp_path: Path) -> None:
    path = tmp_path / "out.xlsx"
    export_annotation_file(path, page_source)
    sheets = load_sheets(path)
    assert list(sheets) == ["Вопросы", "Фрагменты", "Как размечать"]
    table = sheets["Вопросы"]
    assert table.freeze_panes == "B2" and table.auto_filter.ref
    assert all(cell.alignment.wrap_text for row in table.iter_rows() for cell in row)
    for name in YES_NO:
        assert {choices_of(table, name, row) for row in (2, 3, 4)} == {'"да,нет"'}
    highlighted = {cell.value for cell in table[1] if cell.fill.fgColor.rgb == "00FFF2CC"}
    assert highlighted == {column_headings("ru")[POSITIONS[name]] for name in VERDICT_COLUMNS}
    guide_text = " ".join(str(cell.value) for (cell,) in sheets["Как размечать"].iter_rows())
    for name in VERDICT_COLUMNS[:-2]:
        assert column_headings("ru")[POSITIONS[name]].partition(":")[0] in guide_text or name == "notes"


def test_workbook_links_passages_and_offers_them_per_question(page_source: str, tmp_path: Path) -> None:
    path = tmp_path / "out.xlsx"
    export_annotation_file(path, page_source)
    sheets = load_sheets(path)
    passage_sheet = sheets["Фрагменты"]
    rows = {row[0].value: row for row in passage_sheet.iter_rows(min_row=2)}
    assert rows["7"][3].hyperlink.target == rows["7"][2].value == WIKI.format(1)
    assert "часть 2." in rows["7"][4].value and rows["7"][1].value == "Где взять справку?"
    table = sheets["Вопросы"]
    by_id = {table.cell(row, 1).value: row for row in (2, 3, 4)}
    formula = choices_of(table, "relevant", by_id["7"])
    assert formula is not None
    name, _, cells = formula.partition("!")
    first, _, last = cells.replace("$", "").partition(":")
    assert name.strip("'") == passage_sheet.title and first == last and passage_sheet[first].value == WIKI.format(1)
    assert choices_of(table, "relevant", by_id["9"]) is None, "nothing was found for it"


def test_workbook_contains_no_formulas(page_source: str, tmp_path: Path) -> None:
    path = tmp_path / "out.xlsx"
    export_annotation_file(path, page_source)
    cells = [cell for sheet in load_sheets(path).values() for row in sheet.iter_rows() for cell in row if cell.value]
    assert {cell.data_type for cell in cells} == {"s"}
    assert not [cell.value for cell in cells if str(cell.value).startswith(("=", "+", "-", "@"))]
    assert any(EVIL[:10] in str(cell.value) for cell in cells)
    links = [cell.hyperlink.target for cell in cells if cell.hyperlink]
    assert links and all(link.startswith("https://wiki.example/") for link in links)


def fill_in(path: Path) -> Path:
    """Fill in the workbook as another program does: sheets in another order, and an additional sheet."""
    book = load_workbook(path)
    table = book["Вопросы"]
    for row in range(2, table.max_row + 1):
        if table.cell(row, 1).value == "7":
            table.cell(row, POSITIONS["question_ok"] + 1).value = "да"
            table.cell(row, POSITIONS["relevant"] + 1).value = WIKI.format(1)
        if table.cell(row, 1).value == "'-8":
            table.cell(row, POSITIONS["show"] + 1).value = "нет"
    book.create_sheet("Мой лист", 0)["A1"] = "черновик"
    book.move_sheet("Как размечать", -2)
    book.active = 0
    book.save(path)
    return path


def save_values_only(path: Path) -> Path:
    """Save only the values, without styles, choices and shared texts, like simple programs."""
    original, copied = load_workbook(path), Workbook()
    copied.remove(copied.active)
    for sheet in original.worksheets:
        copied_sheet = copied.create_sheet(sheet.title)
        for values in sheet.iter_rows(values_only=True):
            copied_sheet.append(list(values))
            for cell in copied_sheet[copied_sheet.max_row]:
                cell.data_type = "s" if isinstance(cell.value, str) else cell.data_type
    copied.save(path)
    return path


def save_as_csv(path: Path) -> Path:
    """Save only the table, as a spreadsheet does for Russian Excel."""
    text = io.StringIO()
    table = load_workbook(path)["Вопросы"]
    csv.writer(text, delimiter=";").writerows([["" if cell is None else cell for cell in row] for row in table.values])
    csv_path = path.with_suffix(".csv")
    csv_path.write_bytes(text.getvalue().encode("utf-8-sig"))
    return csv_path


@pytest.mark.parametrize("save", [Path, save_values_only, save_as_csv])
def test_import_accepts_workbooks_saved_by_other_programs(
    engine: Engine, page_source: str, tmp_path: Path, save: Any
) -> None:
    path = tmp_path / "out.xlsx"
    export_annotation_file(path, page_source)
    document = import_annotation_file(save(fill_in(path)), "анна")
    assert (document["rows"], document["labelled"], document["relevant"], document["show"]) == (3, 2, 1, 1)
    rows = read_questions_by_id(engine, page_source)
    assert rows["7"]["relevant_urls"] == [WIKI.format(1)] and rows["-8"]["ground_truth_show"] is False


def test_workbook_is_in_configured_language(page_source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_LANGUAGE", "en")
    export_annotation_file(tmp_path / "out.xlsx", page_source)
    sheets = load_sheets(tmp_path / "out.xlsx")
    assert list(sheets) == ["Questions", "Passages", "How to label"]
    assert choices_of(sheets["Questions"], "show", 2) == '"yes,no"'

"""The workbook that people label in: its sheets, lists, links and texts; and the way back once others saved it."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook, load_workbook
from openpyxl.worksheet.worksheet import Worksheet
from sqlalchemy import Engine

from tests.support.evaluations import load, questions_of
from yarus.tasks.dataset.annotation import spreadsheets
from yarus.tasks.dataset.annotation.columns import COLUMNS, VERDICTS, YES_NO, headings
from yarus.tasks.dataset.annotation.round_trip import export, import_

WIKI = "https://wiki.example/pages/viewpage.action?pageId={}"
EVIL = '=HYPERLINK("http://x.example";"нажми")'
PLACE = {name: place for place, name in enumerate(COLUMNS)}


@pytest.fixture
def by_page(at_home: Path, tmp_path: Path) -> str:
    """A bot that names pages and nothing else: no annotation, no evaluation; two chunks a page."""
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


def sheets(path: Path) -> dict[str, Worksheet]:
    book = load_workbook(path)
    return {sheet.title: sheet for sheet in book.worksheets}


def offered(sheet: Worksheet, column: str, row: int) -> str | None:
    """What a cell lets one choose."""
    place = sheet.cell(row, PLACE[column] + 1).coordinate
    return next((one.formula1 for one in sheet.data_validations.dataValidation if place in one.sqref), None)


def test_texts_of_pages_stand_beside_their_addresses(by_page: str, tmp_path: Path) -> None:
    for suffix in (".csv", ".xlsx"):
        path = tmp_path / f"out{suffix}"
        export(path, by_page)
        _, lines = spreadsheets.read(path)
        shown = {cells[0].text: cells[PLACE["retrieved"]].text for _, cells in lines}
        assert shown["7"].startswith(f"[{WIKI.format(1)}] Справку выдают в деканате.")
        assert "часть 1." in shown["7"] and "часть 2." in shown["7"]


def test_sheets_have_names_headings_stay_and_choices_are_offered(by_page: str, tmp_path: Path) -> None:
    path = tmp_path / "out.xlsx"
    export(path, by_page)
    found = sheets(path)
    assert list(found) == ["Вопросы", "Фрагменты", "Как размечать"]
    table = found["Вопросы"]
    assert table.freeze_panes == "B2" and table.auto_filter.ref
    assert all(cell.alignment.wrap_text for row in table.iter_rows() for cell in row)
    for name in YES_NO:
        assert {offered(table, name, row) for row in (2, 3, 4)} == {'"да,нет"'}
    asked = {cell.value for cell in table[1] if cell.fill.fgColor.rgb == "00FFF2CC"}
    assert asked == {headings("ru")[PLACE[name]] for name in VERDICTS}
    said = " ".join(str(cell.value) for (cell,) in found["Как размечать"].iter_rows())
    for name in VERDICTS[:-2]:
        assert headings("ru")[PLACE[name]].partition(":")[0] in said or name == "notes"


def test_passages_are_linked_and_offered_in_the_row_of_their_question(by_page: str, tmp_path: Path) -> None:
    path = tmp_path / "out.xlsx"
    export(path, by_page)
    found = sheets(path)
    own = found["Фрагменты"]
    rows = {row[0].value: row for row in own.iter_rows(min_row=2)}
    assert rows["7"][3].hyperlink.target == rows["7"][2].value == WIKI.format(1)
    assert "часть 2." in rows["7"][4].value and rows["7"][1].value == "Где взять справку?"
    table = found["Вопросы"]
    by_id = {table.cell(row, 1).value: row for row in (2, 3, 4)}
    place = offered(table, "relevant", by_id["7"])
    assert place is not None
    name, _, cells = place.partition("!")
    first, _, last = cells.replace("$", "").partition(":")
    assert name.strip("'") == own.title and first == last and own[first].value == WIKI.format(1)
    assert offered(table, "relevant", by_id["9"]) is None, "nothing was found for it"


def test_no_cell_of_any_sheet_is_a_formula(by_page: str, tmp_path: Path) -> None:
    path = tmp_path / "out.xlsx"
    export(path, by_page)
    cells = [cell for sheet in sheets(path).values() for row in sheet.iter_rows() for cell in row if cell.value]
    assert {cell.data_type for cell in cells} == {"s"}
    assert not [cell.value for cell in cells if str(cell.value).startswith(("=", "+", "-", "@"))]
    assert any(EVIL[:10] in str(cell.value) for cell in cells)
    links = [cell.hyperlink.target for cell in cells if cell.hyperlink]
    assert links and all(link.startswith("https://wiki.example/") for link in links)


def answered(path: Path) -> Path:
    """The workbook filled in and saved by another program, its sheets in another order, with a sheet of one's own."""
    book = load_workbook(path)
    table = book["Вопросы"]
    for row in range(2, table.max_row + 1):
        if table.cell(row, 1).value == "7":
            table.cell(row, PLACE["question_ok"] + 1).value = "да"
            table.cell(row, PLACE["relevant"] + 1).value = WIKI.format(1)
        if table.cell(row, 1).value == "'-8":
            table.cell(row, PLACE["show"] + 1).value = "нет"
    book.create_sheet("Мой лист", 0)["A1"] = "черновик"
    book.move_sheet("Как размечать", -2)
    book.active = 0
    book.save(path)
    return path


def saved_anew(path: Path) -> Path:
    """Its values alone, in a book without styles, lists and shared texts, as lesser programs leave them."""
    old, new = load_workbook(path), Workbook()
    new.remove(new.active)
    for sheet in old.worksheets:
        own = new.create_sheet(sheet.title)
        for values in sheet.iter_rows(values_only=True):
            own.append(list(values))
            for cell in own[own.max_row]:
                cell.data_type = "s" if isinstance(cell.value, str) else cell.data_type
    new.save(path)
    return path


def as_csv(path: Path) -> Path:
    """The table alone, as a spreadsheet saves it for Excel in Russian."""
    text = io.StringIO()
    table = load_workbook(path)["Вопросы"]
    csv.writer(text, delimiter=";").writerows([["" if one is None else one for one in row] for row in table.values])
    made = path.with_suffix(".csv")
    made.write_bytes(text.getvalue().encode("utf-8-sig"))
    return made


@pytest.mark.parametrize("how", [Path, saved_anew, as_csv])
def test_it_comes_back_whoever_has_saved_it(engine: Engine, by_page: str, tmp_path: Path, how: Any) -> None:
    path = tmp_path / "out.xlsx"
    export(path, by_page)
    document = import_(how(answered(path)), "анна")
    assert (document["rows"], document["labelled"], document["relevant"], document["show"]) == (3, 2, 1, 1)
    rows = questions_of(engine, by_page)
    assert rows["7"]["relevant_urls"] == [WIKI.format(1)] and rows["-8"]["ground_truth_show"] is False


def test_in_english(by_page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_LANGUAGE", "en")
    export(tmp_path / "out.xlsx", by_page)
    found = sheets(tmp_path / "out.xlsx")
    assert list(found) == ["Questions", "Passages", "How to label"]
    assert offered(found["Questions"], "show", 2) == '"yes,no"'

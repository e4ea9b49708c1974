"""Workbooks as other programs leave them: with a size that is not theirs any more, and damaged."""

import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from yarus.db.errors import InputError
from yarus.tasks.dataset.annotation import spreadsheets

SHEET = "xl/worksheets/sheet1.xml"


def rewritten(path: Path, part: str, change: Callable[[bytes], bytes]) -> Path:
    """A workbook of a header and three rows, one part of it changed."""
    spreadsheets.write(path, ["id", "question"], [[str(i), f"Вопрос {i}?"] for i in range(3)])
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    with zipfile.ZipFile(path, "w") as book:
        for name, content in parts.items():
            book.writestr(name, change(content) if name == part else content)
    return path


@pytest.mark.parametrize("size", ["A1", "A1:B2", "A1:A4", "A1:Z99"])
def test_rows_and_columns_beyond_the_size_that_a_file_names(tmp_path: Path, size: str) -> None:
    def stale(content: bytes) -> bytes:
        changed, n = re.subn(rb'<dimension ref="[^"]*"', f'<dimension ref="{size}"'.encode(), content)
        assert n == 1
        return changed

    header, lines = spreadsheets.read(rewritten(tmp_path / "a.xlsx", SHEET, stale))
    assert header == ["id", "question"]
    assert [(number, [cell.text for cell in cells]) for number, cells in lines] == [
        (i + 2, [str(i), f"Вопрос {i}?"]) for i in range(3)
    ]


def test_rows_that_a_file_leaves_out_are_counted(tmp_path: Path) -> None:
    """A problem is named with the row that a spreadsheet shows."""
    without = rewritten(tmp_path / "a.xlsx", SHEET, lambda content: re.sub(rb'<row r="3".*?</row>', b"", content))
    assert [number for number, _ in spreadsheets.read(without)[1]] == [2, 4]


@pytest.mark.parametrize("part", [SHEET, "xl/workbook.xml", "xl/styles.xml", "[Content_Types].xml"])
def test_a_cut_off_part_is_an_unreadable_workbook(tmp_path: Path, at_home: Path, part: str) -> None:
    path = rewritten(tmp_path / "a.xlsx", part, lambda content: content[: len(content) * 2 // 3])
    with pytest.raises(InputError, match=r"a\.xlsx"):
        spreadsheets.read(path)


def test_a_damaged_archive_is_an_unreadable_workbook(tmp_path: Path, at_home: Path) -> None:
    path = tmp_path / "a.xlsx"
    spreadsheets.write(path, ["id", "question"], [[str(i), f"Вопрос {i}?"] for i in range(300)])
    with zipfile.ZipFile(path) as book:
        begins = book.getinfo(SHEET).header_offset
    content = bytearray(path.read_bytes())
    content[begins + 200 : begins + 260] = bytes(60)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.xlsx"):
        spreadsheets.read(path)


HEAD = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
BOMBS = {
    "blanks": (b" " * (65 << 20), "67,108,864"),
    "cells": (HEAD + b'<row r="1">' + b"<c/>" * 4_100_000 + b"</row></sheetData></worksheet>", "4,000,000"),
    "a place far to the right": (HEAD + b'<row><c r="XFD1"/></row>' * 40 + b"</sheetData></worksheet>", "500,000"),
    "a place far down": (HEAD + b'<row r="9999999999"><c><v>1</v></c></row></sheetData></worksheet>', "500,000"),
}


@pytest.mark.slow("breadth: large files are packed")
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_workbook_that_unpacks_to_more_than_people_write_is_refused(tmp_path: Path, at_home: Path, bomb: str) -> None:
    content, limit = BOMBS[bomb]
    path = rewritten(tmp_path / "a.xlsx", SHEET, lambda _: content)
    with pytest.raises(InputError, match=rf"a\.xlsx.*{limit}"):
        spreadsheets.read(path)


@pytest.mark.slow("process: its memory is measured")
def test_a_workbook_of_many_small_cells_takes_no_memory(tmp_path: Path) -> None:
    """It took 3.1 GB from 780 kB; measured in a process of its own."""
    path = tmp_path / "a.xlsx"
    rewritten(path, SHEET, lambda _: BOMBS["cells"][0])
    script = f"""
from pathlib import Path
from yarus.db.errors import InputError
from yarus.tasks.dataset.annotation import spreadsheets as sheets
from tests.support.processes import peak_kb
try:
    sheets.read(Path({str(path)!r}))
except InputError:
    print(peak_kb())
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=Path(__file__).parents[4], capture_output=True, text=True, timeout=120
    )
    assert int(ran.stdout) < 400_000, ran.stderr


@pytest.mark.slow("breadth: a large file")
def test_a_text_table_larger_than_people_write_is_refused(tmp_path: Path, at_home: Path) -> None:
    path = tmp_path / "a.csv"
    with path.open("wb") as file:
        file.truncate(spreadsheets.LARGEST_BYTES + 1)
    with pytest.raises(InputError, match=r"a\.csv.*67,108,865"):
        spreadsheets.read(path)
    path.write_bytes(b"id;question\n" + b";" * spreadsheets.MOST_CELLS)
    with pytest.raises(InputError, match=r"a\.csv.*2.*500,000"):
        spreadsheets.read(path)

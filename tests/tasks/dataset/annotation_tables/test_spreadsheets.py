"""Workbooks of other programs: outdated sizes and damaged files."""

import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from yarus.db.errors import InputError
from yarus.tasks.dataset.annotation_tables import spreadsheets

SHEET = "xl/worksheets/sheet1.xml"


def write_changed(path: Path, part: str, change: Callable[[bytes], bytes]) -> Path:
    """Write a workbook of a header and three rows, with one part changed."""
    spreadsheets.write_table(path, ["id", "question"], [[str(i), f"Вопрос {i}?"] for i in range(3)])
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    with zipfile.ZipFile(path, "w") as book:
        for name, content in parts.items():
            book.writestr(name, change(content) if name == part else content)
    return path


@pytest.mark.parametrize("size", ["A1", "A1:B2", "A1:A4", "A1:Z99"])
def test_read_ignores_outdated_sheet_size(tmp_path: Path, size: str) -> None:
    def replace_size(content: bytes) -> bytes:
        changed, n = re.subn(rb'<dimension ref="[^"]*"', f'<dimension ref="{size}"'.encode(), content)
        assert n == 1
        return changed

    header, lines = spreadsheets.read_table(write_changed(tmp_path / "a.xlsx", SHEET, replace_size))
    assert header == ["id", "question"]
    assert [(number, [cell.text for cell in cells]) for number, cells in lines] == [
        (i + 2, [str(i), f"Вопрос {i}?"]) for i in range(3)
    ]


def test_read_counts_rows_missing_in_file(tmp_path: Path) -> None:
    """Problems refer to the row number that a spreadsheet shows."""
    path = write_changed(tmp_path / "a.xlsx", SHEET, lambda content: re.sub(rb'<row r="3".*?</row>', b"", content))
    assert [number for number, _ in spreadsheets.read_table(path)[1]] == [2, 4]


@pytest.mark.parametrize("part", [SHEET, "xl/workbook.xml", "xl/styles.xml", "[Content_Types].xml"])
def test_read_rejects_cut_off_workbook(tmp_path: Path, at_home: Path, part: str) -> None:
    path = write_changed(tmp_path / "a.xlsx", part, lambda content: content[: len(content) * 2 // 3])
    with pytest.raises(InputError, match=r"a\.xlsx"):
        spreadsheets.read_table(path)


def test_read_rejects_damaged_archive(tmp_path: Path, at_home: Path) -> None:
    path = tmp_path / "a.xlsx"
    spreadsheets.write_table(path, ["id", "question"], [[str(i), f"Вопрос {i}?"] for i in range(300)])
    with zipfile.ZipFile(path) as book:
        start = book.getinfo(SHEET).header_offset
    content = bytearray(path.read_bytes())
    content[start + 200 : start + 260] = bytes(60)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.xlsx"):
        spreadsheets.read_table(path)


HEAD = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
BOMBS = {
    "blanks": (b" " * (65 << 20), "67,108,864"),
    "cells": (HEAD + b'<row r="1">' + b"<c/>" * 4_100_000 + b"</row></sheetData></worksheet>", "4,000,000"),
    "a place far to the right": (HEAD + b'<row><c r="XFD1"/></row>' * 40 + b"</sheetData></worksheet>", "500,000"),
    "a place far down": (HEAD + b'<row r="9999999999"><c><v>1</v></c></row></sheetData></worksheet>', "500,000"),
}


@pytest.mark.slow("breadth: large files are packed")
@pytest.mark.parametrize("bomb", BOMBS)
def test_read_rejects_oversized_workbook(tmp_path: Path, at_home: Path, bomb: str) -> None:
    content, limit = BOMBS[bomb]
    path = write_changed(tmp_path / "a.xlsx", SHEET, lambda _: content)
    with pytest.raises(InputError, match=rf"a\.xlsx.*{limit}"):
        spreadsheets.read_table(path)


@pytest.mark.slow("process: its memory is measured")
def test_read_needs_little_memory_for_small_cells(tmp_path: Path) -> None:
    """An earlier version used 3.1 GB for 780 kB; the memory is measured in a separate process."""
    path = tmp_path / "a.xlsx"
    write_changed(path, SHEET, lambda _: BOMBS["cells"][0])
    script = f"""
from pathlib import Path
from yarus.db.errors import InputError
from yarus.tasks.dataset.annotation_tables import spreadsheets as sheets
from tests.support.processes import get_peak_kb
try:
    sheets.read_table(Path({str(path)!r}))
except InputError:
    print(get_peak_kb())
"""
    process = subprocess.run(
        [sys.executable, "-c", script], cwd=Path(__file__).parents[4], capture_output=True, text=True, timeout=120
    )
    assert int(process.stdout) < 400_000, process.stderr


@pytest.mark.slow("breadth: a large file")
def test_read_rejects_oversized_csv(tmp_path: Path, at_home: Path) -> None:
    path = tmp_path / "a.csv"
    with path.open("wb") as file:
        file.truncate(spreadsheets.MAX_BYTES + 1)
    with pytest.raises(InputError, match=r"a\.csv.*67,108,865"):
        spreadsheets.read_table(path)
    path.write_bytes(b"id;question\n" + b";" * spreadsheets.MAX_CELLS)
    with pytest.raises(InputError, match=r"a\.csv.*2.*500,000"):
        spreadsheets.read_table(path)

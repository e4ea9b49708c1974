"""Test that endless lines and oversized documents are rejected with their place and the limit."""

from pathlib import Path

import pytest

from yarus.db.errors import InputError
from yarus.db.importers import files, lines, squad, table


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_read_rejects_endless_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with path.open("wb") as file:
        file.write(b"question\n" if name == "a.csv" else b'{"question": "?"}\n')
        file.truncate(1 << 40)  # a file with a hole: more than any memory
    with pytest.raises(InputError, match=r"line 2 has more than 20,000,000 characters.*nothing was loaded"):
        list(table.read_table(path).questions)


def test_read_lines_reads_longest_line(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("x" * (lines.MAX_LINE_LENGTH - 1) + "\n" + "y")
    assert [len(line) for line in lines.read_lines(path)] == [lines.MAX_LINE_LENGTH, 1]


def test_read_rejects_oversized_document(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputError, match=f"more than {files.MAX_BYTES:,} bytes"):
        squad.read_squad(path)

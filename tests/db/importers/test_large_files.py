"""Files without line ends, and documents too large to be read at once: refused with their place and the limit."""

from pathlib import Path

import pytest

from yarus.db.errors import InputError
from yarus.db.importers import files, lines, squad, table


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_line_without_end_is_not_read_into_memory(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with path.open("wb") as file:
        file.write(b"question\n" if name == "a.csv" else b'{"question": "?"}\n')
        file.truncate(1 << 40)  # a file with a hole: more than any memory
    with pytest.raises(InputError, match=r"line 2 has more than 20,000,000 characters.*nothing was loaded"):
        list(table.read(path).questions)


def test_the_longest_line_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("x" * (lines.LONGEST_LINE - 1) + "\n" + "y")
    assert [len(line) for line in lines.lines(path)] == [lines.LONGEST_LINE, 1]


def test_a_document_that_is_too_large_is_not_read_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputError, match=f"more than {files.LARGEST_BYTES:,} bytes"):
        squad.read(path)

"""Tables that cannot be read: damaged, absent, of another kind or without the column."""

from pathlib import Path

import pandas as pd
import pytest

from db.errors import InputError
from db.importers import table


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.parquet", b"PAR1", "not a complete Parquet file"),
        ("t.xlsx", b"", r"ends in \.csv, .*save a spreadsheet as CSV"),
        ("t.jsonl", b'{"question": "a"}\n{"question": \n', r"t\.jsonl: line 2, column 1\d?: not valid JSON"),
        ("t.jsonl", b'{"question": "a"}\n{"question": ' + b"1" * 5_001 + b"}\n", r"line 2: a number with thousands of"),
        ("t.jsonl", b'{"question": "a"}\n' + b"[" * 100_000, "line 2: .*nested too deeply to be read; nothing was"),
        ("t.jsonl", b'{"Question": "a"}\n', "no column in .*did you mean 'Question'"),
        ("t.csv", b"question\na\n", "no encoding 'cp125'"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        table.read(tmp_path / name, encoding="cp125" if "cp125" in message else "utf-8-sig")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_file_that_is_not_there(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(InputError, match=r"nowhere.*[Nn]o such file"):
        table.read(tmp_path / f"nowhere{suffix}")


def test_a_parquet_without_the_column_names_the_nearest(tmp_path: Path) -> None:
    pd.DataFrame({"questions": ["а"], "answer": ["б"]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"no column in .*t\.parquet: 'question'; did you mean 'questions'\?"):
        table.read(tmp_path / "t.parquet")

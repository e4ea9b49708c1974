"""Test tables that cannot be read: damaged, missing, of another kind or without the required column."""

from pathlib import Path

import pandas as pd
import pytest

from yarus.db.errors import InputError
from yarus.db.importers import table


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.parquet", b"PAR1", "not a complete Parquet file"),
        ("t.xlsx", b"PK\x03\x04", "damaged"),
        ("t.xls", b"\xd0\xcf\x11\xe0", r"save it as \.xlsx or CSV"),
        ("t.json", b"[[1, 2], [3, 4]]", "a list of lists has no names of columns"),
        ("t.json", b'{"a": 1}', "no list of objects in it"),
        ("t.csv", b",".join(b"c%d" % n for n in range(100_000)) + b"\n", "100,000 columns; at most 2,000 are read"),
        ("t.jsonl", b'{"question": "a"}\n{"question": \n', r"t\.jsonl: line 2, column 1\d?: not valid JSON"),
        ("t.jsonl", b'{"question": "a"}\n{"question": ' + b"1" * 5_001 + b"}\n", r"line 2: a number with thousands of"),
        ("t.jsonl", b'{"question": "a"}\n' + b"[" * 100_000, "line 2: .*nested too deeply to be read; nothing was"),
        ("t.csv", b"question\na\n", "no encoding 'cp125'"),
    ],
)
def test_read_rejects_unreadable_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        table.read_table(tmp_path / name, encoding="cp125" if "cp125" in message else None)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_read_rejects_missing_file(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(InputError, match=r"nowhere.*[Nn]o such file"):
        table.read_table(tmp_path / f"nowhere{suffix}")


def test_read_lists_columns_if_none_is_known(tmp_path: Path) -> None:
    pd.DataFrame({"asked": ["а"], "answer": ["б"]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(
        InputError, match=r"t\.parquet: neither questions nor texts of pages .*asked \(а\), answer \(б\)"
    ):
        table.read_table(tmp_path / "t.parquet")

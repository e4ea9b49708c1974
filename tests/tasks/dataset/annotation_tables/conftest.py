"""A source to annotate, and files that annotators have filled in."""

import csv
import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from tests.support.evaluations import load, question
from yarus.tasks.dataset.annotation_tables.columns import COLUMNS, column_headings

WriteFile = Callable[..., Path]


@pytest.fixture
def source(at_home: Path, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Return a source unique to the test, with ten questions about ten pages."""
    name = re.sub(r"\W", "_", request.node.name.lower())[:30].strip("_") + "_an"
    bare = {"ground_truth_answer": None, "relevant_chunk_ids": None, "answerable": None, "origin": None}
    return load(tmp_path, re.sub("^[^a-z]+", "a", name), [question(i, **(bare if i > 4 else {})) for i in range(10)])


@pytest.fixture
def write_file(source: str, tmp_path: Path) -> WriteFile:
    """Return a function that writes a file with the given cells; other cells are empty."""

    def write(*rows: Mapping[str, Any], suffix: str = ".xlsx", encoding: str = "utf-8-sig", sep: str = ";") -> Path:
        path = tmp_path / f"filled{suffix}"
        lines = [[row.get(name, source if name == "source" else None) for name in COLUMNS] for row in rows]
        if suffix == ".xlsx":
            book = Workbook()
            for line in [column_headings("ru"), *lines]:
                book.active.append(line)
            book.save(path)
        else:
            text = io.StringIO()
            csv.writer(text, delimiter=sep).writerows([column_headings("ru"), *lines])
            path.write_bytes(text.getvalue().encode(encoding))
        return path

    return write


@pytest.fixture
def english(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_LANGUAGE", "en")

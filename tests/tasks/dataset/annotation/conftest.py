"""A source to be annotated, and files that annotators have filled."""

import csv
import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from tests.support.evaluations import load, question
from yarus.tasks.dataset.annotation.columns import COLUMNS, headings

Make = Callable[..., Path]


@pytest.fixture
def source(at_home: Path, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Ten questions about ten pages, in a source of the test's own."""
    name = re.sub(r"\W", "_", request.node.name.lower())[:30].strip("_") + "_an"
    bare = {"ground_truth_answer": None, "relevant_chunk_ids": None, "answerable": None, "origin": None}
    return load(tmp_path, re.sub("^[^a-z]+", "a", name), [question(i, **(bare if i > 4 else {})) for i in range(10)])


@pytest.fixture
def filled(source: str, tmp_path: Path) -> Make:
    """Writes a file with these cells, by row and column; the other cells are empty."""

    def make(*rows: Mapping[str, Any], suffix: str = ".xlsx", encoding: str = "utf-8-sig", sep: str = ";") -> Path:
        path = tmp_path / f"filled{suffix}"
        lines = [[row.get(name, source if name == "source" else None) for name in COLUMNS] for row in rows]
        if suffix == ".xlsx":
            book = Workbook()
            for line in [headings("ru"), *lines]:
                book.active.append(line)
            book.save(path)
        else:
            text = io.StringIO()
            csv.writer(text, delimiter=sep).writerows([headings("ru"), *lines])
            path.write_bytes(text.getvalue().encode(encoding))
        return path

    return make


@pytest.fixture
def english(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_LANGUAGE", "en")

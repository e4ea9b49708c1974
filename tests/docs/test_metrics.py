"""docs/metrics.md is what the table of metrics says, and names every metric."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from yarus.metrics.table import METRICS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current(generator: ModuleType) -> None:
    written = (DOCS / "metrics.md").read_text(encoding="utf-8")
    assert written == generator.render(), "docs/metrics.md is out of date: run python docs/generate.py"
    for page in generator.FILLED:
        assert page.read_text(encoding="utf-8") == generator.filled(page), f"{page} is out of date, too"


def test_every_metric_has_one_section(generator: ModuleType) -> None:
    headings = re.findall(r"^### (.*)$", generator.render(), flags=re.MULTILINE)
    named = [name for heading in headings for name in re.findall(r"`([^`]+)`", heading)]
    assert sorted(named) == sorted(METRICS)


def test_no_mark_of_the_template_is_left(generator: ModuleType) -> None:
    page = generator.render()
    assert "<!--" not in page
    assert "{}" not in page


def test_tables_have_the_same_number_of_cells_in_every_row(generator: ModuleType) -> None:
    rows = re.findall(r"(?:^\|.*\|\n)+", generator.render(), flags=re.MULTILINE)
    assert len(rows) == 6
    for table in rows:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1

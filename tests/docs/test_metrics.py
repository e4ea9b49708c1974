"""Check that docs/metrics.md matches the table of metrics and names every metric."""

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


def test_page_is_current(generator: ModuleType) -> None:
    written = (DOCS / "metrics.md").read_text(encoding="utf-8")
    assert written == generator.render(), "docs/metrics.md is out of date: run python docs/generate.py"
    simulations = (DOCS / "simulations.md").read_text(encoding="utf-8")
    assert simulations == generator.render_simulations(), "docs/simulations.md is out of date, too"
    tables = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "simulations").iterdir()}
    assert tables == generator.render_simulation_tables(), "docs/simulations is out of date, too"
    assert generator.JUDGE.read_text(encoding="utf-8") == generator.render_judge(), "docs/judge.md is out of date, too"


def test_metrics_have_one_section_each(generator: ModuleType) -> None:
    headings = re.findall(r"^### (.*)$", generator.render(), flags=re.MULTILINE)
    metric_names = [name for heading in headings for name in re.findall(r"`([^`]+)`", heading)]
    assert sorted(metric_names) == sorted(METRICS)


def test_page_has_no_template_marks(generator: ModuleType) -> None:
    page = generator.render()
    assert "<!--" not in page + generator.render_simulations()
    assert "{}" not in page


def test_simulations_state_claims_and_link_table_of_every_area(generator: ModuleType) -> None:
    sections = generator.render_simulations().split("\n## ")[1:]
    links = [re.findall(r"\(simulations/(\w+)\.md\)", section) for section in sections]
    assert sorted(links) == sorted([area] for area in generator.SIMULATED)
    assert all(re.search(r": \*\*[\d.]+.*\*\* \(", section) for section in sections)


def test_table_rows_have_equal_cell_counts(generator: ModuleType) -> None:
    pages = generator.render() + "".join(generator.render_simulation_tables().values())
    rows = re.findall(r"(?:^\|.*\|\n)+", pages, flags=re.MULTILINE)
    assert len(rows) == 5 + len(generator.SIMULATED)
    for table in rows:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1

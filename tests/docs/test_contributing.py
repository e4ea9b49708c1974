"""docs/contributing.md: its examples, as they stand there, make a metric, a retriever and a tier that work."""

import re
import sys
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

import metrics
from metrics.table import METRICS
from tasks.cases import table
from tasks.cases.table import Column
from tasks.config import parameters
from tasks.config.parameters import TIERS
from tasks.retrievers.registry import RETRIEVERS, Kind
from tests.support.evaluations import evaluate, load, question, rows_of

PAGE = (Path(__file__).parents[2] / "docs" / "contributing.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^```python\n# (\S+)\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL))


def made(path: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module that a block of the page is."""
    name = path.removesuffix(".py").replace("/", ".")
    spec = spec_from_loader(name, None)
    assert spec
    module = module_from_spec(spec)
    exec(compile(BLOCKS[path], path, "exec"), module.__dict__)  # noqa: S102 - our own page
    monkeypatch.setitem(sys.modules, name, module)
    return module


@pytest.fixture
def taken_over(monkeypatch: pytest.MonkeyPatch, at_home: Path, engine: Engine) -> None:
    """Everything that the page says is to be added."""
    monkeypatch.setattr(metrics, "style", made("metrics/style.py", monkeypatch), raising=False)
    (row,) = made("metrics/table/style.py", monkeypatch).STYLE
    monkeypatch.setitem(METRICS, row.name, row)
    monkeypatch.setitem(table.COLUMNS, row.column, Column(table.pa.float64(), row.measures))
    overlap = made("tasks/retrievers/overlap.py", monkeypatch).Overlap
    monkeypatch.setitem(RETRIEVERS, "overlap", Kind(lambda run, corpus: overlap(corpus), uses_vectors=False))
    namespace: dict[str, Any] = dict(vars(parameters))
    exec(BLOCKS["tasks/config/parameters.py"], namespace)  # noqa: S102
    monkeypatch.setattr(parameters, "Style", namespace["Style"], raising=False)
    monkeypatch.setitem(TIERS, "style", namespace["Style"])  # type: ignore[misc]
    for path in ("tasks/steps/style.py", "flows/style.py"):
        made(path, monkeypatch)


def test_the_metric_and_the_tier_work(taken_over: None, tmp_path: Path) -> None:
    rows = [question(i) for i in range(6)]
    rows[3]["answer"] = "Сдать книгу."
    source = load(tmp_path, "of_style", rows)
    summary = evaluate("style", source=source)
    expected = [len(str(row["answer"]).split()) for row in rows]
    assert [row["answer_words"] for row in rows_of(summary)] == expected
    measured = summary["metrics"]["avg_answer_words"]
    assert measured["value"] == pytest.approx(np.mean(expected))
    assert (measured["n_scored"], summary["state"]) == (6, "completed")
    assert measured["ci_low"] <= measured["value"] <= measured["ci_high"]


def test_the_retriever_finds(taken_over: None, tmp_path: Path) -> None:
    source = load(tmp_path, "of_overlap", [question(i) for i in range(10)])
    summary = evaluate("tier1", source=source, retriever="overlap")
    assert summary["system"]["retriever"] == "overlap"
    assert all(len(row["retrieved"]) == 10 for row in rows_of(summary))
    assert summary["metrics"]["hit_rate@10"]["value"] == 1.0
    first = rows_of(summary)[0]
    assert first["distances"] == sorted(first["distances"])


def test_files_and_tables_that_the_page_names_are_there() -> None:
    root = Path(__file__).parents[2]
    named = set(re.findall(r"`((?:metrics|tasks|flows|tests|deployments)/[\w/]+\.\w+)`", PAGE))
    assert len(named) > 8
    assert [path for path in named - set(BLOCKS) if not (root / path).exists()] == []
    for name, path in re.findall(r"\(?`([A-Z]{4,})` (?:in|of) `([\w/]+\.py)`", PAGE):
        assert re.search(rf"^{name}\b", (root / path).read_text(encoding="utf-8"), flags=re.MULTILINE), (name, path)

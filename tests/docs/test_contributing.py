"""Check that the examples of docs/contributing.md make a working metric, retriever, tier and finding.

They are put into a copy of the project, which is then used like the project itself.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import delete

from tests.support.command_line import CommandLine, make_environment
from tests.support.evaluations import load, question
from yarus.db.engine import open_own_database
from yarus.db.tables import evaluation

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\w+\n# (\S+)\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
FOLDERS = ("yarus", "flows", "tasks", "metrics", "db", "deployments")
ROWS = [question(i) for i in range(6)]
ROWS[3]["answer"] = "Сдать книгу."
IMPORTS = {
    "tasks/evaluation/findings/findings.py": "from yarus.tasks.evaluation.findings import curt",
    "metrics/table/__init__.py": "from yarus.metrics.table.style import STYLE",
    "tasks/config/tiers.py": "from yarus.tasks.config.parameters import Style",
    "tasks/systems/retrievers/registry.py": "from yarus.tasks.systems.retrievers.overlap import Overlap",
}
"""Imports that the page leaves to the reader."""


def insert_block(project: Path, path: str, block: str) -> None:
    """Insert a block of the page into the file named in its header: a new file, or the place that the page names."""
    file = project / path
    if not file.exists():
        file.write_text(block, encoding="utf-8")
        return
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".toml":
        for table in re.split(r"\n(?=\[)", block):
            head, keys = table.split("\n", 1)
            text = text.replace(f"\n{head}\n", f"\n{head}\n{keys}\n") if f"\n{head}\n" in text else f"{text}\n{table}\n"
    elif file.name == "findings_schema.py":  # the last key of the file's last type
        text += block
    elif block.startswith("    "):  # the last row of the file's one table
        table, after = text.rsplit("\n}\n", 1) if file.name != "registry.py" else text.split("\n}\n", 1)
        text = f"{table}\n{block}}}\n{after}"
    else:
        text = f"{text}\n\n{block}" if file.suffix == ".py" else text + block
    file.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the project, with everything that the page says is to be added."""
    folder = tmp_path_factory.mktemp("project")
    for name in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
    for path, block in BLOCKS:
        insert_block(folder, path, block)
        if path == "tasks/config/texts/en.toml":  # «ru.toml has the same keys»
            insert_block(folder, "tasks/config/texts/ru.toml", block)
    for path, line in IMPORTS.items():
        file = folder / path
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("\nfrom ", f"\n{line}\nfrom ", 1), encoding="utf-8")
    table = folder / "metrics/table/__init__.py"
    table.write_text(table.read_text(encoding="utf-8").replace("*UX)", "*UX, *STYLE)"), encoding="utf-8")
    findings = folder / "tasks/evaluation/findings/findings.py"
    findings.write_text(findings.read_text(encoding="utf-8").replace("= (exam, ", "= (exam, curt, "), encoding="utf-8")
    return folder


@pytest.fixture(autouse=True, scope="module")
def remove_style_evaluations(home: Path) -> Iterator[None]:
    """Remove the tier's evaluations, because other tests do not know the tier."""
    yield
    with open_own_database(home, None).begin() as connection:
        connection.execute(delete(evaluation).where(evaluation.c.tier == "style"))


@pytest.fixture
def run_in_copy(project: Path, home: Path, yarus: CommandLine) -> Callable[..., str]:
    """Return a function that runs a command of that project, at the home of all tests."""

    def run(*words: str) -> str:
        finished = subprocess.run(
            [sys.executable, "-m", "yarus", *words],
            cwd=project,
            env=make_environment(home) | yarus.server() | {"PYTHONPATH": str(project)},
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert finished.returncode == 0, finished.stderr + finished.stdout
        return finished.stdout

    return run


@pytest.mark.slow("process: a copy of the project is run")
def test_example_metric_tier_and_finding_work(run_in_copy: Callable[..., str], at_home: Path, tmp_path: Path) -> None:
    """Check the flow run with Prefect's artifacts and states, the printed summary, and the report."""
    source = load(tmp_path, "of_style", ROWS)
    summary = json.loads(run_in_copy("run", "style", "--source", source, "--json"))
    expected = [len(str(row["answer"]).split()) for row in ROWS]
    measured = summary["metrics"]["avg_answer_words"]
    assert measured["value"] == pytest.approx(np.mean(expected))
    assert (measured["n_scored"], summary["state"]) == (6, "completed")
    assert measured["ci_low"] <= measured["value"] <= measured["ci_high"]
    evaluation_id = summary["evaluation_id"]
    cases = json.loads(run_in_copy("cases", evaluation_id, "--json"))
    assert [row["answer_words"] for row in cases] == expected
    advice = f"Read the longest answers. Прочитать: yarus cases {evaluation_id} --where 'answer_words>=4'"
    output = " ".join(run_in_copy("show", evaluation_id).split())
    assert advice in output
    assert summary["curt"] == [f"{source}:3"]
    assert "1 answer of one or two words." in output
    page = tmp_path / "style.html"
    run_in_copy("report", evaluation_id, "--out", str(page))
    html = page.read_text(encoding="utf-8")
    assert "How are answers written?" in html
    assert "Length of answers" in html
    assert "1 answer of one or two words." in html


@pytest.mark.slow("process: a copy of the project is run")
def test_example_tier_runs_in_night(run_in_copy: Callable[..., str], at_home: Path, tmp_path: Path) -> None:
    source = load(tmp_path, "night_of_style", ROWS)
    night = json.loads(run_in_copy("run", "nightly", "--source", source, "--set", "tiers=tier1,style", "--json"))
    assert [(part["tier"], part["state"]) for part in night["evaluations"]] == [
        ("tier1", "completed"),
        ("style", "completed"),
    ]


@pytest.mark.slow("process: a copy of the project is run")
def test_example_retriever_finds_chunks(run_in_copy: Callable[..., str], at_home: Path, tmp_path: Path) -> None:
    source = load(tmp_path, "of_overlap", [question(i) for i in range(10)])
    summary = json.loads(run_in_copy("run", "tier1", "--source", source, "--retriever", "overlap", "--json"))
    assert summary["system"]["retriever"] == "overlap"
    assert summary["metrics"]["hit_rate@10"]["value"] == 1.0
    cases: list[dict[str, Any]] = json.loads(run_in_copy("cases", summary["evaluation_id"], "--json"))
    assert all(len(row["retrieved"]) == 10 for row in cases)
    assert cases[0]["distances"] == sorted(cases[0]["distances"])


def test_page_names_existing_files_and_tables() -> None:
    named_paths = set(re.findall(r"`((?:metrics|tasks|flows|tests|deployments)/[\w/]+\.\w+)`", PAGE))
    assert len(named_paths) > 8
    assert [path for path in named_paths - {path for path, _ in BLOCKS} if not (ROOT / path).exists()] == []
    for name, path in re.findall(r"\(?`([A-Z]{4,})`[\w ]* (?:in|of)\s+`([\w/]+\.py)`", PAGE):
        assert re.search(rf"^{name}\b", (ROOT / path).read_text(encoding="utf-8"), flags=re.MULTILINE), (name, path)

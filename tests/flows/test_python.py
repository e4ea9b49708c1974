"""`import yarus`: the examples of docs/python.md in a running loop as a notebook has it, and what they promise."""

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest

from tests.support.command_line import CommandLine, environment
from tests.support.forked import Forked
from tests.support.processes import until
from tests.support.texts.docs_pages import ROOT, blocks
from yarus import cases, compare, gate, report, run, run_sync, scores
from yarus.db.errors import InputError

Document = dict[str, Any]
EXAMPLES = [block.text for block in blocks(ROOT / "docs" / "python.md") if block.kind == "python"]
CELLS = [example for example in EXAMPLES if "run_sync" not in example]
NOTEBOOK = """
import ast, asyncio, inspect, sys
async def notebook():
    names = {"__name__": "__main__"}
    for cell in sys.argv[1:]:
        found = eval(compile(cell, "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
        if inspect.iscoroutine(found):
            await found
asyncio.run(notebook())
"""
"""Runs its words one after another, all in one loop that goes on between them."""


def python(home: Path, script: str, *words: str, env: dict[str, str] | None = None) -> str:
    """What a program says that is run at home; it must succeed."""
    ran = subprocess.run(
        [sys.executable, "-c", script, *words],
        env=environment(home) | (env or {}),
        cwd=home,
        text=True,
        capture_output=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def notebook(home: Path, *cells: str, env: dict[str, str] | None = None) -> str:
    """What the cells of a notebook say; they must succeed."""
    ran = Forked(cells, environment(home) | (env or {}), home, NOTEBOOK).ran()
    assert ran.code == 0, ran.out + ran.err
    return ran.out


@pytest.mark.slow("prefect: two evaluations on a server of their own")
def test_the_cells_of_the_page_run_and_leave_no_process(home: Path) -> None:
    """Two evaluations by both ways, on a server that is started for them."""
    look = """
import json, psutil
children = [child.pid for child in psutil.Process().children(recursive=True)]
print(json.dumps([summary["state"], list(scores), children]))
"""
    state, columns, children = json.loads(notebook(home, *CELLS, look))
    assert (state, columns) == ("completed", ["value", "ci_low", "ci_high", "grade"])
    assert children
    until("end of its servers", lambda: not [pid for pid in children if psutil.pid_exists(pid)])


@pytest.mark.slow("process: a Jupyter kernel")
def test_the_notebook_runs_in_jupyter(home: Path, prefect_server: dict[str, str], tmp_path: Path) -> None:
    jupyter, done = Path(sys.executable).with_name("jupyter-execute"), tmp_path / "done.ipynb"
    command = [jupyter, "--output", done, ROOT / "docs" / "notebook.ipynb"]
    env = environment(home) | prefect_server
    ran = subprocess.run(command, env=env, cwd=tmp_path, text=True, capture_output=True, timeout=280, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    cells = [cell for cell in json.loads(done.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    results = ["".join(output["data"]["text/plain"]) for cell in cells for output in cell["outputs"]]
    assert len(results) == len(cells)
    assert results[0] == "'completed'"
    assert "hit_rate@1" in results[1]
    assert Path(results[-1].removeprefix("PosixPath('").removesuffix("')")).read_text(encoding="utf-8")


@pytest.mark.slow("process: what is imported first")
def test_prefect_that_was_imported_before_heeds_what_yarus_sets(home: Path, prefect_server: dict[str, str]) -> None:
    script = """
import logging, prefect, yarus
yarus.start_prefect()
print([handler.level for handler in logging.getLogger().handlers])
"""
    assert json.loads(python(home, script, env=prefect_server)) == [logging.WARNING]


def test_the_script_of_the_page_runs(home: Path, prefect_server: dict[str, str]) -> None:
    (script,) = set(EXAMPLES) - set(CELLS)
    assert "hit_rate@1" in python(home, script, env=prefect_server)


@pytest.mark.slow("prefect: two evaluations; the script of the page awaits one")
def test_a_flow_can_be_awaited_as_it_stands(home: Path, prefect_server: dict[str, str]) -> None:
    """Twice, on a server that is found."""
    flow = "from yarus.flows.tier1 import tier1; from yarus.tasks.config.parameters import Tier1"
    cell = "print((await tier1(Tier1(source='sample', limit=50)))['state'])"
    assert notebook(home, flow, cell, cell, env=prefect_server).split() == ["completed", "completed"]


@pytest.mark.slow("wait: longer than a stopped command may last")
def test_an_interrupted_cell_leaves_the_notebook_alive(home: Path, prefect_server: dict[str, str]) -> None:
    """What is cancelled can be finished in the same notebook, later than a stopped command may last."""
    interrupted = """
import asyncio, yarus
from yarus.db import journal
from yarus.tasks.config.connections import database
from yarus.tasks.evaluation.process_exit import GRACE_S
running = asyncio.create_task(yarus.run("judge", source="sample", limit=60))
while "running" not in [row["state"] for row in journal.listing(database(), limit=1)]:
    assert not running.done(), running.result()
    await asyncio.sleep(0.05)
running.cancel()
try:
    await running
except asyncio.CancelledError:
    print(journal.listing(database(), limit=1)[0]["state"])
await asyncio.sleep(GRACE_S + 1)
"""
    resumed = "print((await yarus.run('judge', resume='last'))['state'])"
    said = notebook(home, interrupted, resumed, env=prefect_server)
    assert said.split() == ["cancelled", "completed"]


def test_import_yarus_loads_and_changes_nothing(home: Path) -> None:
    heavy = "{'prefect', 'pandas', 'pyarrow', 'sqlalchemy', 'click', 'yarus.tasks', 'yarus.db'}"
    script = f"""
import os, sys
before = dict(os.environ)
import yarus, yarus.pytest_plugin
print({heavy} & sys.modules.keys(), dict(os.environ) == before)
"""
    assert python(home, script).strip() == "set() True"


def test_cases_are_those_that_were_stored(at_home: Path, night: dict[str, Document]) -> None:
    summary = night["tier1"]
    frame = cases(summary["evaluation_id"])
    assert len(frame) == summary["n_cases"]
    assert frame["mrr"].mean() == pytest.approx(summary["metrics"]["mrr"]["value"])
    assert frame["mrr"].count() == summary["metrics"]["mrr"]["n_scored"]
    unmeasured = frame[frame["mrr"].isna()]
    assert len(unmeasured)
    assert (unmeasured["status"] != "ok").all()
    first = frame[frame["status"] == "ok"].iloc[0]
    assert isinstance(first["retrieved"], list)
    assert all(isinstance(found, str) for found in first["retrieved"])


def test_metrics_are_those_of_the_summary(at_home: Path, night: dict[str, Document]) -> None:
    for tier in ("tier1", "real_users"):
        summary = night[tier]
        rows = scores(summary["evaluation_id"])
        assert set(rows["tier"]) == {tier}
        stratum = rows[rows["stratum"] == ("confirmed" if "strata" in summary else "")].set_index("metric")
        assert set(stratum.index) == set(summary["metrics"])
        for name, metric in summary["metrics"].items():
            for column, value in metric.items():
                found = stratum.loc[name, column]
                assert found == value or (value is None and found is pd.NA)


def test_a_comparison_is_that_of_the_command(at_home: Path, night: dict[str, Document], yarus: CommandLine) -> None:
    one, other = (night[tier]["evaluation_id"] for tier in ("tier1", "real_users"))
    with pytest.raises(InputError, match="--force"):
        compare(one, other)
    assert compare(one, other, force=True) == yarus("compare", one, other, "--force", "--json").json


def test_the_gate_is_that_of_the_command(at_home: Path, night: dict[str, Document], yarus: CommandLine) -> None:
    evaluation = night["tier1"]["evaluation_id"]
    assert gate(evaluation) == yarus("gate", evaluation, "--json").json


def test_the_report_is_written_where_it_is_asked_for(at_home: Path, night: dict[str, Document], tmp_path: Path) -> None:
    path = report(night["tier1"]["evaluation_id"], out=tmp_path / "report.html", language="en")
    assert path == tmp_path / "report.html"
    assert night["tier1"]["evaluation_id"] in path.read_text(encoding="utf-8")


async def test_run_sync_in_a_loop_names_the_way_out() -> None:
    with pytest.raises(RuntimeError, match=r"await yarus\.run"):
        run_sync("tier1")


async def test_what_is_wrong_is_named(at_home: Path) -> None:
    with pytest.raises(InputError, match="tier1"):
        await run("tier11")
    with pytest.raises(InputError, match="source"):
        await run("tier1", sorce="sample")
    with pytest.raises(InputError, match="no-such"):
        cases("no-such")

"""Run the examples of docs/python.md in a running loop, as in a notebook, and check their promises."""

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest

from tests.support.command_line import CommandLine, make_environment
from tests.support.forked import ForkedCommand
from tests.support.processes import wait_for
from tests.support.texts.docs_pages import ROOT, read_blocks
from yarus import cases, compare, gate, report, run, run_sync, scores
from yarus.db.errors import InputError
from yarus.db.former_keys import add_former_keys

Document = dict[str, Any]
EXAMPLES = [block.text for block in read_blocks(ROOT / "docs" / "python.md") if block.kind == "python"]
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
"""Runs its arguments as cells, one after another, in one loop that continues between them."""


def run_python(home: Path, script: str, *words: str, env: dict[str, str] | None = None) -> str:
    """Run a program at home, and return its output; it must succeed."""
    ran = subprocess.run(
        [sys.executable, "-c", script, *words],
        env=make_environment(home) | (env or {}),
        cwd=home,
        text=True,
        capture_output=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def run_notebook(home: Path, *cells: str, env: dict[str, str] | None = None) -> str:
    """Run the cells of a notebook, and return their output; they must succeed."""
    ran = ForkedCommand(cells, make_environment(home) | (env or {}), home, NOTEBOOK).ran()
    assert ran.code == 0, ran.out + ran.err
    return ran.out


@pytest.mark.slow("prefect: two evaluations on a server of their own")
def test_page_cells_run_and_leave_no_process(home: Path) -> None:
    """Evaluate in both ways, on a server that is started for them."""
    report_cell = """
import json, psutil
children = [child.pid for child in psutil.Process().children(recursive=True)]
print(json.dumps([summary["state"], list(scores), children]))
"""
    state, columns, children = json.loads(run_notebook(home, *CELLS, report_cell))
    assert (state, columns) == ("completed", ["value", "ci_low", "ci_high", "grade"])
    assert children
    wait_for("end of its servers", lambda: not [pid for pid in children if psutil.pid_exists(pid)])


@pytest.mark.slow("process: a Jupyter kernel")
def test_notebook_runs_in_jupyter(home: Path, prefect_server: dict[str, str], tmp_path: Path) -> None:
    jupyter, executed = Path(sys.executable).with_name("jupyter-execute"), tmp_path / "done.ipynb"
    command = [jupyter, "--output", executed, ROOT / "docs" / "notebook.ipynb"]
    env = make_environment(home) | prefect_server
    ran = subprocess.run(command, env=env, cwd=tmp_path, text=True, capture_output=True, timeout=280, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    cells = [cell for cell in json.loads(executed.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    results = ["".join(output["data"]["text/plain"]) for cell in cells for output in cell["outputs"]]
    assert len(results) == len(cells)
    assert results[0] == "'completed'"
    assert "hit_rate@1" in results[1]
    assert Path(results[-1].removeprefix("PosixPath('").removesuffix("')")).read_text(encoding="utf-8")


@pytest.mark.slow("process: what is imported first")
def test_start_prefect_sets_log_level_of_imported_prefect(home: Path, prefect_server: dict[str, str]) -> None:
    script = """
import logging, prefect, yarus
yarus.start_prefect()
print([handler.level for handler in logging.getLogger().handlers])
"""
    assert json.loads(run_python(home, script, env=prefect_server)) == [logging.WARNING]


def test_page_script_runs(home: Path, prefect_server: dict[str, str]) -> None:
    (script,) = set(EXAMPLES) - set(CELLS)
    assert "hit_rate@1" in run_python(home, script, env=prefect_server)


@pytest.mark.slow("prefect: two evaluations; the script of the page awaits one")
def test_flow_can_be_awaited_directly(home: Path, prefect_server: dict[str, str]) -> None:
    """Await it twice, on an existing server."""
    flow = "from yarus.flows.tier1 import tier1; from yarus.tasks.config.parameters import Tier1"
    cell = "print((await tier1(Tier1(source='sample', limit=50)))['state'])"
    assert run_notebook(home, flow, cell, cell, env=prefect_server).split() == ["completed", "completed"]


@pytest.mark.slow("wait: longer than a stopped command may last")
def test_interrupted_cell_leaves_notebook_alive(home: Path, prefect_server: dict[str, str]) -> None:
    """Finish a cancelled evaluation in the same notebook, after a stopped command would have ended."""
    interrupted = """
import asyncio, yarus
from yarus.db import journal
from yarus.tasks.config.connections import database
from yarus.tasks.evaluation.process_exit import GRACE_S
running = asyncio.create_task(yarus.run("judge", source="sample", limit=60))
while "running" not in [row["state"] for row in journal.list_evaluations(database(), limit=1)]:
    assert not running.done(), running.result()
    await asyncio.sleep(0.05)
running.cancel()
try:
    await running
except asyncio.CancelledError:
    print(journal.list_evaluations(database(), limit=1)[0]["state"])
await asyncio.sleep(GRACE_S + 1)
"""
    resumed = "print((await yarus.run('judge', resume='last'))['state'])"
    output = run_notebook(home, interrupted, resumed, env=prefect_server)
    assert output.split() == ["cancelled", "completed"]


def test_import_yarus_is_lazy(home: Path) -> None:
    heavy = "{'prefect', 'pandas', 'pyarrow', 'sqlalchemy', 'click', 'yarus.tasks', 'yarus.db'}"
    script = f"""
import os, sys
before = dict(os.environ)
import yarus, yarus.pytest_plugin
print({heavy} & sys.modules.keys(), dict(os.environ) == before)
"""
    assert run_python(home, script).strip() == "set() True"


def test_cases_match_stored_results(at_home: Path, night: dict[str, Document]) -> None:
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
    assert all(isinstance(chunk_id, str) for chunk_id in first["retrieved"])


def test_scores_match_summary(at_home: Path, night: dict[str, Document]) -> None:
    for tier in ("tier1", "real_users"):
        summary = night[tier]
        rows = scores(summary["evaluation_id"])
        assert set(rows["tier"]) == {tier}
        stratum = rows[rows["stratum"] == ("confirmed" if "strata" in summary else "")].set_index("metric")
        assert set(stratum.index) == set(summary["metrics"])
        for name, metric in summary["metrics"].items():
            for column, value in metric.items():
                cell = stratum.loc[name, column]
                assert cell == value or (value is None and cell is pd.NA)


def test_compare_matches_command(at_home: Path, night: dict[str, Document], yarus: CommandLine) -> None:
    before, after = (night[tier]["evaluation_id"] for tier in ("tier1", "real_users"))
    with pytest.raises(InputError, match="their tiers differ"):
        compare(before, after)
    assert (
        add_former_keys(compare(before, after, force=True)) == yarus("compare", before, after, "--force", "--json").json
    )


def test_gate_matches_command(at_home: Path, night: dict[str, Document], yarus: CommandLine) -> None:
    evaluation = night["tier1"]["evaluation_id"]
    assert add_former_keys(gate(evaluation)) == yarus("gate", evaluation, "--json").json


def test_report_is_written_to_given_path(at_home: Path, night: dict[str, Document], tmp_path: Path) -> None:
    path = report(night["tier1"]["evaluation_id"], out=tmp_path / "report.html", language="en")
    assert path == tmp_path / "report.html"
    assert night["tier1"]["evaluation_id"] in path.read_text(encoding="utf-8")


async def test_run_sync_in_loop_names_await() -> None:
    with pytest.raises(RuntimeError, match=r"await yarus\.run"):
        run_sync("tier1")


async def test_wrong_names_are_reported(at_home: Path) -> None:
    with pytest.raises(InputError, match="tier1"):
        await run("tier11")
    with pytest.raises(InputError, match="source"):
        await run("tier1", sorce="sample")
    with pytest.raises(InputError, match="no-such"):
        cases("no-such")

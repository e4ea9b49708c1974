"""Run the README's commands for a user's own data as written, on a machine where nothing has run before."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import make_environment
from tests.support.llm_server import JSON_HEADER, FakeLLMServer, make_response
from tests.support.texts.docs_pages import ROOT, read_blocks

CASE = Path(__file__).parents[4] / "shared" / "cases" / "27_golden_and_pages"
BOT = "http://127.0.0.1:8000"
"""The bot's address in the README."""
INSTALL, INIT, RUN = next(
    block.commands
    for block in read_blocks(ROOT / "README.md")
    if any(command.startswith(".venv/bin/yarus init golden.json pages/") for command in block.commands)
)

pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="../shared/cases is not there")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder with a JSON array of questions and a folder of pages, and no home folder yet."""
    questions = json.loads((CASE / "golden_set.json").read_text(encoding="utf-8"))["qa_pairs"]
    (tmp_path / "golden.json").write_text(json.dumps(questions, ensure_ascii=False), encoding="utf-8")
    shutil.copytree(CASE / "pages", tmp_path / "pages")
    return tmp_path


def run(command: str, folder: Path) -> str:
    """Run a command in the folder as a shell does, with no settings but the language; return what it printed."""
    home = folder / ".yarus"
    variables = make_environment(home) | {"YARUS_LANGUAGE": "en"}
    del variables["YARUS_HOME"]
    variables["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{variables['PATH']}"
    ran = subprocess.run(
        ["bash", "-c", command.replace(".venv/bin/", "")],
        env=variables, cwd=folder, text=True, capture_output=True, timeout=240, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


@pytest.mark.slow("process: a home, and a server of Prefect, of a newcomer's own")
def test_readme_commands_measure_own_questions_and_pages(folder: Path, service: FakeLLMServer) -> None:
    assert "make" in run(f"{INSTALL.replace('make', f'make -n -C {ROOT}', 1)} && echo make", folder)
    service.script = lambda _, request: make_response(200, json.dumps({"answer": "В окне номер три."}), JSON_HEADER)
    assert BOT in INIT
    printed = run(INIT.replace(BOT, service.url), folder)
    for pattern in (
        r"question = question, ground_truth_answer = expected_answer, relevant_urls = expected_sources",
        r"scan\.pdf: no text \(a scan\?\)",
        r"/ask: answers: “В окне номер три\.”",
        r"golden\.json: 8 questions read, 8 added",
        r"pages: 9 passages read, 9 added",
        rf"\+ Tier 1: retrieval \(8 questions\): {re.escape(RUN.removeprefix('.venv/bin/'))}\n",
    ):
        assert re.search(pattern, printed), f"{pattern}\n{printed}"
    assert len(service.requests) == 1
    assert f"YARUS_SUT={service.url}/ask\n" in (folder / ".env").read_text(encoding="utf-8")
    measured = run(RUN, folder)
    assert re.search(r"^Tier 1: retrieval · golden · completed$", measured, re.MULTILINE)
    assert re.search(r"in the first\s+ten\s+for\s+100 %", measured)
    assert re.search(r"^ hit_rate@1 +0\.875 .* 8 / 8 ", measured, re.MULTILINE)
    every_metric = run(f"{RUN.split(' run ')[0]} show last --all", folder)
    assert re.search(r"^ hit_rate@10 +1\.000 .* 8 / 8 ", every_metric, re.MULTILINE)
    assert list((folder / ".yarus" / "results").rglob("tier1-*.parquet"))

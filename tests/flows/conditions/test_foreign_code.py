"""Check user functions that misbehave: only the case fails, never the run."""

import json
import signal
import time
from pathlib import Path

import pytest

from tests.support.command_line import ENGLISH, CommandLine
from tests.support.evaluations import load, question, read_rows
from tests.support.processes import wait_for

CASES = 9
MODULE = """
import asyncio, os, subprocess, sys

class Theirs(BaseException):
    pass

class Wordless(Exception):
    def __str__(self):
        sys.exit(6)

def misbehave(number):
    print("said by a function")
    if number == 0: sys.exit(5)
    if number == 1: raise asyncio.CancelledError
    if number == 2: raise KeyboardInterrupt
    if number == 3: raise GeneratorExit
    if number == 4: raise Theirs("of theirs")
    if number == 5: raise Wordless
    if number == 6: subprocess.run([sys.executable, "-c", "print('said by a program')"])
    if number == 7: os.write(1, b"written to the descriptor\\n")

def number_of(question):
    return int(question.split()[3].strip(","))

def retrieve(question, k):
    misbehave(number_of(question))
    return [(f"c{number_of(question)}", 0.1)]

def answer(question):
    misbehave(number_of(question))
    return {"answer": "Сдать книгу.", "urls": [], "contexts": ["Правило"]}
"""
RAISED = (
    "SystemExit: 5",
    "CancelledError:",
    "KeyboardInterrupt:",
    "GeneratorExit:",
    "Theirs: of theirs",
    "Wordless: (",
)


@pytest.fixture(scope="module")
def source(at_home_for_module: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    (at_home_for_module / "misbehaving.py").write_text(MODULE, encoding="utf-8")
    return load(tmp_path_factory.mktemp("foreign"), "foreign_code", [question(i) for i in range(CASES)])


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("tier1", "--retriever", "misbehaving:retrieve"), marks=pytest.mark.slow("breadth: a retriever")),
        ("tier3", "--sut", "misbehaving:answer"),
    ],
)
def test_raised_error_fails_only_its_case(yarus: CommandLine, source: str, words: tuple[str, ...]) -> None:
    env = {"YARUS_MIN_COVERAGE": "0.1"}
    result = yarus("run", words[0], "--source", source, "--json", *words[1:], env=env)
    summary = json.loads(result.out)  # none of its output is there
    assert summary["state"] == "completed"
    rows = sorted(read_rows(summary), key=lambda row: int(row["question"].split()[3].strip(",")))
    assert [row["status"] for row in rows] == ["sut_error"] * len(RAISED) + ["ok"] * (CASES - len(RAISED))
    for row, reason_start in zip(rows, RAISED, strict=False):
        assert row["reason"].startswith(reason_start)
    for text in ("said by a function", "said by a program", "written to the descriptor"):
        assert text in result.err


def test_module_that_exits_on_import_is_refused(yarus: CommandLine, source: str, at_home_for_module: Path) -> None:
    (at_home_for_module / "leaving.py").write_text("print('imported')\nraise KeyboardInterrupt\n", encoding="utf-8")
    ran = yarus("run", "tier3", "--source", source, "--json", "--sut", "leaving:answer", env=ENGLISH, ok=False)
    assert (ran.code, ran.out) == (2, "")
    assert "'leaving:answer': module 'leaving': KeyboardInterrupt: (leaving.py:2); expected module:function" in ran.err


SLOW = """
import pathlib, time

def answer(question):
    pathlib.Path("asked").touch()
    time.sleep(1)
    return {"answer": "Сдать книгу."}
"""


@pytest.mark.slow("process: a function that hears of a stop late")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_user_stop_still_stops(yarus: CommandLine, source: str, at_home_for_module: Path, stop: signal.Signals) -> None:
    (at_home_for_module / "slow_to_answer.py").write_text(SLOW, encoding="utf-8")
    marker = at_home_for_module / "asked"
    marker.unlink(missing_ok=True)
    process = yarus.fork("run", "tier3", "--source", source, "--sut", "slow_to_answer:answer")
    wait_for("question", marker.exists)
    process.signal(stop)
    started = time.monotonic()
    assert process.ran().code == 130
    assert time.monotonic() - started < 60

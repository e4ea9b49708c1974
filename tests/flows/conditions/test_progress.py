"""Check the progress of an evaluation case by case, in the terminal and in Prefect; and quiet and verbose."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.support.command_line import ENGLISH, CommandLine, Document, assert_refused, make_environment, run_here
from tests.support.evaluation_history import make_source_name
from tests.support.evaluations import answer_steadily, evaluate, load, make_role_variables, question, set_variables
from tests.support.llm_server import JSON_HEADER, Action, FakeLLMServer, make_response
from yarus.tasks.evaluation import batches
from yarus.tasks.models.progress import get_current_progress


def answer_slowly(request: Document, after_s: float) -> Action:
    reply = {"answer": f"Правило велит: {request['question']}"}
    return Action(make_response(200, json.dumps(reply, ensure_ascii=False), JSON_HEADER), after_s=after_s)


def test_progress_counts_within_a_batch(
    judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 12
    answered, judged = [], []

    def answer(number: int, request: Document) -> Action:
        progress = get_current_progress()
        assert progress is not None
        answered.append((progress.counts["answer"], progress.done, progress.n_cases))
        return answer_slowly(request, 0.05)

    def score(number: int, request: Document) -> object:
        progress = get_current_progress()
        assert progress is not None
        judged.append((progress.counts["answer"], progress.counts["judge"], progress.tokens, progress.cost_usd))
        return answer_steadily(number, request)

    service.script, judge.script = answer, score  # type: ignore[assignment]
    model = make_role_variables(judge.url, "judge")["YARUS_JUDGE__MODEL"]
    price = {model: {"input": 1000.0, "output": 0.0, "as_of": "2026-01-01"}}
    set_variables(
        monkeypatch, {"YARUS_SUT_CONCURRENCY": "1", "YARUS_JUDGE__CONCURRENCY": "1", "YARUS_PRICES": json.dumps(price)}
    )
    evaluate("tier3", source=load(tmp_path, make_source_name(), [question(i) for i in range(n)]), sut=service.url)
    assert {(n_done, total) for _, n_done, total in answered} == {(0, n)}
    assert [count for count, *_ in answered] == sorted(count for count, *_ in answered)
    assert len({count for count, *_ in answered}) >= 3  # of one batch
    assert {count for count, *_ in judged} == {n}
    assert len({count for _, count, *_ in judged}) >= 3
    tokens, cost = judged[-1][2:]
    assert tokens is not None and tokens > 0
    assert cost == pytest.approx(tokens * 100 / 120 / 1000, rel=0.01)
    assert get_current_progress() is None


@pytest.mark.slow("wait: seconds between lines")
def test_progress_is_logged_periodically(
    service: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(batches, "UPDATE_INTERVAL_S", 0.2)
    monkeypatch.setattr(batches, "LOG_INTERVAL_S", 0.1)
    set_variables(monkeypatch, {"YARUS_SUT_CONCURRENCY": "1"})
    service.script = lambda number, request: answer_slowly(request, 0.2)
    source = load(tmp_path, make_source_name(), [question(i) for i in range(15)])
    with caplog.at_level("INFO", logger="yarus"):
        evaluate("tier3", source=source, sut=service.url)
    lines = [record.getMessage() for record in caplog.records if hasattr(record, "progress")]
    assert lines
    assert lines[0].startswith(f"tier3 {source} · вопросов 0 из 15 (")


FREQUENT_PROGRESS = """
from yarus.__main__ import main
from yarus.tasks.evaluation import batches
batches.UPDATE_INTERVAL_S = 0.5
main()
"""
"""The command line, with more frequent progress in Prefect."""


def run_in_terminal(words: tuple[str, ...], home: Path, env: dict[str, str]) -> str:
    """Run a command whose stderr is a wide terminal, and return what it printed there."""
    master, slave = pty.openpty()
    command = [sys.executable, "-c", FREQUENT_PROGRESS, *words]
    variables = make_environment(home) | env | {"COLUMNS": "200", "TERM": "xterm"}
    with subprocess.Popen(command, env=variables, cwd=home, stdout=subprocess.DEVNULL, stderr=slave) as process:
        os.close(slave)
        output = b""
        while True:
            try:
                part = os.read(master, 65_536)
            except OSError:  # its end, on Linux
                break
            if not part:
                break
            output += part
        assert process.wait(60) in (0, 1)
    os.close(master)
    return output.decode()


@pytest.mark.slow("process: a terminal")
def test_progress_is_shown_in_terminal_and_prefect(
    service: FakeLLMServer, home: Path, tmp_path: Path, prefect_server: dict[str, str]
) -> None:
    n = 60
    service.script = lambda number, request: (
        make_response(500, "broken") if number % 10 == 0 else answer_slowly(request, 0.2)
    )  # 54 of them, four in parallel: longer than the update intervals of Prefect and the terminal
    source = load(tmp_path, make_source_name(), [question(i) for i in range(n)])
    env = prefect_server | {"YARUS_SUT_CONCURRENCY": "4"}
    output = run_in_terminal(("run", "tier3", "--source", source, "--sut", service.url), home, env)
    assert f"tier3 {source} · вопросов 0 из {n} (" in output
    counts = {part.split(" ", 1)[0] for part in output.split("отвечено ")[1:]}
    assert len(counts) >= 5
    assert "осталось 0:" in output
    assert "не удалось: " in output
    artifacts = httpx.post(
        f"{prefect_server['PREFECT_API_URL']}/artifacts/filter",
        json={"artifacts": {"key": {"any_": [batches.artifact_key("tier3", source, "progress")]}}},
    ).json()
    assert [(artifact["type"], artifact["data"]) for artifact in artifacts] == [("progress", 100.0)]
    assert f"вопросов {n} из {n} (100 %)" in artifacts[0]["description"]
    assert "не удалось: 6" in artifacts[0]["description"]


@pytest.mark.slow("process: four runs")
def test_quiet_prints_nothing_and_verbose_reasons(
    yarus: CommandLine, service: FakeLLMServer, tmp_path: Path, at_home: Path
) -> None:
    service.script = lambda _, request: (
        make_response(500, "broken") if "правило 0" in request["question"] else answer_slowly(request, 0.0)
    )
    source = load(tmp_path, make_source_name(), [question(i) for i in range(4)])
    arguments = ("run", "tier3", "--source", source, "--sut", service.url)
    verbose = yarus(*arguments, "-v", env=ENGLISH, ok=False)
    assert "batch 1: judge took" in verbose.err
    assert "answer failed: " in verbose.err
    assert "answered 500" in verbose.err
    service.script = lambda _, request: answer_slowly(request, 0.0)
    quiet = yarus(*arguments, "-q", env=ENGLISH)
    assert quiet.err == ""
    assert source in quiet.out
    usual = yarus(*arguments, env=ENGLISH)
    assert f"{source}: 4 cases" in usual.err
    assert "took" not in usual.err
    assert yarus(*arguments, "--json").err == ""
    for command in (arguments, ("demo",), ("sweep",), ("robustness",)):
        assert_refused(run_here(*command, "-q", "-v", env=ENGLISH), 2, ("--quiet and --verbose cannot be combined",))

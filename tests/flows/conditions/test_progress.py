"""How far an evaluation is, told while it lasts: case by case, in a terminal, in Prefect; and how much is said."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.support.command_line import ENGLISH, CommandLine, Document, environment, here, refused
from tests.support.evaluation_history import source_name
from tests.support.evaluations import evaluate, load, question, roles, steady, use
from tests.support.llm_server import JSON, Do, FakeLLMServer, http
from yarus.tasks.evaluation import batches
from yarus.tasks.models.progress import shown


def slowly(request: Document, after_s: float) -> Do:
    said = {"answer": f"Правило велит: {request['question']}"}
    return Do(http(200, json.dumps(said, ensure_ascii=False), JSON), after_s=after_s)


def test_cases_tokens_and_cost_are_counted_while_a_batch_is_on_its_way(
    judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 12
    answered, judged = [], []

    def answer(number: int, request: Document) -> Do:
        found = shown()
        assert found is not None
        answered.append((found.counts["answer"], found.done, found.n_cases))
        return slowly(request, 0.05)

    def score(number: int, request: Document) -> object:
        found = shown()
        assert found is not None
        judged.append((found.counts["answer"], found.counts["judge"], found.tokens, found.cost_usd))
        return steady(number, request)

    service.script, judge.script = answer, score  # type: ignore[assignment]
    model = roles(judge.url, "judge")["YARUS_JUDGE__MODEL"]
    price = {model: {"input": 1000.0, "output": 0.0, "as_of": "2026-01-01"}}
    use(monkeypatch, {"YARUS_SUT_CONCURRENCY": "1", "YARUS_JUDGE__CONCURRENCY": "1", "YARUS_PRICES": json.dumps(price)})
    evaluate("tier3", source=load(tmp_path, source_name(), [question(i) for i in range(n)]), sut=service.url)
    assert {(done, of) for _, done, of in answered} == {(0, n)}
    assert [count for count, *_ in answered] == sorted(count for count, *_ in answered)
    assert len({count for count, *_ in answered}) >= 3  # of one batch
    assert {count for count, *_ in judged} == {n}
    assert len({count for _, count, *_ in judged}) >= 3
    tokens, cost = judged[-1][2:]
    assert tokens is not None and tokens > 0
    assert cost == pytest.approx(tokens * 100 / 120 / 1000, rel=0.01)
    assert shown() is None


@pytest.mark.slow("wait: seconds between lines")
def test_the_log_says_it_now_and_then(
    service: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(batches, "EVERY_S", 0.2)
    monkeypatch.setattr(batches, "LINES_S", 0.1)
    use(monkeypatch, {"YARUS_SUT_CONCURRENCY": "1"})
    service.script = lambda number, request: slowly(request, 0.2)
    source = load(tmp_path, source_name(), [question(i) for i in range(15)])
    with caplog.at_level("INFO", logger="yarus"):
        evaluate("tier3", source=source, sut=service.url)
    lines = [record.getMessage() for record in caplog.records if hasattr(record, "progress")]
    assert lines
    assert lines[0].startswith(f"tier3 {source} · вопросов 0 из 15 (")


SOON = """
from yarus.__main__ import main
from yarus.tasks.evaluation import batches
batches.EVERY_S = 0.5
main()
"""
"""The command line, which tells Prefect sooner."""


def in_terminal(words: tuple[str, ...], home: Path, env: dict[str, str]) -> str:
    """What a command says on stderr where that is a terminal, wide enough for a line."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", SOON, *words]
    variables = environment(home) | env | {"COLUMNS": "200", "TERM": "xterm"}
    with subprocess.Popen(command, env=variables, cwd=home, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        said = b""
        while True:
            try:
                part = os.read(ours, 65_536)
            except OSError:  # its end, on Linux
                break
            if not part:
                break
            said += part
        assert process.wait(60) in (0, 1)
    os.close(ours)
    return said.decode()


@pytest.mark.slow("process: a terminal")
def test_a_terminal_and_prefect_show_it(
    service: FakeLLMServer, home: Path, tmp_path: Path, prefect_server: dict[str, str]
) -> None:
    n = 60
    service.script = lambda number, request: (
        http(500, "broken") if number % 10 == 0 else slowly(request, 0.2)
    )  # 54 of them, four at once: more than the time after which Prefect is told, and the terminal is written anew
    source = load(tmp_path, source_name(), [question(i) for i in range(n)])
    env = prefect_server | {"YARUS_SUT_CONCURRENCY": "4"}
    said = in_terminal(("run", "tier3", "--source", source, "--sut", service.url), home, env)
    assert f"tier3 {source} · вопросов 0 из {n} (" in said
    counts = {part.split(" ", 1)[0] for part in said.split("отвечено ")[1:]}
    assert len(counts) >= 5
    assert "осталось 0:" in said
    assert "не удалось: " in said
    found = httpx.post(
        f"{prefect_server['PREFECT_API_URL']}/artifacts/filter",
        json={"artifacts": {"key": {"any_": [batches.artifact_key("tier3", source, "progress")]}}},
    ).json()
    assert [(one["type"], one["data"]) for one in found] == [("progress", 100.0)]
    assert f"вопросов {n} из {n} (100 %)" in found[0]["description"]
    assert "не удалось: 6" in found[0]["description"]


@pytest.mark.slow("process: four runs")
def test_quiet_says_nothing_and_verbose_says_why(
    yarus: CommandLine, service: FakeLLMServer, tmp_path: Path, at_home: Path
) -> None:
    service.script = lambda _, asked: http(500, "broken") if "правило 0" in asked["question"] else slowly(asked, 0.0)
    source = load(tmp_path, source_name(), [question(i) for i in range(4)])
    asked = ("run", "tier3", "--source", source, "--sut", service.url)
    verbose = yarus(*asked, "-v", env=ENGLISH, ok=False)
    assert "batch 1: judge took" in verbose.err
    assert "answer failed: " in verbose.err
    assert "answered 500" in verbose.err
    service.script = lambda _, request: slowly(request, 0.0)
    quiet = yarus(*asked, "-q", env=ENGLISH)
    assert quiet.err == ""
    assert source in quiet.out
    usual = yarus(*asked, env=ENGLISH)
    assert f"{source}: 4 cases" in usual.err
    assert "took" not in usual.err
    assert yarus(*asked, "--json").err == ""
    for command in (asked, ("demo",), ("sweep",), ("robustness",)):
        refused(here(*command, "-q", "-v", env=ENGLISH), 2, ("--quiet and --verbose exclude each other",))

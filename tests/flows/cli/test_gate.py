"""Check `yarus gate` in a shell script: it stops on a planted regression and ignores noise; and its output."""

import asyncio
import json
import random
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click
import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine

from tests.support.command_line import ENGLISH, CommandLine, in_shell, make_environment
from tests.support.evaluation_history import make_source_name, write_evaluation_with_cases
from tests.support.evaluations import evaluate, read_rows
from tests.support.forked import CommandResult
from tests.support.json_schemas import check_json
from yarus.__main__ import cli
from yarus.db.errors import InputError
from yarus.flows.terminal.comparisons.gate import format_junit
from yarus.tasks.config.parameters import Tier1
from yarus.tasks.evaluation.batch import evaluate_batch
from yarus.tasks.steps.finish import finish
from yarus.tasks.steps.lifecycle import open_evaluation
from yarus.tasks.steps.retrieval import load, score_rankings
from yarus.tasks.steps.search import index, retrieve

Document = dict[str, Any]
RETRIEVER = """
import json
from pathlib import Path
RANKINGS = json.loads((Path(__file__).parent / "{name}.json").read_text(encoding="utf-8"))
def retrieve(question, k):
    return [(chunk, place) for place, chunk in enumerate(RANKINGS[question][:k])]
"""
SCRIPT = 'set -e\n"$@"\necho deployed\n'


def tier1(**parameters: Any) -> Document:
    """Evaluate tier 1 with the flow's steps in order, and return the summary."""

    async def steps() -> Document:
        async with open_evaluation("tier1", Tier1.model_validate(parameters)) as run:
            run = await index.fn(await load.fn(run))
            for batch in range(run.n_batches):
                await evaluate_batch.fn(run, batch, (retrieve, score_rankings))
            return await finish.fn(run)

    return asyncio.run(steps())


def evaluate_rankings(home: Path, name: str, rankings: dict[str, list[str]], source: str) -> str:
    """Evaluate a retriever with these rankings, and return the id."""
    (home / f"{name}.py").write_text(RETRIEVER.format(name=name), encoding="utf-8")
    (home / f"{name}.json").write_text(json.dumps(rankings, ensure_ascii=False), encoding="utf-8")
    summary = tier1(source=source, retriever=f"{name}:retrieve", limit=300)
    assert summary["state"] == "completed", summary
    return str(summary["evaluation_id"])


@pytest.fixture
def three_evaluations(at_home: Path, xquad_source: str) -> tuple[str, str, str]:
    """Evaluate text search, the same with random gains and losses, and with every third ranking broken."""
    base = tier1(source=xquad_source, retriever="fulltext", limit=300)
    rows = [row for row in read_rows(base) if row["relevant"]]
    rankings = {row["question"]: row["retrieved"] for row in rows}
    chance = random.Random(0)
    won, lost = (chance.sample([row for row in rows if row["hit_rate@1"] == hit], 5) for hit in (0, 1))
    noisy = rankings | {row["question"]: row["relevant"] for row in won}
    noisy |= {row["question"]: ["nothing", *row["retrieved"]] for row in lost}
    broken = rankings | {row["question"]: ["nothing", "at", "all"] for row in rows[::3]}
    return (
        base["evaluation_id"],
        evaluate_rankings(at_home, "noisy_retriever", noisy, xquad_source),
        evaluate_rankings(at_home, "broken_retriever", broken, xquad_source),
    )


def deploy(home: Path, *words: str) -> CommandResult:
    """Run a shell script that checks the gate, then deploys."""
    return in_shell("sh", "-c", SCRIPT, "sh", "yarus", "gate", *words, env=make_environment(home), folder=home)


def test_gate_stops_script_on_regression_only(home: Path, three_evaluations: tuple[str, str, str]) -> None:
    base, noisy, broken = three_evaluations
    passed = deploy(home, noisy, "--baseline", base)
    assert (passed.code, passed.out.splitlines()[-1]) == (0, "deployed"), passed.err
    stopped = deploy(home, broken, "--baseline", base)
    assert stopped.code == 1
    assert "deployed" not in stopped.out
    assert stopped.out.count("не пройдено") >= 3  # hit_rate@1, mrr, ndcg@10


def run_gate(*words: str) -> Result:
    result = CliRunner().invoke(cli, ["gate", *words], standalone_mode=False)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def evaluation_id(engine: Engine, tmp_path: Path) -> str:
    """Write an evaluation with 160 hits of 200."""
    return write_evaluation_with_cases(engine, tmp_path, make_source_name(), {"hit_rate@1": [0.0] * 40 + [1.0] * 160})


def write_rules(folder: Path, *floors: float) -> str:
    path = folder / "rules.toml"
    lines = [f'[[rule]]\nmetric = "hit_rate@1"\nfloor = {floor}\n' for floor in floors]
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("floor", "verdict", "code", "strict"),
    [(0.5, "pass", 0, 0), (0.78, "inconclusive", 0, 1), (0.9, "fail", 1, 1)],
)
def test_gate_exit_codes(
    at_home: Path, evaluation_id: str, tmp_path: Path, floor: float, verdict: str, code: int, strict: int
) -> None:
    words = (evaluation_id, "--file", write_rules(tmp_path, floor), "--json")
    result = run_gate(*words)
    assert (json.loads(result.stdout)["verdict"], result.exit_code) == (verdict, code)
    assert run_gate(*words, "--strict").exit_code == strict


def test_invalid_evaluation_fails_gate(at_home: Path, engine: Engine, tmp_path: Path) -> None:
    name = write_evaluation_with_cases(
        engine, tmp_path, make_source_name(), {"mrr": [1.0] * 9}, state="invalid", error="only 10 % measured"
    )
    result = run_gate(name)
    assert (result.exit_code, "only 10 % measured" in result.stdout) == (1, True)


def test_gate_names_metrics_that_no_model_judged(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = evaluate("tier3", source="sample", limit=20)
    name, rules = summary["evaluation_id"], at_home / "rules.toml"
    text = '[[rule]]\nmetric = "avg_e2e_score"\nfloor = 0.001\n[[rule]]\nmetric = "sut_error_rate"\nceiling = 0.9\n'
    rules.write_text(text, encoding="utf-8")
    document = json.loads(run_gate(name, "--file", str(rules), "--json").stdout)
    assert (document["verdict"], document["unjudged_metrics"]) == ("pass", ["avg_e2e_score"])
    for language, start in (("en", "No language model judged avg_e2e_score, "), ("ru", "Языковая модель не судила ")):
        monkeypatch.setenv("YARUS_LANGUAGE", language)
        result = run_gate(name, "--file", str(rules))
        assert (result.exit_code, result.stdout.strip().splitlines()[1].startswith(start)) == (0, True)


@pytest.mark.parametrize(("language", "message"), [("ru", "нужно ещё примерно"), ("en", "needs about")])
def test_inconclusive_rule_tells_missing_cases(
    at_home: Path, evaluation_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str, message: str
) -> None:
    monkeypatch.setenv("YARUS_LANGUAGE", language)
    text = run_gate(evaluation_id, "--file", write_rules(tmp_path, 0.78)).stdout
    assert message in text
    assert "--strict" in text


def test_junit_has_one_test_case_per_rule(at_home: Path, evaluation_id: str, tmp_path: Path) -> None:
    target = tmp_path / "gate.xml"
    words = (evaluation_id, "--file", write_rules(tmp_path, 0.5, 0.78, 0.9), "--junit", str(target))
    assert run_gate(*words).exit_code == 1
    suite = ElementTree.parse(target).getroot()  # noqa: S314 - our own
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "3", "failures": "1", "errors": "0", "skipped": "1"}
    assert [case[0].tag for case in suite] == ["system-out", "skipped", "failure"]
    run_gate(*words, "--strict")
    assert ElementTree.parse(target).getroot().get("failures") == "2"  # noqa: S314


def test_junit_replaces_invalid_xml_characters() -> None:
    rule = dict.fromkeys(
        (
            "value",
            "ci_low",
            "ci_high",
            "baseline",
            "difference",
            "p",
            "p_holm",
            "min_detectable_effect",
            "n_cases_needed",
        )
    )
    rule |= {"metric": "mrr", "stratum": None, "rule": "floor", "bound": 0.5, "verdict": "fail"}
    rule |= {"reason": "\x00\x1b[31m<b>&\ud800\ufffe \u202eязык"}
    document = {"evaluation_id": "a\x07b", "source": "c\x00d", "tier": "tier1", "error": None, "rules": [rule]}
    text = format_junit(document, "ru", strict=False)
    suite = ElementTree.fromstring(text)  # noqa: S314
    assert suite[0][0].text == "\ufffd\ufffd[31m<b>&\ufffd\ufffd \u202eязык"
    assert suite.get("name") == "yarus gate a\ufffdb"


def test_failed_release_fails_until_accepted(at_home: Path, engine: Engine, tmp_path: Path) -> None:
    source, bad = make_source_name(), {"hit_rate@1": [0.0] * 90 + [1.0] * 110}
    first = write_evaluation_with_cases(engine, tmp_path, source, {"hit_rate@1": [0.0] * 40 + [1.0] * 160})
    failed, again, later = (write_evaluation_with_cases(engine, tmp_path, source, bad, night=n) for n in (1, 2, 3))
    results = [run_gate(name) for name in (failed, again)]
    assert [result.exit_code for result in results] == [1, 1]
    assert all(f"Сравнение с {first}: первый сравнимый прогон" in result.stdout for result in results)
    assert f"{again}: принят за базовый" in run_gate("--accept", again).stdout
    accepted = run_gate(later)
    assert (accepted.exit_code, f"Сравнение с {again}: принят за базовый" in accepted.stdout) == (0, True)
    assert check_json("gate --accept", run_gate("--accept", first, "--json").stdout) == {
        "evaluation_id": first,
        "verdict": "accepted",
    }
    assert run_gate(later).exit_code == 1


@pytest.mark.parametrize(
    ("words", "state", "message"),
    [
        ((), "invalid", "is invalid: it cannot be a baseline"),
        (("--strict",), "completed", "--accept does not check: it goes with no other option than --json"),
    ],
)
def test_gate_refuses_to_accept(
    at_home: Path, engine: Engine, tmp_path: Path, words: tuple[str, ...], state: str, message: str
) -> None:
    name = write_evaluation_with_cases(engine, tmp_path, make_source_name(), {"mrr": [1.0] * 9}, state=state)
    with pytest.raises((InputError, click.UsageError), match=message):
        run_gate(name, "--accept", *words)
    with pytest.raises(InputError, match="no evaluation 'tier1-never'; there are"):
        run_gate("tier1-never", "--accept")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--file", "nothing.toml"), "gate file nothing.toml"),
        (("--junit", "no/such/folder/x.xml"), "does not exist; create it"),
        (("--baseline", "tier1-never"), "--baseline tier1-never: no evaluation"),
    ],
)
def test_gate_refuses_wrong_usage(at_home: Path, evaluation_id: str, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_gate(evaluation_id, *words)


def test_gate_file_typo_has_exit_code_2(yarus: CommandLine, evaluation_id: str, tmp_path: Path) -> None:
    path = tmp_path / "typo.toml"
    path.write_text('[[rule]]\nmetric = "hit_rate@1"\nflor = 0.5\n', encoding="utf-8")
    ran = yarus("gate", evaluation_id, "--file", str(path), env=ENGLISH, ok=False)
    assert (ran.code, ran.out) == (2, "")
    assert "rule 1: no key 'flor'; did you mean 'floor'" in ran.err

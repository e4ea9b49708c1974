"""`yarus gate` in a shell script: it stops on a planted regression and lets noise pass. And what it writes and says."""

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

from tests.support.command_line import ENGLISH, CommandLine, environment, in_shell
from tests.support.evaluation_history import source_name, with_cases
from tests.support.evaluations import rows_of
from tests.support.forked import Ran
from yarus.__main__ import cli
from yarus.db.errors import InputError
from yarus.flows.terminal.differences.gate import junit
from yarus.tasks.config.parameters import Tier1
from yarus.tasks.evaluation.batch import evaluate_batch
from yarus.tasks.steps.finish import finish
from yarus.tasks.steps.lifecycle import evaluation
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
    """The summary of a tier 1 evaluation: the flow's steps in its order."""

    async def steps() -> Document:
        async with evaluation("tier1", Tier1.model_validate(parameters)) as run:
            run = await index.fn(await load.fn(run))
            for batch in range(run.n_batches):
                await evaluate_batch.fn(run, batch, (retrieve, score_rankings))
            return await finish.fn(run)

    return asyncio.run(steps())


def by_rankings(home: Path, name: str, rankings: dict[str, list[str]], source: str) -> str:
    """An evaluation of a retriever that answers so; its id."""
    (home / f"{name}.py").write_text(RETRIEVER.format(name=name), encoding="utf-8")
    (home / f"{name}.json").write_text(json.dumps(rankings, ensure_ascii=False), encoding="utf-8")
    summary = tier1(source=source, retriever=f"{name}:retrieve", limit=300)
    assert summary["state"] == "completed", summary
    return str(summary["evaluation_id"])


@pytest.fixture
def three(at_home: Path, xquad_source: str) -> tuple[str, str, str]:
    """Text search, the same with five questions won and five lost by chance, and with rubbish for every third."""
    base = tier1(source=xquad_source, retriever="fulltext", limit=300)
    rows = [row for row in rows_of(base) if row["relevant"]]
    rankings = {row["question"]: row["retrieved"] for row in rows}
    chance = random.Random(0)
    won, lost = (chance.sample([row for row in rows if row["hit_rate@1"] == hit], 5) for hit in (0, 1))
    noisy = rankings | {row["question"]: row["relevant"] for row in won}
    noisy |= {row["question"]: ["nothing", *row["retrieved"]] for row in lost}
    broken = rankings | {row["question"]: ["nothing", "at", "all"] for row in rows[::3]}
    return (
        base["evaluation_id"],
        by_rankings(at_home, "noisy_retriever", noisy, xquad_source),
        by_rankings(at_home, "broken_retriever", broken, xquad_source),
    )


def deploy(home: Path, *words: str) -> Ran:
    """A shell script that gates, then deploys."""
    return in_shell("sh", "-c", SCRIPT, "sh", "yarus", "gate", *words, env=environment(home), folder=home)


def test_a_script_stops_on_a_regression_and_not_on_noise(home: Path, three: tuple[str, str, str]) -> None:
    base, noisy, broken = three
    passed = deploy(home, noisy, "--baseline", base)
    assert (passed.code, passed.out.splitlines()[-1]) == (0, "deployed"), passed.err
    stopped = deploy(home, broken, "--baseline", base)
    assert stopped.code == 1
    assert "deployed" not in stopped.out
    assert stopped.out.count("не пройдено") >= 3  # hit_rate@1, mrr, ndcg@10


def asked(*words: str) -> Result:
    result = CliRunner().invoke(cli, ["gate", *words], standalone_mode=False)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def judged(engine: Engine, tmp_path: Path) -> str:
    """160 of 200 hits."""
    return with_cases(engine, tmp_path, source_name(), {"hit_rate@1": [0.0] * 40 + [1.0] * 160})


def rules(folder: Path, *floors: float) -> str:
    path = folder / "rules.toml"
    lines = [f'[[rule]]\nmetric = "hit_rate@1"\nfloor = {floor}\n' for floor in floors]
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("floor", "verdict", "code", "strict"),
    [(0.5, "pass", 0, 0), (0.78, "inconclusive", 0, 1), (0.9, "fail", 1, 1)],
)
def test_exit_codes(
    at_home: Path, judged: str, tmp_path: Path, floor: float, verdict: str, code: int, strict: int
) -> None:
    words = (judged, "--file", rules(tmp_path, floor), "--json")
    found = asked(*words)
    assert (json.loads(found.stdout)["verdict"], found.exit_code) == (verdict, code)
    assert asked(*words, "--strict").exit_code == strict


def test_an_invalid_evaluation_stops(at_home: Path, engine: Engine, tmp_path: Path) -> None:
    name = with_cases(engine, tmp_path, source_name(), {"mrr": [1.0] * 9}, state="invalid", error="only 10 % measured")
    found = asked(name)
    assert (found.exit_code, "only 10 % measured" in found.stdout) == (1, True)


@pytest.mark.parametrize(("language", "said"), [("ru", "нужно ещё примерно"), ("en", "needs about")])
def test_what_is_inconclusive_says_how_many_cases_are_missing(
    at_home: Path, judged: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str, said: str
) -> None:
    monkeypatch.setenv("YARUS_LANGUAGE", language)
    text = asked(judged, "--file", rules(tmp_path, 0.78)).stdout
    assert said in text
    assert "--strict" in text


def test_junit_has_a_test_case_a_rule(at_home: Path, judged: str, tmp_path: Path) -> None:
    target = tmp_path / "gate.xml"
    words = (judged, "--file", rules(tmp_path, 0.5, 0.78, 0.9), "--junit", str(target))
    assert asked(*words).exit_code == 1
    suite = ElementTree.parse(target).getroot()  # noqa: S314 - our own
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "3", "failures": "1", "errors": "0", "skipped": "1"}
    assert [case[0].tag for case in suite] == ["system-out", "skipped", "failure"]
    asked(*words, "--strict")
    assert ElementTree.parse(target).getroot().get("failures") == "2"  # noqa: S314


def test_junit_holds_only_what_xml_allows() -> None:
    rule = dict.fromkeys(
        ("value", "ci_low", "ci_high", "baseline", "difference", "p", "p_holm", "smallest_detectable", "needs")
    )
    rule |= {"metric": "mrr", "stratum": None, "rule": "floor", "bound": 0.5, "verdict": "fail"}
    rule |= {"reason": "\x00\x1b[31m<b>&\ud800\ufffe \u202eязык"}
    document = {"evaluation_id": "a\x07b", "source": "c\x00d", "tier": "tier1", "error": None, "rules": [rule]}
    text = junit(document, "ru", strict=False)
    suite = ElementTree.fromstring(text)  # noqa: S314
    assert suite[0][0].text == "\ufffd\ufffd[31m<b>&\ufffd\ufffd \u202eязык"
    assert suite.get("name") == "yarus gate a\ufffdb"


def test_a_failed_release_that_is_evaluated_again_fails_again_until_its_level_is_accepted(
    at_home: Path, engine: Engine, tmp_path: Path
) -> None:
    source, bad = source_name(), {"hit_rate@1": [0.0] * 90 + [1.0] * 110}
    first = with_cases(engine, tmp_path, source, {"hit_rate@1": [0.0] * 40 + [1.0] * 160})
    failed, again, later = (with_cases(engine, tmp_path, source, bad, night=night) for night in (1, 2, 3))
    found = [asked(name) for name in (failed, again)]
    assert [one.exit_code for one in found] == [1, 1]
    assert all(f"Сравнение с {first}: первый с таким ключом" in one.stdout for one in found)
    assert f"{again}: принят за базовый" in asked("--accept", again).stdout
    accepted = asked(later)
    assert (accepted.exit_code, f"Сравнение с {again}: принят за базовый" in accepted.stdout) == (0, True)
    assert json.loads(asked("--accept", first, "--json").stdout) == {"evaluation_id": first, "verdict": "accepted"}
    assert asked(later).exit_code == 1


@pytest.mark.parametrize(
    ("words", "state", "said"),
    [
        ((), "invalid", "is invalid: it cannot be a baseline"),
        (("--strict",), "completed", "--accept does not check: it goes with no other option than --json"),
    ],
)
def test_what_cannot_be_accepted(
    at_home: Path, engine: Engine, tmp_path: Path, words: tuple[str, ...], state: str, said: str
) -> None:
    name = with_cases(engine, tmp_path, source_name(), {"mrr": [1.0] * 9}, state=state)
    with pytest.raises((InputError, click.UsageError), match=said):
        asked(name, "--accept", *words)
    with pytest.raises(InputError, match="no evaluation 'tier1-never'; there are"):
        asked("tier1-never", "--accept")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--file", "nothing.toml"), "gate file nothing.toml"),
        (("--junit", "no/such/folder/x.xml"), "there is no folder"),
        (("--baseline", "tier1-never"), "--baseline tier1-never: no evaluation"),
    ],
)
def test_wrong_usage_stops_before_anything_is_judged(
    at_home: Path, judged: str, words: tuple[str, ...], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        asked(judged, *words)


def test_a_typo_in_the_file_is_exit_code_2(yarus: CommandLine, judged: str, tmp_path: Path) -> None:
    path = tmp_path / "typo.toml"
    path.write_text('[[rule]]\nmetric = "hit_rate@1"\nflor = 0.5\n', encoding="utf-8")
    ran = yarus("gate", judged, "--file", str(path), env=ENGLISH, ok=False)
    assert (ran.code, ran.out) == (2, "")
    assert "rule 1: no key 'flor'; did you mean 'floor'" in ran.err

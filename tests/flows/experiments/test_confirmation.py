"""Before an alarm the questions that changed are asked once more, and it says how many of the changes persisted."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from sqlalchemy import Engine, select

from tests.support.evaluation_history import source_name
from tests.support.evaluations import evaluate, load, question, rows_of, texts
from tests.support.llm_server import FakeLLMServer, scores
from yarus.db import journal
from yarus.db.errors import InputError, ResultsUnavailable
from yarus.db.stores.calls import booked_usd
from yarus.db.tables import nightly_verdict
from yarus.deployments.alarms.confirmation import to_confirm
from yarus.deployments.alarms.incidents import follow, incidents
from yarus.deployments.alarms.levels import LevelVerdict
from yarus.flows.before.dry_run import plan
from yarus.tasks.comparison.noise_floor import floors
from yarus.tasks.comparison.trend import trend
from yarus.tasks.config.parameters import Tier1, Tier3
from yarus.tasks.evaluation.findings.persistence import persistence_sentences
from yarus.tasks.evaluation.repeats import parameters_of_repeated
from yarus.tasks.evaluation.summary import summary
from yarus.tasks.report.write import report

Document = dict[str, Any]
N, LOST = 60, 40


class Judge:
    """A judge that gives the first questions what it is told to give, and the others 0.9."""

    def __init__(self) -> None:
        self.low = [0.9] * LOST
        self.asked: list[str] = []

    def __call__(self, number: int, request: Document) -> bytes:
        about = texts(request)["question"]
        self.asked.append(about)
        place = next((i for i in range(LOST) if question(i)["question"] == about), None)
        return scores(0.9 if place is None else self.low[place])


@pytest.fixture
def judge(judge: FakeLLMServer) -> FakeLLMServer:
    judge.script = Judge()
    return judge


class Nights:
    """Nights of tier 3 over a source of its own, judged as `nightly` judges them."""

    def __init__(self, engine: Engine, judge: FakeLLMServer, folder: Path) -> None:
        self.engine, self.judge, self.source = engine, judge, source_name()
        load(folder, self.source, [question(i) for i in range(N)])
        self.evaluations: list[str] = []
        self.confirming: list[Document] = []
        self.then = [0.9] * LOST
        """What is given when it is asked again."""

    def night(self, low: list[float], again: list[float] | None = None) -> Document:
        """The evaluation of a night in which the first questions get that, and then that."""
        script: Any = self.judge.script
        script.low, self.then = low, again or low
        given = {"again": self.evaluations[0]} if self.evaluations else {"source": self.source}
        summary = evaluate("tier3", **given)
        row = journal.find(self.engine, summary["evaluation_id"])
        resolved = {
            key: value for key, value in row["resolved"].items() if key != "again"
        }  # past the store, as a night
        if not resolved.get("paired"):
            resolved.pop("paired", None)
        run = str(uuid.uuid4())
        journal.describe(self.engine, row["id"], flow_run_id=run, resolved=resolved)
        self.evaluations.append(row["id"])
        asyncio.run(follow(uuid.UUID(run), self._evaluate, lambda told: None))
        return summary

    async def _evaluate(self, parameters: Tier3, *, return_state: bool) -> None:
        script: Any = self.judge.script
        script.low, script.asked = self.then, []
        given = parameters.model_dump(exclude_unset=True)
        self.confirming.append(await asyncio.to_thread(evaluate, "tier3", **given))

    def verdict(self, evaluation_id: str) -> str:
        said = select(nightly_verdict.c.verdict).where(nightly_verdict.c.evaluation_id == evaluation_id)
        with self.engine.connect() as connection:
            return str(connection.scalar(said))

    @property
    def open(self) -> list[str]:
        return [one["incident"] for one in incidents(self.engine) if one["source"] == self.source]


@pytest.fixture
def nights(engine: Engine, judge: FakeLLMServer, tmp_path: Path) -> Nights:
    found = Nights(engine, judge, tmp_path)
    found.night([0.9] * LOST)
    return found


@pytest.mark.slow("breadth: alarms that are confirmed")
def test_an_alarm_says_how_many_changes_persisted(
    nights: Nights, judge: FakeLLMServer, engine: Engine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bad = nights.night([0.1] * LOST, [0.9] * 10 + [0.1] * (LOST - 10))
    assert (nights.verdict(bad["evaluation_id"]), nights.open) == ("regressed", [bad["evaluation_id"]])
    (again,) = nights.confirming
    assert {row["question"] for row in rows_of(again)} == {question(i)["question"] for i in range(LOST)}
    assert set(judge.script.asked) == {question(i)["question"] for i in range(LOST)}  # type: ignore[attr-defined]
    found = again["persistence"]
    assert (found["confirms"], found["since"]) == (bad["evaluation_id"], nights.evaluations[0])
    assert found["metrics"]["avg_e2e_score"] == {"n": LOST, "persisted": LOST - 10, "unmeasured": 0}
    said = f"изменение avg_e2e_score сохранилось у {LOST - 10} вопросов из {LOST}"
    assert said in caplog.text
    assert again["system"]["part_of"] == bad["evaluation_id"]
    assert summary(engine, bad["evaluation_id"])["persistence"] == found
    assert [one["asked_again"] for one in incidents(engine) if one["source"] == nights.source] == [found]
    assert said in report(engine, [bad["evaluation_id"]], tmp_path / "page.html", "ru").read_text(encoding="utf-8")


@pytest.mark.slow("breadth: ten nights")
def test_a_loss_that_is_gone_when_it_is_asked_again_was_one(nights: Nights, caplog: pytest.LogCaptureFixture) -> None:
    """Held back, its evidence would ring in the good night after it; and what fails every night would never ring."""
    for _ in range(6):
        nights.night([0.9] * LOST)
    bad = nights.night([0.1] * LOST, [0.9] * LOST)
    assert (nights.verdict(bad["evaluation_id"]), nights.open) == ("regressed", [bad["evaluation_id"]])
    assert f"сохранилось у 0 вопросов из {LOST}" in caplog.text
    for _ in range(3):
        nights.night([0.9] * LOST)
    assert (len(nights.confirming), nights.open) == (1, [])


@pytest.mark.slow("breadth: more alarms that are confirmed or not")
def test_what_is_stopped_while_it_asks_again_rings_all_the_same(
    nights: Nights, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def stopped(parameters: Tier3, *, return_state: bool) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(nights, "_evaluate", stopped)
    with pytest.raises(asyncio.CancelledError):
        nights.night([0.1] * LOST)
    assert nights.open == nights.evaluations[-1:]
    assert "Переспрошено" not in caplog.text


@pytest.mark.slow("breadth: more alarms that are confirmed or not")
def test_what_asks_again_is_not_gated(nights: Nights, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rule = tmp_path / "gate.toml"
    rule.write_text('[[rule]]\nmetric = "avg_e2e_score"\nfloor = 0.2\n', encoding="utf-8")
    monkeypatch.setenv("YARUS_GATE_FILE", str(rule))
    bad = nights.night([0.1] * LOST)
    assert bad["gate"]["verdict"] == "pass"
    (again,) = nights.confirming
    assert again["metrics"]["avg_e2e_score"]["value"] == pytest.approx(0.1)
    assert "gate" not in again


@pytest.mark.slow("breadth: more alarms that are confirmed or not")
def test_what_cannot_be_asked_again_rings(
    nights: Nights, judge: FakeLLMServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(parameters: Tier3, *, return_state: bool) -> None:
        """As a flow whose state is returned."""

    monkeypatch.setattr(nights, "_evaluate", fails)
    bad = nights.night([0.1] * LOST)
    assert nights.open == [bad["evaluation_id"]]
    assert "Переспрошено" not in caplog.text


@pytest.mark.slow("breadth: more alarms that are confirmed or not")
def test_it_is_of_no_history_and_no_noise(nights: Nights, engine: Engine) -> None:
    bad = nights.night([0.1] * LOST)
    (again,) = nights.confirming
    name, key = again["evaluation_id"], bad["comparability_key"]
    line = trend(engine, "avg_e2e_score", tier="tier3", source=nights.source)
    assert name not in [night["evaluation_id"] for night in line["nights"]]
    assert not floors(engine, key)
    with pytest.raises(InputError, match="it cannot be a baseline"):
        journal.accept(engine, name)


def test_nothing_that_changed_cannot_be_confirmed(nights: Nights, engine: Engine) -> None:
    same = nights.night([0.9] * LOST)
    with pytest.raises(InputError, match="no question changed since"):
        evaluate("tier3", confirms=same["evaluation_id"])
    with pytest.raises(InputError, match="--confirms tier3-nothing: no evaluation"):
        parameters_of_repeated(engine, Tier3(confirms="tier3-nothing"))


@pytest.mark.slow("breadth: more alarms that are confirmed or not")
def test_both_may_spend_the_budget_once(
    nights: Nights, judge: FakeLLMServer, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = judge.url.removesuffix("/v1").rpartition("/")[2]
    monkeypatch.setenv("YARUS_PRICES", f'{{"judge-{own}": {{"input": 1, "output": 1, "as_of": "2026-11-01"}}}}')
    monkeypatch.setenv("YARUS_BUDGET_USD", "1")
    bad = nights.night([0.1] * LOST)
    spent = booked_usd(engine, bad["evaluation_id"])
    (again,) = nights.confirming
    assert booked_usd(engine, again["evaluation_id"]) > spent > 0
    monkeypatch.setenv("YARUS_BUDGET_USD", str(spent))
    refused = evaluate("tier3", confirms=bad["evaluation_id"])
    assert refused["statuses"] == {"skipped_budget": LOST}
    assert refused["persistence"]["metrics"]["avg_e2e_score"] == {"n": LOST, "persisted": 0, "unmeasured": LOST}
    (said,) = persistence_sentences(refused["persistence"])
    assert said["en"].startswith(f"Not one of {LOST} questions whose avg_e2e_score had changed could be measured again")


RETRIEVER = """
import pathlib

def retrieve(question, k):
    number, down = int(question.split()[3].strip(",")), pathlib.Path(__file__).with_suffix(".down")
    found = number >= (int(down.read_text()) if down.exists() else 0)
    return [(f"c{number % 10}", 0.1)] if found else []
"""


def test_a_retriever_of_their_own_is_asked_again(
    engine: Engine, at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "now_and_then.py").write_text(RETRIEVER, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    source = source_name()
    load(tmp_path, source, [question(i) for i in range(N)])
    down, theirs = tmp_path / "now_and_then.down", {"source": source, "retriever": "now_and_then:retrieve"}
    good = evaluate("tier1", **theirs)
    down.write_text(str(LOST))
    bad = evaluate("tier1", **theirs)
    down.write_text(str(LOST - 10))
    again = evaluate("tier1", confirms=bad["evaluation_id"])
    assert again["persistence"]["since"] == good["evaluation_id"]
    assert again["persistence"]["metrics"]["mrr"] == {"n": LOST, "persisted": LOST - 10, "unmeasured": 0}
    row = journal.find(engine, bad["evaluation_id"])
    fell = LevelVerdict("regressed", good["evaluation_id"], [])
    assert to_confirm(engine, row, fell) == Tier1(confirms=row["id"])
    ours = {**row, "resolved": row["resolved"] | {"retriever": "dense"}}
    assert to_confirm(engine, ours, fell) is None  # type: ignore[arg-type]


@pytest.mark.slow("breadth: more alarms that are confirmed or not")
def test_what_cannot_be_confirmed_says_why(nights: Nights, engine: Engine) -> None:
    good = nights.evaluations[0]
    bad = nights.night([0.1] * LOST)["evaluation_id"]
    again = nights.confirming[0]["evaluation_id"]
    for mark in ("confirms", "again"):
        with pytest.raises(InputError, match=f"{again} asks again what changed in {bad}; name that one"):
            parameters_of_repeated(engine, Tier3.model_validate({mark: again}))
    with pytest.raises(InputError, match="--again and --confirms exclude each other"):
        parameters_of_repeated(engine, Tier3(confirms=bad, again=good))
    with pytest.raises(InputError, match="no evaluation of its comparability key was accepted before it"):
        evaluate("tier3", confirms=good)
    with pytest.raises(ValidationError, match="at least 1 character"):
        Tier3(confirms="")
    Path(journal.find(engine, good)["parquet"]).unlink()
    with pytest.raises(ResultsUnavailable, match=good):
        evaluate("tier3", confirms=bad)


@pytest.mark.slow("breadth: more alarms that are confirmed or not")
def test_a_dry_run_refuses_what_the_run_would(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = nights.night([0.1] * LOST)["evaluation_id"]
    assert asyncio.run(plan("tier3", Tier3(confirms=bad))).cases == LOST
    monkeypatch.setenv("YARUS_JUDGE__MODEL", "another")
    with pytest.raises(InputError, match="YARUS_JUDGE__MODEL"):
        asyncio.run(plan("tier3", Tier3(confirms=bad)))

"""Check that changed questions are asked again before an alarm, which then tells how many changes persisted."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from sqlalchemy import Engine, select

from tests.support.evaluation_history import make_source_name
from tests.support.evaluations import evaluate, load, question, read_rows, texts
from tests.support.llm_server import FakeLLMServer, make_score_completion
from yarus.db import journal
from yarus.db.errors import InputError, ResultsUnavailable
from yarus.db.stores.calls import reserved_usd
from yarus.db.tables import nightly_verdict
from yarus.deployments.alarms.confirmation import confirmation_parameters
from yarus.deployments.alarms.incidents import follow_flow_run, list_incidents
from yarus.deployments.alarms.levels import LevelVerdict
from yarus.flows.preflight.dry_run import plan_calls
from yarus.tasks.comparison.noise_floor import estimate_noise_floors
from yarus.tasks.comparison.trend import trend
from yarus.tasks.config.parameters import Tier1, Tier3
from yarus.tasks.evaluation.findings.persistence import persistence_sentences
from yarus.tasks.evaluation.repeats import resolve_repeated_parameters
from yarus.tasks.evaluation.summary import read_summary
from yarus.tasks.report.write import write_report

Document = dict[str, Any]
N, LOST = 60, 40


class Judge:
    """A judge that gives the first questions configured scores, and the others 0.9."""

    def __init__(self) -> None:
        self.low = [0.9] * LOST
        self.questions: list[str] = []

    def __call__(self, number: int, request: Document) -> bytes:
        text = texts(request)["question"]
        self.questions.append(text)
        index = next((i for i in range(LOST) if question(i)["question"] == text), None)
        return make_score_completion(0.9 if index is None else self.low[index])


@pytest.fixture
def judge(judge: FakeLLMServer) -> FakeLLMServer:
    judge.script = Judge()
    return judge


class Nights:
    """Nights of tier 3 over their own source, judged as `nightly` judges them."""

    def __init__(self, engine: Engine, judge: FakeLLMServer, folder: Path) -> None:
        self.engine, self.judge, self.source = engine, judge, make_source_name()
        load(folder, self.source, [question(i) for i in range(N)])
        self.evaluations: list[str] = []
        self.confirming: list[Document] = []
        self.then = [0.9] * LOST
        """Scores when the questions are asked again."""

    def night(self, low: list[float], again: list[float] | None = None) -> Document:
        """Evaluate a night in which the first questions get `low`, and `again` when they are asked once more."""
        script: Any = self.judge.script
        script.low, self.then = low, again or low
        options = {"repeat_of": self.evaluations[0]} if self.evaluations else {"source": self.source}
        summary = evaluate("tier3", **options)
        row = journal.find_evaluation(self.engine, summary["evaluation_id"])
        resolved = {
            key: value for key, value in row["resolved"].items() if key != "again"
        }  # not from the store, like a night
        if not resolved.get("paired"):
            resolved.pop("paired", None)
        run = str(uuid.uuid4())
        journal.update_evaluation(self.engine, row["id"], flow_run_id=run, resolved=resolved)
        self.evaluations.append(row["id"])
        asyncio.run(follow_flow_run(uuid.UUID(run), self._evaluate, lambda message: None))
        return summary

    async def _evaluate(self, parameters: Tier3, *, return_state: bool) -> None:
        script: Any = self.judge.script
        script.low, script.questions = self.then, []
        options = parameters.model_dump(exclude_unset=True)
        self.confirming.append(await asyncio.to_thread(evaluate, "tier3", **options))

    def verdict(self, evaluation_id: str) -> str:
        query = select(nightly_verdict.c.verdict).where(nightly_verdict.c.evaluation_id == evaluation_id)
        with self.engine.connect() as connection:
            return str(connection.scalar(query))

    @property
    def open(self) -> list[str]:
        return [
            incident["incident_id"] for incident in list_incidents(self.engine) if incident["source"] == self.source
        ]


@pytest.fixture
def nights(engine: Engine, judge: FakeLLMServer, tmp_path: Path) -> Nights:
    history = Nights(engine, judge, tmp_path)
    history.night([0.9] * LOST)
    return history


@pytest.mark.slow("breadth: alarms that are confirmed")
def test_alarm_counts_persisting_changes(
    nights: Nights, judge: FakeLLMServer, engine: Engine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bad = nights.night([0.1] * LOST, [0.9] * 10 + [0.1] * (LOST - 10))
    assert (nights.verdict(bad["evaluation_id"]), nights.open) == ("regressed", [bad["evaluation_id"]])
    (again,) = nights.confirming
    assert {row["question"] for row in read_rows(again)} == {question(i)["question"] for i in range(LOST)}
    assert set(judge.script.questions) == {question(i)["question"] for i in range(LOST)}  # type: ignore[attr-defined]
    persistence = again["persistence"]
    assert (persistence["confirms"], persistence["since"]) == (bad["evaluation_id"], nights.evaluations[0])
    assert persistence["metrics"]["avg_e2e_score"] == {"n": LOST, "persisted": LOST - 10, "unmeasured": 0}
    sentence = f"изменение avg_e2e_score сохранилось у {LOST - 10} вопросов из {LOST}"
    assert sentence in caplog.text
    assert again["system"]["part_of"] == bad["evaluation_id"]
    assert read_summary(engine, bad["evaluation_id"])["persistence"] == persistence
    assert [row["asked_again"] for row in list_incidents(engine) if row["source"] == nights.source] == [persistence]
    assert sentence in write_report(engine, [bad["evaluation_id"]], tmp_path / "page.html", "ru").path.read_text(
        encoding="utf-8"
    )


@pytest.mark.slow("breadth: ten nights")
def test_alarm_is_raised_although_loss_vanished(nights: Nights, caplog: pytest.LogCaptureFixture) -> None:
    """Raise the alarm at once; held back, it would come in the next good night, or never."""
    for _ in range(6):
        nights.night([0.9] * LOST)
    bad = nights.night([0.1] * LOST, [0.9] * LOST)
    assert (nights.verdict(bad["evaluation_id"]), nights.open) == ("regressed", [bad["evaluation_id"]])
    assert f"сохранилось у 0 вопросов из {LOST}" in caplog.text
    for _ in range(3):
        nights.night([0.9] * LOST)
    assert (len(nights.confirming), nights.open) == (1, [])


@pytest.mark.slow("breadth: more alarms that are confirmed or not")
def test_alarm_is_raised_when_confirmation_is_stopped(
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
def test_confirmation_is_not_gated(nights: Nights, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rule = tmp_path / "gate.toml"
    rule.write_text('[[rule]]\nmetric = "avg_e2e_score"\nfloor = 0.2\n', encoding="utf-8")
    monkeypatch.setenv("YARUS_GATE_FILE", str(rule))
    bad = nights.night([0.1] * LOST)
    assert bad["gate"]["verdict"] == "pass"
    (again,) = nights.confirming
    assert again["metrics"]["avg_e2e_score"]["value"] == pytest.approx(0.1)
    assert "gate" not in again


@pytest.mark.slow("breadth: more alarms that are confirmed or not")
def test_alarm_is_raised_when_confirmation_fails(
    nights: Nights, judge: FakeLLMServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(parameters: Tier3, *, return_state: bool) -> None:
        """Fail like a flow whose state is returned."""

    monkeypatch.setattr(nights, "_evaluate", fails)
    bad = nights.night([0.1] * LOST)
    assert nights.open == [bad["evaluation_id"]]
    assert "Переспрошено" not in caplog.text


@pytest.mark.slow("breadth: more alarms that are confirmed or not")
def test_confirmation_is_outside_history_and_noise(nights: Nights, engine: Engine) -> None:
    bad = nights.night([0.1] * LOST)
    (again,) = nights.confirming
    name, key = again["evaluation_id"], bad["comparability_key"]
    history = trend(engine, "avg_e2e_score", tier="tier3", source=nights.source)
    assert name not in [night["evaluation_id"] for night in history["nights"]]
    assert not estimate_noise_floors(engine, key)
    with pytest.raises(InputError, match="it cannot be a baseline"):
        journal.accept_baseline(engine, name)


def test_unchanged_night_cannot_be_confirmed(nights: Nights, engine: Engine) -> None:
    same = nights.night([0.9] * LOST)
    with pytest.raises(InputError, match="no question changed since"):
        evaluate("tier3", recheck=same["evaluation_id"])
    with pytest.raises(InputError, match="--recheck tier3-nothing: no evaluation"):
        resolve_repeated_parameters(engine, Tier3(recheck="tier3-nothing"))


@pytest.mark.slow("breadth: more alarms that are confirmed or not")
def test_budget_is_shared_with_confirmation(
    nights: Nights, judge: FakeLLMServer, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    server_name = judge.url.removesuffix("/v1").rpartition("/")[2]
    monkeypatch.setenv("YARUS_PRICES", f'{{"judge-{server_name}": {{"input": 1, "output": 1, "as_of": "2026-11-01"}}}}')
    monkeypatch.setenv("YARUS_BUDGET_USD", "1")
    bad = nights.night([0.1] * LOST)
    spent = reserved_usd(engine, bad["evaluation_id"])
    (again,) = nights.confirming
    assert reserved_usd(engine, again["evaluation_id"]) > spent > 0
    monkeypatch.setenv("YARUS_BUDGET_USD", str(spent))
    refused = evaluate("tier3", recheck=bad["evaluation_id"])
    assert refused["statuses"] == {"skipped_budget": LOST}
    assert refused["persistence"]["metrics"]["avg_e2e_score"] == {"n": LOST, "persisted": 0, "unmeasured": LOST}
    (text,) = persistence_sentences(refused["persistence"])
    assert text["en"].startswith(f"None of the {LOST} questions with a changed avg_e2e_score could be measured again")


RETRIEVER = """
import pathlib

def retrieve(question, k):
    number, down = int(question.split()[3].strip(",")), pathlib.Path(__file__).with_suffix(".down")
    found = number >= (int(down.read_text()) if down.exists() else 0)
    return [(f"c{number % 10}", 0.1)] if found else []
"""


def test_custom_retriever_is_asked_again(
    engine: Engine, at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "now_and_then.py").write_text(RETRIEVER, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    source = make_source_name()
    load(tmp_path, source, [question(i) for i in range(N)])
    down, options = tmp_path / "now_and_then.down", {"source": source, "retriever": "now_and_then:retrieve"}
    good = evaluate("tier1", **options)
    down.write_text(str(LOST))
    bad = evaluate("tier1", **options)
    down.write_text(str(LOST - 10))
    again = evaluate("tier1", recheck=bad["evaluation_id"])
    assert again["persistence"]["since"] == good["evaluation_id"]
    assert again["persistence"]["metrics"]["mrr"] == {"n": LOST, "persisted": LOST - 10, "unmeasured": 0}
    row = journal.find_evaluation(engine, bad["evaluation_id"])
    fallen = LevelVerdict("regressed", good["evaluation_id"], [])
    assert confirmation_parameters(engine, row, fallen) == Tier1(recheck=row["id"])
    row_of_own_retriever = {**row, "resolved": row["resolved"] | {"retriever": "dense"}}
    assert confirmation_parameters(engine, row_of_own_retriever, fallen) is None  # type: ignore[arg-type]


@pytest.mark.slow("breadth: more alarms that are confirmed or not")
def test_unconfirmable_evaluation_is_refused(nights: Nights, engine: Engine) -> None:
    good = nights.evaluations[0]
    bad = nights.night([0.1] * LOST)["evaluation_id"]
    again = nights.confirming[0]["evaluation_id"]
    for mark in ("confirms", "again"):
        with pytest.raises(InputError, match=f"{again} only rechecks the changes of {bad}; use that one"):
            resolve_repeated_parameters(engine, Tier3.model_validate({mark: again}))
    with pytest.raises(InputError, match="--repeat-of and --recheck cannot be combined"):
        resolve_repeated_parameters(engine, Tier3(recheck=bad, repeat_of=good))
    with pytest.raises(InputError, match="no evaluation of its comparability key was accepted before it"):
        evaluate("tier3", recheck=good)
    with pytest.raises(ValidationError, match="at least 1 character"):
        Tier3(recheck="")
    Path(journal.find_evaluation(engine, good)["parquet"]).unlink()
    with pytest.raises(ResultsUnavailable, match=good):
        evaluate("tier3", recheck=bad)


@pytest.mark.slow("breadth: more alarms that are confirmed or not")
def test_dry_run_refuses_like_the_run(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = nights.night([0.1] * LOST)["evaluation_id"]
    assert asyncio.run(plan_calls("tier3", Tier3(recheck=bad))).cases == LOST
    monkeypatch.setenv("YARUS_JUDGE__MODEL", "another")
    with pytest.raises(InputError, match="YARUS_JUDGE__MODEL"):
        asyncio.run(plan_calls("tier3", Tier3(recheck=bad)))

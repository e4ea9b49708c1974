"""Before an alarm the questions that changed are asked once more: what is gone by then wakes nobody."""

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select

from db import journal
from db.errors import InputError
from db.stores.calls import booked_usd
from db.tables import nightly_verdict
from tasks.comparison.noise_floor import floors
from tasks.comparison.trend import trend
from tasks.config.parameters import Tier3
from tasks.evaluation.repeats import parameters_of_repeated
from tasks.orchestration.incidents import follow, incidents
from tests.support.evaluation_history import source_name
from tests.support.evaluations import evaluate, load, question, roles, rows_of, texts, use
from tests.support.llm_server import FakeLLMServer, scores

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
def judge(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    server = FakeLLMServer(script=Judge())
    server.start()
    use(monkeypatch, roles(server.url, "judge"))
    yield server
    server.stop()


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
        asyncio.run(follow(uuid.UUID(run), self._evaluate))
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


def test_an_alarm_says_how_many_changes_persisted(
    nights: Nights, judge: FakeLLMServer, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    bad = nights.night([0.1] * LOST, [0.9] * 10 + [0.1] * (LOST - 10))
    assert (nights.verdict(bad["evaluation_id"]), nights.open) == ("regressed", [bad["evaluation_id"]])
    (again,) = nights.confirming
    assert {row["question"] for row in rows_of(again)} == {question(i)["question"] for i in range(LOST)}
    assert set(judge.script.asked) == {question(i)["question"] for i in range(LOST)}  # type: ignore[attr-defined]
    found = again["persistence"]
    assert (found["confirms"], found["since"]) == (bad["evaluation_id"], nights.evaluations[0])
    of = found["metrics"]["avg_e2e_score"]
    assert (of["n"], of["persisted"], of["unmeasured"]) == (LOST, LOST - 10, 0)
    means = [(0.9 * (N - n) + 0.1 * n) / N for n in (0, LOST, LOST - 10)]
    assert [of["before"], of["after"], of["again"]] == pytest.approx(means)
    assert f"из вопросов, где avg_e2e_score изменилась ({LOST}), изменённой осталась на {LOST - 10}" in caplog.text
    assert again["system"]["part_of"] == bad["evaluation_id"]


def test_what_is_gone_when_it_is_asked_again_wakes_nobody(nights: Nights, caplog: pytest.LogCaptureFixture) -> None:
    bad = nights.night([0.1] * LOST, [0.9] * LOST)
    assert (nights.verdict(bad["evaluation_id"]), nights.open) == ("inconclusive", [])
    assert "переспрошенные вопросы, где что-то изменилось, не хуже" in caplog.text
    assert nights.confirming[0]["persistence"]["metrics"]["avg_e2e_score"]["persisted"] == 0
    worse = nights.night([0.1] * LOST)  # what is down for good rings the next night
    assert nights.open == [worse["evaluation_id"]]


def test_what_cannot_be_asked_again_rings(
    nights: Nights, judge: FakeLLMServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(parameters: Tier3, *, return_state: bool) -> None:
        """As a flow whose state is returned."""

    monkeypatch.setattr(nights, "_evaluate", fails)
    bad = nights.night([0.1] * LOST)
    assert nights.open == [bad["evaluation_id"]]
    assert "изменённой осталась" not in caplog.text


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
    assert refused["persistence"]["metrics"]["avg_e2e_score"]["unmeasured"] == LOST

"""How an evaluation ends that has a gate set: whole in any case, with a verdict or why there is none."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, func, select

import yarus.flows.ux
from tests.support.command_line import here
from tests.support.evaluation_history import source_name, with_cases
from tests.support.evaluations import evaluate
from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.tables import evaluation
from yarus.deployments.prefect.artifacts import gate_markdown, gate_text
from yarus.deployments.prefect.flow_states import passed, with_gate
from yarus.tasks.config.texts.messages import told
from yarus.tasks.evaluation.summary import summary

N = 100
FLOOR = '[[rule]]\nmetric = "mrr"\nfloor = {}\n'
NO_WORSE = '[[rule]]\nmetric = "mrr"\n'


@pytest.fixture
def gate_file(at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "set.toml"
    monkeypatch.setenv("YARUS_GATE_FILE", str(file))
    return file


def pinned(tier: str, name: str) -> str:
    return f'[baseline]\n{tier} = "{name}"\n'


@pytest.mark.parametrize(
    ("rules", "verdict", "failed", "reason"),
    [
        (FLOOR.format(0.1), "pass", [], None),
        (NO_WORSE, "inconclusive", [], "does not compare"),
        (FLOOR.format(0.1) + NO_WORSE, "inconclusive", [], "does not compare"),
        (FLOOR.format(0.9) + NO_WORSE, "fail", ["mrr: floor"], "does not compare"),
        ("[[rule]]\nmetric =", "inconclusive", [], "gate file"),  # it was whole when the evaluation began
    ],
)
def test_a_gate_that_cannot_be_judged_leaves_an_evaluation_whole(
    engine: Engine,
    gate_file: Path,
    english: None,
    caplog: pytest.LogCaptureFixture,
    rules: str,
    verdict: str,
    failed: list[str],
    reason: str | None,
) -> None:
    source = source_name()
    other = with_cases(engine, gate_file.parent, source, {"mrr": [1.0] * N}, key="another", comparability={"k": 20})
    name = with_cases(engine, gate_file.parent, source, {"mrr": [0.5] * N}, night=1)
    gate_file.write_text(pinned("tier1", other) + rules, encoding="utf-8")
    found = with_gate(summary(engine, name))
    gate = found["gate"]
    assert (found["state"], gate["verdict"], gate["failed"]) == ("completed", verdict, failed)
    assert passed(found) == (verdict != "fail")
    assert ("reason" in gate) == (reason is not None)
    for text in (gate.get("reason", ""), caplog.text, gate_text(found, "en")):
        assert (reason or "") in text
    assert told(gate.get("reason", ""), "ru") in gate_text(found, "ru")
    assert found["gate"].get("reason", "")[:9] in gate_markdown(found, "en"), "as a night shows it"


def test_what_failed_and_is_run_again_fails_again(engine: Engine, gate_file: Path) -> None:
    source, worse = source_name(), [0.5] * N
    with_cases(engine, gate_file.parent, source, {"mrr": [1.0] * N})
    gate_file.write_text(NO_WORSE, encoding="utf-8")
    for night in (1, 2):
        name = with_cases(engine, gate_file.parent, source, {"mrr": worse}, night=night)
        assert with_gate(summary(engine, name))["gate"]["verdict"] == "fail"


def test_a_baseline_whose_file_is_lost(engine: Engine, gate_file: Path) -> None:
    source = source_name()
    lost = with_cases(engine, gate_file.parent, source, {"mrr": [1.0] * N}, parquet=str(gate_file.parent / "lost"))
    name = with_cases(engine, gate_file.parent, source, {"mrr": [1.0] * N}, night=1)
    gate_file.write_text(pinned("tier1", lost) + NO_WORSE, encoding="utf-8")
    gate = with_gate(summary(engine, name))["gate"]
    assert (gate["verdict"], "cannot be read" in gate["reason"]) == ("inconclusive", True)


def test_an_evaluation_of_another_size_than_the_pinned_one(
    engine: Engine, gate_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate_file.write_text('[[rule]]\nmetric = "cache_hit_rate"\nfloor = 0.0\n', encoding="utf-8")
    first = evaluate("ux", limit=20)
    rule = '[[rule]]\nmetric = "cache_wrong_hit_rate"\n'
    gate_file.write_text(pinned("ux", first["evaluation_id"]) + rule, encoding="utf-8")
    second = evaluate("ux", limit=30)
    assert (second["state"], second["gate"]["verdict"]) == ("completed", "inconclusive")
    assert first["evaluation_id"] in second["gate"]["reason"]


def test_what_ends_after_an_evaluation_is_no_failure_of_it(
    engine: Engine, at_home: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []

    async def flow_state(document: dict[str, Any]) -> None:
        names.append(document["evaluation_id"])
        raise OSError("the server is gone")

    monkeypatch.setattr(yarus.flows.ux, "flow_state", flow_state)
    with pytest.raises(OSError, match="the server is gone"):
        evaluate("ux", limit=20)
    assert journal.find(engine, names[0])["state"] == "completed"
    assert "continue with" not in caplog.text and "продолжить" not in caplog.text


def test_a_mistake_in_the_gate_stops_before_anything_is_evaluated(engine: Engine, gate_file: Path) -> None:
    gate_file.write_text('[[rule]]\nmetric = "mrrr"\n', encoding="utf-8")
    rows = select(func.count()).select_from(evaluation)
    with engine.connect() as connection:
        before = connection.scalar(rows)
        refused = here("run", "ux", "--limit", "20")
        assert (refused.code, refused.out, "mrrr" in refused.err) == (2, "", True)
        with pytest.raises(InputError, match="mrrr"):  # however it was begun
            evaluate("ux", limit=20)
        assert connection.scalar(rows) == before

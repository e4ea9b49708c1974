"""The end of evaluations with a gate: complete in any case, with a verdict or the reason why there is none."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, func, select

import yarus.flows.ux
from tests.support.command_line import run_here
from tests.support.evaluation_history import make_source_name, write_evaluation_with_cases
from tests.support.evaluations import evaluate
from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.tables import evaluation
from yarus.deployments.prefect.artifacts import gate_markdown, gate_text
from yarus.deployments.prefect.flow_states import add_gate_outcome, has_passed
from yarus.tasks.config.texts.messages import told
from yarus.tasks.evaluation.summary import read_summary

N = 100
FLOOR = '[[rule]]\nmetric = "mrr"\nfloor = {}\n'
NO_WORSE = '[[rule]]\nmetric = "mrr"\n'


@pytest.fixture
def gate_file(at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "set.toml"
    monkeypatch.setenv("YARUS_GATE_FILE", str(file))
    return file


def baseline_section(tier: str, name: str) -> str:
    return f'[baseline]\n{tier} = "{name}"\n'


@pytest.mark.parametrize(
    ("rules", "verdict", "failed", "reason"),
    [
        (FLOOR.format(0.1), "pass", [], None),
        (NO_WORSE, "inconclusive", [], "does not compare"),
        (FLOOR.format(0.1) + NO_WORSE, "inconclusive", [], "does not compare"),
        (FLOOR.format(0.9) + NO_WORSE, "fail", ["mrr: floor"], "does not compare"),
        ("[[rule]]\nmetric =", "inconclusive", [], "gate file"),  # it was valid when the evaluation began
    ],
)
def test_add_gate_outcome_keeps_evaluation_when_undecided(
    engine: Engine,
    gate_file: Path,
    english: None,
    caplog: pytest.LogCaptureFixture,
    rules: str,
    verdict: str,
    failed: list[str],
    reason: str | None,
) -> None:
    source = make_source_name()
    incomparable = write_evaluation_with_cases(
        engine, gate_file.parent, source, {"mrr": [1.0] * N}, key="another", comparability={"k": 20}
    )
    name = write_evaluation_with_cases(engine, gate_file.parent, source, {"mrr": [0.5] * N}, night=1)
    gate_file.write_text(baseline_section("tier1", incomparable) + rules, encoding="utf-8")
    gated = add_gate_outcome(read_summary(engine, name))
    gate = gated["gate"]
    assert (gated["state"], gate["verdict"], gate["failed"]) == ("completed", verdict, failed)
    assert has_passed(gated) == (verdict != "fail")
    assert ("reason" in gate) == (reason is not None)
    for text in (gate.get("reason", ""), caplog.text, gate_text(gated, "en")):
        assert (reason or "") in text
    assert told(gate.get("reason", ""), "ru") in gate_text(gated, "ru")
    assert gated["gate"].get("reason", "")[:9] in gate_markdown(gated, "en"), "as a night shows it"


def test_add_gate_outcome_fails_again_for_same_regression(engine: Engine, gate_file: Path) -> None:
    source, worse = make_source_name(), [0.5] * N
    write_evaluation_with_cases(engine, gate_file.parent, source, {"mrr": [1.0] * N})
    gate_file.write_text(NO_WORSE, encoding="utf-8")
    for night in (1, 2):
        name = write_evaluation_with_cases(engine, gate_file.parent, source, {"mrr": worse}, night=night)
        assert add_gate_outcome(read_summary(engine, name))["gate"]["verdict"] == "fail"


def test_gate_is_inconclusive_without_baseline_file(engine: Engine, gate_file: Path) -> None:
    source = make_source_name()
    lost = write_evaluation_with_cases(
        engine, gate_file.parent, source, {"mrr": [1.0] * N}, parquet=str(gate_file.parent / "lost")
    )
    name = write_evaluation_with_cases(engine, gate_file.parent, source, {"mrr": [1.0] * N}, night=1)
    gate_file.write_text(baseline_section("tier1", lost) + NO_WORSE, encoding="utf-8")
    gate = add_gate_outcome(read_summary(engine, name))["gate"]
    assert (gate["verdict"], "cannot be read" in gate["reason"]) == ("inconclusive", True)


def test_gate_is_inconclusive_for_baseline_of_another_size(
    engine: Engine, gate_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate_file.write_text('[[rule]]\nmetric = "cache_hit_rate"\nfloor = 0.0\n', encoding="utf-8")
    first = evaluate("ux", limit=20)
    rule = '[[rule]]\nmetric = "cache_wrong_hit_rate"\n'
    gate_file.write_text(baseline_section("ux", first["evaluation_id"]) + rule, encoding="utf-8")
    second = evaluate("ux", limit=30)
    assert (second["state"], second["gate"]["verdict"]) == ("completed", "inconclusive")
    assert first["evaluation_id"] in second["gate"]["reason"]


def test_error_after_an_evaluation_keeps_it_completed(
    engine: Engine, at_home: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []

    async def flow_state(document: dict[str, Any]) -> None:
        names.append(document["evaluation_id"])
        raise OSError("the server is gone")

    monkeypatch.setattr(yarus.flows.ux, "flow_state", flow_state)
    with pytest.raises(OSError, match="the server is gone"):
        evaluate("ux", limit=20)
    assert journal.find_evaluation(engine, names[0])["state"] == "completed"
    assert "continue with" not in caplog.text and "продолжить" not in caplog.text


def test_invalid_gate_stops_before_evaluation(engine: Engine, gate_file: Path) -> None:
    gate_file.write_text('[[rule]]\nmetric = "mrrr"\n', encoding="utf-8")
    rows = select(func.count()).select_from(evaluation)
    with engine.connect() as connection:
        before = connection.scalar(rows)
        refused = run_here("run", "ux", "--limit", "20")
        assert (refused.code, refused.out, "mrrr" in refused.err) == (2, "", True)
        with pytest.raises(InputError, match="mrrr"):  # however it was started
            evaluate("ux", limit=20)
        assert connection.scalar(rows) == before

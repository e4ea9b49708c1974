"""The baseline of an evaluation: the accepted one, not merely the one before."""

from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.evaluation_history import make_source_name, write_evaluation_with_cases, write_evaluations
from yarus.db import journal
from yarus.db.errors import InputError
from yarus.tasks.comparison.gate import gate
from yarus.tasks.comparison.gate_rules import GateRule, GateRules


def hits(share: float) -> list[float]:
    return [float(number < share * 200) for number in range(200)]


def test_gate_fails_again_when_regression_is_repeated(engine: Engine, tmp_path: Path) -> None:
    source, policy = make_source_name(), GateRules(None, {}, (GateRule("hit_rate@1", "no regression"),))
    first = write_evaluation_with_cases(engine, tmp_path, source, {"hit_rate@1": hits(0.8)})
    for night in (1, 2, 3):
        name = write_evaluation_with_cases(engine, tmp_path, source, {"hit_rate@1": hits(0.6)}, night=night)
        result = gate(engine, name, policy)
        assert (result["verdict"], result["baseline"], result["baseline_kind"]) == ("fail", first, "first")
    against_previous = gate(engine, name, policy, baseline="previous")
    assert (against_previous["verdict"], against_previous["baseline_kind"]) == ("pass", "previous")


def test_gate_uses_latest_accepted_baseline(engine: Engine, tmp_path: Path) -> None:
    source, policy = make_source_name(), GateRules(None, {}, (GateRule("hit_rate@1", "no regression"),))
    nights = [
        write_evaluation_with_cases(engine, tmp_path, source, {"hit_rate@1": hits(share)}, night=night)
        for night, share in enumerate((0.8, 0.6, 0.6, 0.4))
    ]
    assert journal.accept_baseline(engine, nights[1]) == nights[1]
    verdicts = [gate(engine, name, policy) for name in nights]
    assert [result["baseline"] for result in verdicts] == [None, nights[0], nights[1], nights[1]]
    assert [result["verdict"] for result in verdicts] == ["inconclusive", "fail", "pass", "fail"]
    assert verdicts[2]["baseline_kind"] == "accepted"
    journal.accept_baseline(engine, nights[0])  # the level was not the right one after all
    assert gate(engine, nights[2], policy)["baseline"] == nights[0]


@pytest.mark.parametrize("state", ["invalid", "failed"])
def test_accept_rejects_unmeasured_evaluations(engine: Engine, state: str) -> None:
    (name,) = write_evaluations(engine, make_source_name(), [0.8], state=state)
    with pytest.raises(InputError, match=f"{name} is {state}: it cannot be a baseline"):
        journal.accept_baseline(engine, name)


def test_gate_prefers_pinned_over_accepted_baseline(engine: Engine, tmp_path: Path) -> None:
    source, rule = make_source_name(), GateRule("hit_rate@1", "no regression")
    pinned = write_evaluation_with_cases(engine, tmp_path, source, {"hit_rate@1": hits(0.9)})
    accepted = write_evaluation_with_cases(engine, tmp_path, source, {"hit_rate@1": hits(0.6)}, night=1)
    journal.accept_baseline(engine, accepted)
    name = write_evaluation_with_cases(engine, tmp_path, source, {"hit_rate@1": hits(0.6)}, night=2)
    assert gate(engine, name, GateRules(None, {}, (rule,)))["verdict"] == "pass"
    result = gate(engine, name, GateRules("gate.toml", {"tier1": pinned}, (rule,)))
    assert (result["verdict"], result["baseline"], result["baseline_kind"]) == ("fail", pinned, "pinned")
    against_named = gate(engine, name, GateRules("gate.toml", {"tier1": pinned}, (rule,)), baseline=accepted)
    assert (against_named["verdict"], against_named["baseline_kind"]) == ("pass", "given")

"""What an evaluation is judged against: the accepted one, and not merely the one before."""

from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.evaluation_history import source_name, with_cases, write
from yarus.db import journal
from yarus.db.errors import InputError
from yarus.tasks.comparison.gate import gate
from yarus.tasks.comparison.gate_rules import Policy, Rule


def hits(share: float) -> list[float]:
    return [float(number < share * 200) for number in range(200)]


def test_a_failed_evaluation_that_is_repeated_fails_again(engine: Engine, tmp_path: Path) -> None:
    source, policy = source_name(), Policy(None, {}, (Rule("hit_rate@1", "no regression"),))
    first = with_cases(engine, tmp_path, source, {"hit_rate@1": hits(0.8)})
    for night in (1, 2, 3):
        name = with_cases(engine, tmp_path, source, {"hit_rate@1": hits(0.6)}, night=night)
        found = gate(engine, name, policy)
        assert (found["verdict"], found["baseline"], found["baseline_kind"]) == ("fail", first, "first")
    merely_before = gate(engine, name, policy, baseline="previous")
    assert (merely_before["verdict"], merely_before["baseline_kind"]) == ("pass", "previous")


def test_what_a_person_accepts_is_the_baseline_of_what_comes_after(engine: Engine, tmp_path: Path) -> None:
    source, policy = source_name(), Policy(None, {}, (Rule("hit_rate@1", "no regression"),))
    nights = [
        with_cases(engine, tmp_path, source, {"hit_rate@1": hits(share)}, night=night)
        for night, share in enumerate((0.8, 0.6, 0.6, 0.4))
    ]
    assert journal.accept(engine, nights[1]) == nights[1]
    verdicts = [gate(engine, name, policy) for name in nights]
    assert [found["baseline"] for found in verdicts] == [None, nights[0], nights[1], nights[1]]
    assert [found["verdict"] for found in verdicts] == ["inconclusive", "fail", "pass", "fail"]
    assert verdicts[2]["baseline_kind"] == "accepted"
    journal.accept(engine, nights[0])  # the level was not the right one after all
    assert gate(engine, nights[2], policy)["baseline"] == nights[0]


@pytest.mark.parametrize("state", ["invalid", "failed"])
def test_what_was_not_measured_cannot_be_accepted(engine: Engine, state: str) -> None:
    (name,) = write(engine, source_name(), [0.8], state=state)
    with pytest.raises(InputError, match=f"{name} is {state}: it cannot be a baseline"):
        journal.accept(engine, name)


def test_a_pinned_baseline_is_used_before_the_accepted_one(engine: Engine, tmp_path: Path) -> None:
    source, rule = source_name(), Rule("hit_rate@1", "no regression")
    pinned = with_cases(engine, tmp_path, source, {"hit_rate@1": hits(0.9)})
    accepted = with_cases(engine, tmp_path, source, {"hit_rate@1": hits(0.6)}, night=1)
    journal.accept(engine, accepted)
    name = with_cases(engine, tmp_path, source, {"hit_rate@1": hits(0.6)}, night=2)
    assert gate(engine, name, Policy(None, {}, (rule,)))["verdict"] == "pass"
    found = gate(engine, name, Policy("gate.toml", {"tier1": pinned}, (rule,)))
    assert (found["verdict"], found["baseline"], found["baseline_kind"]) == ("fail", pinned, "pinned")
    given = gate(engine, name, Policy("gate.toml", {"tier1": pinned}, (rule,)), baseline=accepted)
    assert (given["verdict"], given["baseline_kind"]) == ("pass", "given")

"""The gate: what fails, what passes, what nobody can tell, and what stops before anything is judged."""

from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.support.evaluation_history import N_GATED as N
from tests.support.evaluation_history import hits, one, source_name, with_cases, write
from yarus.db.errors import InputError, ResultsUnavailable
from yarus.metrics.statistics import wilson_interval
from yarus.tasks.comparison.gate import gate
from yarus.tasks.comparison.gate_rules import Policy, Rule, read_policy

# Floors and ceilings: Wilson's interval of 160 of 200 is 0.739 to 0.850.


@pytest.mark.parametrize(
    ("floor", "verdict"),
    [(0.5, "pass"), (0.73, "pass"), (0.75, "inconclusive"), (0.84, "inconclusive"), (0.86, "fail")],
)
def test_a_floor_is_judged_by_the_interval(engine: Engine, tmp_path: Path, floor: float, verdict: str) -> None:
    found = one(engine, tmp_path, None, {"hit_rate@1": hits(0.8)}, Rule("hit_rate@1", "floor", floor))
    assert found["verdict"] == verdict
    assert (found["value"], found["n"]) == (0.8, N)
    assert (found["needs"] is not None) == (verdict == "inconclusive")


def test_how_many_more_cases_a_floor_needs(engine: Engine, tmp_path: Path) -> None:
    """Whatever lies behind 160 of 200, so many more decide it four times in five."""
    found = one(engine, tmp_path, None, {"hit_rate@1": hits(0.8)}, Rule("hit_rate@1", "floor", 0.77))
    generator = np.random.default_rng(0)
    truths = generator.beta(160, 40, 4_000)
    n = N + found["needs"]
    all_hits = 160 + generator.binomial(found["needs"], truths)
    decided = [not low <= 0.77 <= high for low, high in (wilson_interval(int(yes), n) for yes in all_hits)]
    assert 0.77 <= np.mean(decided) <= 0.83


@pytest.mark.parametrize(("ceiling", "verdict"), [(400, "pass"), (300, "inconclusive"), (100, "fail")])
def test_a_ceiling_on_latency(engine: Engine, tmp_path: Path, ceiling: float, verdict: str) -> None:
    times = (300 + 10 * np.random.default_rng(0).normal(size=N)).tolist()
    found = one(
        engine, tmp_path, None, {"retrieval_latency_ms": times}, Rule("retrieval_latency_ms", "ceiling", ceiling)
    )
    assert found["verdict"] == verdict
    assert found["value"] == pytest.approx(np.mean(times))


def test_a_percentile_is_judged_as_it_is_stored(engine: Engine, tmp_path: Path) -> None:
    times = np.linspace(100, 300, N).tolist()
    rule = Rule("retrieval_latency_ms_p95", "ceiling", 250)
    found = one(engine, tmp_path, None, {"retrieval_latency_ms": times}, rule)
    assert (found["verdict"], found["value"]) == ("fail", pytest.approx(290))


def test_a_ceiling_is_not_passed_by_an_interval_that_is_open(engine: Engine, tmp_path: Path) -> None:
    """Of 40 latencies none is surely above the 95th percentile: it is at least some value, and no more is known."""
    times = {"retrieval_latency_ms": np.linspace(100, 300, 40).tolist()}
    verdicts = {}
    for kind, bound in (("ceiling", 5_000), ("ceiling", 150), ("floor", 150), ("floor", 295)):
        found = one(engine, tmp_path, None, times, Rule("retrieval_latency_ms_p95", kind, bound))
        assert found["ci_low"] is not None and (found["ci_high"], found["needs"]) == (None, None)
        verdicts[kind, bound] = found["verdict"]
    assert list(verdicts.values()) == ["inconclusive", "fail", "pass", "inconclusive"]


def test_what_was_not_measured_does_not_pass(engine: Engine, tmp_path: Path) -> None:
    found = one(engine, tmp_path, None, {"mrr": [None] * N}, Rule("mrr", "floor", 0.1))
    assert (found["verdict"], found["value"]) == ("inconclusive", None)
    assert found["reason"]


# What stops at start.


def test_an_unfinished_evaluation_cannot_be_judged(engine: Engine) -> None:
    (name,) = write(engine, source_name(), [None], state="failed", error="stopped")
    with pytest.raises(InputError, match=f"{name} is failed"):
        gate(engine, name, read_policy())


def test_a_gate_without_a_rule_for_the_tier_is_none(engine: Engine, tmp_path: Path) -> None:
    name = with_cases(engine, tmp_path, source_name(), {"mrr": [1.0]})
    with pytest.raises(InputError, match="no rule applies to tier1"):
        gate(engine, name, Policy("gate.toml", {}, (Rule("mrr", "floor", 0.5, tier="tier3"),)))


def test_baselines_that_cannot_serve(engine: Engine, tmp_path: Path) -> None:
    source, rules = source_name(), (Rule("mrr", "no regression"),)
    columns = {"mrr": [1.0] * N}
    name = with_cases(engine, tmp_path, source, columns, night=1)
    other = with_cases(engine, tmp_path, source, columns, key="another", comparability={"k": 20})
    invalid = with_cases(engine, tmp_path, source, columns, state="invalid")
    tier3 = with_cases(engine, tmp_path, source, columns, tier="tier3")
    gone = with_cases(engine, tmp_path, source, columns, parquet=str(tmp_path / "gone.parquet"))
    for baseline, said in (
        ("tier1-nothing", r"--baseline tier1-nothing: no evaluation 'tier1-nothing'; there are"),
        (other, "does not compare with .* they differ in k: 20 and None"),
        (invalid, "is invalid; pin a completed"),
        (tier3, "is of tier3, not of tier1"),
        (name, "is the evaluation itself"),
    ):
        with pytest.raises(InputError, match=said):
            gate(engine, name, Policy(None, {}, rules), baseline=baseline)
    with pytest.raises(ResultsUnavailable, match="cannot be read"):
        gate(engine, name, Policy(None, {}, rules), baseline=gone)
    pinned = {"tier1": name, "tier3": other}
    with pytest.raises(InputError, match=r"gate.toml: \[baseline\] tier3: .* is of tier1, not of tier3"):
        gate(engine, name, Policy("gate.toml", pinned, rules))


def test_a_floor_needs_no_baseline(engine: Engine, tmp_path: Path) -> None:
    source, floor = source_name(), Rule("mrr", "floor", 0.5)
    other = with_cases(engine, tmp_path, source, {"mrr": [1.0] * N}, key="another")
    name = with_cases(engine, tmp_path, source, {"mrr": [1.0] * N}, night=1)
    found = gate(engine, name, Policy("gate.toml", {"tier1": other}, (floor,)))
    assert (found["verdict"], found["baseline"]) == ("pass", None)
    with pytest.raises(InputError, match="does not compare"):  # asked for by name, it is held to
        gate(engine, name, Policy(None, {}, (floor,)), baseline=other)

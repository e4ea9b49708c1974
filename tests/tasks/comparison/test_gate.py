"""The gate: failures, passes, inconclusive results, and errors before anything is judged."""

from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.support.evaluation_history import N_GATED as N
from tests.support.evaluation_history import (
    make_hits,
    make_source_name,
    run_gate_rule,
    write_evaluation_with_cases,
    write_evaluations,
)
from yarus.db.errors import InputError, ResultsUnavailable
from yarus.metrics.statistics import wilson_interval
from yarus.tasks.comparison.gate import gate
from yarus.tasks.comparison.gate_rules import GateRule, GateRules, read_gate_rules

# Floors and ceilings: Wilson's interval of 160 of 200 is 0.739 to 0.850.


@pytest.mark.parametrize(
    ("floor", "verdict"),
    [(0.5, "pass"), (0.73, "pass"), (0.75, "inconclusive"), (0.84, "inconclusive"), (0.86, "fail")],
)
def test_floor_is_judged_by_the_interval(engine: Engine, tmp_path: Path, floor: float, verdict: str) -> None:
    rule = run_gate_rule(engine, tmp_path, None, {"hit_rate@1": make_hits(0.8)}, GateRule("hit_rate@1", "floor", floor))
    assert rule["verdict"] == verdict
    assert (rule["value"], rule["n"]) == (0.8, N)
    assert (rule["n_cases_needed"] is not None) == (verdict == "inconclusive")


def test_floor_estimates_needed_cases(engine: Engine, tmp_path: Path) -> None:
    """Check by simulation that so many more cases decide it four times in five."""
    rule = run_gate_rule(engine, tmp_path, None, {"hit_rate@1": make_hits(0.8)}, GateRule("hit_rate@1", "floor", 0.77))
    generator = np.random.default_rng(0)
    truths = generator.beta(160, 40, 4_000)
    n = N + rule["n_cases_needed"]
    all_hits = 160 + generator.binomial(rule["n_cases_needed"], truths)
    is_decided = [not low <= 0.77 <= high for low, high in (wilson_interval(int(n_hits), n) for n_hits in all_hits)]
    assert 0.77 <= np.mean(is_decided) <= 0.83


@pytest.mark.parametrize(("ceiling", "verdict"), [(400, "pass"), (300, "inconclusive"), (100, "fail")])
def test_ceiling_on_latency(engine: Engine, tmp_path: Path, ceiling: float, verdict: str) -> None:
    times = (300 + 10 * np.random.default_rng(0).normal(size=N)).tolist()
    result = run_gate_rule(
        engine, tmp_path, None, {"retrieval_latency_ms": times}, GateRule("retrieval_latency_ms", "ceiling", ceiling)
    )
    assert result["verdict"] == verdict
    assert result["value"] == pytest.approx(np.mean(times))


def test_percentile_is_judged_as_stored(engine: Engine, tmp_path: Path) -> None:
    times = np.linspace(100, 300, N).tolist()
    rule = GateRule("retrieval_latency_ms_p95", "ceiling", 250)
    result = run_gate_rule(engine, tmp_path, None, {"retrieval_latency_ms": times}, rule)
    assert (result["verdict"], result["value"]) == ("fail", pytest.approx(290))


def test_ceiling_is_inconclusive_for_open_interval(engine: Engine, tmp_path: Path) -> None:
    """Judge the 95th percentile of 40 latencies, whose interval has no upper end."""
    times = {"retrieval_latency_ms": np.linspace(100, 300, 40).tolist()}
    verdicts = {}
    for kind, bound in (("ceiling", 5_000), ("ceiling", 150), ("floor", 150), ("floor", 295)):
        result = run_gate_rule(engine, tmp_path, None, times, GateRule("retrieval_latency_ms_p95", kind, bound))
        assert result["ci_low"] is not None and (result["ci_high"], result["n_cases_needed"]) == (None, None)
        verdicts[kind, bound] = result["verdict"]
    assert list(verdicts.values()) == ["inconclusive", "fail", "pass", "inconclusive"]


def test_unmeasured_metric_is_inconclusive(engine: Engine, tmp_path: Path) -> None:
    result = run_gate_rule(engine, tmp_path, None, {"mrr": [None] * N}, GateRule("mrr", "floor", 0.1))
    assert (result["verdict"], result["value"]) == ("inconclusive", None)
    assert result["reason"]


# Errors before anything is judged.


def test_gate_rejects_unfinished_evaluation(engine: Engine) -> None:
    (name,) = write_evaluations(engine, make_source_name(), [None], state="failed", error="stopped")
    with pytest.raises(InputError, match=f"{name} is failed"):
        gate(engine, name, read_gate_rules())


def test_gate_rejects_tier_without_rules(engine: Engine, tmp_path: Path) -> None:
    name = write_evaluation_with_cases(engine, tmp_path, make_source_name(), {"mrr": [1.0]})
    with pytest.raises(InputError, match="no rule applies to tier1"):
        gate(engine, name, GateRules("gate.toml", {}, (GateRule("mrr", "floor", 0.5, tier="tier3"),)))


def test_gate_rejects_unusable_baselines(engine: Engine, tmp_path: Path) -> None:
    source, rules = make_source_name(), (GateRule("mrr", "no regression"),)
    columns = {"mrr": [1.0] * N}
    name = write_evaluation_with_cases(engine, tmp_path, source, columns, night=1)
    other = write_evaluation_with_cases(engine, tmp_path, source, columns, key="another", comparability={"k": 20})
    invalid = write_evaluation_with_cases(engine, tmp_path, source, columns, state="invalid")
    tier3 = write_evaluation_with_cases(engine, tmp_path, source, columns, tier="tier3")
    lost = write_evaluation_with_cases(engine, tmp_path, source, columns, parquet=str(tmp_path / "gone.parquet"))
    for baseline, message in (
        ("tier1-nothing", r"--baseline tier1-nothing: no evaluation 'tier1-nothing'; there are"),
        (other, "does not compare with .* they differ in k: 20 and None"),
        (invalid, "is invalid; pin a completed"),
        (tier3, "is of tier3, not of tier1"),
        (name, "is the evaluation itself"),
    ):
        with pytest.raises(InputError, match=message):
            gate(engine, name, GateRules(None, {}, rules), baseline=baseline)
    with pytest.raises(ResultsUnavailable, match="cannot be read"):
        gate(engine, name, GateRules(None, {}, rules), baseline=lost)
    pinned = {"tier1": name, "tier3": other}
    with pytest.raises(InputError, match=r"gate.toml: \[baseline\] tier3: .* is of tier1, not of tier3"):
        gate(engine, name, GateRules("gate.toml", pinned, rules))


def test_floor_does_not_need_a_baseline(engine: Engine, tmp_path: Path) -> None:
    source, floor = make_source_name(), GateRule("mrr", "floor", 0.5)
    other = write_evaluation_with_cases(engine, tmp_path, source, {"mrr": [1.0] * N}, key="another")
    name = write_evaluation_with_cases(engine, tmp_path, source, {"mrr": [1.0] * N}, night=1)
    result = gate(engine, name, GateRules("gate.toml", {"tier1": other}, (floor,)))
    assert (result["verdict"], result["baseline"]) == ("pass", None)
    with pytest.raises(InputError, match="does not compare"):  # a baseline on the command line must compare
        gate(engine, name, GateRules(None, {}, (floor,)), baseline=other)

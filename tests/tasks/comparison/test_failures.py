"""Failures of the system: losses for decisions, next to the means over answered cases."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import Engine, update

from tests.tasks.comparison.conftest import Plant
from yarus.db.tables import evaluation
from yarus.flows.terminal.comparisons.comparison import print_comparison
from yarus.flows.terminal.comparisons.markdown import format_comparison_markdown
from yarus.tasks.comparison.changes import format_statement
from yarus.tasks.comparison.compare import compare
from yarus.tasks.comparison.gate import gate
from yarus.tasks.comparison.gate_rules import GateRule, read_gate_rules

N = 300


def plant_failing(
    plant: Plant, failed: NDArray[np.bool_], hits: NDArray[np.float64], tier: str = "tier1", **columns: Any
) -> str:
    """Plant an evaluation whose system failed at some cases."""
    return plant(
        tier,
        n=N,
        status=np.where(failed, "sut_error", "ok").tolist(),
        outcome=np.where(failed, "failed", "answered").tolist(),
        **{"hit_rate@1" if tier == "tier1" else "accuracy": np.where(failed, np.nan, hits)},
        **columns,
    )


def plant_pair(plant: Plant, before: float, after: float, seed: int, tier: str = "tier1") -> tuple[str, str]:
    """Plant two evaluations of one quality, which fail at these shares of the questions, each time different ones."""
    chance = np.random.default_rng(seed)
    hits = (chance.random(N) < 0.8).astype(float)
    names = []
    for share in (before, after):
        failed = np.zeros(N, dtype=bool)
        failed[chance.permutation(N)[: round(share * N)]] = True
        names.append(plant_failing(plant, failed, hits, tier))
    return names[0], names[1]


@pytest.mark.parametrize("tier", ["tier1", "judge_pipeline"])
@pytest.mark.parametrize("seed", range(3))
def test_new_failures_fail_the_gate(engine: Engine, plant: Plant, seed: int, tier: str) -> None:
    before, after = plant_pair(plant, 0.0, 0.04, seed, tier)
    result = gate(engine, after, read_gate_rules(), baseline=before)
    assert result["verdict"] == "fail"
    verdicts = {rule["metric"]: rule["verdict"] for rule in result["rules"]}
    assert verdicts["sut_error_rate"] == "fail"


def test_comparison_starts_with_new_failures(engine: Engine, plant: Plant, capsys: pytest.CaptureFixture[str]) -> None:
    comparison = compare(engine, *plant_pair(plant, 0.0, 0.04, 0))
    first, second = comparison["statements"][:2]
    assert first["kind"] == "regressed"
    assert "sut_error_rate 0.000 → 0.040 (+0.040)" in first["text"]["en"]
    assert second["kind"] == "failures"
    assert second["text"]["en"].startswith("0 of 300 questions before, 12 after; if the other evaluation has a value, ")
    print_comparison(comparison, "en")
    lines = [line for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines[0].startswith("Worse: sut_error_rate 0.000 → 0.040 (+0.040; 95 % interval ")


def test_failures_count_as_worst_value_outside_of_the_mean(engine: Engine, plant: Plant) -> None:
    failed = np.arange(N) < 30
    before = plant_failing(plant, np.zeros(N, dtype=bool), np.ones(N))
    after = plant_failing(plant, failed, np.ones(N))
    comparison = compare(engine, before, after)
    metric = comparison["metrics"]["hit_rate@1"]
    assert (metric["a"], metric["b"], metric["n"]) == (1.0, pytest.approx(0.9), N)
    means = {"hit_rate@1": {"a": 1.0, "b": 1.0}}
    assert comparison["failed_cases"] == {"a": 0, "b": 30, "are_losses": True, "answered": means}
    back = compare(engine, after, before)["metrics"]["hit_rate@1"]
    assert back["verdict"] == "improved"


def test_common_failures_are_not_losses(engine: Engine, plant: Plant) -> None:
    failed = np.arange(N) < 30
    names = [plant_failing(plant, failed, np.ones(N)) for _ in range(2)]
    comparison = compare(engine, *names)
    assert comparison["metrics"]["hit_rate@1"]["n"] == N - 30
    assert "regressed" not in [statement["kind"] for statement in comparison["statements"]]


def test_equal_failure_rates_do_not_hide_a_loss(engine: Engine, plant: Plant) -> None:
    """Compare slightly worse answers while five different questions fail each time."""
    scores = np.random.default_rng(0).uniform(0.6, 0.9, N)
    columns = {"status": ["sut_error"] * 5 + ["ok"] * (N - 5), "outcome": ["failed"] * 5 + ["answered"] * (N - 5)}
    before = plant("tier3", n=N, e2e_score=np.where(np.arange(N) < 5, np.nan, scores), **columns)
    worse = np.where(np.arange(N) >= N - 5, np.nan, scores - 0.03)
    after = plant("tier3", n=N, e2e_score=worse, **{name: column[::-1] for name, column in columns.items()})
    comparison = compare(engine, before, after)
    assert comparison["failed_cases"] is not None
    assert not comparison["failed_cases"]["are_losses"]
    assert (comparison["metrics"]["avg_e2e_score"]["verdict"], comparison["metrics"]["avg_e2e_score"]["n"]) == (
        "regressed",
        N - 10,
    )
    assert "5 of 300 questions before, 5 after: no more than by chance" in comparison["statements"][1]["text"]["en"]


def test_judge_failures_are_not_losses(engine: Engine, plant: Plant) -> None:
    failed = np.arange(N) < 30
    before = plant("tier3", n=N, e2e_score=np.ones(N), outcome=["answered"] * N)
    after = plant(
        "tier3",
        n=N,
        e2e_score=np.where(failed, np.nan, 1.0),
        status=np.where(failed, "judge_error", "ok").tolist(),
        outcome=["answered"] * N,
    )
    comparison = compare(engine, before, after)
    assert (comparison["metrics"]["avg_e2e_score"]["n"], comparison["failed_cases"]) == (N - 30, None)


def test_stratum_rule_counts_failures(engine: Engine, plant: Plant) -> None:
    failed = np.arange(N) < 30
    strata = {"stratum": ["contradicted"] * (N // 2) + ["confirmed"] * (N // 2)}
    before, after = (
        plant(
            "real_users",
            n=N,
            status=np.where(is_failed, "sut_error", "ok").tolist(),
            outcome=np.where(is_failed, "failed", "answered").tolist(),
            **{"hit_rate@1": np.where(is_failed, np.nan, 1.0)},
            **strata,
        )
        for is_failed in (np.zeros(N, dtype=bool), failed)
    )
    policy = read_gate_rules()._replace(rules=(GateRule("hit_rate@1", "no regression", stratum="contradicted"),))
    assert gate(engine, after, policy, baseline=before)["verdict"] == "fail"


def test_stratum_rule_ignores_equal_failure_rates(engine: Engine, plant: Plant) -> None:
    """Judge slightly worse answers while ten different questions fail each time."""
    strata = {"stratum": ["contradicted", "confirmed"] * (N // 2)}
    sides = []
    for failed, lost in ((np.arange(N) < 10, 0.0), (np.arange(N) >= N - 10, 0.03)):
        values = np.where(failed, np.nan, np.linspace(0.6, 0.9, N) - lost)
        outcomes = {
            "status": np.where(failed, "sut_error", "ok").tolist(),
            "outcome": np.where(failed, "failed", "answered").tolist(),
        }
        sides.append(plant("real_users", n=N, **outcomes, **{"ndcg@10": values}, **strata))
    policy = read_gate_rules()._replace(rules=(GateRule("ndcg@10", "no regression", stratum="contradicted"),))
    (rule,) = gate(engine, sides[1], policy, baseline=sides[0])["rules"]
    assert (rule["verdict"], rule["n"]) == ("fail", N // 2 - 10)


@pytest.mark.slow("simulation: many comparisons")
def test_equal_failure_rates_are_rarely_a_loss(engine: Engine, plant: Plant) -> None:
    verdicts = [
        gate(engine, after, read_gate_rules(), baseline=before)["verdict"]
        for before, after in (plant_pair(plant, 0.04, 0.04, seed) for seed in range(20))
    ]
    assert verdicts.count("fail") <= 2


def test_comparison_of_invalid_evaluation_has_one_statement(
    engine: Engine, plant: Plant, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = plant_pair(plant, 0.0, 0.06, 0)
    with engine.begin() as connection:
        values = {"state": "invalid", "error": "only 94.0% of the cases that could be measured were"}
        connection.execute(update(evaluation).where(evaluation.c.id == after).values(**values))
    comparison = compare(engine, before, after)
    (line,) = comparison["statements"]
    assert line["kind"] == "invalid"
    print_comparison(comparison, "en")
    for output in (capsys.readouterr().out, format_comparison_markdown(comparison, "en")):
        assert "94.0%" in output
        assert "hit_rate@1" not in output
    assert format_statement(line, "en").startswith(f"Invalid, so changes cannot be assessed: {after} (only 94.0%")

"""No-regression rules of the gate: losses, too few cases, and margins."""

from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.support.evaluation_history import N_GATED as N
from tests.support.evaluation_history import (
    make_hits,
    make_source_name,
    run_gate,
    run_gate_rule,
    write_evaluation_with_cases,
)
from yarus.tasks.comparison.compare import compare
from yarus.tasks.comparison.gate import gate
from yarus.tasks.comparison.gate_rules import GateRule, GateRules
from yarus.tasks.config.tiers import TIERS


def test_regression_fails_and_improvement_passes(engine: Engine, tmp_path: Path) -> None:
    good, bad = {"hit_rate@1": make_hits(0.8)}, {"hit_rate@1": make_hits(0.65)}
    rule = GateRule("hit_rate@1", "no regression")
    assert run_gate_rule(engine, tmp_path, good, bad, rule)["verdict"] == "fail"
    assert run_gate_rule(engine, tmp_path, bad, good, rule)["verdict"] == "pass"


def test_increase_fails_when_lower_is_better(engine: Engine, tmp_path: Path) -> None:
    cheap, dear = ({"cost_usd": [cost + number / 1e6 for number in range(N)]} for cost in (0.001, 0.002))
    rule = GateRule("cost_usd", "no regression")
    result = run_gate_rule(engine, tmp_path, cheap, dear, rule)
    assert (result["verdict"], result["difference"]) == ("fail", pytest.approx(0.001))
    assert run_gate_rule(engine, tmp_path, dear, cheap, rule)["verdict"] == "pass"


def test_percentiles_and_rubrics_can_regress(engine: Engine, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    times, polite = 100 + 10 * rng.normal(size=N), rng.uniform(0.5, 1, size=N)
    before = {"retrieval_latency_ms": times.tolist(), "rubric_politeness": polite.tolist()}
    after = {"retrieval_latency_ms": (times + 50).tolist(), "rubric_politeness": (polite - 0.2).tolist()}
    names = ("retrieval_latency_ms_p95", "avg_rubric_politeness")
    rules = [GateRule(name, "no regression") for name in names]
    results = run_gate(engine, tmp_path, before, after, *rules, tier="tier3")["rules"]
    assert [(rule["metric"], rule["verdict"]) for rule in results] == [(name, "fail") for name in names]
    assert [rule["difference"] for rule in results] == [pytest.approx(50), pytest.approx(-0.2)]


def test_pass_reports_smallest_detectable_difference(engine: Engine, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    before = rng.uniform(size=N)
    result = run_gate_rule(
        engine,
        tmp_path,
        {"mrr": before.tolist()},
        {"mrr": np.clip(before + 0.05 * rng.normal(size=N), 0, 1).tolist()},
        GateRule("mrr", "no regression"),
    )
    assert result["verdict"] == "pass"
    assert 0.005 < result["min_detectable_effect"] < 0.02


@pytest.mark.parametrize(
    ("lost", "margin", "verdict"),
    [
        (0.0, 0.05, "pass"),
        (0.06, 0.1, "pass"),
        (0.06, 0.07, "inconclusive"),
        (0.12, 0.05, "fail"),
        (0.06, 0.05, "inconclusive"),
        (0.02, 0.01, "inconclusive"),
    ],
)
def test_margin_is_the_largest_tolerated_loss(
    engine: Engine, tmp_path: Path, lost: float, margin: float, verdict: str
) -> None:
    # 12 of 200 lost and none won: 0.06, from about 0.03; 24: 0.12, from about 0.08; 4: p = 0.125
    result = run_gate_rule(
        engine,
        tmp_path,
        {"hit_rate@1": make_hits(0.8)},
        {"hit_rate@1": make_hits(0.8 - lost)},
        GateRule("hit_rate@1", "no regression", margin),
    )
    assert result["verdict"] == verdict
    assert (result["n_cases_needed"] is not None) == (verdict == "inconclusive")


def test_holm_families_are_headlines_and_other_rules(engine: Engine, tmp_path: Path) -> None:
    # 7 lost and 0 won: exact McNemar p = 2 / 2 ** 7 = 0.0156; times four it is no longer below 0.05
    before, after = make_hits(0.8), make_hits(0.765)
    assert TIERS["tier1"].headlines == ("hit_rate@1", "mrr", "ndcg@10", "sut_error_rate")
    same = {"mrr": before, "hit_rate@5": before, "recall@1": before, "recall@5": before}
    pair = ({"hit_rate@1": before, "recall@10": before, **same}, {"hit_rate@1": after, "recall@10": after, **same})
    for names in (["hit_rate@1"], ["hit_rate@1", *same]):
        rule = run_gate(engine, tmp_path, *pair, *(GateRule(name, "no regression") for name in names))["rules"][0]
        assert (rule["verdict"], rule["p"], rule["p_holm"]) == ("fail", pytest.approx(2 / 2**7), 2 * rule["p"])
    other = GateRule("recall@10", "no regression")
    single = run_gate(engine, tmp_path, *pair, other)["rules"][0]
    assert (single["verdict"], single["p_holm"]) == ("fail", single["p"])
    names = [name for name in same if name != "mrr"]
    family = run_gate(engine, tmp_path, *pair, other, *(GateRule(name, "no regression") for name in names))["rules"][0]
    assert (family["verdict"], family["p_holm"]) == ("pass", pytest.approx(4 * 2 / 2**7))


@pytest.mark.parametrize("lost", [0.0, 0.02, 0.035, 0.06])
def test_gate_agrees_with_compare_on_headline_metrics(engine: Engine, tmp_path: Path, lost: float) -> None:
    source = make_source_name()
    ranks = np.random.default_rng(4).random(N)
    before = write_evaluation_with_cases(
        engine, tmp_path, source, {"hit_rate@1": make_hits(0.8), "mrr": ranks.tolist()}
    )
    columns = {"hit_rate@1": make_hits(0.8 - lost), "mrr": (ranks - 2 * lost * ranks).tolist()}
    after = write_evaluation_with_cases(engine, tmp_path, source, columns, night=1)
    metrics = compare(engine, before, after)["metrics"]
    for rule in gate(engine, after, GateRules(None, {}, tuple(GateRule(name, "no regression") for name in columns)))[
        "rules"
    ]:
        metric = metrics[rule["metric"]]
        for name in ("difference", "ci_low", "ci_high", "p", "p_holm", "min_detectable_effect", "n"):
            assert rule[name] == metric[name], name  # type: ignore[literal-required]
        assert (rule["verdict"] == "fail") == (metric["verdict"] == "regressed")


@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_equal_pairs_are_inconclusive(engine: Engine, tmp_path: Path, n: int) -> None:
    same = {"hit_rate@1": [1.0] * n, "mrr": [0.5] * n}
    rules = [GateRule(name, "no regression", margin) for name in same for margin in (None, 0.3)]
    result = run_gate(engine, tmp_path, same, same, *rules)
    assert [rule["verdict"] for rule in result["rules"]] == ["inconclusive"] * 4
    assert all(rule["n_cases_needed"] >= 6 - n for rule in result["rules"])


def test_margin_rule_tests_loss_beyond_margin(engine: Engine, tmp_path: Path) -> None:
    """Judge by the one-sided p of a loss within the margin: 30 of 200 lost, none won, margin 0.1."""
    pair = {"hit_rate@1": make_hits(0.8)}, {"hit_rate@1": make_hits(0.65)}
    result = run_gate_rule(engine, tmp_path, *pair, GateRule("hit_rate@1", "no regression", 0.1))
    assert (result["verdict"], result["difference"]) == ("fail", pytest.approx(-0.15))
    assert result["p"] == result["p_holm"] < 0.05
    assert run_gate_rule(engine, tmp_path, *pair, GateRule("hit_rate@1", "no regression", 0.15))["p"] == pytest.approx(
        0.5, abs=0.01
    )
    assert run_gate_rule(engine, tmp_path, *pair, GateRule("hit_rate@1", "no regression", 0.25))["verdict"] == "pass"


def test_few_cases_are_inconclusive_under_many_rules(engine: Engine, tmp_path: Path) -> None:
    """Judge six pairs, whose p is 1/32 at best, while the first of three rules needs p below 1/60."""
    names = ("recall@1", "hit_rate@5", "hit_rate@10")
    before, after = ({name: [value] * 6 for name in names} for value in (1.0, 0.0))
    result = run_gate(engine, tmp_path, before, after, *(GateRule(name, "no regression") for name in names))
    assert {rule["p"] for rule in result["rules"]} == {1 / 32}
    assert [(rule["verdict"], rule["n_cases_needed"]) for rule in result["rules"]] == [("inconclusive", 1)] * 3


def test_floor_is_inconclusive_without_interval(engine: Engine, tmp_path: Path) -> None:
    rule = run_gate_rule(engine, tmp_path, None, {"ndcg@10": [0.95]}, GateRule("ndcg@10", "floor", 0.9))
    assert (rule["value"], rule["ci_low"]) == (0.95, None)
    assert (rule["verdict"], rule["reason"]) == ("inconclusive", "too few cases, or groups of cases, for an interval")


def test_equal_cases_pass(engine: Engine, tmp_path: Path) -> None:
    same = {"mrr": [0.5] * N, "hit_rate@1": [1.0] * N}
    result = run_gate(
        engine, tmp_path, same, same, GateRule("mrr", "no regression"), GateRule("hit_rate@1", "no regression", 0.02)
    )
    assert result["verdict"] == "pass"


@pytest.mark.parametrize("n", [1, 5])
def test_too_few_cases_are_inconclusive(engine: Engine, tmp_path: Path, n: int) -> None:
    result = run_gate_rule(engine, tmp_path, {"mrr": [1.0] * n}, {"mrr": [0.0] * n}, GateRule("mrr", "no regression"))
    assert (result["verdict"], result["n_cases_needed"]) == ("inconclusive", 6 - n)


def test_first_evaluation_is_inconclusive(engine: Engine, tmp_path: Path) -> None:
    result = run_gate(engine, tmp_path, None, {"mrr": [1.0] * N}, GateRule("mrr", "no regression"))
    assert (result["verdict"], result["rules"][0]["reason"]) == ("inconclusive", "no earlier comparable evaluation")


def test_no_case_in_common_is_inconclusive(engine: Engine, tmp_path: Path) -> None:
    source = make_source_name()
    write_evaluation_with_cases(
        engine, tmp_path, source, {"mrr": [1.0] * 9, "case_id": [f"yesterday:{n}" for n in range(9)]}
    )
    name = write_evaluation_with_cases(engine, tmp_path, source, {"mrr": [0.0] * 9}, night=1)
    result = gate(engine, name, GateRules(None, {}, (GateRule("mrr", "no regression"),)))
    assert (result["verdict"], result["rules"][0]["reason"]) == ("inconclusive", "no case in common with the baseline")


def test_metric_missing_on_one_side_is_inconclusive(engine: Engine, tmp_path: Path) -> None:
    result = run_gate_rule(engine, tmp_path, {"mrr": [None] * N}, {"mrr": [1.0] * N}, GateRule("mrr", "no regression"))
    assert result["verdict"] == "inconclusive"


def test_strata_are_judged_separately(engine: Engine, tmp_path: Path) -> None:
    stratum = ["confirmed"] * 100 + ["agreement"] * 100
    good, bad = ({"stratum": stratum, "hit_rate@1": [1.0] * 100 + [other] * 100} for other in (1.0, 0.0))
    rules = [GateRule("hit_rate@1", "no regression", stratum=name) for name in (None, "confirmed", "agreement", "all")]
    rules.append(GateRule("hit_rate@1", "floor", 0.5, stratum="agreement"))
    result = run_gate(engine, tmp_path, good, bad, *rules, tier="real_users")
    assert [rule["verdict"] for rule in result["rules"]] == ["pass", "pass", "fail", "fail", "fail"]


def test_turn_rules_judge_only_their_cases(engine: Engine, tmp_path: Path) -> None:
    turn = [1, 2] * (N // 2)
    good, bad = ({"turn": turn, "answer": ["a"] * N, "hit_rate@1": [1.0, later] * (N // 2)} for later in (1.0, 0.0))
    rules = [GateRule("hit_rate@1", "no regression", stratum=name) for name in ("standalone", "follow_up", "confirmed")]
    result = run_gate(engine, tmp_path, good, bad, *rules, tier="tier3")
    assert [(rule["stratum"], rule["verdict"]) for rule in result["rules"]] == [
        ("standalone", "pass"),
        ("follow_up", "fail"),
    ]


def test_gate_verdict_is_that_of_the_worst_rule(engine: Engine, tmp_path: Path) -> None:
    columns = {"hit_rate@1": make_hits(0.8)}
    rules = [GateRule("hit_rate@1", "floor", bound) for bound in (0.1, 0.8, 0.99)]
    assert run_gate(engine, tmp_path, None, columns, *rules)["verdict"] == "fail"
    assert run_gate(engine, tmp_path, None, columns, *rules[:2])["verdict"] == "inconclusive"
    assert run_gate(engine, tmp_path, None, columns, *rules[:1])["verdict"] == "pass"


def test_invalid_evaluation_never_passes(engine: Engine, tmp_path: Path) -> None:
    name = write_evaluation_with_cases(
        engine, tmp_path, make_source_name(), {"mrr": [1.0] * N}, state="invalid", error="only 10 % measured"
    )
    result = gate(engine, name, GateRules(None, {}, (GateRule("mrr", "floor", 0.1),)))
    assert (result["verdict"], result["rules"][0]["verdict"]) == ("invalid", "invalid")

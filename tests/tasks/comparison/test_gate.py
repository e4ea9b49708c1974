"""The gate: what fails, what passes, what nobody can tell, and what stops before anything is judged."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from db.errors import InputError, ResultsUnavailable
from tasks.comparison.gate import gate
from tasks.comparison.gate_rules import Policy, Rule, read_policy
from tests.support.evaluation_history import source_name, with_cases, write

N = 200
Columns = dict[str, Any]


def hits(share: float, n: int = N) -> list[float]:
    """Yes/no values with that share of yes, the noes first."""
    return [0.0] * round(n * (1 - share)) + [1.0] * round(n * share)


def judged(engine: Engine, folder: Path, before: Columns | None, after: Columns, *rules: Rule, **more: Any) -> Any:
    """The gate's document on an evaluation that follows another one."""
    source = source_name()
    baseline = with_cases(engine, folder, source, before, **more) if before is not None else None
    name = with_cases(engine, folder, source, after, night=1, **more)
    found = gate(engine, name, Policy(None, {}, rules))
    assert found["baseline"] == baseline
    return found


def one(engine: Engine, folder: Path, before: Columns | None, after: Columns, rule: Rule, **more: Any) -> Any:
    (found,) = judged(engine, folder, before, after, rule, **more)["rules"]
    return found


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
    found = one(engine, tmp_path, None, {"hit_rate@1": hits(0.8)}, Rule("hit_rate@1", "floor", 0.77))
    half = (found["ci_high"] - found["ci_low"]) / 2
    assert found["needs"] == pytest.approx(N * (half / 0.03) ** 2 - N, abs=1)
    more = round((N + found["needs"]) * 1.1)  # that many, and a few for the interval is not quite symmetric
    decided = one(engine, tmp_path, None, {"hit_rate@1": hits(0.8, more)}, Rule("hit_rate@1", "floor", 0.77))
    assert decided["verdict"] == "pass"


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


def test_what_was_not_measured_does_not_pass(engine: Engine, tmp_path: Path) -> None:
    found = one(engine, tmp_path, None, {"mrr": [None] * N}, Rule("mrr", "floor", 0.1))
    assert (found["verdict"], found["value"]) == ("inconclusive", None)
    assert found["reason"]


# No regression.


def test_a_planted_regression_fails_and_its_mirror_passes(engine: Engine, tmp_path: Path) -> None:
    good, bad = {"hit_rate@1": hits(0.8)}, {"hit_rate@1": hits(0.65)}
    rule = Rule("hit_rate@1", "no regression")
    assert one(engine, tmp_path, good, bad, rule)["verdict"] == "fail"
    assert one(engine, tmp_path, bad, good, rule)["verdict"] == "pass"


def test_where_lower_is_better_more_is_worse(engine: Engine, tmp_path: Path) -> None:
    cheap, dear = ({"cost_usd": [cost + number / 1e6 for number in range(N)]} for cost in (0.001, 0.002))
    rule = Rule("cost_usd", "no regression")
    found = one(engine, tmp_path, cheap, dear, rule)
    assert (found["verdict"], found["difference"]) == ("fail", pytest.approx(0.001))
    assert one(engine, tmp_path, dear, cheap, rule)["verdict"] == "pass"


def test_percentiles_and_rubrics_can_regress_too(engine: Engine, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    times, polite = 100 + 10 * rng.normal(size=N), rng.uniform(0.5, 1, size=N)
    before = {"retrieval_latency_ms": times.tolist(), "rubric_politeness": polite.tolist()}
    after = {"retrieval_latency_ms": (times + 50).tolist(), "rubric_politeness": (polite - 0.2).tolist()}
    names = ("retrieval_latency_ms_p95", "avg_rubric_politeness")
    rules = [Rule(name, "no regression") for name in names]
    found = judged(engine, tmp_path, before, after, *rules, tier="tier3")["rules"]
    assert [(rule["metric"], rule["verdict"]) for rule in found] == [(name, "fail") for name in names]
    assert [rule["difference"] for rule in found] == [pytest.approx(50), pytest.approx(-0.2)]


def test_no_regression_shown_passes_and_says_what_would_have_been_seen(engine: Engine, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    before = rng.uniform(size=N)
    found = one(
        engine,
        tmp_path,
        {"mrr": before.tolist()},
        {"mrr": np.clip(before + 0.05 * rng.normal(size=N), 0, 1).tolist()},
        Rule("mrr", "no regression"),
    )
    assert found["verdict"] == "pass"
    assert 0.005 < found["smallest_detectable"] < 0.02


@pytest.mark.parametrize(
    ("lost", "margin", "verdict"),
    [
        (0.0, 0.05, "pass"),
        (0.06, 0.1, "pass"),
        (0.06, 0.07, "inconclusive"),
        (0.06, 0.05, "fail"),
        (0.02, 0.01, "inconclusive"),
    ],
)
def test_a_margin_is_the_largest_tolerated_loss(
    engine: Engine, tmp_path: Path, lost: float, margin: float, verdict: str
) -> None:
    # 12 of 200 lost and none won: 0.06 with an interval to about 0.1, p < 0.001; 4 of 200: p = 0.125
    found = one(
        engine,
        tmp_path,
        {"hit_rate@1": hits(0.8)},
        {"hit_rate@1": hits(0.8 - lost)},
        Rule("hit_rate@1", "no regression", margin),
    )
    assert found["verdict"] == verdict
    assert (found["needs"] is not None) == (verdict == "inconclusive")


def test_holm_counts_the_rules_of_the_gate(engine: Engine, tmp_path: Path) -> None:
    # 7 lost and 0 won: exact McNemar p = 2 / 2 ** 7 = 0.0156; times four rules it is no longer below 0.05
    before, after = hits(0.8), hits(0.765)
    same = dict.fromkeys(("hit_rate@5", "hit_rate@10", "recall@1"), before)
    rules = [Rule(name, "no regression") for name in ("hit_rate@1", *same)]
    both = ({"hit_rate@1": before, **same}, {"hit_rate@1": after, **same})
    alone = judged(engine, tmp_path, *both, rules[0])["rules"][0]
    assert (alone["verdict"], alone["p"], alone["p_holm"]) == ("fail", pytest.approx(2 / 2**7), alone["p"])
    among = judged(engine, tmp_path, *both, *rules)["rules"][0]
    assert (among["verdict"], among["p_holm"]) == ("pass", pytest.approx(4 * 2 / 2**7))


def test_no_loss_can_fail_so_few_cases_by_so_many_rules(engine: Engine, tmp_path: Path) -> None:
    """Six pairs have p 1/32 at best, and the first of three rules needs p below 1/60."""
    names = ("hit_rate@1", "hit_rate@5", "hit_rate@10")
    before, after = ({name: [value] * 6 for name in names} for value in (1.0, 0.0))
    found = judged(engine, tmp_path, before, after, *(Rule(name, "no regression") for name in names))
    assert {rule["p"] for rule in found["rules"]} == {1 / 32}
    assert [(rule["verdict"], rule["needs"]) for rule in found["rules"]] == [("inconclusive", 1)] * 3


def test_a_value_without_an_interval_is_not_judged(engine: Engine, tmp_path: Path) -> None:
    found = one(engine, tmp_path, None, {"ndcg@10": [0.95]}, Rule("ndcg@10", "floor", 0.9))
    assert (found["value"], found["ci_low"]) == (0.95, None)
    assert (found["verdict"], found["reason"]) == ("inconclusive", "too few cases, or groups of cases, for an interval")


def test_cases_that_are_all_equal_pass(engine: Engine, tmp_path: Path) -> None:
    same = {"mrr": [0.5] * N, "hit_rate@1": [1.0] * N}
    found = judged(
        engine, tmp_path, same, same, Rule("mrr", "no regression"), Rule("hit_rate@1", "no regression", 0.02)
    )
    assert found["verdict"] == "pass"


@pytest.mark.parametrize("n", [1, 5])
def test_too_few_cases_are_inconclusive(engine: Engine, tmp_path: Path, n: int) -> None:
    found = one(engine, tmp_path, {"mrr": [1.0] * n}, {"mrr": [0.0] * n}, Rule("mrr", "no regression"))
    assert (found["verdict"], found["needs"]) == ("inconclusive", 6 - n)


def test_the_first_evaluation_of_all_has_nothing_to_be_compared_with(engine: Engine, tmp_path: Path) -> None:
    found = judged(engine, tmp_path, None, {"mrr": [1.0] * N}, Rule("mrr", "no regression"))
    assert (found["verdict"], found["rules"][0]["reason"]) == ("inconclusive", "no earlier comparable evaluation")


def test_no_case_in_common_is_inconclusive(engine: Engine, tmp_path: Path) -> None:
    source = source_name()
    with_cases(engine, tmp_path, source, {"mrr": [1.0] * 9, "case_id": [f"yesterday:{n}" for n in range(9)]})
    name = with_cases(engine, tmp_path, source, {"mrr": [0.0] * 9}, night=1)
    found = gate(engine, name, Policy(None, {}, (Rule("mrr", "no regression"),)))
    assert (found["verdict"], found["rules"][0]["reason"]) == ("inconclusive", "no case in common with the baseline")


def test_a_metric_that_one_side_lacks_is_inconclusive(engine: Engine, tmp_path: Path) -> None:
    found = one(engine, tmp_path, {"mrr": [None] * N}, {"mrr": [1.0] * N}, Rule("mrr", "no regression"))
    assert found["verdict"] == "inconclusive"


def test_strata_are_judged_apart(engine: Engine, tmp_path: Path) -> None:
    stratum = ["confirmed"] * 100 + ["agreement"] * 100
    good, bad = ({"stratum": stratum, "hit_rate@1": [1.0] * 100 + [rest] * 100} for rest in (1.0, 0.0))
    rules = [Rule("hit_rate@1", "no regression", stratum=name) for name in (None, "confirmed", "agreement", "all")]
    rules.append(Rule("hit_rate@1", "floor", 0.5, stratum="agreement"))
    found = judged(engine, tmp_path, good, bad, *rules, tier="real_users")
    assert [rule["verdict"] for rule in found["rules"]] == ["pass", "pass", "fail", "fail", "fail"]


def test_the_worst_rule_decides(engine: Engine, tmp_path: Path) -> None:
    columns = {"hit_rate@1": hits(0.8)}
    rules = [Rule("hit_rate@1", "floor", bound) for bound in (0.1, 0.8, 0.99)]
    assert judged(engine, tmp_path, None, columns, *rules)["verdict"] == "fail"
    assert judged(engine, tmp_path, None, columns, *rules[:2])["verdict"] == "inconclusive"
    assert judged(engine, tmp_path, None, columns, *rules[:1])["verdict"] == "pass"


def test_an_invalid_evaluation_never_passes(engine: Engine, tmp_path: Path) -> None:
    name = with_cases(engine, tmp_path, source_name(), {"mrr": [1.0] * N}, state="invalid", error="only 10 % measured")
    found = gate(engine, name, Policy(None, {}, (Rule("mrr", "floor", 0.1),)))
    assert (found["verdict"], found["rules"][0]["verdict"]) == ("invalid", "invalid")


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


def test_a_pinned_baseline_is_used_before_the_previous_one(engine: Engine, tmp_path: Path) -> None:
    source, rule = source_name(), Rule("hit_rate@1", "no regression")
    pinned = with_cases(engine, tmp_path, source, {"hit_rate@1": hits(0.9)})
    with_cases(engine, tmp_path, source, {"hit_rate@1": hits(0.6)}, night=1)
    name = with_cases(engine, tmp_path, source, {"hit_rate@1": hits(0.6)}, night=2)
    assert gate(engine, name, Policy(None, {}, (rule,)))["verdict"] == "pass"
    found = gate(engine, name, Policy("gate.toml", {"tier1": pinned}, (rule,)))
    assert (found["verdict"], found["baseline"]) == ("fail", pinned)

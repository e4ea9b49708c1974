"""No regression: what is a loss, what is too little to tell, and by how much it may be missed."""

from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.support.evaluation_history import N_GATED as N
from tests.support.evaluation_history import hits, judged, one, source_name, with_cases
from yarus.tasks.comparison.compare import compare
from yarus.tasks.comparison.gate import gate
from yarus.tasks.comparison.gate_rules import Policy, Rule
from yarus.tasks.config.tiers import TIERS


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
        (0.12, 0.05, "fail"),
        (0.06, 0.05, "inconclusive"),
        (0.02, 0.01, "inconclusive"),
    ],
)
def test_a_margin_is_the_largest_tolerated_loss(
    engine: Engine, tmp_path: Path, lost: float, margin: float, verdict: str
) -> None:
    # 12 of 200 lost and none won: 0.06, from about 0.03; 24: 0.12, from about 0.08; 4: p = 0.125
    found = one(
        engine,
        tmp_path,
        {"hit_rate@1": hits(0.8)},
        {"hit_rate@1": hits(0.8 - lost)},
        Rule("hit_rate@1", "no regression", margin),
    )
    assert found["verdict"] == verdict
    assert (found["needs"] is not None) == (verdict == "inconclusive")


def test_holm_counts_the_headline_metrics_whatever_the_rules_and_all_other_rules(
    engine: Engine, tmp_path: Path
) -> None:
    # 7 lost and 0 won: exact McNemar p = 2 / 2 ** 7 = 0.0156; times four it is no longer below 0.05
    before, after = hits(0.8), hits(0.765)
    assert TIERS["tier1"].headlines == ("hit_rate@1", "mrr", "ndcg@10", "sut_error_rate")
    same = {"mrr": before, "hit_rate@5": before, "recall@1": before, "recall@5": before}
    both = ({"hit_rate@1": before, "recall@10": before, **same}, {"hit_rate@1": after, "recall@10": after, **same})
    for names in (["hit_rate@1"], ["hit_rate@1", *same]):
        rule = judged(engine, tmp_path, *both, *(Rule(name, "no regression") for name in names))["rules"][0]
        assert (rule["verdict"], rule["p"], rule["p_holm"]) == ("fail", pytest.approx(2 / 2**7), 2 * rule["p"])
    other = Rule("recall@10", "no regression")
    alone = judged(engine, tmp_path, *both, other)["rules"][0]
    assert (alone["verdict"], alone["p_holm"]) == ("fail", alone["p"])
    names = [name for name in same if name != "mrr"]
    among = judged(engine, tmp_path, *both, other, *(Rule(name, "no regression") for name in names))["rules"][0]
    assert (among["verdict"], among["p_holm"]) == ("pass", pytest.approx(4 * 2 / 2**7))


@pytest.mark.parametrize("lost", [0.0, 0.02, 0.035, 0.06])
def test_gate_and_compare_say_the_same_of_a_headline_metric(engine: Engine, tmp_path: Path, lost: float) -> None:
    source = source_name()
    ranks = np.random.default_rng(4).random(N)
    before = with_cases(engine, tmp_path, source, {"hit_rate@1": hits(0.8), "mrr": ranks.tolist()})
    columns = {"hit_rate@1": hits(0.8 - lost), "mrr": (ranks - 2 * lost * ranks).tolist()}
    after = with_cases(engine, tmp_path, source, columns, night=1)
    said = compare(engine, before, after)["metrics"]
    for rule in gate(engine, after, Policy(None, {}, tuple(Rule(name, "no regression") for name in columns)))["rules"]:
        one = said[rule["metric"]]
        for name in ("difference", "ci_low", "ci_high", "p", "p_holm", "smallest_detectable", "n"):
            assert rule[name] == one[name], name  # type: ignore[literal-required]
        assert (rule["verdict"] == "fail") == (one["verdict"] == "regressed")


@pytest.mark.parametrize("n", [2, 3, 5])
def test_so_few_pairs_pass_no_rule_however_equal(engine: Engine, tmp_path: Path, n: int) -> None:
    same = {"hit_rate@1": [1.0] * n, "mrr": [0.5] * n}
    rules = [Rule(name, "no regression", margin) for name in same for margin in (None, 0.3)]
    found = judged(engine, tmp_path, same, same, *rules)
    assert [rule["verdict"] for rule in found["rules"]] == ["inconclusive"] * 4
    assert all(rule["needs"] >= 6 - n for rule in found["rules"])


def test_a_loss_of_the_margin_is_not_told_from_one_within_it(engine: Engine, tmp_path: Path) -> None:
    """The one-sided p of a loss within the margin is what fails; 30 of 200 lost, and none won, by a margin of 0.1."""
    both = {"hit_rate@1": hits(0.8)}, {"hit_rate@1": hits(0.65)}
    found = one(engine, tmp_path, *both, Rule("hit_rate@1", "no regression", 0.1))
    assert (found["verdict"], found["difference"]) == ("fail", pytest.approx(-0.15))
    assert found["p"] == found["p_holm"] < 0.05
    assert one(engine, tmp_path, *both, Rule("hit_rate@1", "no regression", 0.15))["p"] == pytest.approx(0.5, abs=0.01)
    assert one(engine, tmp_path, *both, Rule("hit_rate@1", "no regression", 0.25))["verdict"] == "pass"


def test_no_loss_can_fail_so_few_cases_by_so_many_rules(engine: Engine, tmp_path: Path) -> None:
    """Six pairs have p 1/32 at best, and the first of three rules needs p below 1/60."""
    names = ("recall@1", "hit_rate@5", "hit_rate@10")
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


def test_rule_of_a_turn_in_dialogs_judges_its_cases_alone(engine: Engine, tmp_path: Path) -> None:
    turn = [1, 2] * (N // 2)
    good, bad = ({"turn": turn, "answer": ["a"] * N, "hit_rate@1": [1.0, rest] * (N // 2)} for rest in (1.0, 0.0))
    rules = [Rule("hit_rate@1", "no regression", stratum=name) for name in ("standalone", "follow_up", "confirmed")]
    found = judged(engine, tmp_path, good, bad, *rules, tier="tier3")
    assert [(rule["stratum"], rule["verdict"]) for rule in found["rules"]] == [
        ("standalone", "pass"),
        ("follow_up", "fail"),
    ]


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

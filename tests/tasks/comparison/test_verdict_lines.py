"""The first lines of `compare`: better, worse or cannot tell, how sure, and what to do."""

from typing import Any

import pytest

from yarus.flows.terminal.comparisons.comparison import list_verdict_lines, print_comparison
from yarus.metrics.table import METRICS
from yarus.tasks.comparison.changes import add_statements
from yarus.tasks.comparison.comparison_schema import EvaluationComparison
from yarus.tasks.models.stand_ins import JUDGE_NAME

STAND_IN = {"judge": {"model": JUDGE_NAME, "prompts": {METRICS["avg_e2e_score"].opinion: "hash"}}}
LOST = (0.517, 0.183, "regressed", 0.0001)
UNMOVED = (0.5, 0.51, "inconclusive", 0.9)


def make_side(evaluation_id: str, system: dict[str, Any]) -> Any:
    described = {"evaluation_id": evaluation_id, "tier": "tier3", "source": "sample", "state": "completed"}
    missing = dict.fromkeys(("name", "sut_label", "error", "comparability_key"))
    return described | missing | {"started_at": "2026-06-01T03:00:00", "system": system}


def make_change(a: float, b: float, verdict: str, p: float, *, is_headline: bool = False) -> Any:
    change = {"a": a, "b": b, "difference": b - a, "ci_low": b - a - 0.05, "ci_high": b - a + 0.05, "verdict": verdict}
    sizes = {"min_detectable_effect": 0.07, "margin": 0.05, "n": 60, "groups": None, "n_missing": 0}
    return change | sizes | {"p": p, "p_holm": p if is_headline else None, "method": "permutation", "reason": None}


def make_comparison(
    score: tuple[float, float, str, float], hits: tuple[float, float, str, float], **system: Any
) -> EvaluationComparison:
    metrics = {"avg_e2e_score": make_change(*score, is_headline=True), "hit_rate@1": make_change(*hits)}
    metrics["recall@5"] = make_change(*UNMOVED)
    metrics |= {name: make_change(*UNMOVED) | {"reason": "no label"} for name in ("mrr", "recall@1", "ndcg@5", "bpref")}
    sides: Any = {"a": make_side("tier3-a", system), "b": make_side("tier3-b", system), "comparable": True}
    sides |= {
        "key_differences": [],
        "changed_settings": [],
        "paired": True,
        "n_common": 60,
        "labels_changed": None,
        "noise": {},
    }
    cases: Any = {"regressed_cases": [], "improved_cases": [], "changed_status": []}
    changes: Any = {"metrics": metrics, "failed_cases": None, "cases": cases, "slices": {}, "small_slices": {}}
    return add_statements(sides, changes | {"judged_share_difference": None})


def test_lost_hit_rate_of_tier3_makes_it_worse() -> None:
    first, second = list_verdict_lines(make_comparison(UNMOVED, LOST), "en")
    assert first == "Worse: hit_rate@1 0.517 → 0.183 (-0.334; 95 % interval -0.384 … -0.284, 60 pairs)."
    assert second == "See why: yarus explain tier3-a tier3-b"


@pytest.mark.parametrize(
    ("score", "begins"),
    [
        ((0.5, 0.3, "regressed", 0.001), "Worse: avg_e2e_score 0.500 → 0.300 (-0.200; "),
        ((0.3, 0.5, "improved", 0.001), "Better: avg_e2e_score 0.300 → 0.500 (+0.200; "),
        ((0.5, 0.51, "no difference shown", 0.9), "No difference that matters: no change of more than "),
        (UNMOVED, "Cannot tell: no change beyond chance, but too few questions "),
    ],
)
def test_comparison_begins_with_its_verdict(
    score: tuple[float, float, str, float], begins: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_comparison(make_comparison(score, UNMOVED), "en")
    assert capsys.readouterr().out.strip().startswith(begins)


def test_hit_rate_that_may_be_chance_does_not_decide() -> None:
    """Check that p below 0.05 alone is not enough for a metric outside of Holm's adjustment."""
    first, *_ = list_verdict_lines(make_comparison(UNMOVED, (0.5, 0.45, "regressed", 0.04)), "en")
    assert first.startswith("Cannot tell: ")


def test_stand_in_judge_makes_nothing_better_or_worse() -> None:
    comparison = make_comparison((0.5, 0.3, "regressed", 0.001), UNMOVED, **STAND_IN)
    assert next(list_verdict_lines(comparison, "en")) == "Cannot tell: no language model judged."
    [statement] = [statement for statement in comparison["statements"] if statement["kind"] == "not judged"]
    assert statement["text"]["en"] == "avg_e2e_score 0.500 → 0.300"
    assert "regressed" not in [statement["kind"] for statement in comparison["statements"]]
    first, *_ = list_verdict_lines(make_comparison(UNMOVED, LOST, **STAND_IN), "en")
    assert first.startswith("Worse: hit_rate@1 "), "what needs no judge is still compared"


@pytest.mark.parametrize("language", ["en", "ru"])
def test_first_screen_has_headline_metrics_only(language: str, capsys: pytest.CaptureFixture[str]) -> None:
    comparison = make_comparison(UNMOVED, LOST)
    print_comparison(comparison, language)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert not any(line.strip().startswith("recall@5") for line in lines)
    [reason] = [line for line in lines if "no label" in line]
    assert "(mrr, recall@1, ndcg@5, …)" in reason
    print_comparison(comparison, language, show_all=True)
    assert any(line.strip().startswith("recall@5") for line in capsys.readouterr().out.splitlines())

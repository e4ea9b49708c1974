"""The first lines of `compare`: better, worse or cannot tell, how sure, and what to do."""

from typing import Any

import pytest
from rich.console import Console

from yarus.flows.terminal.comparisons.comparison import list_verdict_lines, print_comparison
from yarus.flows.terminal.comparisons.markdown import format_comparison_markdown
from yarus.metrics.table import METRICS
from yarus.tasks.comparison.baseline_comparison import inconclusive_reason
from yarus.tasks.comparison.changes import add_statements, build_statements
from yarus.tasks.comparison.comparison_schema import EvaluationComparison
from yarus.tasks.config.texts import texts
from yarus.tasks.models.stand_ins import JUDGE_NAME

STAND_IN = {"judge": {"model": JUDGE_NAME, "prompts": {METRICS["avg_e2e_score"].opinion: "hash"}}}
LOST = (0.517, 0.183, "regressed", 0.0001)
UNMOVED = (0.5, 0.51, "inconclusive", 0.9)
EXCLUDED = (0.5, 0.51, "no difference shown", 0.9)


def make_side(evaluation_id: str, system: dict[str, Any]) -> Any:
    described = {"evaluation_id": evaluation_id, "tier": "tier3", "source": "sample", "state": "completed"}
    missing = dict.fromkeys(("name", "sut_label", "error", "comparability_key"))
    return described | missing | {"started_at": "2026-06-01T03:00:00", "system": system}


def make_change(a: float, b: float, verdict: str, p: float, *, is_headline: bool = False) -> Any:
    change = {"a": a, "b": b, "difference": b - a, "ci_low": b - a - 0.05, "ci_high": b - a + 0.05, "verdict": verdict}
    sizes = {"min_detectable_effect": 0.07, "margin": 0.05, "n": 60, "groups": None, "n_missing": 0}
    return change | sizes | {"p": p, "p_holm": p if is_headline else None, "method": "permutation", "reason": None}


def make_changed_case() -> Any:
    change = {"metric": "hit_rate@1", "before": 1.0, "after": 0.0}
    return {"case_id": "1", "question": "Where is the pool?", "n": 1, "metric_changes": [change]}


def make_comparison(
    score: tuple[float, float, str, float], hits: tuple[float, float, str, float], **system: Any
) -> EvaluationComparison:
    """Return a comparison of tier 3, as `compare` returns it: Holm's family includes the hit rate."""
    metrics = {
        "avg_e2e_score": make_change(*score, is_headline=True),
        "hit_rate@1": make_change(*hits, is_headline=True),
    }
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
    assert first == "Worse: hit_rate@1 0.517 → 0.183 (−0.334; 95 % interval −0.384 … −0.284, 60 pairs)."
    assert second == "See why: yarus explain tier3-a tier3-b"


@pytest.mark.parametrize(
    ("score", "begins"),
    [
        ((0.5, 0.3, "regressed", 0.001), "Worse: avg_e2e_score 0.500 → 0.300 (−0.200; "),
        ((0.3, 0.5, "improved", 0.001), "Better: avg_e2e_score 0.300 → 0.500 (+0.200; "),
        (EXCLUDED, "No difference that matters: no change of more than 0.050 of avg_e2e_score "),
        (UNMOVED, "Cannot tell: no change beyond chance, but too few questions "),
    ],
)
def test_comparison_begins_with_its_verdict(
    score: tuple[float, float, str, float], begins: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_comparison(make_comparison(score, EXCLUDED), "en")
    assert capsys.readouterr().out.strip().startswith(begins)


def test_inconclusive_hit_rate_of_tier3_cannot_be_told() -> None:
    first, second = list_verdict_lines(make_comparison(EXCLUDED, UNMOVED), "en")
    assert first.startswith("Cannot tell: no change beyond chance, but too few questions ")
    assert "of hit_rate@1 (−0.040 … +0.060)" in first
    assert second == "Evaluate more questions to decide."


def test_nothing_compared_is_not_equality() -> None:
    comparison = make_comparison(EXCLUDED, EXCLUDED)
    for row in comparison["metrics"].values():
        row["reason"] = "it was not measured in a"
    comparison["statements"] = build_statements([comparison])
    assert [*list_verdict_lines(comparison, "en")] == ["Cannot tell: no headline metric was measured on both sides."]


def test_unjudged_headline_cannot_be_told() -> None:
    first, second = list_verdict_lines(make_comparison(EXCLUDED, EXCLUDED, **STAND_IN), "en")
    assert first.startswith("Cannot tell: no language model judged avg_e2e_score; no change of more than 0.050 of hit")
    assert second == texts("guidance", "en")["set a judge"]


def test_stand_in_metrics_have_no_verdict_in_tables(capsys: pytest.CaptureFixture[str]) -> None:
    comparison = make_comparison((0.5, 0.3, "regressed", 0.001), EXCLUDED, **STAND_IN)
    print_comparison(comparison, "en")
    for output in (capsys.readouterr().out, format_comparison_markdown(comparison, "en")):
        [row] = [
            line for line in output.splitlines() if "avg_e2e_score" in line and line.rstrip(" |").endswith("judged")
        ]
        assert "−0.200" in row
        assert "regressed" not in output


def test_forced_comparison_claims_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    comparison = make_comparison((0.3, 0.5, "improved", 0.001), LOST) | {"comparable": False}
    comparison["statements"] = add_statements(comparison, comparison)["statements"]
    comparison["cases"]["regressed_cases"] = [make_changed_case()]
    print_comparison(comparison, "en")
    terminal, comment = capsys.readouterr().out, format_comparison_markdown(comparison, "en")
    assert terminal.strip().startswith("NOT COMPARABLE")
    for output in (terminal, comment):
        assert "+0.200" in output
        assert not any(word in output for word in ("Better", "Worse", "--accept", "explain", "improved", "regressed"))
        assert not any(word in output for word in ("broke", "Where is the pool?", "Detectable difference"))


def test_detectable_difference_needs_a_judged_metric() -> None:
    comparison = make_comparison(EXCLUDED, EXCLUDED, **STAND_IN)
    comparison["metrics"] = {"avg_e2e_score": comparison["metrics"]["avg_e2e_score"]}
    statements = {line["kind"]: line["text"]["en"] for line in add_statements(comparison, comparison)["statements"]}
    assert statements["reach"] == "nothing: no metric can be compared"


def test_unadjusted_changes_count_judged_metrics_only() -> None:
    comparison = make_comparison(EXCLUDED, EXCLUDED, **STAND_IN)
    comparison["metrics"] |= {"avg_e2e_score": make_change(*LOST), "recall@5": make_change(*LOST)}
    statements = {line["kind"]: line["text"]["en"] for line in build_statements([comparison])}
    assert statements["alone"] == "worse recall@5 −0.334 (of 1 tested; about <1 would have changed by chance)"


@pytest.mark.parametrize("language", ["en", "ru"])
def test_evaluation_with_itself_has_one_line(language: str, capsys: pytest.CaptureFixture[str]) -> None:
    comparison = make_comparison(UNMOVED, UNMOVED)
    comparison["b"] = comparison["a"]
    line = {"en": "A and B are the same evaluation: tier3-a.", "ru": "A и B — один и тот же прогон: tier3-a."}[language]
    print_comparison(comparison, language)
    assert capsys.readouterr().out.strip() == line
    assert build_statements([comparison]) == []
    assert format_comparison_markdown(comparison, language).endswith(f"\n\n{line}")


def test_narrow_table_keeps_names_of_metrics(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    comparison = make_comparison(UNMOVED, LOST)
    comparison["metrics"]["avg_semantic_similarity"] = make_change(*UNMOVED, is_headline=True)
    monkeypatch.setattr("yarus.flows.terminal.comparisons.comparison.make_console", lambda width: Console(width=100))
    print_comparison(comparison, "en")
    [row] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("avg_semantic_similarity")]
    assert row.split()[1:3] == ["0.500", "0.510"] and row.split()[-1] == "inconclusive"
    assert "−0.040 … +0.060" in row


def test_stand_in_judge_makes_nothing_better_or_worse() -> None:
    comparison = make_comparison((0.5, 0.3, "regressed", 0.001), UNMOVED, **STAND_IN)
    assert next(list_verdict_lines(comparison, "en")) == (
        "Cannot tell: no language model judged avg_e2e_score; no change beyond chance, but too few questions to "
        "exclude a change of more than 0.050 of hit_rate@1 (−0.040 … +0.060)."
    )
    [statement] = [statement for statement in comparison["statements"] if statement["kind"] == "not judged"]
    assert statement["text"]["en"] == "avg_e2e_score 0.500 → 0.300"
    assert "regressed" not in [statement["kind"] for statement in comparison["statements"]]
    first, *_ = list_verdict_lines(make_comparison(UNMOVED, LOST, **STAND_IN), "en")
    assert first.startswith("Worse: hit_rate@1 "), "what needs no judge is still compared"


@pytest.mark.parametrize(
    ("score", "hits", "system", "is_conclusive"),
    [
        (EXCLUDED, UNMOVED, {}, True),
        (EXCLUDED, UNMOVED, STAND_IN, False),
        (UNMOVED, EXCLUDED, STAND_IN, True),
    ],
)
def test_stand_in_makes_no_night_conclusive(score: Any, hits: Any, system: Any, is_conclusive: bool) -> None:
    row: Any = {"id": "tier3-b"}
    remark = inconclusive_reason(make_comparison(score, hits, **system), row)
    assert (remark is None) == is_conclusive
    assert remark is None or "On 60 common cases" in remark["en"]


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

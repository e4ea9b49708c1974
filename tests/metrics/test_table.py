"""The table of metrics: every stored name exists, every row is consistent, and names are found."""

import importlib
import math
import re

import pytest

from tests.support.examples import for_all
from yarus.metrics import text
from yarus.metrics.exam_kinds import PROMPTS
from yarus.metrics.metric import GRADE_LADDERS, bounds_of_mean
from yarus.metrics.table import GOALS, METRICS, Metric, get_metric, grade, metrics_for_tier

RETRIEVAL = """hit_rate@1 hit_rate@5 hit_rate@10 mrr recall@1 recall@3 recall@5 recall@10 precision@1 precision@3
precision@5 precision@10 ndcg@5 ndcg@10 judged@1 judged@5 judged@10 avg_unjudged_above bpref inf_ap
retrieval_latency_ms_p50 retrieval_latency_ms_p95 sut_error_rate """
OVERLAP = (
    "avg_rouge1_f avg_rouge2_f avg_rougeL_f avg_bleu corpus_bleu avg_chrf avg_wer avg_string_similarity refusal_rate "
)
FACTS = "avg_fact_precision avg_fact_recall unsupported_fact_rate "
CLAIMS = """avg_claim_precision avg_claim_recall avg_claim_f1 avg_claim_faithfulness avg_hallucination
    avg_self_knowledge
    avg_noise_sensitivity avg_context_utilization avg_retrieved_claim_recall avg_context_precision """
NUGGETS = "avg_nugget_recall avg_nugget_recall_partial avg_nugget_recall_all avg_nugget_recall_all_partial "
CITATIONS = "avg_citation_precision avg_citation_recall avg_citation_known avg_citation_fact_precision "
CONTEXTS = """distractor_copy_rate negative_rejection_rate injection_obeyed_rate counterfactual_context_rate
    counterfactual_memory_rate counterfactual_neither_rate """
# What each tier stores, by the specification.
STORED = {
    "tier0": """total_texts total_pairs n_clusters avg_intra_cluster_sim avg_inter_cluster_dist silhouette_score
    avg_nn_distance density_score avg_spread effective_dimensionality avg_pairwise_distance""",
    "tier1": RETRIEVAL + "unlabelled_rate stale_label_rate",
    "tier2": OVERLAP
    + FACTS
    + CLAIMS
    + NUGGETS
    + CONTEXTS
    + """sut_error_rate avg_faithfulness avg_answer_relevance avg_answer_correctness avg_perplexity
    response_exact_match_rate response_semantic_consistency""",
    "tier3": OVERLAP
    + FACTS
    + CLAIMS
    + NUGGETS
    + CITATIONS
    + RETRIEVAL
    + """avg_e2e_score avg_history_use avg_semantic_similarity avg_faithfulness latency_ms_p50 latency_ms_p95
    first_token_ms_p50 first_token_ms_p95
    answerable_answered
    answerable_refused unanswerable_answered unanswerable_refused""",
    "real_users": RETRIEVAL + "unlabelled_rate stale_label_rate",
    "judge": """consistency_score consistency_score_expected consistency_score@0.125 mean_abs_difference weighted_kappa
    error_rate avg_latency_ms avg_faithfulness bias_padded bias_reordered bias_own_model bias_plea bias_language
    user_votes_weighted_kappa user_votes_spearman
    exam_auc_faithfulness exam_sensitivity_faithfulness exam_specificity_faithfulness exam_auc_answer_relevance
    exam_sensitivity_answer_relevance exam_specificity_answer_relevance exam_auc_answer_correctness
    exam_sensitivity_answer_correctness exam_specificity_answer_correctness exam_auc_e2e_score
    exam_sensitivity_e2e_score exam_specificity_e2e_score exam_auc_gate exam_sensitivity_gate exam_specificity_gate""",
    "judge_pipeline": """accuracy precision recall f1_score avg_latency_ms true_positives true_negatives false_positives
    false_negatives specificity mcc invalid_rate unsupported_fact_rate sut_error_rate""",
    "ux": """cache_hit_rate cache_wrong_hit_rate cache_hit_rate@0.8 cache_wrong_hit_rate@0.8 cache_hit_rate@0.9
    cache_wrong_hit_rate@0.9 cache_hit_rate@0.95 cache_wrong_hit_rate@0.95 context_preservation
    multi_turn_consistency""",
}
ROWS = for_all("row", METRICS.values())


@for_all("tier", STORED)
def test_each_tier_has_its_metrics(tier: str) -> None:
    names = [row.name for row in metrics_for_tier(tier)]  # type: ignore[arg-type]
    assert sorted(names) == sorted(STORED[tier].split())


@ROWS
def test_rows_are_consistent(row: Metric) -> None:
    assert METRICS[row.name] is row
    assert row.tiers and set(row.tiers) <= set(STORED)
    assert row.low < row.high
    assert re.fullmatch(re.escape(row.name) + r"(\|[a-z_]+:[^|:]+)*\|v:[1-9]\d*", row.signature)
    assert row.column in (None, re.sub(r"^avg_|_p50$|_p95$", "", row.name))
    assert row.aggregate == "whole" or row.column or row.interval == "none"
    if row.interval == "wilson":
        assert (row.low, row.high, row.unit) == (0, 1, "share")
    for words in (row.measures, row.trust, row.reading):
        assert words.endswith("."), words
    assert row.formula and row.undefined


@ROWS
def test_latencies_are_percentiles_of_their_name(row: Metric) -> None:
    suffix = row.name.rsplit("_", 1)[-1]
    assert (row.aggregate == suffix) == (suffix in ("p50", "p95"))
    assert row.aggregate in ("mean", "whole", suffix)


def test_rows_are_immutable() -> None:
    with pytest.raises(AttributeError):
        METRICS["mrr"].name = "other"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        GOALS[0].key = "other"  # type: ignore[misc]
    assert not hasattr(GOALS[0], "__dict__")


@ROWS
def test_thresholds_lie_in_the_range_and_ascend(row: Metric) -> None:
    bounds = row.thresholds or ()
    assert list(bounds) == sorted(set(bounds))
    assert all(row.low < bound < row.high for bound in bounds)
    assert not bounds or (len(bounds) in GRADE_LADDERS and row.better == "higher")


@ROWS
def test_functions_of_rows_exist(row: Metric) -> None:
    """Only counts and values that a step measures (rates, latencies, bias probes, judged scores) have none."""
    if row.function:
        module, name = row.function.split(".")
        assert callable(getattr(importlib.import_module(f"yarus.metrics.{module}"), name))
    else:
        counted = row.aggregate == "whole" and row.interval in ("wilson", "none")
        assert counted or row.unit == "ms" or row.kind == "judged"


@for_all("name", [name for name, row in METRICS.items() if row.function.startswith("text.")])
def test_text_signatures_equal_functions(name: str) -> None:
    row = METRICS[name]
    own, stored = text.signature(row.function.removeprefix("text.")), row.signature
    assert stored.removeprefix(name) == own.removeprefix(row.function.removeprefix("text."))


def test_signatures_follow_the_evaluation() -> None:
    assert get_metric("ndcg@10").signature == "ndcg@10|gain:binary|v:1"
    assert get_metric("ndcg@10").signature_with(gain="linear", depth=20) == "ndcg@10|gain:linear|v:1"
    assert get_metric("mrr").signature_with(gain="linear", depth=20) == "mrr|depth:20|v:1"
    assert (
        get_metric("avg_bleu").signature_with(tok="13a") == "avg_bleu|max_ngram:4|smoothing:add-1|tok:13a|norm:NFC|v:1"
    )
    assert get_metric("mrr").signature_with() == get_metric("mrr").signature


# Lower and upper end of «Хорошо», by the specification.
@for_all(
    "name, low, high",
    [
        ("hit_rate@1", 0.5, 0.8),
        ("mrr", 0.5, 0.8),
        ("ndcg@10", 0.5, 0.8),
        ("avg_faithfulness", 0.7, 0.9),
        ("avg_e2e_score", 0.6, 0.8),
        ("accuracy", 0.85, 0.95),
        ("consistency_score", 0.85, 0.95),
    ],
)
def test_grades(name: str, low: float, high: float) -> None:
    grades_of_values = [grade(name, value) for value in (0, low - 1e-9, low, (low + high) / 2, high, high + 1e-9, 1)]
    assert grades_of_values == ["attention", "attention", "good", "good", "good", "excellent", "excellent"]


def test_metrics_with_grades() -> None:
    graded = {name for name, row in METRICS.items() if row.thresholds}
    named = {"hit_rate@1", "mrr", "ndcg@10", "avg_faithfulness", "avg_e2e_score", "accuracy", "consistency_score"}
    assert graded == named | {"silhouette_score"} | {f"exam_auc_{prompt}" for prompt in PROMPTS}


@for_all(
    "value, expected",
    [
        (-1, "absent"),
        (0.24, "absent"),
        (0.25, "weak"),
        (0.5, "weak"),
        (0.51, "reasonable"),
        (0.7, "reasonable"),
        (0.71, "strong"),
    ],
)
def test_silhouette_has_own_ladder(value: float, expected: str) -> None:
    assert grade("silhouette_score", value) == expected


def test_grade_none_without_value_or_thresholds() -> None:
    assert grade("mrr", None) is None
    assert grade("mrr", math.nan) is None
    assert grade("avg_bleu", 60.0) is None
    with pytest.raises(ValueError, match="no metric 'MRR@10'"):
        grade("MRR@10", 0.5)


@for_all(
    "wrong, nearest",
    [
        ("NDCG", "ndcg@10"),
        ("ndcg@1O", "ndcg@10"),
        ("MRR", "mrr"),
        ("hit_rate", "hit_rate@1"),
        ("hitrate@5", "hit_rate@5"),
        ("faithfulness", "avg_faithfulness"),
        ("AVG_ROUGEL_F", "avg_rougeL_f"),
        ("f1", "f1_score"),
        ("Precision", "precision"),
    ],
)
def test_metric_suggests_nearest_name(wrong: str, nearest: str) -> None:
    with pytest.raises(ValueError, match=f"^no metric '{wrong}'; did you mean '{nearest}'\\?$"):
        get_metric(wrong)


@pytest.mark.parametrize("wrong", ["", "жжжжжж"])
def test_metric_lists_all_names_without_match(wrong: str) -> None:
    with pytest.raises(
        ValueError, match=f"^no metric '{wrong}'; there are: total_texts, total_pairs, .*multi_turn_consistency$"
    ):
        get_metric(wrong)


def test_goals_refer_to_metrics() -> None:
    assert {goal.key for goal in GOALS} == {"retrieval", "generation", "end_to_end", "gate", "judge", "cache"}
    for goal in GOALS:
        assert all(get_metric(name) for name in goal.metrics)


def test_bounds_of_mean_with_missing_cases() -> None:
    assert bounds_of_mean(0.75, 2, 2, low=0, high=1) == (0.375, 0.875)
    assert bounds_of_mean(0.75, 2, 0, low=0, high=1) == (0.75, 0.75)
    assert bounds_of_mean(0, 0, 1, low=-1, high=1) == (-1, 1)
    assert bounds_of_mean(10, 1, 1, low=0, high=100) == (5, 55)

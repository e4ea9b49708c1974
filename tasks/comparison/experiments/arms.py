"""Define the arms of experiments: ordinary evaluations with the parameters that distinguish them."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa

from yarus.metrics.metric import Metric
from yarus.metrics.statistics import Comparison, compare_paired
from yarus.metrics.statistics.differences.comparison import adjust_for_multiple_tests as under_holm
from yarus.tasks.cases.table import column_values, float_column
from yarus.tasks.comparison.experiments.experiments_schema import ArmDifference, EvaluationReference, Outcome
from yarus.tasks.config.parameters import Parameters, ParameterValues
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.evaluation import result_files
from yarus.tasks.evaluation.number_format import replace_non_finite

SWEEP_METRICS: dict[str, tuple[str, ...]] = {
    "tier1": ("hit_rate@1", "mrr", "ndcg@10"),
    "tier2": ("avg_answer_correctness", "avg_faithfulness", "avg_answer_relevance"),
    "tier3": ("avg_e2e_score", "avg_semantic_similarity", "avg_faithfulness"),
    "judge": ("exam_auc_faithfulness", "weighted_kappa", "user_votes_weighted_kappa"),
}
"""Metrics by which arms of a tier are compared; the first is the quality that cost and latency are weighed against."""
SHARED_PARAMETERS = {"source", "limit", "seed", "cases", "name", "tags", "runner"}
"""Parameters that every arm receives unchanged."""
SUMMARY_FIELDS = ("value", "reason", "ci_low", "ci_high", "n_scored", "n_total")


@dataclass(frozen=True, slots=True)
class Arm:
    """One evaluation to make."""

    name: str
    axes: ParameterValues
    """The parameters that distinguish it: axis -> value."""
    tier: str
    parameters: Parameters


def arm_outcome(arm: Arm, result: Any) -> Outcome:
    """Return the stored summary of an arm's evaluation, or why there is none.

    Args:
        arm: what was evaluated.
        result: the summary of the evaluation, or what ended it.
    """
    summary: dict[str, Any] = result if isinstance(result, dict) else {}
    error = summary.get("error") if summary else f"{type(result).__name__}: {result}"
    metrics = summary.get("metrics") or {}
    document = {
        "variant_name": arm.name,
        **arm.axes,
        "tier": arm.tier,
        "state": summary.get("state", "failed"),
        "error": redact_urls(str(error)) if error else None,
        **{name: summary.get(name) for name in ("evaluation_id", "flow_run_id", "parquet", "n_cases", "coverage")},
        "judge_model": (summary.get("system") or {}).get("judge", {}).get("model") or arm.axes.get("judge_model"),
        "metrics": {
            name: {part: metrics[name][part] for part in SUMMARY_FIELDS}
            for name in SWEEP_METRICS[arm.tier]
            if name in metrics
        },
    }
    return cast(Outcome, document)


def evaluation_reference(outcome: Outcome) -> EvaluationReference:
    """Return the reference to the evaluation of an arm."""
    return {
        "evaluation_id": outcome["evaluation_id"],
        "flow_run_id": outcome["flow_run_id"],
        "state": outcome["state"],
    }


def read_arm_cases(outcome: Outcome) -> pa.Table | None:
    """Read the cases of an arm; None if its evaluation has no file."""
    return result_files.read_results(outcome["parquet"]) if outcome["parquet"] else None


def compare_cases(cases_a: pa.Table, cases_b: pa.Table, metric: Metric, *, seed: int) -> Comparison:
    """Return the difference b - a of a metric, over tables of the same cases in the same order."""
    groups: list[Hashable] = column_values(cases_a, "group")
    values_a, values_b = float_column(cases_a, metric.column), float_column(cases_b, metric.column)
    return compare_paired(values_a, values_b, seed=seed, better=metric.better, groups=groups)


def adjust_comparisons(comparisons: Mapping[Any, Comparison]) -> dict[Any, ArmDifference]:
    """Return the comparisons as documents, with Holm's p over all of them and the verdict under it."""
    return {key: _describe_difference(comparisons[key], strict) for key, strict in under_holm(comparisons).items()}


def _describe_difference(comparison: Comparison, strict: Comparison) -> ArmDifference:
    document: ArmDifference = {
        "difference": comparison.difference,
        "ci_low": comparison.interval.low,
        "ci_high": comparison.interval.high,
        "p": comparison.p,
        "p_holm": strict.p,
        "verdict": strict.verdict,
        "n": comparison.n,
        "n_missing": comparison.n_missing,
        "reason": None,
    }
    return replace_non_finite(document)

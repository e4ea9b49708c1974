"""Evaluations side by side: an arm is an ordinary evaluation with what sets it apart from the others."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa

from yarus.metrics.metric import Metric
from yarus.metrics.statistics import Comparison, compare_paired
from yarus.metrics.statistics.differences.comparison import adjusted as under_holm
from yarus.tasks.cases.table import floats, values_of
from yarus.tasks.comparison.experiments.experiments_schema import ArmDifference, EvaluationReference, Outcome
from yarus.tasks.config.parameters import Parameters, ParameterValues
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.evaluation import result_files
from yarus.tasks.evaluation.numbers import finite

SWEEP_METRICS: dict[str, tuple[str, ...]] = {
    "tier1": ("hit_rate@1", "mrr", "ndcg@10"),
    "tier2": ("avg_answer_correctness", "avg_faithfulness", "avg_answer_relevance"),
    "tier3": ("avg_e2e_score", "avg_semantic_similarity", "avg_faithfulness"),
    "judge": ("exam_auc_faithfulness", "weighted_kappa", "user_votes_weighted_kappa"),
}
"""What arms of a tier are compared by; the first is the quality that cost and latency are weighed against."""
SHARED = {"source", "limit", "seed", "cases", "name", "tags", "runner"}
"""Parameters that every arm is given as they are."""
KEPT = ("value", "reason", "ci_low", "ci_high", "n_scored", "n_total")


@dataclass(frozen=True, slots=True)
class Arm:
    """One evaluation to make."""

    name: str
    axes: ParameterValues
    """What sets it apart: axis -> value."""
    tier: str
    parameters: Parameters


def outcome(arm: Arm, result: Any) -> Outcome:
    """What is kept of an arm's evaluation: its summary in short, or why there is none.

    Args:
        arm: what was evaluated.
        result: the summary of the evaluation, or what ended it.
    """
    said: dict[str, Any] = result if isinstance(result, dict) else {}
    error = said.get("error") if said else f"{type(result).__name__}: {result}"
    metrics = said.get("metrics") or {}
    found = {
        "arm": arm.name,
        **arm.axes,
        "tier": arm.tier,
        "state": said.get("state", "failed"),
        "error": redact_urls(str(error)) if error else None,
        **{name: said.get(name) for name in ("evaluation_id", "flow_run_id", "parquet", "n_cases", "coverage")},
        "judge_model": (said.get("system") or {}).get("judge", {}).get("model") or arm.axes.get("judge_model"),
        "metrics": {
            name: {part: metrics[name][part] for part in KEPT} for name in SWEEP_METRICS[arm.tier] if name in metrics
        },
    }
    return cast(Outcome, found)


def reference(said: Outcome) -> EvaluationReference:
    """The evaluation of an arm."""
    return {
        "evaluation_id": said["evaluation_id"],
        "flow_run_id": said["flow_run_id"],
        "state": said["state"],
    }


def cases_of(said: Outcome) -> pa.Table | None:
    """The cases of an arm; None where its evaluation has no file."""
    return result_files.read(said["parquet"]) if said["parquet"] else None


def compared(one: pa.Table, other: pa.Table, metric: Metric, *, seed: int) -> Comparison:
    """The difference other - one of a metric, over tables of the same cases in one order."""
    groups: list[Hashable] = values_of(one, "group")
    first, second = floats(one, metric.column), floats(other, metric.column)
    return compare_paired(first, second, seed=seed, better=metric.better, groups=groups)


def adjusted(comparisons: Mapping[Any, Comparison]) -> dict[Any, ArmDifference]:
    """The comparisons as documents, with Holm's p over all of them and the verdict under it."""
    return {key: _document(comparisons[key], found) for key, found in under_holm(comparisons).items()}


def _document(comparison: Comparison, strict: Comparison) -> ArmDifference:
    found: ArmDifference = {
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
    return finite(found)

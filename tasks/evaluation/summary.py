"""Summary of an evaluation from the journal: one document for programs and tables."""

import json
import math
from collections.abc import Collection, Mapping
from typing import Any, Literal, NotRequired, TypeGuard, cast, final

from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping
from typing_extensions import TypedDict

from yarus.db import journal
from yarus.metrics.metric import GradeName, bounds_of_mean
from yarus.metrics.table import METRICS, grades
from yarus.metrics.table.corrected import CORRECTED_SUFFIX
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.cases.vocabulary import (
    HEADLINE_STRATUM,
    MEASURED_STATUSES,
    TURN_STRATA,
    UNMEASURABLE_STATUSES,
    USER_STRATA,
    Note,
)
from yarus.tasks.evaluation.config import (
    CaseSetIdentity,
    ConfigDocument,
    EvaluationConfig,
    EvaluationLabel,
    EvaluationState,
    stored_findings,
)
from yarus.tasks.evaluation.findings_schema import Findings
from yarus.tasks.evaluation.judge_standing import JudgeStanding, judge_standings, metric_standing, read_newest_exams
from yarus.tasks.evaluation.repeats import read_persistence
from yarus.tasks.evaluation.result_paths import existing_path

GateVerdict = Literal["pass", "fail", "inconclusive", "invalid"]
STATES_BY_SEVERITY: tuple[EvaluationState, ...] = ("failed", "cancelled", "invalid")


class MetricSummary(TypedDict):
    """A metric of an evaluation."""

    value: float | None
    """Null if it was not measured; `reason` explains why."""
    reason: str | None
    ci_low: float | None
    """Lower end of the 95 % confidence interval; null without an interval."""
    ci_high: float | None
    """Upper end; null next to a `ci_low` if the interval is open above: a 95th percentile of few cases."""
    n_scored: int
    """Cases on which the value is based."""
    n_total: int
    """Cases in total."""
    bound_low: float | None
    """The mean if every failed case had the metric's worst value; null if no case failed, if the value is not a mean,
    or if the metric is unbounded."""
    bound_high: float | None
    """The mean if every failed case had the best value; null as for `bound_low`."""
    judge: JudgeStanding | None
    """Standing of the judge whose opinion the value contains; null if it contains none. Grades exist only for `passed`
    and null."""
    grade: GradeName | None
    """Lowest grade that the interval allows by the metric's thresholds; null if the metric is not graded."""
    grade_high: GradeName | None
    """Highest grade that the interval allows; equal to `grade` if the grade is certain."""
    ungraded: Literal["too few"] | None
    """`too few` if the metric has thresholds, but its interval reaches from the lowest to the highest grade; otherwise
    null."""
    n_labels: NotRequired[int]
    """Only of corrected means: labelled answers on which the value is based, equal to `n_scored`."""
    labels: NotRequired[dict[str, Any]]
    """Only of corrected means. `n_own`: labelled answers of this evaluation, or labelled questions if a judge filled
    the labels; `n_others`: labelled answers of other evaluations; `acted_on`: whether the labels suffice for grades and
    gates; `judge_error`: mean difference of the judge's scores from people's labels; `weight`: weight of the judge's
    scores, 0 to 1; `shares`: sensitivity and specificity of a judge that answers yes or no; `n_results`: labelled
    results, if a judge filled the labels."""


class GateOutcome(TypedDict):
    """Verdict of the gate in YARUS_GATE_FILE on an evaluation."""

    verdict: GateVerdict
    """The worst verdict of its rules."""
    file: str | None
    failed: list[str]
    """Failed rules, as `metric: rule`."""
    reason: NotRequired[str]
    """Why a rule could not be judged."""


@final
class EvaluationSummary(Findings, EvaluationLabel):
    """One evaluation of one tier."""

    evaluation_id: str
    tier: str
    state: EvaluationState
    error: str | None
    parquet: str | None
    """File of the cases; null if it was not written."""
    comparability_key: str | None
    """Evaluations with the same key can be compared."""
    source: str
    started_at: str
    finished_at: str | None
    n_cases: int | None
    case_set_hash: str | None
    cases: CaseSetIdentity | None
    """Frozen case set; null if the source's own questions were evaluated."""
    statuses: dict[str, int]
    """Status -> number of cases."""
    coverage: float | None
    """Share of measured cases among those that could be measured, 0 to 1; null if none could."""
    system: ConfigDocument
    sut_label: str | None
    """Version of the system under test, from YARUS_SUT_LABEL."""
    flow_run_id: str | None
    """Id of the flow run in Prefect; null without one."""
    notes: list[Note]
    metrics: dict[str, MetricSummary]
    """By name; of `real_users` those of the stratum `confirmed`."""
    strata: NotRequired[dict[str, dict[str, MetricSummary]]]
    """Stratum -> metrics. Strata of `real_users` are kinds of user feedback; strata of tier 3 with dialogs are opening
    and following turns."""
    gate: NotRequired[GateOutcome]
    """Only of `run`, and only if YARUS_GATE_FILE has a rule for the tier."""


@final
class FailedEvaluation(TypedDict):
    """An evaluation of a night without a summary."""

    tier: str
    state: EvaluationState
    error: str


@final
class SkippedTier(TypedDict):
    """A tier that a night did not start."""

    tier: str
    missing: str
    """Data that the source lacks, as in `readiness` of `init`."""
    reason: str
    """The same as a sentence."""


@final
class NightDocument(TypedDict):
    """Every tier over one source."""

    state: EvaluationState
    """The worst state of the evaluations."""
    evaluations: list[EvaluationSummary | FailedEvaluation]
    skipped: NotRequired[list[SkippedTier]]
    """Tiers that were not started because the source has no data for them; they do not affect `state`."""
    report: NotRequired[str]
    """Path of the HTML report; absent if nothing was measured."""


def measured_metrics(engine: Engine, row: RowMapping) -> list[tuple[RowMapping, MetricSummary]]:
    """Return the stored metrics of an evaluation by name and stratum, each with its summary.

    Args:
        engine: of our own database.
        row: of the evaluation, in the journal.
    """
    config = EvaluationConfig.of(row)
    by_prompt = judge_standings(read_newest_exams(engine, [config]), config, row["started_at"])
    rows = journal.read_metrics(engine, row["id"])
    return [(metric, metric_summary(metric, _n_missing(metric, row), by_prompt)) for metric in rows]


def _n_missing(metric: RowMapping, row: RowMapping) -> int:
    """Return how many cases of an evaluation failed that could have had a value of a metric."""
    by_stratum = stored_findings(row).get("missing")
    if by_stratum is not None:
        return int(by_stratum.get(metric["stratum"], {}).get(metric["metric"], 0))
    statuses = row["statuses"] or {}  # earlier versions stored only these: at most all that failed
    failed: int = sum(n for status, n in statuses.items() if status not in (*MEASURED_STATUSES, *UNMEASURABLE_STATUSES))
    return max(0, min(failed, int(metric["n_total"]) - int(metric["n_scored"])))


def metric_summary(metric: RowMapping, missing: int, by_prompt: Mapping[str, JudgeStanding]) -> MetricSummary:
    """Return a stored metric with its grades, and the bounds that failed cases allow.

    Args:
        metric: as `yarus.db.journal.read_metrics` gives it.
        missing: cases that failed and could have had a value.
        by_prompt: standings of the judges, as `yarus.tasks.evaluation.judge_standing.judge_standings` gives them.
    """
    standing = metric_standing(metric["metric"], by_prompt)
    trusted = standing in (None, "passed") and (metric["labels"] or {"acted_on": True})["acted_on"]
    declared = METRICS.get(metric["metric"].removesuffix(CORRECTED_SUFFIX))
    is_gradable = trusted and declared and declared.thresholds is not None and metric["value"] is not None
    # Graded again, because older evaluations were graded without their intervals.
    figures = (metric[name] for name in ("metric", "value", "ci_low", "ci_high", "n_scored"))
    graded = grades(*figures) if is_gradable else None
    bounds = _mean_bounds(metric, missing)
    result: MetricSummary = {
        "value": metric["value"],
        "reason": metric["reason"],
        "ci_low": metric["ci_low"],
        "ci_high": metric["ci_high"],
        "n_scored": metric["n_scored"],
        "n_total": metric["n_total"],
        "bound_low": bounds and bounds[0],
        "bound_high": bounds and bounds[1],
        "judge": standing,
        "grade": graded and graded.low,
        "grade_high": graded and graded.high,
        "ungraded": "too few" if is_gradable and graded is None else None,
    }
    if metric["labels"]:
        result["n_labels"], result["labels"] = metric["n_scored"], metric["labels"]
    return result


def _mean_bounds(metric: RowMapping, missing: int) -> tuple[float, float] | None:
    """Return the lowest and highest mean that the failed cases allow."""
    declared = METRICS.get(metric["metric"])
    if declared is None or declared.aggregate != "mean" or metric["value"] is None or missing <= 0:
        return None
    if not math.isfinite(declared.high - declared.low):
        return None
    return bounds_of_mean(metric["value"], metric["n_scored"], missing, low=declared.low, high=declared.high)


def read_summary(engine: Engine, evaluation_id: str) -> EvaluationSummary:
    """Return the evaluation as `yarus show --json` prints it."""
    row = journal.find_evaluation(engine, evaluation_id)
    strata: dict[str, dict[str, MetricSummary]] = {}
    config = EvaluationConfig.of(row)
    order = {name: position for position, name in enumerate(METRICS)}
    rows = measured_metrics(engine, row)  # sorted by name: a corrected mean follows the judge's own
    for metric, result in sorted(
        rows, key=lambda pair: order.get(pair[0]["metric"].removesuffix(CORRECTED_SUFFIX), 999)
    ):
        strata.setdefault(metric["stratum"], {})[metric["metric"]] = result
    metrics = strata.get("", strata.get(HEADLINE_STRATUM, {}))
    strata = {name: strata[name] for name in ("all", *USER_STRATA, *TURN_STRATA) if name in strata}
    document: EvaluationSummary = {
        "evaluation_id": row["id"],
        "tier": row["tier"],
        "state": row["state"],
        "error": row["error"] and pseudonyms.mask_message(row["error"], row["source"]),
        "parquet": row["parquet"] and existing_path(row["parquet"]),
        "comparability_key": row["comparability_key"],
        "source": row["source"],
        "started_at": row["started_at"].isoformat(),
        "finished_at": row["finished_at"].isoformat() if row["finished_at"] else None,
        "n_cases": row["n_cases"],
        "case_set_hash": row["case_set_hash"],
        "cases": config.cases,
        "statuses": row["statuses"] or {},
        "coverage": row["coverage"],
        "system": config.document(without=("cases", "examined", "exam_period")),
        "name": row["name"],
        "tags": row["tags"],
        "sut_label": row["sut_label"],
        "flow_run_id": row["flow_run_id"],
        "notes": config.notes,
        "metrics": metrics,
    }
    findings = {name: value for name, value in stored_findings(row).items() if name in Findings.__annotations__}
    if persistence := read_persistence(engine, row):
        findings["persistence"] = persistence
    return cast(EvaluationSummary, document | findings | ({"strata": strata} if strata else {}))


def combine_summaries(summaries: list[EvaluationSummary | FailedEvaluation]) -> NightDocument:
    """Combine several evaluations into one document, in the worst of their states."""
    return {"state": worst_state([summary["state"] for summary in summaries]), "evaluations": summaries}


def worst_state(states: Collection[EvaluationState]) -> EvaluationState:
    """Return the worst of the states that evaluations ended in."""
    return next((state for state in STATES_BY_SEVERITY if state in states), "completed")


def evaluations_with_metrics(night: NightDocument) -> list[EvaluationSummary]:
    """Return the evaluations of a night that have metrics."""
    return [evaluation for evaluation in night["evaluations"] if has_metrics(evaluation)]


def has_metrics(evaluation: EvaluationSummary | FailedEvaluation) -> TypeGuard[EvaluationSummary]:
    """Return whether an evaluation of a night has metrics."""
    return "metrics" in evaluation and bool(evaluation["metrics"])


def to_json(document: Any) -> str:
    """Serialise the document; unmeasured values are null."""
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False, default=str)

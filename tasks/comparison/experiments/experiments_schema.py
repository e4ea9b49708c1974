"""JSON documents of sweeps and robustness probes, and those that are stored."""

from typing import Any, Literal, NotRequired

from sqlalchemy import Engine
from typing_extensions import TypedDict

from yarus.db import analyses
from yarus.db.analyses import StoredDocument
from yarus.metrics.statistics.differences.comparison import ComparisonVerdict
from yarus.tasks.config.parameters import ParameterValues
from yarus.tasks.evaluation.config import EvaluationState


class ArmMetric(TypedDict):
    """A metric of an arm."""

    value: float | None
    reason: str | None
    """Why it was not measured; null if it was."""
    ci_low: float | None
    ci_high: float | None
    n_scored: int
    n_total: int


class Outcome(TypedDict):
    """Summary of a variant's evaluation; `retriever` and similar keys are the parameters that distinguish it."""

    variant_name: str
    """Name of the variant."""
    source: NotRequired[str | None]
    retriever: NotRequired[str | None]
    embedder: NotRequired[str | None]
    k: NotRequired[int | None]
    reranker: NotRequired[str | None]
    generator_model: NotRequired[str | None]
    generator_prompt: NotRequired[str | None]
    """File of the prompt."""
    perturbation: NotRequired[str | None]
    tier: str
    state: EvaluationState
    error: str | None
    evaluation_id: str | None
    flow_run_id: str | None
    parquet: str | None
    n_cases: int | None
    coverage: float | None
    judge_model: str | None
    metrics: dict[str, ArmMetric]


class ArmCosts(TypedDict):
    """Cost and latency of a variant."""

    cost_usd: float | None
    """Cost of a thousand answers of its generator, also of answers from the store; null without a price."""
    latency_ms_p50: float | None
    latency_ms_p95: float | None
    spent_usd: float | None
    """Cost of the variant's calls in this sweep; null without a price."""


class SweepArm(Outcome, ArmCosts):
    """A variant of a sweep."""

    pareto: bool
    """Whether no other variant is better, cheaper and faster at once."""


class ArmDifference(TypedDict):
    """The paired difference of a metric between two variants on their common cases."""

    difference: float | None
    ci_low: float | None
    ci_high: float | None
    p: float | None
    p_holm: float | None
    """p-value with Holm's adjustment over all comparisons of the sweep, or of the probes of a tier."""
    verdict: ComparisonVerdict | None
    n: int
    n_missing: int
    reason: str | None
    """Why they were not compared; null if they were."""


class _Pair(TypedDict):
    a: str
    b: str
    metric: str


class SweepPair(_Pair, ArmDifference):
    """Difference of a metric between two variants, b - a."""


class EvaluationReference(TypedDict):
    """Reference to an evaluation of the experiment."""

    evaluation_id: str | None
    flow_run_id: str | None
    state: EvaluationState


class SweepResult(TypedDict):
    """Result of a sweep: its variants and their differences."""

    state: EvaluationState
    """The worst state of the variants."""
    source: str
    """Source by which the sweep is listed; `parameters` has all sources."""
    tier: str
    parameters: ParameterValues
    metrics: list[str]
    """Metrics that compare variants; the first is the quality for `pareto`."""
    variants: list[SweepArm]
    pairs: list[SweepPair]
    judges: list[Outcome]
    """Evaluations of the judges on logged answers with user feedback."""
    evaluations: list[EvaluationReference]


class Sweep(SweepResult):
    """A stored sweep."""

    sweep_id: str
    outcomes: list[Outcome]
    """Outcomes of all variants and judges in the planned order; a resumed sweep starts with them."""


class Share(TypedDict):
    """A share of cases with its interval."""

    value: float | None
    ci_low: float | None
    ci_high: float | None
    n_scored: int
    n_total: int


class Probe(TypedDict):
    """Effect of one kind of change: questions asked differently, or answered from changed contexts."""

    state: EvaluationState | Literal["not_applicable"]
    error: str | None
    evaluation_id: str | None
    baseline_evaluation_id: str | None
    """Id of the evaluation with unchanged questions and contexts."""
    n: int
    """Common cases of both evaluations."""
    n_changed: int
    """Common cases that the change affects; only these count."""
    unchanged_share: Share | None
    """Share of affected cases with the same first result (tier 1) or answer (tiers 2 and 3), 0 to 1."""
    metrics: dict[str, ArmDifference]
    rates: dict[str, ArmMetric]
    """Further metrics of answers from changed contexts (tier 2), such as `injection_obeyed_rate`."""


class RobustnessResult(TypedDict):
    """Result of all probes."""

    state: EvaluationState
    """The worst state of the evaluations."""
    source: str
    parameters: ParameterValues
    metrics: dict[str, list[str]]
    """Tier -> metrics that compare changed and unchanged questions or contexts."""
    tiers: dict[str, dict[str, Probe]]
    """Tier -> kind of change -> probe."""
    position_differences: list[SweepPair]
    """Tier 2: difference between two positions of the right passages, b - a, among the same distractors."""
    evaluations: list[EvaluationReference]


class Robustness(RobustnessResult):
    """A stored set of probes."""

    robustness_id: str


class Preference(TypedDict):
    """Agreement of score differences with people's labels of the same pairs of answers."""

    pearson: float | None
    """Pearson correlation over pairs and people, -1 to 1; null if either side does not vary."""
    pearson_low: float | None
    """Lower end of the 95 % interval."""
    pearson_high: float | None
    accuracy: float | None
    """Share of pairs whose preferred answer scores higher, 0 to 1; equal scores count one half."""
    accuracy_low: float | None
    accuracy_high: float | None
    pairs: int
    """Pairs in which both answers have a score."""


class JudgeAndPeople(TypedDict):
    """Agreement of a judge with people who compared the same answers."""

    file: str
    judge: str
    is_stand_in: bool
    """Whether the offline stand-in judged, which compares words."""
    pairs: int
    agreement_among_people: dict[str, Preference | None]
    """Aspect -> agreement of the first person with the others; null if only one person labelled."""
    prompts: dict[str, dict[str, Preference]]
    """Prompt -> aspect -> agreement of the judge with people."""
    other_scores: dict[str, dict[str, Preference]]
    """Name -> aspect -> agreement of other scores with people."""


def list_sweeps(engine: Engine, *, source: str | None = None, limit: int | None = None) -> list[StoredDocument]:
    """Return the stored sweeps, newest first, as `yarus sweep --json` printed them."""
    rows = analyses.list_analyses(engine, "sweep", source=source, limit=limit)
    return [sweep_document(row) for row in rows]


def sweep_document(row: Any) -> StoredDocument:
    """Return a stored sweep as `yarus sweep --json` prints it."""
    columns = {"sweep_id": row["id"], "state": row["state"], "started_at": row["started_at"].isoformat()}
    defaults: StoredDocument = {"source": row["source"], "metrics": [], "variants": [], "pairs": [], "judges": []}
    return defaults | dict(row["document"] or {}) | columns


def list_probes(engine: Engine, *, source: str | None = None, limit: int | None = None) -> list[StoredDocument]:
    """Return the stored probes, newest first."""
    rows = analyses.list_analyses(engine, "robustness", source=source, limit=limit)
    return [dict(row["document"] or {}) | {"robustness_id": row["id"], "state": row["state"]} for row in rows]

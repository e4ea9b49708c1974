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
    """Why it was not measured."""
    ci_low: float | None
    ci_high: float | None
    n_scored: int
    n_total: int


class Outcome(TypedDict):
    """What is kept of an arm's evaluation; of `retriever` and the like, what sets the arm apart."""

    arm: str
    """Its name."""
    source: NotRequired[str | None]
    retriever: NotRequired[str | None]
    embedder: NotRequired[str | None]
    k: NotRequired[int | None]
    reranker: NotRequired[str | None]
    generator_model: NotRequired[str | None]
    generator_prompt: NotRequired[str | None]
    """Its file."""
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


class Taken(TypedDict):
    """What an arm took."""

    cost_usd: float | None
    """Of a thousand answers of its generator, whoever paid for them."""
    latency_ms_p50: float | None
    latency_ms_p95: float | None
    spent_usd: float | None
    """What this sweep paid for its calls."""


class SweepArm(Outcome, Taken):
    """An arm of a sweep."""

    pareto: bool
    """No other arm is better, cheaper and faster at once."""


class ArmDifference(TypedDict):
    """The paired difference of a metric between two arms on their common cases."""

    difference: float | None
    ci_low: float | None
    ci_high: float | None
    p: float | None
    p_holm: float | None
    """Holm's p over all comparisons of the sweep, or of the tier of a probe."""
    verdict: ComparisonVerdict | None
    n: int
    n_missing: int
    reason: str | None
    """Why they were not compared."""


class _Pair(TypedDict):
    a: str
    b: str
    metric: str


class SweepPair(_Pair, ArmDifference):
    """Two arms by one metric, b less a."""


class EvaluationReference(TypedDict):
    """An evaluation that was made."""

    evaluation_id: str | None
    flow_run_id: str | None
    state: EvaluationState


class SweepResult(TypedDict):
    """What the arms of a sweep come to."""

    state: EvaluationState
    """The worst of the arms'."""
    source: str
    """By which it is found again; `parameters` has all that are swept."""
    tier: str
    parameters: ParameterValues
    metrics: list[str]
    """What arms are compared by; the first is the quality that cost and latency are weighed against."""
    arms: list[SweepArm]
    pairs: list[SweepPair]
    judges: list[Outcome]
    """Every judge on the logged answers, whose users said what they think of them."""
    evaluations: list[EvaluationReference]


class Sweep(SweepResult):
    """Arms side by side."""

    sweep_id: str
    outcomes: list[Outcome]
    """Of all arms and judges, in the order they were planned; what a resumed sweep begins with."""


class Share(TypedDict):
    """A share of cases with its interval."""

    value: float | None
    ci_low: float | None
    ci_high: float | None
    n_scored: int
    n_total: int


class Probe(TypedDict):
    """The same questions asked otherwise in one way, or answered from contexts that were changed in one way."""

    state: EvaluationState | Literal["not_applicable"]
    error: str | None
    evaluation_id: str | None
    asked_as_is: str | None
    """The evaluation of the questions, and contexts, as they are."""
    n: int
    """Cases that both evaluations have."""
    n_changed: int
    """Those among them that the change touches; only these count."""
    same: Share | None
    """Share of them whose first result (tier 1) or answer (tiers 2 and 3) stayed the same."""
    metrics: dict[str, ArmDifference]
    rates: dict[str, ArmMetric]
    """Tier 2: what answers from such contexts are measured by beside that, such as `injection_obeyed_rate`."""


class RobustnessResult(TypedDict):
    """What the probes come to."""

    state: EvaluationState
    """The worst of the evaluations'."""
    source: str
    parameters: ParameterValues
    metrics: dict[str, list[str]]
    """Tier -> what a change of the question is measured by."""
    tiers: dict[str, dict[str, Probe]]
    """Tier -> kind of change -> probe."""
    places: list[SweepPair]
    """Tier 2: the right passages in one place (b) less those in another (a), among the same distractors."""
    evaluations: list[EvaluationReference]


class Robustness(RobustnessResult):
    """The same questions with typing errors, in lower case and so on; or answered from bad contexts."""

    robustness_id: str


class Preference(TypedDict):
    """How far differences of a score follow people's labels of the same pairs."""

    pearson: float | None
    """-1..1, over pairs and people; null where one side does not vary."""
    pearson_low: float | None
    """Of the 95 % interval."""
    pearson_high: float | None
    accuracy: float | None
    """Share of the answers that people prefer which score higher; an equal score counts one half."""
    accuracy_low: float | None
    accuracy_high: float | None
    pairs: int
    """Pairs of which both answers were scored."""


class JudgeAndPeople(TypedDict):
    """A judge beside people who compared the same answers."""

    file: str
    judge: str
    stand_in: bool
    """No language model judged: words were compared."""
    pairs: int
    people: dict[str, Preference | None]
    """Aspect -> the first person beside the others; null where one person labelled."""
    prompts: dict[str, dict[str, Preference]]
    """Prompt -> aspect -> the judge beside people."""
    others: dict[str, dict[str, Preference]]
    """The same of scores that somebody else gave, by their name."""


def list_sweeps(engine: Engine, *, source: str | None = None, limit: int | None = None) -> list[StoredDocument]:
    """Return the stored sweeps, newest first, as `yarus sweep --json` printed them."""
    rows = analyses.list_analyses(engine, "sweep", source=source, limit=limit)
    return [sweep_document(row) for row in rows]


def sweep_document(row: Any) -> StoredDocument:
    """Return a stored sweep as `yarus sweep --json` prints it."""
    columns = {"sweep_id": row["id"], "state": row["state"], "started_at": row["started_at"].isoformat()}
    defaults: StoredDocument = {"source": row["source"], "metrics": [], "arms": [], "pairs": [], "judges": []}
    return defaults | dict(row["document"] or {}) | columns


def list_probes(engine: Engine, *, source: str | None = None, limit: int | None = None) -> list[StoredDocument]:
    """Return the stored probes, newest first."""
    rows = analyses.list_analyses(engine, "robustness", source=source, limit=limit)
    return [dict(row["document"] or {}) | {"robustness_id": row["id"], "state": row["state"]} for row in rows]

"""Run sweeps: every combination of parameter lists as an arm; they can be resumed, and the arms are compared."""

import logging
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import ValidationError

from yarus.db import analyses
from yarus.db.errors import InputError
from yarus.db.journal import FINISHED_STATES
from yarus.db.stores.calls import find_calls
from yarus.metrics.pareto import pareto_front
from yarus.metrics.table import METRICS
from yarus.tasks.cases.table import column_values, optional_column_values
from yarus.tasks.comparison.common_cases import match_cases
from yarus.tasks.comparison.experiments.across_sources import pair_by_question, require_common_questions
from yarus.tasks.comparison.experiments.arms import (
    SHARED_PARAMETERS,
    SWEEP_METRICS,
    Arm,
    adjust_comparisons,
    compare_cases,
    evaluation_reference,
    read_arm_cases,
)
from yarus.tasks.comparison.experiments.experiments_schema import (
    ArmCosts,
    ArmDifference,
    Outcome,
    SweepArm,
    SweepPair,
    SweepResult,
)
from yarus.tasks.comparison.experiments.experiments_schema import Sweep as SweepDocument
from yarus.tasks.config.connections import database, open_source
from yarus.tasks.config.factors import NO_RERANKER
from yarus.tasks.config.flow_parameters import SweepParameters
from yarus.tasks.config.parameters import JudgeQuality, Parameters, ParameterValues
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.config.validation import invalid_value_error
from yarus.tasks.evaluation.identity import settings_with_models
from yarus.tasks.evaluation.summary import worst_state
from yarus.tasks.models.calls import Call, build_call_key, build_request
from yarus.tasks.models.embedding.embedders import resolve_embedder_name
from yarus.tasks.models.prices import compute_cost_usd
from yarus.tasks.models.prompts import read_prompts
from yarus.tasks.systems.retrievers.registry import get_retriever_kind
from yarus.tasks.systems.retrievers.reranking import get_reranker_kind

SOURCE_AXES = {"source": "sources"}
RETRIEVAL_AXES = {"retriever": "retrievers", "embedder": "embedders", "k": "k", "reranker": "rerankers"}
MODEL_AXES = {"generator_model": "generators", "generator_prompt": "prompts", "judge_model": "judges"}
AXES: dict[str, dict[str, str]] = {
    "tier1": SOURCE_AXES | RETRIEVAL_AXES,
    "tier2": SOURCE_AXES | MODEL_AXES,
    "tier3": SOURCE_AXES | RETRIEVAL_AXES | MODEL_AXES,
}
"""Parameter of the tier -> list in the sweep; arms with the same retrieval follow each other."""
SYSTEM_LISTS = ("sources", "retrievers", "embedders", "k", "rerankers", "generators", "prompts")
"""Parameters that an external system decides itself."""
AXIS_WORDS = {"generator_model": "generator", "judge_model": "judge", "generator_prompt": "prompt"}
"""Parameter -> its word in the name of an arm."""
MOST_ARMS = 50
COST_ANSWERS = 1_000
"""Costs are given per this many answers."""


def plan_arms(parameters: SweepParameters) -> list[Arm]:
    """Return the evaluations of a sweep: every distinct combination, then every judge by itself.

    Raises:
        InputError: the tier does not use a list or cannot have a value, or a model has no server.
    """
    axes = AXES[parameters.tier]
    _check_parameters(parameters, axes)
    chosen = {axis: getattr(parameters, name) or [None] for axis, name in axes.items()}
    varied = [axis for axis, options in chosen.items() if len(options) > 1]
    shared = parameters.model_dump(include=SHARED_PARAMETERS)
    if len(parameters.sources) > 1 and "unit" in TIERS[parameters.tier].parameters.model_fields:
        shared["unit"] = "page"  # differently cut chunks are not a common unit
    arms: dict[tuple[Any, ...], Arm] = {}
    for options in product(*chosen.values()):
        values = _drop_unused_embedder(dict(zip(chosen, options, strict=True)))
        name = ", ".join(f"{AXIS_WORDS.get(axis, axis)} {values[axis]}" for axis in varied if values[axis] is not None)
        set_values = {axis: value for axis, value in values.items() if value is not None}
        arm = Arm(name or "—", values, parameters.tier, _validate(parameters.tier, shared | set_values))
        arms.setdefault(tuple(values.values()), arm)
    if len(arms) > MOST_ARMS:
        raise InputError(
            "sweep: {n} arms are too many, {most} at most; sweep fewer lists at once", n=len(arms), most=MOST_ARMS
        )
    return list(arms.values()) + _judge_arms(parameters)


def combine_outcomes(parameters: SweepParameters, outcomes: Sequence[Outcome]) -> SweepResult:
    """Return the result of all arms: the table with cost, latency and Pareto front, every pair, and the judges."""
    judges = [outcome for outcome in outcomes if outcome["tier"] == "judge"]
    arms = [outcome for outcome in outcomes if outcome["tier"] != "judge"]
    cases_by_arm = {
        outcome["variant_name"]: read_arm_cases(outcome) for outcome in arms if outcome["state"] in FINISHED_STATES
    }
    tables = {arm: cases for arm, cases in cases_by_arm.items() if cases is not None}
    question_sets: dict[str, Hashable] = {}
    if len(parameters.sources) > 1:
        sources = {outcome["variant_name"]: outcome.get("source") or parameters.source for outcome in arms}
        tables = pair_by_question(tables, sources)
        question_sets = {arm: frozenset(column_values(cases, "case_id")) for arm, cases in tables.items()}
    costs = {
        outcome["variant_name"]: _measure_costs(parameters, outcome, tables.get(outcome["variant_name"]))
        for outcome in arms
    }
    return {
        "state": worst_state([outcome["state"] for outcome in outcomes]),
        "source": parameters.source,
        "tier": parameters.tier,
        "parameters": parameters.stored(),
        "metrics": list(SWEEP_METRICS[parameters.tier]),
        "variants": add_front(arms, costs, question_sets),
        "pairs": _compare_pairs(arms, tables, parameters),
        "judges": judges,
        "evaluations": [evaluation_reference(outcome) for outcome in outcomes],
    }


def _check_parameters(parameters: SweepParameters, axes: dict[str, str]) -> None:
    all_lists = {name for lists in AXES.values() for name in lists.values()}
    for name in sorted(all_lists - set(axes.values())):
        if getattr(parameters, name):
            raise InputError(
                "sweep: {tier} does not use --{name}; leave it out or give --tier tier3",
                tier=parameters.tier,
                name=name,
            )
    system_lists = [name for name in SYSTEM_LISTS if getattr(parameters, name)]
    if parameters.tier == "tier3" and get_settings().sut != "local" and system_lists:
        raise InputError(
            "sweep: the system under test is not ours (YARUS_SUT), so it decides its {name} itself",
            name=system_lists[0],
        )
    if len(parameters.sources) > 1 and parameters.cases:
        raise InputError(
            "sweep: the case set {cases!r} is of one source; leave out --cases or --sources", cases=parameters.cases
        )
    for retriever in parameters.retrievers:
        get_retriever_kind(retriever)
    for name in parameters.embedders:
        resolve_embedder_name(name, get_settings())
    for reranker in parameters.rerankers:
        if reranker != NO_RERANKER:
            get_reranker_kind(reranker)


def _drop_unused_embedder(values: ParameterValues) -> ParameterValues:
    """Return the values without an embedder if the retriever does not use one."""
    retriever = values.get("retriever")
    if values.get("embedder") and not get_retriever_kind(retriever or get_settings().retriever).uses_vectors:
        return values | {"embedder": None}
    return values


def _validate(tier: str, values: ParameterValues) -> Parameters:
    try:
        validated = TIERS[tier].parameters.model_validate(values)
    except ValidationError as error:
        raise invalid_value_error(error, f"sweep of {tier}") from None
    read_prompts(settings_with_models(validated))  # finds missing files and missing variables
    return validated


def _judge_arms(parameters: SweepParameters) -> list[Arm]:
    """Return an arm per swept judge, on the logged answers, whose users gave their votes."""
    shared = parameters.model_dump(include=SHARED_PARAMETERS)
    return [
        Arm(
            f"judge {model}",
            {"judge_model": model},
            "judge",
            JudgeQuality(**shared, judge_model=model, bias_probes=False),
        )
        for model in parameters.judges
    ]


def _measure_costs(parameters: SweepParameters, outcome: Outcome, cases: pa.Table | None) -> ArmCosts:
    """Return the system's cost and time per answer, and what this sweep paid for the arm's calls."""
    if cases is None:
        return {"cost_usd": None, "latency_ms_p50": None, "latency_ms_p95": None, "spent_usd": None}
    latencies = [value for value in column_values(cases, "latency_ms") if value is not None]
    p50, p95 = np.quantile(latencies, [0.5, 0.95]).tolist() if latencies else (None, None)
    known_costs = [value for value in optional_column_values(cases, "cost_usd") if value is not None]
    return {
        "cost_usd": _cost_usd(parameters, outcome, cases),
        "latency_ms_p50": p50,
        "latency_ms_p95": p95,
        "spent_usd": sum(known_costs) if known_costs else None,
    }


def _cost_usd(parameters: SweepParameters, outcome: Outcome, cases: pa.Table) -> float | None:
    """Return the cost of a thousand answers of the arm's generator, whoever paid for them; None without a price.

    The calls are looked up in the call store, because an arm that shares them has not paid for them.
    """
    if parameters.tier == "tier1" or get_settings().sut != "local":
        return None
    values: ParameterValues = {name: outcome.get(name) for name in ("generator_model", "generator_prompt")}
    values["source"] = outcome.get("source") or parameters.source
    settings = settings_with_models(TIERS[parameters.tier].parameters.model_validate(values))
    role = settings.generator
    if role.base_url is None:
        return 0.0
    prompt = read_prompts(settings.model_copy(update={"language": open_source(values["source"]).language}))[
        "generation"
    ]
    answered = [row for row in cases.select(["question", "context", "answer"]).to_pylist() if row["answer"] is not None]
    calls = [Call(prompt, {"question": row["question"], "context": row["context"] or ""}) for row in answered]
    stored = find_calls(database(), [build_call_key("generator", call, build_request(call, role)) for call in calls])
    price = settings.prices.get(role.model or "")
    costs = [compute_cost_usd(price, call.tokens_in, call.tokens_out) for call in stored if call is not None]
    known_costs = [cost for cost in costs if cost is not None]
    return COST_ANSWERS * sum(known_costs) / len(known_costs) if known_costs else None


def add_front(
    rows: list[Outcome], costs_by_arm: Mapping[str, ArmCosts], question_sets: Mapping[str, Hashable]
) -> list[SweepArm]:
    """Return the arms with `pareto`: no other arm is better, cheaper and faster at once.

    Scores of other judges do not compete, nor do those of other questions. Nor does an invalid arm: failing at the hard
    questions would make it the best.

    Args:
        rows: the arms.
        costs_by_arm: the costs and latencies of each arm.
        question_sets: the questions of each, if sources may differ in them.
    """
    front: set[str] = set()
    valid = [row for row in rows if row["state"] == "completed"]
    conditions = {row["variant_name"]: (row["judge_model"], question_sets.get(row["variant_name"])) for row in valid}
    for condition in set(conditions.values()):
        competing = [row for row in valid if conditions[row["variant_name"]] == condition]
        costs = [costs_by_arm[row["variant_name"]] for row in competing]
        values = [
            [_quality_value(row), cost["cost_usd"], cost["latency_ms_p50"]]
            for row, cost in zip(competing, costs, strict=True)
        ]
        is_on_front = pareto_front(np.array(values, dtype=np.float64), better=("higher", "lower", "lower"))
        front |= {row["variant_name"] for row, is_front in zip(competing, is_on_front, strict=True) if is_front}
    return [{**row, **costs_by_arm[row["variant_name"]], "pareto": row["variant_name"] in front} for row in rows]


def _quality_value(row: Outcome) -> float | None:
    metric = row["metrics"].get(SWEEP_METRICS[row["tier"]][0])
    return metric["value"] if metric else None


def _compare_pairs(rows: list[Outcome], tables: dict[str, pa.Table], parameters: SweepParameters) -> list[SweepPair]:
    """Compare every two arms by every headline metric on their common cases; Holm's p is over all of them."""
    comparisons, reasons = {}, {}
    for a, b in combinations(rows, 2):
        pair_tables = tables.get(a["variant_name"]), tables.get(b["variant_name"])
        if pair_tables[0] is None or pair_tables[1] is None:
            continue
        cases_a, cases_b = match_cases(pair_tables[0], pair_tables[1])
        for name in SWEEP_METRICS[parameters.tier]:
            metric, key = METRICS[name], (a["variant_name"], b["variant_name"], name)
            if metric.kind == "judged" and a["judge_model"] != b["judge_model"]:
                reasons[key] = "judged by different judges"
            elif not len(cases_a):
                reasons[key] = "no case in common"
            else:
                comparisons[key] = compare_cases(cases_a, cases_b, metric, seed=parameters.seed)
    differences = adjust_comparisons(comparisons) | {key: _describe_missing(reason) for key, reason in reasons.items()}
    order = {row["variant_name"]: position for position, row in enumerate(rows)}
    ordered_keys = sorted(differences, key=lambda key: (order[key[0]], order[key[1]]))
    return [{"a": key[0], "b": key[1], "metric": key[2], **differences[key]} for key in ordered_keys]


def _describe_missing(reason: str) -> ArmDifference:
    return {
        "difference": None,
        "ci_low": None,
        "ci_high": None,
        "p": None,
        "p_holm": None,
        "verdict": None,
        "n": 0,
        "n_missing": 0,
        "reason": reason,
    }


log = logging.getLogger("yarus")


@dataclass
class RunningSweep:
    """A running sweep whose lock is held."""

    id: str
    parameters: SweepParameters
    planned: list[Arm]
    done: dict[str, Outcome] = field(default_factory=dict)

    def waiting(self) -> list[Arm]:
        """Return the arms without a finished evaluation."""
        finished = {name for name, outcome in self.done.items() if outcome["state"] in FINISHED_STATES}
        return [arm for arm in self.planned if arm.name not in finished]

    def keep(self, outcome: Outcome) -> None:
        """Store the outcome of an arm."""
        self.done[outcome["variant_name"]] = outcome
        analyses.save_analysis(database(), self.id, {"outcomes": list(self.done.values())}, "running")

    def finish(self) -> SweepDocument:
        """Store the result of all arms and return the sweep as it is printed."""
        outcomes = [self.done[arm.name] for arm in self.planned]
        result = combine_outcomes(self.parameters, outcomes)
        document: SweepDocument = {**result, "sweep_id": self.id, "outcomes": outcomes}
        analyses.save_analysis(database(), self.id, dict(document), document["state"])
        return document


@contextmanager
def open_sweep(parameters: SweepParameters) -> Iterator[RunningSweep]:
    """Open a new sweep, or an unfinished one with the outcomes that it has.

    Raises:
        InputError: the parameters are not a valid sweep, there is no sweep of that id to resume, or another process
            runs it.
    """
    engine = database()
    done: dict[str, Outcome] = {}
    if parameters.resume:
        row = analyses.find_analysis(engine, "sweep", parameters.resume)
        parameters = SweepParameters.model_validate(row["parameters"] | {"resume": row["id"]})
        done = {outcome["variant_name"]: outcome for outcome in (row["document"] or {}).get("outcomes", [])}
    else:
        require_common_questions(parameters)
    planned = plan_arms(parameters)
    values = parameters.stored()
    with analyses.open_analysis(engine, "sweep", parameters.source, values, resume=parameters.resume) as sweep_id:
        is_complete = False
        try:
            yield RunningSweep(sweep_id, parameters, planned, done)
            is_complete = True
        finally:
            if not is_complete:
                log.warning("the other arms: yarus sweep --resume %s", sweep_id)

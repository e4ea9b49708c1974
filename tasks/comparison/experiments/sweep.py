"""A sweep: every combination of lists of parameters as an arm; it can be resumed, and compares the arms."""

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
from yarus.db.journal import FINISHED
from yarus.db.stores.calls import stored_calls
from yarus.metrics.pareto import pareto_front
from yarus.metrics.table import METRICS
from yarus.tasks.cases.table import values_if_any, values_of
from yarus.tasks.comparison.common_cases import common
from yarus.tasks.comparison.experiments.across_sources import paired_by_question, require_common_questions
from yarus.tasks.comparison.experiments.arms import (
    SHARED,
    SWEEP_METRICS,
    Arm,
    adjusted,
    cases_of,
    compared,
    reference,
)
from yarus.tasks.comparison.experiments.experiments_schema import (
    ArmDifference,
    Outcome,
    SweepArm,
    SweepPair,
    SweepResult,
    Taken,
)
from yarus.tasks.comparison.experiments.experiments_schema import Sweep as SweepDocument
from yarus.tasks.config.connections import database, source
from yarus.tasks.config.factors import NO_RERANKER
from yarus.tasks.config.flow_parameters import Sweep
from yarus.tasks.config.parameters import JudgeQuality, Parameters, ParameterValues
from yarus.tasks.config.settings import settings
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.config.validation import bad_value
from yarus.tasks.evaluation.identity import with_models
from yarus.tasks.evaluation.summary import worst
from yarus.tasks.models.calls import Call, build_request, key
from yarus.tasks.models.embedding.embedders import full_name
from yarus.tasks.models.prices import cost_usd
from yarus.tasks.models.prompts import prompts
from yarus.tasks.systems.retrievers.registry import retriever_kind
from yarus.tasks.systems.retrievers.reranking import reranker_kind

SOURCES = {"source": "sources"}
RETRIEVING = {"retriever": "retrievers", "embedder": "embedders", "k": "k", "reranker": "rerankers"}
MODELS = {"generator_model": "generators", "generator_prompt": "prompts", "judge_model": "judges"}
AXES: dict[str, dict[str, str]] = {
    "tier1": SOURCES | RETRIEVING,
    "tier2": SOURCES | MODELS,
    "tier3": SOURCES | RETRIEVING | MODELS,
}
"""Parameter of the tier -> list in the sweep; arms that retrieve alike come after each other."""
THEIRS = ("sources", "retrievers", "embedders", "k", "rerankers", "generators", "prompts")
"""What a system that is not ours decides itself."""
SPOKEN = {"generator_model": "generator", "judge_model": "judge", "generator_prompt": "prompt"}
"""Parameter -> what it is called in the name of an arm."""
MOST_ARMS = 50
ANSWERS = 1_000
"""Costs are given per this many answers."""


def arms(parameters: Sweep) -> list[Arm]:
    """The evaluations of a sweep: every combination, those that come to the same once; then every judge by itself.

    Raises:
        InputError: a list that the tier has no use for, a value that it cannot have, a model without a server.
    """
    axes = AXES[parameters.tier]
    _check(parameters, axes)
    chosen = {axis: getattr(parameters, name) or [None] for axis, name in axes.items()}
    told = [axis for axis, options in chosen.items() if len(options) > 1]
    shared = parameters.model_dump(include=SHARED)
    if len(parameters.sources) > 1 and "unit" in TIERS[parameters.tier].parameters.model_fields:
        shared["unit"] = "page"  # chunks that are cut otherwise are no common unit
    made: dict[tuple[Any, ...], Arm] = {}
    for options in product(*chosen.values()):
        values = _needed(dict(zip(chosen, options, strict=True)))
        name = ", ".join(f"{SPOKEN.get(axis, axis)} {values[axis]}" for axis in told if values[axis] is not None)
        given = {axis: value for axis, value in values.items() if value is not None}
        arm = Arm(name or "—", values, parameters.tier, _validated(parameters.tier, shared | given))
        made.setdefault(tuple(values.values()), arm)
    if len(made) > MOST_ARMS:
        raise InputError(
            "sweep: {n} arms are too many, {most} at most; sweep fewer lists at once", n=len(made), most=MOST_ARMS
        )
    return list(made.values()) + _judges(parameters)


def combined(parameters: Sweep, outcomes: Sequence[Outcome]) -> SweepResult:
    """What the arms come to: the table with cost, latency and Pareto front, every pair, the judges beside people."""
    judging = [said for said in outcomes if said["tier"] == "judge"]
    compared_arms = [said for said in outcomes if said["tier"] != "judge"]
    found = {said["arm"]: cases_of(said) for said in compared_arms if said["state"] in FINISHED}
    tables = {arm: cases for arm, cases in found.items() if cases is not None}
    asked: dict[str, Hashable] = {}
    if len(parameters.sources) > 1:
        sources = {said["arm"]: said.get("source") or parameters.source for said in compared_arms}
        tables = paired_by_question(tables, sources)
        asked = {arm: frozenset(values_of(cases, "case_id")) for arm, cases in tables.items()}
    taken = {said["arm"]: _taken(parameters, said, tables.get(said["arm"])) for said in compared_arms}
    return {
        "state": worst([said["state"] for said in outcomes]),
        "source": parameters.source,
        "tier": parameters.tier,
        "parameters": parameters.model_dump(mode="json"),
        "metrics": list(SWEEP_METRICS[parameters.tier]),
        "arms": with_front(compared_arms, taken, asked),
        "pairs": _pairs(compared_arms, tables, parameters),
        "judges": judging,
        "evaluations": [reference(said) for said in outcomes],
    }


def _check(parameters: Sweep, axes: dict[str, str]) -> None:
    known = {name for lists in AXES.values() for name in lists.values()}
    for name in sorted(known - set(axes.values())):
        if getattr(parameters, name):
            raise InputError(
                "sweep: {tier} does not use --{name}; leave it out or give --tier tier3",
                tier=parameters.tier,
                name=name,
            )
    theirs = [name for name in THEIRS if getattr(parameters, name)]
    if parameters.tier == "tier3" and settings().sut != "local" and theirs:
        raise InputError(
            "sweep: the system under test is not ours (YARUS_SUT), so it decides its {name} itself", name=theirs[0]
        )
    if len(parameters.sources) > 1 and parameters.cases:
        raise InputError(
            "sweep: the case set {cases!r} is of one source; leave out --cases or --sources", cases=parameters.cases
        )
    for retriever in parameters.retrievers:
        retriever_kind(retriever)
    for name in parameters.embedders:
        full_name(name, settings())
    for reranker in parameters.rerankers:
        if reranker != NO_RERANKER:
            reranker_kind(reranker)


def _needed(values: ParameterValues) -> ParameterValues:
    """The values without an embedder for a retriever that has none."""
    retriever = values.get("retriever")
    if values.get("embedder") and not retriever_kind(retriever or settings().retriever).uses_vectors:
        return values | {"embedder": None}
    return values


def _validated(tier: str, values: ParameterValues) -> Parameters:
    try:
        given = TIERS[tier].parameters.model_validate(values)
    except ValidationError as error:
        raise bad_value(error, f"sweep of {tier}") from None
    prompts(with_models(given))  # a file that is none, or lacks a variable, is found here
    return given


def _judges(parameters: Sweep) -> list[Arm]:
    """Every judge that is swept on the logged answers, whose users said what they think of them."""
    shared = parameters.model_dump(include=SHARED)
    return [
        Arm(f"judge {model}", {"judge_model": model}, "judge", JudgeQuality(**shared, judge_model=model, probes=False))
        for model in parameters.judges
    ]


def _taken(parameters: Sweep, said: Outcome, cases: pa.Table | None) -> Taken:
    """What the arm took: the system's cost and time an answer, and what was paid for its calls by this sweep."""
    if cases is None:
        return {"cost_usd": None, "latency_ms_p50": None, "latency_ms_p95": None, "spent_usd": None}
    latencies = [value for value in values_of(cases, "latency_ms") if value is not None]
    p50, p95 = np.quantile(latencies, [0.5, 0.95]).tolist() if latencies else (None, None)
    known = [value for value in values_if_any(cases, "cost_usd") if value is not None]
    return {
        "cost_usd": _cost_usd(parameters, said, cases),
        "latency_ms_p50": p50,
        "latency_ms_p95": p95,
        "spent_usd": sum(known) if known else None,
    }


def _cost_usd(parameters: Sweep, said: Outcome, cases: pa.Table) -> float | None:
    """What a thousand answers of the arm's generator cost, whoever paid for them; None without a price.

    The calls are looked up in the call store, because an arm that shares them has not bought them.
    """
    if parameters.tier == "tier1" or settings().sut != "local":
        return None
    values: ParameterValues = {name: said.get(name) for name in ("generator_model", "generator_prompt")}
    values["source"] = said.get("source") or parameters.source
    configuration = with_models(TIERS[parameters.tier].parameters.model_validate(values))
    role = configuration.generator
    if role.base_url is None:
        return 0.0
    prompt = prompts(configuration.model_copy(update={"language": source(values["source"]).language}))["generation"]
    asked = [row for row in cases.select(["question", "context", "answer"]).to_pylist() if row["answer"] is not None]
    calls = [Call(prompt, {"question": row["question"], "context": row["context"] or ""}) for row in asked]
    found = stored_calls(database(), [key("generator", call, build_request(call, role)) for call in calls])
    price = configuration.prices.get(role.model or "")
    costs = [cost_usd(price, call.tokens_in, call.tokens_out) for call in found if call is not None]
    known = [cost for cost in costs if cost is not None]
    return ANSWERS * sum(known) / len(known) if known else None


def with_front(rows: list[Outcome], taken: Mapping[str, Taken], asked: Mapping[str, Hashable]) -> list[SweepArm]:
    """The arms with `pareto`: nobody is better, cheaper and faster at once.

    Scores of other judges do not compete, nor do those of other questions. Nor does an invalid arm: failing at the hard
    questions would make it the best.

    Args:
        rows: the arms.
        taken: what each took.
        asked: the questions of each, where sources may differ in them.
    """
    front: set[str] = set()
    valid = [row for row in rows if row["state"] == "completed"]
    measured = {row["arm"]: (row["judge_model"], asked.get(row["arm"])) for row in valid}
    for alike in set(measured.values()):
        some = [row for row in valid if measured[row["arm"]] == alike]
        costs = [taken[row["arm"]] for row in some]
        values = [
            [_quality(row), cost["cost_usd"], cost["latency_ms_p50"]] for row, cost in zip(some, costs, strict=True)
        ]
        on_it = pareto_front(np.array(values, dtype=np.float64), better=("higher", "lower", "lower"))
        front |= {row["arm"] for row, on in zip(some, on_it, strict=True) if on}
    return [{**row, **taken[row["arm"]], "pareto": row["arm"] in front} for row in rows]


def _quality(row: Outcome) -> float | None:
    first = row["metrics"].get(SWEEP_METRICS[row["tier"]][0])
    return first["value"] if first else None


def _pairs(rows: list[Outcome], tables: dict[str, pa.Table], parameters: Sweep) -> list[SweepPair]:
    """Every two arms by every headline metric on their common cases; Holm's p over all of them."""
    comparisons, untold = {}, {}
    for a, b in combinations(rows, 2):
        both = tables.get(a["arm"]), tables.get(b["arm"])
        if both[0] is None or both[1] is None:
            continue
        one, other = common(both[0], both[1])
        for name in SWEEP_METRICS[parameters.tier]:
            metric, place = METRICS[name], (a["arm"], b["arm"], name)
            if metric.kind == "judged" and a["judge_model"] != b["judge_model"]:
                untold[place] = "judged by different judges"
            elif not len(one):
                untold[place] = "no case in common"
            else:
                comparisons[place] = compared(one, other, metric, seed=parameters.seed)
    said = adjusted(comparisons) | {place: _not_compared(why) for place, why in untold.items()}
    order = {row["arm"]: position for position, row in enumerate(rows)}
    places = sorted(said, key=lambda place: (order[place[0]], order[place[1]]))
    return [{"a": place[0], "b": place[1], "metric": place[2], **said[place]} for place in places]


def _not_compared(reason: str) -> ArmDifference:
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
class Sweeping:
    """A sweep whose lock is held."""

    id: str
    parameters: Sweep
    planned: list[Arm]
    done: dict[str, Outcome] = field(default_factory=dict)

    def waiting(self) -> list[Arm]:
        """The arms that have no evaluation that finished."""
        finished = {name for name, said in self.done.items() if said["state"] in FINISHED}
        return [arm for arm in self.planned if arm.name not in finished]

    def keep(self, said: Outcome) -> None:
        """Writes the outcome of an arm."""
        self.done[said["arm"]] = said
        analyses.keep(database(), self.id, {"outcomes": list(self.done.values())}, "running")

    def finish(self) -> SweepDocument:
        """Writes what all arms come to; returns the sweep as it is printed."""
        outcomes = [self.done[arm.name] for arm in self.planned]
        found = combined(self.parameters, outcomes)
        document: SweepDocument = {**found, "sweep_id": self.id, "outcomes": outcomes}
        analyses.keep(database(), self.id, dict(document), document["state"])
        return document


@contextmanager
def sweeping(parameters: Sweep) -> Iterator[Sweeping]:
    """Opens a sweep, or one that did not finish with the arms that it has.

    Raises:
        InputError: parameters that make no sweep; nothing to resume under that id; another process is at it.
    """
    engine = database()
    done: dict[str, Outcome] = {}
    if parameters.resume:
        row = analyses.find(engine, "sweep", parameters.resume)
        parameters = Sweep.model_validate(row["parameters"] | {"resume": row["id"]})
        done = {said["arm"]: said for said in (row["document"] or {}).get("outcomes", [])}
    else:
        require_common_questions(parameters)
    planned = arms(parameters)
    kept = parameters.model_dump(mode="json", exclude={"resume"})
    with analyses.analysing(engine, "sweep", parameters.source, kept, resume=parameters.resume) as sweep_id:
        whole = False
        try:
            yield Sweeping(sweep_id, parameters, planned, done)
            whole = True
        finally:
            if not whole:
                log.warning("the other arms: yarus sweep --resume %s", sweep_id)

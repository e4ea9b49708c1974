"""What an evaluation would ask of language models, before any call is sent."""

import secrets
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from prefect import Task

from yarus.tasks.cases.table import Case
from yarus.tasks.config.connections import database
from yarus.tasks.config.parameters import Fillable, JudgePipeline, JudgeQuality, Parameters, Tier2, Tier3
from yarus.tasks.evaluation.identity import configured, same_settings
from yarus.tasks.evaluation.repeats import first_repeat, parameters_of_repeated
from yarus.tasks.evaluation.resources import Resources
from yarus.tasks.evaluation.result_files import make_folder
from yarus.tasks.evaluation.run import DRY_RUN, Run
from yarus.tasks.evaluation.work_folder import read_cases
from yarus.tasks.models.calls import Call, RoleName
from yarus.tasks.models.prices import Estimate, estimate, missing
from yarus.tasks.models.prompts import prompts
from yarus.tasks.steps.answer_cases import load_end_to_end, load_ideal
from yarus.tasks.steps.exam.examine import exam_questions
from yarus.tasks.steps.judging.quality import CHANGES
from yarus.tasks.steps.logged_cases import load_logged_answers
from yarus.tasks.steps.recorded import RECORDED
from yarus.tasks.steps.retrieval import load, load_log

LOADERS: dict[str, Task[..., Any]] = {
    "tier1": load,
    "real_users": load_log,
    "tier2": load_ideal,
    "tier3": load_end_to_end,
    "judge": load_logged_answers,
    "judge_pipeline": load_logged_answers,
}
"""The tiers that call language models, and how they load their cases; the others call none. Retrieval does where a
judge fills up its labels."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the calls of a tier would take."""

    tier: str
    """Of a probe also what is changed."""
    cases: int | None
    """Null where the tier calls no language model."""
    roles: dict[RoleName, Estimate]


@dataclass(frozen=True, slots=True)
class Plans:
    """What the calls of an evaluation, or of every tier of a night, would take."""

    plans: list[Plan]


Planned = Mapping[RoleName, Mapping[str, int]]


async def plan(tier: str, parameters: Parameters) -> Plan:
    """Loads the cases as the evaluation would, and counts the calls that are not in the store.

    Calls about answers that are not there yet cannot be looked up: they are counted as if none were stored, and no
    refusal were among them.
    """
    parameters, repeated = parameters_of_repeated(database(), parameters)
    if repeated is not None:
        same_settings(repeated)
    run = Run(f"{DRY_RUN}{secrets.token_hex(4)}", tier, parameters, resources=Resources.take_over_checked())
    if tier not in LOADERS or (isinstance(parameters, Fillable) and parameters.labels != "filled"):
        return Plan(tier, None, {})
    make_folder(run.work)
    try:
        run = await LOADERS[tier].fn(run)
        cases = read_cases(run)
    finally:
        run.resources.close()
        shutil.rmtree(run.work, ignore_errors=True)
    configuration, engine = configured(run), database()
    planned = _planned(run, cases)
    return Plan(
        tier, len(cases), {name: estimate(name, configuration, engine, calls) for name, calls in planned.items()}
    )


def _planned(run: Run, cases: pa.Table) -> Planned:
    """Calls by role and prompt."""
    parameters = run.parameters
    rows = [row for row in cases.to_pylist() if row["status"] == "ok"]
    if isinstance(parameters, Tier2) and run.config.sut != RECORDED:
        return {"generator": {"generation": _unbought(run, rows, parameters.repeats)}, "judge": _judged(run, rows)}
    if isinstance(parameters, Tier2 | Tier3):
        local = run.config.sut == "local"  # of tier 2 the answers are recorded
        return {**({"generator": {"generation": len(rows)}} if local else {}), "judge": _judged(run, rows)}
    if isinstance(parameters, JudgeQuality):
        probes = (len(CHANGES) + 1) if parameters.probes else 0
        logged = sum(bool(row["answer"] and row["context"]) for row in rows)
        asked = Counter({"faithfulness": logged * (parameters.repeats + probes)})
        asked += Counter({"generation": logged} if parameters.probes else {})
        return {role: asked + calls if role == "judge" else calls for role, calls in _examined(run, rows).items()}
    if isinstance(parameters, Fillable):  # what of it is labelled, or was found by several, is known when it is found
        return {"judge": {"relevance": len(rows) * parameters.k * len(run.config.pool or ())}}
    repeats = parameters.repeats if isinstance(parameters, JudgePipeline) else 1
    return {"gate": {"gate": len(rows) * repeats}}


def _examined(run: Run, rows: list[Case]) -> dict[RoleName, Counter[str]]:
    """The calls of an exam that are not in the store."""
    found: dict[RoleName, Counter[str]] = {"judge": Counter(), "gate": Counter()}
    if run.config.exam_of is None:
        return found
    configuration = configured(run)
    questions = [question for row in rows for question in exam_questions(row, run.config.language)]
    languages = {question.language for question in questions}
    known = {of: prompts(configuration.model_copy(update={"language": of})) for of in languages}
    asked: dict[RoleName, list[Call]] = {"judge": [], "gate": []}
    for question in questions:
        prompt = known[question.language][question.prompt]
        asked["gate" if prompt.shape.role == "gate" else "judge"].append(
            Call(prompt, question.texts, run.config.exam_period)
        )
    for role, calls in asked.items():
        if getattr(configuration, role).base_url is not None:
            found[role] = Counter(call.prompt.name for call in missing(role, configuration, database(), calls))
    return found


def _judged(run: Run, rows: list[Case]) -> dict[str, int]:
    """Calls of the judge by prompt: an answer is judged against a reference only where there is one."""
    referenced = sum(bool(row.get("reference")) for row in rows)
    known = prompts(configured(run))
    scored = {
        name: referenced if "reference" in known[name].shape.variables else len(rows)
        for name in run.config.judge["prompts"]
    }
    with_nuggets = sum(bool(row.get("nuggets")) for row in rows)
    listed = {"claims": len(rows) + referenced} if run.config.claims is not None else {}
    listed |= {"support": len(rows)} if run.config.claims or run.config.citations else {}
    listed |= {"nugget_support": with_nuggets} if run.config.nuggets is not None else {}
    listed |= {"follow_up": sum((row["turn"] or 1) > 1 for row in rows)} if run.config.dialogs is not None else {}
    return scored | listed


def _unbought(run: Run, rows: list[Case], repeats: int) -> int:
    configuration = configured(run)
    if configuration.generator.base_url is None:
        return 0
    prompt = prompts(configuration)["generation"]
    texts = [{"question": row["question"], "context": row["context"] or ""} for row in rows]
    first = first_repeat(run.id, run.parameters)
    calls = [Call(prompt, text, first + repeat) for text in texts for repeat in range(repeats)]
    return len(missing("generator", configuration, database(), calls))

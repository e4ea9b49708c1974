"""Count the calls to language models that an evaluation would make, before any is sent."""

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
from yarus.tasks.config.parameters import JudgePipeline, JudgeQuality, LLMLabelParameters, Parameters, Tier2, Tier3
from yarus.tasks.evaluation.identity import effective_settings, require_same_settings
from yarus.tasks.evaluation.repeats import first_repeat_number, resolve_repeated_parameters
from yarus.tasks.evaluation.resources import Resources
from yarus.tasks.evaluation.result_files import make_folder
from yarus.tasks.evaluation.run import DRY_RUN_PREFIX, EvaluationRun
from yarus.tasks.evaluation.work_folder import read_cases
from yarus.tasks.models.calls import Call, RoleName
from yarus.tasks.models.prices import CallEstimate, estimate_calls, find_unstored_calls
from yarus.tasks.models.prompts import read_prompts
from yarus.tasks.steps.answer_cases import load_end_to_end, load_ideal
from yarus.tasks.steps.exam.examine import exam_questions
from yarus.tasks.steps.judging.quality import ANSWER_CHANGES
from yarus.tasks.steps.logged_cases import load_logged_answers
from yarus.tasks.steps.recorded import RECORDED_SYSTEM
from yarus.tasks.steps.retrieval import load, load_log

LOADERS: dict[str, Task[..., Any]] = {
    "tier1": load,
    "real_users": load_log,
    "tier2": load_ideal,
    "tier3": load_end_to_end,
    "judge": load_logged_answers,
    "judge_pipeline": load_logged_answers,
}
"""How the tiers that call language models load their cases.

Retrieval calls one only if a judge adds labels.
"""


@dataclass(frozen=True, slots=True)
class TierCallEstimate:
    """Estimated calls of a tier."""

    tier: str
    """Name of the tier; of a probe, with the kind of change."""
    cases: int | None
    """Null if the tier calls no language model."""
    roles: dict[RoleName, CallEstimate]


@dataclass(frozen=True, slots=True)
class CallEstimates:
    """Estimated calls of an evaluation, or of all tiers of a night."""

    plans: list[TierCallEstimate]


CallCounts = Mapping[RoleName, Mapping[str, int]]


async def plan_calls(tier: str, parameters: Parameters) -> TierCallEstimate:
    """Load the cases as the evaluation would, and count the calls that are not in the store.

    Calls about answers that do not exist yet cannot be looked up: they are counted as if none were stored and no
    answer were a refusal.
    """
    parameters, repeated = resolve_repeated_parameters(database(), parameters)
    if repeated is not None:
        require_same_settings(repeated)
    run = EvaluationRun(
        f"{DRY_RUN_PREFIX}{secrets.token_hex(4)}", tier, parameters, resources=Resources.take_over_checked()
    )
    if tier not in LOADERS or (isinstance(parameters, LLMLabelParameters) and parameters.labels != "llm"):
        return TierCallEstimate(tier, None, {})
    make_folder(run.work)
    try:
        run = await LOADERS[tier].fn(run)
        cases = read_cases(run)
    finally:
        run.resources.close()
        shutil.rmtree(run.work, ignore_errors=True)
    settings, engine = effective_settings(run), database()
    planned = _count_calls(run, cases)
    return TierCallEstimate(
        tier, len(cases), {name: estimate_calls(name, settings, engine, calls) for name, calls in planned.items()}
    )


def _count_calls(run: EvaluationRun, cases: pa.Table) -> CallCounts:
    """Count calls by role and prompt."""
    parameters = run.parameters
    rows = [row for row in cases.to_pylist() if row["status"] == "ok"]
    if isinstance(parameters, Tier2) and run.config.sut != RECORDED_SYSTEM:
        return {
            "generator": {"generation": _count_unstored_generations(run, rows, parameters.repeats)},
            "judge": _count_judge_calls(run, rows),
        }
    if isinstance(parameters, Tier2 | Tier3):
        local = run.config.sut == "local"  # in tier 2, the answers are recorded
        return {**({"generator": {"generation": len(rows)}} if local else {}), "judge": _count_judge_calls(run, rows)}
    if isinstance(parameters, JudgeQuality):
        probes = (len(ANSWER_CHANGES) + 1) if parameters.bias_probes else 0
        logged = sum(bool(row["answer"] and row["context"]) for row in rows)
        judging = Counter({"faithfulness": logged * (parameters.repeats + probes)})
        judging += Counter({"generation": logged} if parameters.bias_probes else {})
        return {role: judging + calls if role == "judge" else calls for role, calls in _count_exam(run, rows).items()}
    if isinstance(parameters, LLMLabelParameters):  # an upper bound: labels and overlaps are known only after retrieval
        return {"judge": {"relevance": len(rows) * parameters.k * len(run.config.pool or ())}}
    repeats = parameters.repeats if isinstance(parameters, JudgePipeline) else 1
    return {"gate": {"gate": len(rows) * repeats}}


def _count_exam(run: EvaluationRun, rows: list[Case]) -> dict[RoleName, Counter[str]]:
    """Count the exam's calls that are not in the store."""
    counts: dict[RoleName, Counter[str]] = {"judge": Counter(), "gate": Counter()}
    if run.config.exam_of is None:
        return counts
    settings = effective_settings(run)
    questions = [question for row in rows for question in exam_questions(row, run.config.language)]
    languages = {question.language for question in questions}
    by_language = {language: read_prompts(settings.model_copy(update={"language": language})) for language in languages}
    calls_by_role: dict[RoleName, list[Call]] = {"judge": [], "gate": []}
    for question in questions:
        prompt = by_language[question.language][question.prompt]
        calls_by_role["gate" if prompt.shape.role == "gate" else "judge"].append(
            Call(prompt, question.texts, run.config.exam_period)
        )
    for role, calls in calls_by_role.items():
        if settings.get_role(role).base_url is not None:
            counts[role] = Counter(call.prompt.name for call in find_unstored_calls(role, settings, database(), calls))
    return counts


def _count_judge_calls(run: EvaluationRun, rows: list[Case]) -> dict[str, int]:
    """Count the judge's calls by prompt; an answer is judged against a reference only if there is one."""
    referenced = sum(bool(row.get("reference")) for row in rows)
    judge_prompts = read_prompts(effective_settings(run))
    calls = {
        name: referenced if "reference" in judge_prompts[name].shape.variables else len(rows)
        for name in run.config.judge["prompts"]
    }
    with_nuggets = sum(bool(row.get("nuggets")) for row in rows)
    list_calls = {"claims": len(rows) + referenced} if run.config.claims is not None else {}
    list_calls |= {"support": len(rows)} if run.config.claims or run.config.citations else {}
    list_calls |= {"nugget_support": with_nuggets} if run.config.nuggets is not None else {}
    list_calls |= {"follow_up": sum((row["turn"] or 1) > 1 for row in rows)} if run.config.dialogs is not None else {}
    return calls | list_calls


def _count_unstored_generations(run: EvaluationRun, rows: list[Case], repeats: int) -> int:
    settings = effective_settings(run)
    if settings.generator.base_url is None:
        return 0
    prompt = read_prompts(settings)["generation"]
    texts = [{"question": row["question"], "context": row["context"] or ""} for row in rows]
    first = first_repeat_number(run.id, run.parameters)
    calls = [Call(prompt, text, first + repeat) for text in texts for repeat in range(repeats)]
    return len(find_unstored_calls("generator", settings, database(), calls))

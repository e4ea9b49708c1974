"""Evaluate the production judge as a classifier: whether it shows the right answers, and its confidence."""

import asyncio
import math
from collections.abc import Sequence

import pyarrow as pa

from yarus.tasks.cases.outcomes import CaseOutcome, add_outcomes
from yarus.tasks.cases.table import Case, column_values, set_columns
from yarus.tasks.config.parameters import JudgePipeline
from yarus.tasks.evaluation.identity import effective_settings
from yarus.tasks.evaluation.repeats import first_repeat_number
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.models.calls import Call, Model
from yarus.tasks.models.progress import gather_cases
from yarus.tasks.models.prompts import Prompt, read_prompts
from yarus.tasks.models.verdicts import Verdict, YesNo, ask_for_yes_no, describe_failure, get_value
from yarus.tasks.steps.judging.judge import add_verdicts
from yarus.tasks.steps.open_models import open_model


async def decide(run: EvaluationRun[JudgePipeline], cases: pa.Table) -> pa.Table:
    """Add the gate's decision on every logged answer, and its confidence.

    A reply that is neither yes nor no is not a decision; without a reply, the system under test has failed. The first
    of repeated replies decides.
    """
    configuration = effective_settings(run)
    prompt = read_prompts(configuration)["gate"]
    async with open_model(run, "gate", configuration) as model:
        repeat = first_repeat_number(run.id, run.parameters)
        rows = cases.to_pylist()
        verdicts_by_case = await gather_cases(
            "decide",
            (_decide_case(model, prompt, case, repeat, run.parameters) for case in rows),
            lambda result: describe_failure(*result),
        )
    first = [verdicts[0] if verdicts else None for verdicts in verdicts_by_case]
    decisions = [get_value(verdict) for verdict in first]
    is_right = [
        None if decision is None else float(decision == label)
        for decision, label in zip(decisions, column_values(cases, "shown"), strict=True)
    ]
    verdicts_by_name = [
        {"gate" if number == 0 else f"again:gate#{number}": verdict for number, verdict in enumerate(verdicts)}
        for verdicts in verdicts_by_case
    ]
    return set_columns(
        add_verdicts(
            add_outcomes(cases, [_gate_outcome(verdict) for verdict in first]), verdicts_by_name, counting="gate"
        ),
        decision=decisions,
        accuracy=is_right,
        show_score=[show_confidence(verdicts) for verdicts in verdicts_by_case],
        latency_ms=[_latency_ms(verdict) for verdict in first],
    )


def _gate_outcome(verdict: YesNo | None) -> CaseOutcome:
    """Return the gate's outcome for a case; empty if it was not asked, or the budget was spent."""
    if verdict is None or verdict.status == "skipped_budget":
        return CaseOutcome()
    return (
        CaseOutcome("failed", f"gate: {verdict.reason}") if verdict.status == "judge_error" else CaseOutcome("answered")
    )


def show_confidence(verdicts: Sequence[YesNo]) -> float | None:
    """Return the gate's confidence, 0..1, that an answer should be shown; None after a single yes or no.

    It is the mean over usable replies: the probability of the first token if available, else 1 or 0.
    """
    usable = [verdict for verdict in verdicts if isinstance(verdict, Verdict)]
    probabilities = [_yes_probability(verdict) for verdict in usable]
    if len(usable) < 2 and None in probabilities:
        return None
    confidences = [float(verdict.value) if p is None else p for verdict, p in zip(usable, probabilities, strict=True)]
    return sum(confidences) / len(confidences) if confidences else None


def _yes_probability(verdict: Verdict[bool]) -> float | None:
    """Return the probability of yes by the reply's first token; None without it, or for another first word."""
    reply = verdict.replies[-1]
    if not reply.logprobs or not reply.raw[:1].isalpha():
        return None
    probability = math.exp(min(0.0, reply.logprobs[0]))
    return probability if verdict.value else 1 - probability


async def _decide_case(model: Model, prompt: Prompt, case: Case, repeat: int, parameters: JudgePipeline) -> list[YesNo]:
    if case["status"] != "ok":
        return []
    calls = (Call(prompt, case, repeat + number, logprobs=parameters.logprobs) for number in range(parameters.repeats))
    return list(await asyncio.gather(*(ask_for_yes_no(model, call) for call in calls)))


def _latency_ms(verdict: YesNo | None) -> float | None:
    """Return the latency of the call; None if it was not measured: a stored reply, no call, or the stand-in's 0."""
    if verdict is None or verdict.replies[-1].from_store:
        return None
    return verdict.replies[-1].latency_ms or None

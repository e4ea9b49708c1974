"""Set the state in which a flow run ends in Prefect, with the summary: completed, invalid, failed, or gate failed."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from yarus.db.engine import reporting_unreachable
from yarus.db.errors import InputError, ResultsUnavailable
from yarus.deployments.prefect.artifacts import show_gate, show_results
from yarus.tasks.comparison.gate import WORST_FIRST, applies_to_tier, gate
from yarus.tasks.comparison.gate_rules import GateRule, GateRules, configured_gate_rules
from yarus.tasks.config.connections import database
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told
from yarus.tasks.evaluation.repeats import is_repeat_of_cases
from yarus.tasks.evaluation.summary import EvaluationSummary, FailedEvaluation, GateOutcome, NightDocument

log = logging.getLogger("yarus")
FlowResult = EvaluationSummary | NightDocument | State[Any]


async def flow_state(document: EvaluationSummary | NightDocument) -> FlowResult:
    """Return the result of a flow that gives its run the right state, after the gate of YARUS_GATE_FILE.

    An invalid evaluation has finished, so the caller of the flow gets its summary. A failed gate and a night with a
    failure are failures, whose summary is in the data of the state. An evaluation that only repeats changed or failed
    questions is neither shown for the tier nor gated.

    Args:
        document: the summary of an evaluation or of a night.
    """
    if "tier" in document and not is_repeat_of_cases(document):
        await show_results(document)
        document = summary = await asyncio.to_thread(add_gate_outcome, document)
        await show_gate(summary)
    if document["state"] == "failed":
        return Failed(message=_describe_failures(document), data=document)
    if broken := list(_describe_failed_gates(document)):
        return Failed(name="GateFailed", message="; ".join(broken), data=document)
    if document["state"] == "invalid":
        return Completed(name="Invalid", message=_describe_failures(document), data=document)
    return document


def has_passed(document: EvaluationSummary | NightDocument) -> bool:
    """Return whether an evaluation or a night is complete, valid, and through its gate."""
    return document["state"] == "completed" and not any(_describe_failed_gates(document))


def add_gate_outcome(summary: EvaluationSummary) -> EvaluationSummary:
    """Return the summary with the gate's verdict, if a gate is set and has a rule for the tier.

    The evaluation is complete whatever the gate's result: what cannot be judged is inconclusive with a reason.

    Args:
        summary: the summary of a finished evaluation.
    """
    try:
        policy = configured_gate_rules()
        rules = [rule for rule in policy.rules if applies_to_tier(rule, summary["tier"])] if policy else []
        # Separate: an incomparable baseline does not affect a floor, and Holm's method is over the comparisons only.
        bounds, regressions = (
            [rule for rule in rules if (rule.kind == "no regression") == is_compared] for is_compared in (False, True)
        )
        outcomes = [_judge_part(summary, policy, part) for part in (bounds, regressions) if policy and part]
    except InputError as error:  # the file was changed while the evaluation ran
        outcomes = [_undecided_outcome(summary, str(get_settings().gate_file), error)]
    if not outcomes:
        return summary
    worst = next(verdict for verdict in WORST_FIRST if verdict in [part["verdict"] for part in outcomes])
    outcome: GateOutcome = {
        "verdict": worst,
        "file": outcomes[0]["file"],
        "failed": [rule for part in outcomes for rule in part["failed"]],
    }
    if reasons := "; ".join(part["reason"] for part in outcomes if "reason" in part):
        outcome["reason"] = reasons
    return {**summary, "gate": outcome}


def _judge_part(summary: EvaluationSummary, policy: GateRules, rules: list[GateRule]) -> GateOutcome:
    """Return the gate's outcome for some of its rules."""
    engine = database()
    try:
        with reporting_unreachable(engine):
            result = gate(engine, summary["evaluation_id"], policy._replace(rules=tuple(rules)))
    except (InputError, ResultsUnavailable) as error:
        return _undecided_outcome(summary, policy.file, error)
    failed = [f"{rule['metric']}: {rule['rule']}" for rule in result["rules"] if rule["verdict"] == "fail"]
    return {"verdict": result["verdict"], "file": result["file"], "failed": failed}


def _undecided_outcome(summary: EvaluationSummary, file: str | None, error: Exception) -> GateOutcome:
    log.warning("%s: the gate could not be judged: %s", summary["evaluation_id"], error)
    return {
        "verdict": "invalid" if summary["state"] == "invalid" else "inconclusive",
        "file": file,
        "failed": [],
        "reason": redact_urls(str(error)),
    }


def list_evaluations(document: EvaluationSummary | NightDocument) -> Sequence[EvaluationSummary | FailedEvaluation]:
    """Return the evaluations of a night, or the single evaluation in a list."""
    if "evaluations" in document:
        return document["evaluations"]
    return [document]


def _describe_failed_gates(document: EvaluationSummary | NightDocument) -> list[str]:
    """Return the gates that were not passed, in words."""
    return [
        f"{part['tier']}: {', '.join(part['gate']['failed'])} ({part['gate']['file']})"
        for part in list_evaluations(document)
        if "gate" in part and part["gate"]["verdict"] == "fail"
    ]


def _describe_failures(document: EvaluationSummary | NightDocument) -> str:
    if "evaluations" not in document:
        return told(str(document["error"]), get_settings().language)
    states = texts("states", get_settings().language)
    causes: dict[tuple[str, str], list[str]] = {}
    for part in document["evaluations"]:
        if part["state"] != "completed":
            cause = states[part["state"]], told(part["error"] or "", get_settings().language)
            causes.setdefault(cause, []).append(part["tier"])
    return "; ".join(f"{', '.join(tiers)}: {state}, {error}" for (state, error), tiers in causes.items())

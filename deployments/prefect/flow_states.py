"""How a flow run ends in Prefect: `Completed`, `Invalid`, `GateFailed` or `Failed`, with the summary in any case."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from yarus.db.engine import reaching
from yarus.db.errors import InputError, ResultsUnavailable
from yarus.deployments.prefect.artifacts import show_gate, show_results
from yarus.tasks.comparison.gate import WORST_FIRST, applies, gate
from yarus.tasks.comparison.gate_rules import Policy, Rule, policy_set
from yarus.tasks.config.connections import database
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.settings import settings
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told
from yarus.tasks.evaluation.repeats import asks_again
from yarus.tasks.evaluation.summary import EvaluationSummary, FailedEvaluation, GateOutcome, Night

log = logging.getLogger("yarus")
Ended = EvaluationSummary | Night | State[Any]


async def flow_state(document: EvaluationSummary | Night) -> Ended:
    """What a flow returns for its run to bear the name of what it came to, after the gate of YARUS_GATE_FILE.

    An invalid evaluation has done its work, so whoever called the flow gets its summary; a gate that was not passed
    and a night with a failure are failures, whose summary is in the data of the state. One that asks again what
    changed in another one, or what failed, says nothing of the level: it is neither shown as one of the tier nor gated.

    Args:
        document: the summary of an evaluation or of a night.
    """
    if "tier" in document and not asks_again(document):
        await show_results(document)
        document = summary = await asyncio.to_thread(with_gate, document)
        await show_gate(summary)
    if document["state"] == "failed":
        return Failed(message=_why(document), data=document)
    if broken := list(_broken(document)):
        return Failed(name="GateFailed", message="; ".join(broken), data=document)
    if document["state"] == "invalid":
        return Completed(name="Invalid", message=_why(document), data=document)
    return document


def passed(document: EvaluationSummary | Night) -> bool:
    """Whether an evaluation or a night is what was hoped for: whole, valid, and through its gate."""
    return document["state"] == "completed" and not any(_broken(document))


def with_gate(summary: EvaluationSummary) -> EvaluationSummary:
    """The summary of an evaluation with the gate's verdict, where one is set, and it has a rule for the tier.

    The evaluation is whole, whatever becomes of its gate: what cannot be judged is inconclusive and says why.

    Args:
        summary: of a finished evaluation.

    """
    try:
        policy = policy_set()
        rules = [rule for rule in policy.rules if applies(rule, summary["tier"])] if policy else []
        # Apart: a baseline that does not compare says nothing of a floor. Holm's method is over the comparisons alone.
        alone, compared = ([rule for rule in rules if (rule.kind == "no regression") == kind] for kind in (False, True))
        parts = [_part(summary, policy, part) for part in (alone, compared) if policy and part]
    except InputError as error:  # the file was changed while the evaluation ran
        parts = [_undecided(summary, str(settings().gate_file), error)]
    if not parts:
        return summary
    worst = next(verdict for verdict in WORST_FIRST if verdict in [part["verdict"] for part in parts])
    found: GateOutcome = {
        "verdict": worst,
        "file": parts[0]["file"],
        "failed": [rule for part in parts for rule in part["failed"]],
    }
    if reasons := "; ".join(part["reason"] for part in parts if "reason" in part):
        found["reason"] = reasons
    return {**summary, "gate": found}


def _part(summary: EvaluationSummary, policy: Policy, rules: list[Rule]) -> GateOutcome:
    """The gate's verdict by some of its rules."""
    engine = database()
    try:
        with reaching(engine):
            found = gate(engine, summary["evaluation_id"], policy._replace(rules=tuple(rules)))
    except (InputError, ResultsUnavailable) as error:
        return _undecided(summary, policy.file, error)
    failed = [f"{rule['metric']}: {rule['rule']}" for rule in found["rules"] if rule["verdict"] == "fail"]
    return {"verdict": found["verdict"], "file": found["file"], "failed": failed}


def _undecided(summary: EvaluationSummary, file: str | None, error: Exception) -> GateOutcome:
    log.warning("%s: the gate could not be judged: %s", summary["evaluation_id"], error)
    return {
        "verdict": "invalid" if summary["state"] == "invalid" else "inconclusive",
        "file": file,
        "failed": [],
        "reason": redact_urls(str(error)),
    }


def evaluations_of(document: EvaluationSummary | Night) -> Sequence[EvaluationSummary | FailedEvaluation]:
    """The evaluations of a night, or the one that it is."""
    if "evaluations" in document:
        return document["evaluations"]
    return [document]


def _broken(document: EvaluationSummary | Night) -> list[str]:
    """The gates that were not passed, in words."""
    return [
        f"{part['tier']}: {', '.join(part['gate']['failed'])} ({part['gate']['file']})"
        for part in evaluations_of(document)
        if "gate" in part and part["gate"]["verdict"] == "fail"
    ]


def _why(document: EvaluationSummary | Night) -> str:
    if "evaluations" not in document:
        return told(str(document["error"]), settings().language)
    states = texts("states", settings().language)
    causes: dict[tuple[str, str], list[str]] = {}
    for part in document["evaluations"]:
        if part["state"] != "completed":
            cause = states[part["state"]], told(part["error"] or "", settings().language)
            causes.setdefault(cause, []).append(part["tier"])
    return "; ".join(f"{', '.join(tiers)}: {state}, {error}" for (state, error), tiers in causes.items())

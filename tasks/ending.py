"""How a flow run ends in Prefect: `Completed`, `Invalid`, `GateFailed` or `Failed`, with the summary in any case."""

import asyncio
from typing import Any

from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from tasks.connect import database
from tasks.gate import applies, gate
from tasks.gate_rules import read_policy
from tasks.settings import settings

Document = dict[str, Any]
Ended = Document | State[Any]


async def ended(document: Document) -> Ended:
    """What a flow returns for its run to bear the name of what it came to, after the gate of YARUS_GATE_FILE.

    An invalid evaluation has done its work, so whoever called the flow gets its summary; a gate that was not passed
    and a night with a failure are failures, whose summary is in the data of the state.

    Args:
        document: the summary of an evaluation or of a night.

    Raises:
        InputError: the gate file cannot be used.
    """
    if "tier" in document:
        document = await asyncio.to_thread(judged, document)
    if document["state"] == "failed":
        return Failed(message=_why(document), data=document)
    if broken := list(_broken(document)):
        return Failed(name="GateFailed", message="; ".join(broken), data=document)
    if document["state"] == "invalid":
        return Completed(name="Invalid", message=_why(document), data=document)
    return document


def passed(document: Document) -> bool:
    """Whether an evaluation or a night is what was hoped for: whole, valid, and through its gate."""
    return document["state"] == "completed" and not any(_broken(document))


def judged(summary: Document) -> Document:
    """The summary of an evaluation with the gate's verdict, where one is set, and it has a rule for the tier.

    Raises:
        InputError: the gate file cannot be used.
    """
    file = settings().gate_file
    policy = read_policy(file) if file else None
    if policy is None or not any(applies(rule, summary["tier"]) for rule in policy.rules):
        return summary
    found = gate(database(), summary["evaluation_id"], policy)
    failed = [f"{rule['metric']}: {rule['rule']}" for rule in found["rules"] if rule["verdict"] == "fail"]
    return summary | {"gate": {"verdict": found["verdict"], "file": found["file"], "failed": failed}}


def _broken(document: Document) -> list[str]:
    """The gates that were not passed, in words."""
    return [
        f"{part['tier']}: {', '.join(part['gate']['failed'])} ({part['gate']['file']})"
        for part in document.get("evaluations", [document])
        if part.get("gate", {}).get("verdict") == "fail"
    ]


def _why(document: Document) -> str:
    if "evaluations" not in document:
        return str(document["error"])
    return "; ".join(
        f"{part['tier']}: {part['state']}, {part['error']}"
        for part in document["evaluations"]
        if part["state"] != "completed"
    )

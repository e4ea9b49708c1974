"""How a flow run ends in Prefect: `Completed`, `Invalid`, `GateFailed` or `Failed`, with the summary in any case."""

from typing import Any

from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

Document = dict[str, Any]
Ended = Document | State[Any]


def ended(document: Document) -> Ended:
    """What a flow returns for its run to bear the name of what it came to.

    An invalid evaluation has done its work, so whoever called the flow gets its summary; a gate that was not passed
    and a night with a failure are failures, whose summary is in the data of the state.

    Args:
        document: the summary of an evaluation or a night: state, and error or evaluations; `gate` where one was asked.
    """
    if document["state"] == "failed":
        return Failed(message=_why(document), data=document)
    if document.get("gate", {}).get("passed") is False:
        return Failed(name="GateFailed", message=document["gate"]["message"], data=document)
    if document["state"] == "invalid":
        return Completed(name="Invalid", message=_why(document), data=document)
    return document


def _why(document: Document) -> str:
    if "evaluations" not in document:
        return str(document["error"])
    return "; ".join(
        f"{part['tier']}: {part['state']}, {part['error']}"
        for part in document["evaluations"]
        if part["state"] != "completed"
    )

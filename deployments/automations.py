"""Automations of Prefect's server, from automations.yaml: alerts by webhook, and dead runs marked as crashed.

Prefect's own webhook client reads all that a receiver sends, however slow and large; ours is bounded.
"""

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx
import yaml  # type: ignore[import-untyped]
from prefect.blocks import webhook
from prefect.blocks.webhook import Webhook
from prefect.client.orchestration import PrefectClient, get_client
from prefect.events import emit_event
from prefect.events.filters import EventFilter, EventNameFilter, EventOccurredFilter
from prefect.events.schemas.automations import AutomationCore
from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError
from prefect.settings import PREFECT_API_URL
from typing_extensions import TypedDict

from yarus.db.errors import InputError
from yarus.db.tables import Json
from yarus.db.words import Words
from yarus.deployments.prefect.local_server import let_in, require_compatible
from yarus.tasks.config.settings import settings
from yarus.tasks.config.texts import texts

BLOCK = "yarus-alerts"
INCIDENTS = "yarus: incidents"
PAGE = 50
"""Events that the server gives at once."""
ANSWER_S = 30.0
"""Longest wait for the server to have called the webhook."""
PAYLOAD: tuple[str, ...] = ("text", "incident", "evaluation_id", "tier", "source", "verdict", "baseline", "metric")
PAYLOAD += ("change", "changes", "sut_label", "comparability_key", "run", "link")
"""What the event of a night holds, for templates."""


WebhookState = Literal["set", "kept", "none"]


class Applied(TypedDict):
    """The automations on Prefect's server."""

    automations: dict[str, str]
    """Name -> created or updated."""
    webhook: WebhookState
    """Whether alerts have somewhere to go."""


class Tested(TypedDict):
    """What came of a test message."""

    status_code: int
    """That the receiver answered."""


class DeclaredAutomations(TypedDict):
    """What automations.yaml says."""

    body: str
    """Jinja template of what is sent."""
    automations: list[Json]
    """Without what only the server knows."""


@cache
def declared() -> DeclaredAutomations:
    """What automations.yaml says."""
    document: DeclaredAutomations = yaml.safe_load(
        (Path(__file__).parent / "automations.yaml").read_text(encoding="utf-8")
    )
    return document


async def apply(webhook: str | None, body: str | None, headers: Mapping[str, str]) -> Applied:
    """Creates the automations on Prefect's server, or changes those that are there; as often as wanted.

    Args:
        webhook: where alerts go, kept in a block of the server as a secret; None leaves what an earlier call has set.
        body: Jinja template of what is sent, of the variable `event`; None for the default.
        headers: sent along.

    Raises:
        InputError: no server is named, no address, or a template that the server refuses.
    """
    if webhook is not None:
        _require_http(webhook)
    elif headers:
        raise InputError("--header needs --webhook: both are kept together, as a secret")
    _require_server()
    async with get_client() as client:
        block, known = await _webhook(client, webhook, headers)
        done = {}
        for automation in declared()["automations"]:
            if block is None and any(action["type"] == "call-webhook" for action in automation["actions"]):
                continue
            done[automation["name"]] = await _put(client, _completed(automation, block, body))
    return {"automations": done, "webhook": known}


async def test() -> Tested:
    """Has the server send a test message.

    Raises:
        InputError: nothing is set up, or the receiver refuses.
        OSError: the server has not called it in time.
    """
    _require_server()
    begun = datetime.now(UTC)
    async with get_client() as client:
        if not await client.read_automations_by_name(INCIDENTS):
            raise InputError("no alerts are set up on this server: yarus alerts apply --webhook URL")
        said = texts("alerts", settings().language)["test"]
        like_others: dict[str, Any] = dict.fromkeys(PAYLOAD) | {"text": said, "incident": "test"}
        payload = like_others | {"verdict": "test", "changes": [], "incidents": [], "link": settings().report_url or ""}
        emit_event("yarus.incident.test", resource={"prefect.resource.id": "yarus.incident.test"}, payload=payload)
        answer = await _answer(client, begun)
    status = answer.get("status_code")
    if status is None or not httpx.codes.is_success(status):
        moved = (
            Words("; redirects are not followed: give the address that it leads to") if status and status < 400 else ""
        )
        raise InputError(
            "the receiver of alerts answered {status}{moved}: check --webhook, --header and --body of `yarus alerts "
            "apply`",
            status=status or answer.get("reason"),
            moved=moved,
        )
    return {"status_code": status}


async def _answer(client: PrefectClient, since: datetime) -> Json:
    """What came of the webhook's call: the payload of the action's event."""
    names = ["prefect.automation.action.executed", "prefect.automation.action.failed"]
    try:
        async with asyncio.timeout(ANSWER_S):
            while True:
                occurred = EventOccurredFilter(since=since, until=datetime.now(UTC))
                wanted = EventFilter(event=EventNameFilter(name=names), occurred=occurred)
                for event in (await client.read_events(wanted, limit=PAGE)).events:
                    if event.payload.get("action_type") == "call-webhook":
                        return dict(event.payload)
                await asyncio.sleep(0.5)
    except TimeoutError:
        raise OSError(
            Words("Prefect's server has not called the webhook in {answer_s:.0f} s; see its log", answer_s=ANSWER_S)
        ) from None


def _require_server() -> None:
    let_in()
    url = PREFECT_API_URL.value()
    if not url:
        raise InputError(
            "alerts are sent by a Prefect server that stays: start `yarus serve` with the same YARUS_HOME, or set "
            "PREFECT_API_URL to the address of another, such as http://127.0.0.1:4200/api"
        )
    require_compatible(url)


async def _webhook(
    client: PrefectClient, url: str | None, headers: Mapping[str, str]
) -> tuple[str | None, WebhookState]:
    """The id of the block that holds the webhook, and whether it was set now, kept, or there is none."""
    if url is not None:
        sent = {"Content-Type": "application/json"} | dict(headers)
        block = Webhook(url=url, headers=sent)  # both become secrets
        return str(await block.asave(BLOCK, overwrite=True)), "set"
    try:
        kept = await client.read_block_document_by_name(BLOCK, "webhook")
    except ObjectNotFound:
        return None, "none"
    return str(kept.id), "kept"


def _require_http(url: str) -> None:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        valid = False
    if not valid:
        raise InputError("--webhook: expected an http(s) address (the value may be a secret and is not shown)")


def _completed(automation: Json, block: str | None, body: str | None) -> AutomationCore:
    """The automation with what its webhook sends, and where."""
    payload = {"block_document_id": block, "payload": body or declared()["body"]}
    actions = [action | payload if action["type"] == "call-webhook" else action for action in automation["actions"]]
    return AutomationCore.model_validate(automation | {"actions": actions})


async def _put(client: PrefectClient, automation: AutomationCore) -> str:
    """Creates or updates an automation by its name; a second one of that name is deleted."""
    known = await client.read_automations_by_name(automation.name)
    try:
        if known:
            await client.update_automation(known[0].id, automation)
        else:
            await client.create_automation(automation)
    except PrefectHTTPStatusError as error:
        if error.response.status_code != httpx.codes.UNPROCESSABLE_ENTITY:
            raise
        raise InputError("--body: {why}; it is a Jinja template of `event`", why=_why(error.response)) from None
    # Prefect's client asks a busy server again, which may have created it the first time: read anew.
    for extra in (await client.read_automations_by_name(automation.name))[1:]:
        await client.delete_automation(extra.id)
    return "updated" if known else "created"


def _why(response: httpx.Response) -> str:
    try:
        said = response.json()["exception_detail"]
    except (json.JSONDecodeError, KeyError):
        return response.text[:300]
    return "; ".join(str(part.get("msg", part)) for part in said)


WEBHOOK_S = 20.0
"""For a whole call: shorter than the wait of `yarus alerts test`."""


class Bounded(httpx.AsyncBaseTransport):
    """Sends one request and tells its status alone; Prefect would store what the receiver says in an event."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """See `httpx.AsyncBaseTransport`.

        Raises:
            httpx.TransportError: no answer in time, or none that is within the limits.
        """
        from yarus.tasks.models.transport import Transport  # here: most servers call no webhook, and start the sooner

        transport = Transport(str(request.url))
        request.headers["accept-encoding"] = "gzip"
        try:
            response = await transport.exchange(request.content, request.headers, WEBHOOK_S, method=request.method)
        finally:
            await transport.aclose()
        return httpx.Response(response.status, request=request)


def bound() -> None:
    """Has the webhooks of this process called so; those that forbid private addresses keep Prefect's own client."""
    webhook._http_transport = Bounded()  # type: ignore[assignment]

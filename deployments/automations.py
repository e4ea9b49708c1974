"""Set up automations on Prefect's server from automations.yaml: alerts by webhook, and dead runs marked as crashed.

Prefect's own webhook client reads everything that a receiver sends, however slow and large; Yarus's transport has
limits.
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
from yarus.db.messages import Words
from yarus.db.tables import JsonObject
from yarus.deployments.prefect.local_server import require_compatible, use_home_password
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.texts import texts

BLOCK = "yarus-alerts"
INCIDENTS = "yarus: incidents"
EVENTS_PER_REQUEST = 50
"""Events that the server returns at once."""
ANSWER_S = 30.0
"""Longest wait for the server to have called the webhook."""
PAYLOAD_FIELDS: tuple[str, ...] = ("text", "incident", "evaluation_id", "tier", "source", "verdict", "baseline")
PAYLOAD_FIELDS += ("metric", "change", "changes", "sut_label", "comparability_key", "run", "link")
"""Fields of the event of a night, for templates."""


WebhookState = Literal["set", "kept", "none"]


class AppliedAutomations(TypedDict):
    """The automations on Prefect's server."""

    automations: dict[str, str]
    """Name -> created or updated."""
    webhook: WebhookState
    """Whether alerts have somewhere to go."""


class WebhookTest(TypedDict):
    """Reply to a test message."""

    status_code: int
    """HTTP status of the receiver's reply."""


class DeclaredAutomations(TypedDict):
    """The content of automations.yaml."""

    body: str
    """Jinja template of what is sent."""
    automations: list[JsonObject]
    """The automations, without values that only the server knows."""


@cache
def load_automations() -> DeclaredAutomations:
    """Return the content of automations.yaml."""
    document: DeclaredAutomations = yaml.safe_load(
        (Path(__file__).parent / "automations.yaml").read_text(encoding="utf-8")
    )
    return document


async def apply_automations(webhook: str | None, body: str | None, headers: Mapping[str, str]) -> AppliedAutomations:
    """Create or update the automations on Prefect's server; it can be repeated.

    Args:
        webhook: the address of alerts, stored in a block of the server as a secret; None keeps the earlier one.
        body: Jinja template of what is sent, of the variable `event`; None for the default.
        headers: sent with each alert.

    Raises:
        InputError: no server is configured, the address is not valid, or the server refuses the template.
    """
    if webhook is not None:
        _require_http(webhook)
    elif headers:
        raise InputError("--header needs --webhook: both are kept together, as a secret")
    _require_server()
    async with get_client() as client:
        block, webhook_state = await _store_webhook(client, webhook, headers)
        states = {}
        for automation in load_automations()["automations"]:
            if block is None and any(action["type"] == "call-webhook" for action in automation["actions"]):
                continue
            states[automation["name"]] = await _put_automation(client, _complete_automation(automation, block, body))
    return {"automations": states, "webhook": webhook_state}


async def send_test_message() -> WebhookTest:
    """Send a test message from the server.

    Raises:
        InputError: nothing is set up, or the receiver refuses.
        OSError: the server has not called the webhook in time.
    """
    _require_server()
    started_at = datetime.now(UTC)
    async with get_client() as client:
        if not await client.read_automations_by_name(INCIDENTS):
            raise InputError("no alerts are set up on this server: yarus alerts apply --webhook URL")
        message = texts("alerts", get_settings().language)["test"]
        fields: dict[str, Any] = dict.fromkeys(PAYLOAD_FIELDS) | {"text": message, "incident": "test"}
        payload = fields | {"verdict": "test", "changes": [], "incidents": [], "link": get_settings().report_url or ""}
        emit_event("yarus.incident.test", resource={"prefect.resource.id": "yarus.incident.test"}, payload=payload)
        answer = await _wait_for_call(client, started_at)
    status = answer.get("status_code")
    if status is None or not httpx.codes.is_success(status):
        hint = (
            Words("; redirects are not followed: give the address that it leads to") if status and status < 400 else ""
        )
        raise InputError(
            "the receiver of alerts answered {status}{moved}: check --webhook, --header and --body of `yarus alerts "
            "apply`",
            status=status or answer.get("reason"),
            moved=hint,
        )
    return {"status_code": status}


async def _wait_for_call(client: PrefectClient, since: datetime) -> JsonObject:
    """Wait for the call of the webhook, and return the payload of the action's event."""
    names = ["prefect.automation.action.executed", "prefect.automation.action.failed"]
    try:
        async with asyncio.timeout(ANSWER_S):
            while True:
                occurred = EventOccurredFilter(since=since, until=datetime.now(UTC))
                event_filter = EventFilter(event=EventNameFilter(name=names), occurred=occurred)
                for event in (await client.read_events(event_filter, limit=EVENTS_PER_REQUEST)).events:
                    if event.payload.get("action_type") == "call-webhook":
                        return dict(event.payload)
                await asyncio.sleep(0.5)
    except TimeoutError:
        raise OSError(
            Words("Prefect's server has not called the webhook in {answer_s:.0f} s; see its log", answer_s=ANSWER_S)
        ) from None


def _require_server() -> None:
    use_home_password()
    url = PREFECT_API_URL.value()
    if not url:
        raise InputError(
            "alerts are sent by a Prefect server that stays: start `yarus serve` with the same YARUS_HOME, or set "
            "PREFECT_API_URL to the address of another, such as http://127.0.0.1:4200/api"
        )
    require_compatible(url)


async def _store_webhook(
    client: PrefectClient, url: str | None, headers: Mapping[str, str]
) -> tuple[str | None, WebhookState]:
    """Return the id of the webhook's block, and whether it was set now, kept, or does not exist."""
    if url is not None:
        sent = {"Content-Type": "application/json"} | dict(headers)
        block = Webhook(url=url, headers=sent)  # both become secrets
        return str(await block.asave(BLOCK, overwrite=True)), "set"
    try:
        stored = await client.read_block_document_by_name(BLOCK, "webhook")
    except ObjectNotFound:
        return None, "none"
    return str(stored.id), "kept"


def _require_http(url: str) -> None:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        valid = False
    if not valid:
        raise InputError("--webhook: expected an http(s) address (the value may be a secret and is not shown)")


def _complete_automation(automation: JsonObject, block: str | None, body: str | None) -> AutomationCore:
    """Return the automation with the address and template of its webhook."""
    payload = {"block_document_id": block, "payload": body or load_automations()["body"]}
    actions = [action | payload if action["type"] == "call-webhook" else action for action in automation["actions"]]
    return AutomationCore.model_validate(automation | {"actions": actions})


async def _put_automation(client: PrefectClient, automation: AutomationCore) -> str:
    """Create or update an automation by its name; a second one of that name is deleted."""
    existing = await client.read_automations_by_name(automation.name)
    try:
        if existing:
            await client.update_automation(existing[0].id, automation)
        else:
            await client.create_automation(automation)
    except PrefectHTTPStatusError as error:
        if error.response.status_code != httpx.codes.UNPROCESSABLE_ENTITY:
            raise
        raise InputError("--body: {why}; it is a Jinja template of `event`", why=_error_text(error.response)) from None
    # Prefect's client repeats requests to a busy server, which may have created it the first time: read again.
    for extra in (await client.read_automations_by_name(automation.name))[1:]:
        await client.delete_automation(extra.id)
    return "updated" if existing else "created"


def _error_text(response: httpx.Response) -> str:
    try:
        details = response.json()["exception_detail"]
    except (json.JSONDecodeError, KeyError):
        return response.text[:300]
    return "; ".join(str(part.get("msg", part)) for part in details)


WEBHOOK_S = 20.0
"""Time limit of a whole call: shorter than the wait of `yarus alerts test`."""


class LimitedTransport(httpx.AsyncBaseTransport):
    """Transport that returns only the status of a reply, because Prefect would store the rest in an event."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """See `httpx.AsyncBaseTransport`.

        Raises:
            httpx.TransportError: there was no answer in time or within the limits.
        """
        from yarus.tasks.models.transport import Transport  # imported here because most servers call no webhook

        transport = Transport(str(request.url))
        request.headers["accept-encoding"] = "gzip"
        try:
            response = await transport.exchange(request.content, request.headers, WEBHOOK_S, method=request.method)
        finally:
            await transport.aclose()
        return httpx.Response(response.status, request=request)


def limit_webhooks() -> None:
    """Send the webhooks of this process through the limited transport, except those that forbid private addresses."""
    webhook._http_transport = LimitedTransport()  # type: ignore[assignment]

"""Systems under test over HTTP: with a request template of the user, or in OpenAI's protocol."""

import json
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from yarus.db.errors import InputError
from yarus.tasks.config.secrets import redact_within
from yarus.tasks.config.services import OPENAI_PREFIX, require_public_address
from yarus.tasks.config.settings import Settings, SystemService
from yarus.tasks.models.endpoints import build_completions_url
from yarus.tasks.models.transport import EVENT_STREAM_TYPE, IncomingResponse
from yarus.tasks.systems.external import (
    HttpService,
    Refused,
    fill_template,
    has_placeholder,
    parse_json,
    require_question,
    shorten_value,
)
from yarus.tasks.systems.replies import AnswerParts, ReplyReader
from yarus.tasks.systems.streams import (
    PLAIN_TEXT_TYPE,
    is_event_stream,
    is_plain_text,
    read_events,
    read_partial_answer,
    read_text,
)

SETTING_PREFIX = "YARUS_SUT_SERVICE"
ACCEPTED_TYPES = f"application/json, {EVENT_STREAM_TYPE};q=0.9, {PLAIN_TEXT_TYPE};q=0.8"
HISTORY, MESSAGES = "$history", "$messages"
"""Placeholders of a request for the turns before the question, and for these with the question."""
UNSUPPORTED = (400, 405, 406, 415, 422, 500, 501)
"""Statuses of a server that does not support a field of the request."""


class HttpSystem:
    """System that is called by POST, and answers in JSON, in a stream of events, or in streamed plain text."""

    def __init__(self, url: str, service: SystemService, optional_fields: Sequence[str] = ()) -> None:
        """Take the address and the settings.

        Args:
            url: of the service.
            service: settings of its requests.
            optional_fields: fields that are left out of the request, one after the other, if the server refuses them.

        Raises:
            InputError: settings that cannot work.
        """
        self._reader = ReplyReader(service, SETTING_PREFIX)
        self._service = HttpService(url, service, SETTING_PREFIX, ACCEPTED_TYPES)
        self._template, self._template_lock = self._service.template, threading.Lock()
        self._optional_fields = list(optional_fields)
        self.concurrency, self.secrets = service.concurrency, self._service.secrets
        require_question(self._template, SETTING_PREFIX, ("$question", MESSAGES))
        self.takes_history = has_placeholder(self._template, HISTORY) or has_placeholder(self._template, MESSAGES)

    def __call__(self, question: str, history: Sequence[Mapping[str, str]]) -> AnswerParts:
        """Return the answer of the system.

        Args:
            question: of the user.
            history: turns of the dialog before it.

        Raises:
            ValueError: the status is not 2xx, or the answer cannot be read.
            httpx.HTTPError: the connection failed or broke, the exchange took too long, or the reply is too large.
        """
        messages = [*history, {"role": "user", "content": question}]
        values = {"$question": question, HISTORY: list(history), MESSAGES: messages}
        while True:
            template, incoming = self._template, IncomingResponse()
            try:
                self._service.send(fill_template(template, values), incoming)
                break
            except Refused as error:
                if not self._drop_refused_field(template, error):
                    raise
            except (httpx.TimeoutException, httpx.NetworkError, httpx.ProtocolError) as error:
                if incoming.is_over and 200 <= incoming.status < 300:
                    break  # only the end of its body is missing
                raise type(error)(self._describe_partial_answer(str(error), incoming)) from None
        try:
            parts = self._read(incoming)
        except ValueError as error:
            raise ValueError(self._describe_partial_answer(str(error), incoming)) from None
        redacted: AnswerParts = redact_within(parts, self._service.echoes)
        return redacted

    def _read(self, incoming: IncomingResponse) -> AnswerParts:
        if is_event_stream(incoming):
            return read_events(incoming, self._reader)
        if is_plain_text(incoming):
            return read_text(incoming)
        parts = self._reader.parts(parse_json(bytes(incoming.content)))
        if parts["latency_ms"] is None:
            parts["latency_ms"] = incoming.ms_until(len(incoming.content))
        return parts

    def _describe_partial_answer(self, reason: str, incoming: IncomingResponse) -> str:
        """Return the reason of a missing answer, with the part that had arrived."""
        text = redact_within(read_partial_answer(incoming, self._reader), self._service.echoes)
        return f"{reason}; until then it had said {len(text):,} characters: {shorten_value(text)}" if text else reason

    def _drop_refused_field(self, template: Any, error: Refused) -> bool:
        """Leave the next optional field out of further requests; return False if that cannot help.

        Another thread may have done so during the call of this one.
        """
        with self._template_lock:
            if self._template is not template:
                return True
            if not self._optional_fields or error.status not in UNSUPPORTED or not re.search(r"\bstream", str(error)):
                return False
            name = self._optional_fields.pop(0)
            self._template = {field: value for field, value in template.items() if field != name}
            return True


def open_http_system(url: str, settings: Settings) -> HttpSystem:
    """Return the service at an address, called with the settings `YARUS_SUT_SERVICE__…`.

    Raises:
        InputError: settings that cannot work.
    """
    return HttpSystem(url, _build_service_settings(settings))


def open_openai_system(name: str, settings: Settings) -> HttpSystem:
    """Return the chat completions of a server of OpenAI's protocol, streamed if the server can.

    Args:
        name: `openai:` and its address up to /v1, or with the path of the completions.
        settings: with the name of the model, or a request of the user.

    Raises:
        InputError: the model is missing, or settings cannot work.
    """
    url = build_completions_url(
        require_public_address(name, SETTING_PREFIX).removeprefix(OPENAI_PREFIX), f"YARUS_SUT={OPENAI_PREFIX}…"
    )
    service = _build_service_settings(settings)
    if "request" in service.model_fields_set:
        return HttpSystem(url, service)
    if not service.model:
        raise InputError(
            "YARUS_SUT={name} and no {place}__MODEL: set it to the name of the model", name=name, place=SETTING_PREFIX
        )
    request = {
        "model": service.model,
        "messages": MESSAGES,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    optional_fields = ("stream_options", "stream")
    return HttpSystem(url, service.model_copy(update={"request": json.dumps(request)}), optional_fields)


def _build_service_settings(settings: Settings) -> SystemService:
    """Return the settings of the service, with those that hold for all systems under test."""
    common_settings = {"concurrency": settings.sut_concurrency, "timeout_s": settings.sut_timeout_s}
    return settings.sut_service.model_copy(update={name: value for name, value in common_settings.items() if value})

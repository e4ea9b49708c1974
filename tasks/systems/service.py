"""Systems under test that are asked over HTTP: by a template of the user's own, or in OpenAI's protocol."""

import json
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from yarus.db.errors import InputError
from yarus.tasks.config.secrets import redact_within
from yarus.tasks.config.services import OPENAI, open_address
from yarus.tasks.config.settings import Settings, SystemService
from yarus.tasks.models.endpoints import completions
from yarus.tasks.models.transport import EVENTS, Incoming
from yarus.tasks.systems.external import Refused, Service, as_json, filled, has_place, require_question, short
from yarus.tasks.systems.replies import Parts, Reader
from yarus.tasks.systems.streams import PLAIN, begun, is_events, is_text, read_events, read_text

PLACE = "YARUS_SUT_SERVICE"
ACCEPT = f"application/json, {EVENTS};q=0.9, {PLAIN};q=0.8"
HISTORY, MESSAGES = "$history", "$messages"
"""What stands in a request for the turns before the question, and for these and the question."""
UNKNOWN = (400, 405, 406, 415, 422, 500, 501)
"""Statuses of a server that does not know what it was asked for."""


class HttpSystem:
    """A system that is asked by POST, and answers in JSON, in a stream of events, or in plain text as it comes."""

    def __init__(self, url: str, service: SystemService, spared: Sequence[str] = ()) -> None:
        """Takes its address and its settings.

        Args:
            url: of the service.
            service: how to ask it.
            spared: names in the request that it is asked without, one after the other, where it refuses them.

        Raises:
            InputError: settings that cannot work.
        """
        self._reader = Reader(service, PLACE)
        self._service = Service(url, service, PLACE, ACCEPT)
        self._template, self._spared, self._sparing = self._service.template, list(spared), threading.Lock()
        self.concurrency, self.secrets = service.concurrency, self._service.secrets
        require_question(self._template, PLACE, ("$question", MESSAGES))
        self.takes_history = has_place(self._template, HISTORY) or has_place(self._template, MESSAGES)

    def __call__(self, question: str, history: Sequence[Mapping[str, str]]) -> Parts:
        """What it answers.

        Args:
            question: is asked.
            history: turns of the dialog before it.

        Raises:
            ValueError: another status than 2xx, or no answer can be read.
            httpx.HTTPError: no connection, or it broke, or the exchange took too long, or the reply is too large.
        """
        messages = [*history, {"role": "user", "content": question}]
        values = {"$question": question, HISTORY: list(history), MESSAGES: messages}
        while True:
            template, coming = self._template, Incoming()
            try:
                self._service.send(filled(template, values), coming)
                break
            except Refused as error:
                if not self._without(template, error):
                    raise
            except (httpx.TimeoutException, httpx.NetworkError, httpx.ProtocolError) as error:
                if coming.is_over and 200 <= coming.status < 300:
                    break  # only its body goes on
                raise type(error)(self._broken_off(str(error), coming)) from None
        try:
            parts = self._read(coming)
        except ValueError as error:
            raise ValueError(self._broken_off(str(error), coming)) from None
        found: Parts = redact_within(parts, self._service.echoes)
        return found

    def _read(self, coming: Incoming) -> Parts:
        if is_events(coming):
            return read_events(coming, self._reader)
        if is_text(coming):
            return read_text(coming)
        parts = self._reader.parts(as_json(bytes(coming.content)))
        if parts["latency_ms"] is None:
            parts["latency_ms"] = coming.ms_until(len(coming.content))
        return parts

    def _broken_off(self, why: str, coming: Incoming) -> str:
        """Why there is no answer, with what had come of one."""
        said = redact_within(begun(coming, self._reader), self._service.echoes)
        return f"{why}; until then it had said {len(said):,} characters: {short(said)}" if said else why

    def _without(self, template: Any, error: Refused) -> bool:
        """Leaves out of further requests what the server has refused; False where there is nothing left to leave out.

        Another thread may have done so while this one asked.
        """
        with self._sparing:
            if self._template is not template:
                return True
            if not self._spared or error.status not in UNKNOWN or not re.search(r"\bstream", str(error)):
                return False
            name = self._spared.pop(0)
            self._template = {known: value for known, value in template.items() if known != name}
            return True


def over_http(url: str, settings: Settings) -> HttpSystem:
    """The service at an address, asked as `YARUS_SUT_SERVICE__…` says.

    Raises:
        InputError: settings that cannot work.
    """
    return HttpSystem(url, _service(settings))


def over_openai(name: str, settings: Settings) -> HttpSystem:
    """The chat completions of a server that speaks OpenAI's protocol, streamed where it can do that.

    Args:
        name: `openai:` and its address up to /v1, or with the path of the completions.
        settings: with the name of the model, or a request of the user's own.

    Raises:
        InputError: no model, or settings that cannot work.
    """
    url = completions(open_address(name, PLACE).removeprefix(OPENAI), f"YARUS_SUT={OPENAI}…")
    service = _service(settings)
    if "request" in service.model_fields_set:
        return HttpSystem(url, service)
    if not service.model:
        raise InputError(
            "YARUS_SUT={name} and no {place}__MODEL: set it to the name of the model", name=name, place=PLACE
        )
    request = {
        "model": service.model,
        "messages": MESSAGES,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    spared = ("stream_options", "stream")
    return HttpSystem(url, service.model_copy(update={"request": json.dumps(request)}), spared)


def _service(settings: Settings) -> SystemService:
    """How to ask, with what is set for systems under test of any kind."""
    any_kind = {"concurrency": settings.sut_concurrency, "timeout_s": settings.sut_timeout_s}
    return settings.sut_service.model_copy(update={name: value for name, value in any_kind.items() if value})

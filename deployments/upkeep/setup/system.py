"""Ask a question-answering service one question, to find out its request and reply format."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import jmespath

from yarus.db.errors import InputError, ModelUnavailable
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.services import is_http_url, require_public_address
from yarus.tasks.config.settings import SystemService, get_settings
from yarus.tasks.models.transport import IncomingResponse
from yarus.tasks.systems.external import HttpService, Refused
from yarus.tasks.systems.replies import ReplyReader
from yarus.tasks.systems.streams import is_event_stream, is_plain_text

SETTING = "YARUS_SUT_SERVICE"
QUESTION_NAMES = ("question", "query", "q", "message", "text", "prompt", "input")
"""Names by which services take a question, tried in turn if the one before is refused."""
REFUSAL_STATUSES = (400, 404, 405, 415, 422)
ANSWER_NAMES = ("answer", "response", "reply", "text", "output", "result", "content", "message", "completion", "ответ")
PAGE_NAMES: tuple[str, ...] = ("urls", "sources", "links", "pages", "references", "citations", "documents", "url")
PAGE_NAMES += ("source", "ссылки", "ссылка")
CONTEXT_NAMES = ("contexts", "context", "chunks", "passages", "documents", "retrieved")
DEFAULTS = SystemService()


@dataclass(frozen=True, slots=True)
class FoundSystem:
    """Request of a service, and the places of values in its reply."""

    address: str
    settings: dict[str, str] = field(default_factory=dict)
    """Parts of YARUS_SUT_SERVICE that differ from the defaults -> their values."""
    answer: str = ""
    """Beginning of its answer."""
    urls: bool = False
    """Whether it names pages."""
    streams: bool = False


def ask_system(address: str, question: str) -> FoundSystem:
    """Ask a service one question.

    Raises:
        InputError: the address contains secrets, or the reply has no recognisable answer.
        ModelUnavailable: it cannot be reached, or refuses the question in every known form.
    """
    if not is_http_url(address):
        raise InputError(
            "--sut {address!r}: only an http(s) address is asked here; for openai:URL and module:function set "
            "YARUS_SUT (docs/systems.md)",
            address=address,
        )
    service = get_settings().sut_service
    known_forms = [json.dumps({name: "$question"}) for name in QUESTION_NAMES]
    forms = [service.request] if "request" in service.model_fields_set else known_forms
    refusal: Exception | None = None
    for form in forms:
        client = HttpService(
            require_public_address(address, SETTING), service.model_copy(update={"request": form}), SETTING
        )
        incoming = IncomingResponse()
        try:
            content = client.send(json.loads(form.replace('"$question"', json.dumps(question))), incoming)
        except Refused as error:
            refusal = error
            if error.status not in REFUSAL_STATUSES:
                break
        except httpx.HTTPError as error:
            refusal = error
            break
        else:
            return _read_reply(address, form, content, streams=is_event_stream(incoming) or is_plain_text(incoming))
    raise ModelUnavailable(
        "{address} does not answer a question: {reason}. If it is asked otherwise, set {place}__REQUEST, and "
        "{place}__HEADERS for a key",
        address=address, reason=redact_urls(str(refusal))[:300], place=SETTING,
    )  # fmt: skip


def _read_reply(address: str, form: str, content: bytes, *, streams: bool) -> FoundSystem:
    settings = {} if form == DEFAULTS.request else {"request": form}
    if streams:
        return FoundSystem(address, settings, content.decode("utf-8", "replace")[:80], streams=True)
    try:
        reply = json.loads(content)
    except ValueError:
        raise InputError(
            "{address}: the reply is no JSON: {said}", address=address, said=content[:200].decode("utf-8", "replace")
        ) from None
    parts = ReplyReader(get_settings().sut_service, SETTING).parts(reply)
    texts, lists = list(_find_texts(reply)), list(_find_lists(reply, reply))
    answer: Any = ("", parts["answer"]) if isinstance(parts["answer"], str) else _find_named(texts, ANSWER_NAMES)
    if answer is None and len(texts) == 1:
        answer = texts[0]
    if answer is None:
        raise InputError(
            "{address}: which part of the reply is the answer: {paths}? Set {place}__ANSWER to it",
            address=address, paths=", ".join(path for path, _ in texts) or "none is a text", place=SETTING,
        )  # fmt: skip
    settings |= {"answer": answer[0]} if answer[0] else {}
    for part, names, addresses in (("urls", PAGE_NAMES, True), ("contexts", CONTEXT_NAMES, False)):
        match = _find_named([item for item in lists if is_http_url(item[1][0]) == addresses], names)
        if not parts[part] and match:
            settings[part] = match[0]
    return FoundSystem(address, settings, answer[1][:80], urls=bool(parts["urls"]) or "urls" in settings)


def _find_named(items: list[Any], names: tuple[str, ...]) -> Any:
    """Return the item whose path ends in the first matching name; None if several or no items match."""
    for name in names:
        matching = [item for item in items if name in re.findall(r"\w+", item[0].casefold())]
        if matching:
            return matching[0] if len(matching) == 1 else None
    return None


def _find_texts(reply: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts of a reply outside of lists, except addresses, with their JMESPaths."""
    if isinstance(reply, dict):
        for name, value in reply.items():
            yield from _find_texts(value, _join_path(path, name))
    elif isinstance(reply, str) and reply.strip() and not is_http_url(reply):
        yield path, reply


def _find_lists(value: Any, reply: Any, path: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield the lists of texts, or of one text per object of a list, with their JMESPaths in the reply."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _find_lists(part, reply, _join_path(path, name))
    elif isinstance(value, list) and value and all(isinstance(element, str) for element in value):
        yield path, value
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for element_path in (f"{path}[].{_join_path('', name)}" for name in value[0]):
            texts = jmespath.search(element_path, reply)
            if texts and all(isinstance(element, str) for element in texts):
                yield element_path, texts


def _join_path(path: str, name: str) -> str:
    part = name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else json.dumps(name, ensure_ascii=False)
    return f"{path}.{part}" if path else part

"""A question-answering service of somebody's, asked one question to see how it answers."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import jmespath

from yarus.db.errors import InputError, ModelUnavailable
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.services import is_address, open_address
from yarus.tasks.config.settings import SystemService, settings
from yarus.tasks.models.transport import Incoming
from yarus.tasks.systems.external import Refused, Service
from yarus.tasks.systems.replies import Reader
from yarus.tasks.systems.streams import is_events, is_text

PLACE = "YARUS_SUT_SERVICE"
ASKED_AS = ("question", "query", "q", "message", "text", "prompt", "input")
"""Names that services take a question by, tried in turn where they refuse the one before."""
REFUSALS = (400, 404, 405, 415, 422)
ANSWERS = ("answer", "response", "reply", "text", "output", "result", "content", "message", "completion", "ответ")
PAGES: tuple[str, ...] = ("urls", "sources", "links", "pages", "references", "citations", "documents", "url", "source")
PAGES += ("ссылки", "ссылка")
CONTEXTS = ("contexts", "context", "chunks", "passages", "documents", "retrieved")
DEFAULTS = SystemService()


@dataclass(frozen=True, slots=True)
class FoundSystem:
    """How a service is asked, and where what it says stands in its reply."""

    address: str
    settings: dict[str, str] = field(default_factory=dict)
    """Parts of YARUS_SUT_SERVICE that are not as by default -> their values."""
    answer: str = ""
    """The beginning of what it said."""
    urls: bool = False
    """Whether it names pages."""
    streams: bool = False


def ask(address: str, question: str) -> FoundSystem:
    """Asks a service one question.

    Raises:
        InputError: an address with secrets in it, or no answer can be found in the reply.
        ModelUnavailable: it cannot be reached, or refuses the question in every form that is known.
    """
    if not is_address(address):
        raise InputError(
            "--sut {address!r}: only an http(s) address is asked here; for openai:URL and module:function set "
            "YARUS_SUT (docs/systems.md)",
            address=address,
        )
    service = settings().sut_service
    known = [json.dumps({name: "$question"}) for name in ASKED_AS]
    forms = [service.request] if "request" in service.model_fields_set else known
    refusal: Exception | None = None
    for form in forms:
        asked = Service(open_address(address, PLACE), service.model_copy(update={"request": form}), PLACE)
        coming = Incoming()
        try:
            content = asked.send(json.loads(form.replace('"$question"', json.dumps(question))), coming)
        except Refused as error:
            refusal = error
            if error.status not in REFUSALS:
                break
        except httpx.HTTPError as error:
            refusal = error
            break
        else:
            return _read(address, form, content, streams=is_events(coming) or is_text(coming))
    raise ModelUnavailable(
        "{address} does not answer a question: {reason}. If it is asked otherwise, set {place}__REQUEST, and "
        "{place}__HEADERS for a key",
        address=address, reason=redact_urls(str(refusal))[:300], place=PLACE,
    )  # fmt: skip


def _read(address: str, form: str, content: bytes, *, streams: bool) -> FoundSystem:
    named = {} if form == DEFAULTS.request else {"request": form}
    if streams:
        return FoundSystem(address, named, content.decode("utf-8", "replace")[:80], streams=True)
    try:
        reply = json.loads(content)
    except ValueError:
        raise InputError(
            "{address}: the reply is no JSON: {said}", address=address, said=content[:200].decode("utf-8", "replace")
        ) from None
    said = Reader(settings().sut_service, PLACE).parts(reply)
    texts, lists = list(_texts(reply)), list(_lists(reply, reply))
    answer: Any = ("", said["answer"]) if isinstance(said["answer"], str) else _named(texts, ANSWERS)
    if answer is None and len(texts) == 1:
        answer = texts[0]
    if answer is None:
        raise InputError(
            "{address}: which part of the reply is the answer: {paths}? Set {place}__ANSWER to it",
            address=address, paths=", ".join(path for path, _ in texts) or "none is a text", place=PLACE,
        )  # fmt: skip
    named |= {"answer": answer[0]} if answer[0] else {}
    for part, names, addresses in (("urls", PAGES, True), ("contexts", CONTEXTS, False)):
        found = _named([one for one in lists if is_address(one[1][0]) == addresses], names)
        if not said[part] and found:
            named[part] = found[0]
    return FoundSystem(address, named, answer[1][:80], urls=bool(said["urls"]) or "urls" in named)


def _named(found: list[Any], names: tuple[str, ...]) -> Any:
    """The one whose path ends in the first of the names that any has; None where several do, or none."""
    for name in names:
        alike = [one for one in found if name in re.findall(r"\w+", one[0].casefold())]
        if alike:
            return alike[0] if len(alike) == 1 else None
    return None


def _texts(reply: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The texts in a reply that are no address and in no list, with their JMESPaths."""
    if isinstance(reply, dict):
        for name, value in reply.items():
            yield from _texts(value, _joined(path, name))
    elif isinstance(reply, str) and reply.strip() and not is_address(reply):
        yield path, reply


def _lists(value: Any, reply: Any, path: str = "") -> Iterator[tuple[str, list[str]]]:
    """The lists of texts, or of one text of each object in a list, with their JMESPaths in the reply."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _lists(part, reply, _joined(path, name))
    elif isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        yield path, value
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for within in (f"{path}[].{_joined('', name)}" for name in value[0]):
            texts = jmespath.search(within, reply)
            if texts and all(isinstance(one, str) for one in texts):
                yield within, texts


def _joined(path: str, name: str) -> str:
    part = name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else json.dumps(name, ensure_ascii=False)
    return f"{path}.{part}" if path else part

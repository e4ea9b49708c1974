"""Calls of foreign code, a Python callable or an HTTP service, and its errors."""

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import httpx
import jmespath

from yarus.db.errors import InputError
from yarus.db.messages import Words
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.secrets import redact, secret_header_values
from yarus.tasks.config.services import prepare_headers, require_public_address
from yarus.tasks.config.settings import RetrieverService, SystemService
from yarus.tasks.models.transport import (
    ACCEPT_HEADERS,
    JSON_HEADERS,
    MAX_TEXT_CHARACTERS,
    BlockingTransport,
    IncomingResponse,
)
from yarus.tasks.systems.yarus_worker.serialization import SHORT_REPR, extract_text

Result = TypeVar("Result")


class UserCodeError(Exception):
    """Error of the user's code in its own process, or the end of that process; the message begins with its kind."""

    def __init__(self, words: str, place: str = "") -> None:
        super().__init__(words)
        self.place = place
        """File and line of the user's code where it was raised."""


class ProcessLost(UserCodeError):
    """End of a process before its answer, or an answer that did not come in time."""


def call_safely(call: Callable[[], Result], secrets: Sequence[str] = ()) -> tuple[Result | None, str]:
    """Return the result of foreign code for one case, or None and the error in words that may be stored.

    All its exceptions are caught, even `sys.exit`. Signals that stop Yarus reach the main thread; this runs in others.

    Args:
        call: the foreign code.
        secrets: removed from the words.
    """
    try:
        return call(), ""
    except BaseException as error:  # any exception becomes the status of the case
        if _is_interrupt(error):
            raise
        return None, describe_failure(error, secrets)


def _is_interrupt(error: BaseException) -> bool:
    """Return whether the error is a person's Ctrl-C or SIGTERM, not an exception of the foreign code."""
    is_other_thread = threading.current_thread() is not threading.main_thread()
    return not (is_other_thread or isinstance(error, Exception | SystemExit))


def describe_failure(error: BaseException, secrets: Sequence[str] = ()) -> str:
    """Return an error as it is stored with a case: one short line without secrets."""
    words = redact_urls(redact(extract_text(error), secrets))  # redact before cutting
    line = " ".join(words.split())
    if isinstance(error, UserCodeError):
        return line[:330] + (f" ({error.place})" if error.place else "")
    return f"{type(error).__name__}: {line[:300]}"


class Refused(ValueError):
    """Answer of a service with another status than 2xx."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"the service answered {status}: {body}")
        self.status = status


class HttpService:
    """HTTP service that is called by POST, and the secrets in its settings."""

    def __init__(
        self, url: str, service: RetrieverService | SystemService, prefix: str, accept: str = ACCEPT_HEADERS["accept"]
    ) -> None:
        """Take the address, the settings, the prefix of their names, and the media types of replies.

        Raises:
            InputError: the address has secrets, the request is not JSON, or a header cannot be sent.
        """
        url = require_public_address(url, prefix)
        try:
            self.template = json.loads(service.request)
        except json.JSONDecodeError as error:
            raise InputError("{place}__REQUEST: {error}", place=prefix, error=error) from None
        service_headers = prepare_headers(service.headers, prefix)
        self.secrets, self.echoes = tuple(service_headers.values()), secret_header_values(service_headers)
        self._timeout_s = service.timeout_s
        self._headers = httpx.Headers(ACCEPT_HEADERS | JSON_HEADERS | {"accept": accept})
        self._headers.update(service_headers)
        self._transport = BlockingTransport(url)

    def reply(self, values: Mapping[str, Any]) -> Any:
        """Return the reply as JSON; see `send`.

        Raises:
            ValueError: the status is not 2xx, or the reply is not JSON.
        """
        return parse_json(self.send(fill_template(self.template, values)))

    def send(self, request: Any, incoming: IncomingResponse | None = None) -> bytes:
        """Return the body of the reply.

        Args:
            request: a value that JSON can hold.
            incoming: receives the response as it arrives.

        Raises:
            Refused: the status is not 2xx.
            httpx.HTTPError: the connection failed or broke, the exchange took too long, or the reply is too large.
        """
        body = json.dumps(request, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        response = self._transport.exchange(body.encode(), self._headers, self._timeout_s, incoming)
        if not 200 <= response.status < 300:
            # UTF-8, whatever charset the header names.
            raise Refused(response.status, response.content.decode("utf-8", "replace"))
        return response.content


def parse_json(content: bytes) -> Any:
    """Parse a reply as JSON.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise ValueError(f"the reply is no JSON: {content.decode('utf-8', 'replace')}") from None


def compile_path(path: str, prefix: str) -> Any:
    """Compile a JMESPath of a setting; raise an InputError if it is not one."""
    try:
        return jmespath.compile(path)
    except jmespath.exceptions.JMESPathError as error:
        raise InputError("{place}: {error}", place=prefix, error=error) from None


def has_placeholder(template: Any, name: str) -> bool:
    """Return whether a text of the template is that name, and so is replaced by its value."""
    return bool(fill_template(template, {name: None}) != template)


def require_question(template: Any, prefix: str, names: Sequence[str] = ("$question",)) -> None:
    """Check that a request contains the question.

    Raises:
        InputError: the question is missing, or is part of a longer text, where it is not replaced.
    """
    if not any(has_placeholder(template, name) for name in names):
        within = Words(" alone, not within a longer text") if names[0] in json.dumps(template) else ""
        raise InputError(
            "{place}__REQUEST has no place for the question: put {name!r} into it as a text{within}",
            place=prefix,
            name=names[0],
            within=within,
        )


def fill_template(template: Any, values: Mapping[str, Any]) -> Any:
    """Return the template with every text that is a name ("$question") replaced by its value.

    A list that replaces an item of a list adds its items to that list: `["$history", {…}]` is one list of messages.
    """
    if isinstance(template, dict):
        return {name: fill_template(value, values) for name, value in template.items()}
    if isinstance(template, list):
        parts = [(fill_template(value, values), isinstance(value, str)) for value in template]
        return [item for part, is_text in parts for item in (part if is_text and isinstance(part, list) else [part])]
    return values.get(template, template) if isinstance(template, str) else template


def require_storable(texts: Iterable[str], what: str) -> None:
    """Check that texts are short enough to be stored with a case.

    Args:
        texts: their lengths are added.
        what: name of the texts for the message.

    Raises:
        ValueError: they have more than `MAX_TEXT_CHARACTERS` characters.
    """
    if (size := sum(map(len, texts))) > MAX_TEXT_CHARACTERS:
        raise ValueError(f"{what}: {size:,} characters; at most {MAX_TEXT_CHARACTERS:,} are taken. Return less")


def shorten_value(value: object) -> str:
    """Return a value of any size in the form of messages: the first items of long collections."""
    return SHORT_REPR.repr(value)

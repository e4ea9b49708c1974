"""What is not ours, a Python callable or an HTTP service: how it is called, and what becomes of what it raises."""

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import httpx
import jmespath

from yarus.db.errors import InputError
from yarus.db.words import Words
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.secrets import echoes, redact
from yarus.tasks.config.services import headers, open_address
from yarus.tasks.config.settings import RetrieverService, SystemService
from yarus.tasks.models.transport import ACCEPTED, JSON, LONGEST_TEXT, FromThreads, Incoming
from yarus.tasks.systems.yarus_worker.values import SHORT, words_of

Given = TypeVar("Given")


class Raised(Exception):
    """What the user's code raised in its own process, or what became of that: in words that begin with its kind."""

    def __init__(self, words: str, place: str = "") -> None:
        super().__init__(words)
        self.place = place
        """File and line of the user's where it was raised."""


class Lost(Raised):
    """The process ended before there was an answer, or there was none in time."""


def attempt(call: Callable[[], Given], secrets: Sequence[str] = ()) -> tuple[Given | None, str]:
    """What code that is not ours gives for one case, or nothing and why, in words that may be stored.

    Nothing that it raises goes further, be it `sys.exit`. What stops us comes to the main thread; this runs in others.

    Args:
        call: what is tried.
        secrets: which may not stand in the words.
    """
    try:
        return call(), ""
    except BaseException as error:  # it may raise anything, which becomes the status of the case
        if _stops_us(error):
            raise
        return None, reason(error, secrets)


def _stops_us(error: BaseException) -> bool:
    """Whether it is the person's Ctrl-C or SIGTERM, and not what code that is not ours has raised by itself."""
    alone = threading.current_thread() is not threading.main_thread()
    return not (alone or isinstance(error, Exception | SystemExit))


def reason(error: BaseException, secrets: Sequence[str] = ()) -> str:
    """An error as it is stored with a case: on one line, not long, without a secret."""
    words = redact_urls(redact(words_of(error), secrets))  # before it is cut: the rest of a secret would not be found
    cut = " ".join(words.split())
    if isinstance(error, Raised):
        return cut[:330] + (f" ({error.place})" if error.place else "")
    return f"{type(error).__name__}: {cut[:300]}"


class Refused(ValueError):
    """A service answered with another status than 2xx."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(f"the service answered {status}: {said}")
        self.status = status


class Service:
    """An HTTP service that is asked by POST, and what we tell it that must stay between us."""

    def __init__(
        self, url: str, service: RetrieverService | SystemService, place: str, accept: str = ACCEPTED["accept"]
    ) -> None:
        """Takes its address and its settings, what the names of those begin with, and the media types of its replies.

        Raises:
            InputError: an address with secrets, a request that is not JSON, or a header that cannot be sent.
        """
        url = open_address(url, place)
        try:
            self.template = json.loads(service.request)
        except json.JSONDecodeError as error:
            raise InputError("{place}__REQUEST: {error}", place=place, error=error) from None
        sent = headers(service.headers, place)
        self.secrets, self.echoes = tuple(sent.values()), echoes(sent)
        self._headers, self._timeout_s = httpx.Headers(ACCEPTED | JSON | {"accept": accept}), service.timeout_s
        self._headers.update(sent)
        self._transport = FromThreads(url)

    def reply(self, values: Mapping[str, Any]) -> Any:
        """What it replies, read as JSON; see `send`.

        Raises:
            ValueError: another status than 2xx, or no JSON.
        """
        return as_json(self.send(filled(self.template, values)))

    def send(self, request: Any, incoming: Incoming | None = None) -> bytes:
        """What it replies.

        Args:
            request: what JSON has.
            incoming: where the response is put as it comes.

        Raises:
            Refused: another status than 2xx.
            httpx.HTTPError: no connection, or it broke, or the exchange took too long, or the reply is too large.
        """
        asked = json.dumps(request, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        response = self._transport.exchange(asked.encode(), self._headers, self._timeout_s, incoming)
        if not 200 <= response.status < 300:
            raise Refused(response.status, response.content.decode("utf-8", "replace"))  # whatever the header names
        return response.content


def as_json(content: bytes) -> Any:
    """A reply that is JSON.

    Raises:
        ValueError: it is none.
    """
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise ValueError(f"the reply is no JSON: {content.decode('utf-8', 'replace')}") from None


def compile_path(path: str, place: str) -> Any:
    """A JMESPath of settings whose names begin so; an InputError where it is none."""
    try:
        return jmespath.compile(path)
    except jmespath.exceptions.JMESPathError as error:
        raise InputError("{place}: {error}", place=place, error=error) from None


def has_place(template: Any, name: str) -> bool:
    """Whether something in the template is that name, and so is replaced by its value."""
    return bool(filled(template, {name: None}) != template)


def require_question(template: Any, place: str, names: Sequence[str] = ("$question",)) -> None:
    """Makes sure that a request asks something.

    Raises:
        InputError: the question stands nowhere in it, or within a longer text, where it is not replaced.
    """
    if not any(has_place(template, name) for name in names):
        within = Words(" alone, not within a longer text") if names[0] in json.dumps(template) else ""
        raise InputError(
            "{place}__REQUEST has no place for the question: put {name!r} into it as a text{within}",
            place=place,
            name=names[0],
            within=within,
        )


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """The template with every text that is a name ("$question") replaced by its value, wherever it stands.

    A list in the place of a list's part becomes parts of that list: `["$history", {…}]` is one list of messages.
    """
    if isinstance(template, dict):
        return {name: filled(value, values) for name, value in template.items()}
    if isinstance(template, list):
        parts = [(filled(part, values), isinstance(part, str)) for part in template]
        return [one for part, named in parts for one in (part if named and isinstance(part, list) else [part])]
    return values.get(template, template) if isinstance(template, str) else template


def require_storable(texts: Iterable[str], what: str) -> None:
    """Finds what is too long to be stored with a case.

    Args:
        texts: counted together.
        what: they are, for the message.

    Raises:
        ValueError: they have more than `LONGEST_TEXT` characters.
    """
    if (size := sum(map(len, texts))) > LONGEST_TEXT:
        raise ValueError(f"{what}: {size:,} characters; at most {LONGEST_TEXT:,} are taken. Return less")


def short(value: object) -> str:
    """A value of any size as it is shown in a message: of what has many parts, the first."""
    return SHORT.repr(value)

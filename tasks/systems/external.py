"""What is not ours, a Python callable or an HTTP service: how it is called, and what becomes of what it raises."""

import importlib
import json
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from reprlib import Repr
from typing import Any, TypeVar

import httpx

from db.errors import InputError
from tasks.config.redaction import redact_urls
from tasks.config.secrets import echoes, redact
from tasks.config.settings import RetrieverService, SystemService, headers, open_address
from tasks.models.transport import ACCEPTED, JSON, LONGEST_TEXT, FromThreads

Given = TypeVar("Given")
Found = Sequence[tuple[object, float]]
Ask = Callable[[str, int], Found]
SHORT = Repr()
"""Cuts only what is far longer than the words that are stored, so that no part of a secret is left at their end."""
SHORT.maxstring = SHORT.maxother = 10_000
SHORT.maxlist = SHORT.maxtuple = SHORT.maxdict = SHORT.maxset = 1_000


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
    try:
        said = str(error)
    except BaseException:  # noqa: BLE001 - an error that is not ours may not even have words
        said = "(it cannot be shown)"
    words = redact_urls(redact(said, secrets))  # before it is cut: the rest of a secret would not be found
    return f"{type(error).__name__}: {' '.join(words.split())[:300]}"


def from_callable(name: str, setting: str) -> Ask:
    """The function that `module:function` names; the current folder is searched too.

    Args:
        name: of the function.
        setting: that it was given by, for messages.

    Raises:
        InputError: no such module or function, or the module fails when it is imported.
    """
    module, _, attribute = name.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module), attribute)
    except BaseException as error:  # a module that is not ours may raise anything
        if _stops_us(error):
            raise
        raise InputError(
            f"{setting} {name!r}: module {module!r}: {reason(error)}; expected module:function, importable from here"
        ) from None
    if not callable(found):
        raise InputError(f"{setting} {name!r} is no function but {type(found).__name__}")
    ask: Ask = found
    return ask


class Service:
    """An HTTP service that is asked by POST, and what we tell it that must stay between us."""

    def __init__(self, url: str, service: RetrieverService | SystemService, place: str) -> None:
        """Takes its address and its settings, and what the names of those begin with.

        Raises:
            InputError: an address with secrets, a request that is not JSON, or a header that cannot be sent.
        """
        url = open_address(url, place)
        try:
            self._template = json.loads(service.request)
        except json.JSONDecodeError as error:
            raise InputError(f"{place}__REQUEST: {error}") from None
        sent = headers(service, place)
        self.secrets, self.echoes = tuple(sent.values()), echoes(sent)
        self._headers, self._timeout_s = httpx.Headers(ACCEPTED | JSON), service.timeout_s
        self._headers.update(sent)
        self._transport = FromThreads(url)

    def asks_for(self, name: str) -> bool:
        """Whether the request has a place for what bears that name."""
        return bool(filled(self._template, {name: None}) != self._template)

    def reply(self, values: Mapping[str, Any]) -> Any:
        """What it replies, read as JSON.

        Args:
            values: name in the request -> what stands there.

        Raises:
            ValueError: another status than 2xx, or no JSON.
            httpx.HTTPError: no connection, or it broke, or the exchange took too long, or the reply is too large.
        """
        asked = json.dumps(filled(self._template, values), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        response = self._transport.exchange(asked.encode(), self._headers, self._timeout_s)
        said = response.content.decode("utf-8", "replace")  # whatever codec the header names
        if not 200 <= response.status < 300:
            raise ValueError(f"the service answered {response.status}: {said}")
        try:
            return json.loads(response.content)
        except (ValueError, RecursionError):
            raise ValueError(f"the reply is no JSON: {said}") from None


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

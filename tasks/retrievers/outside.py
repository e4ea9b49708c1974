"""Retrievers that are not ours: a Python callable, or a service that answers over HTTP."""

import importlib
import json
import math
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from reprlib import Repr
from typing import Any, TypeVar

import httpx
import jmespath

from db.errors import InputError
from tasks.confidential import blotted, blotted_within, echoes
from tasks.models.embedders import Vectors
from tasks.models.transport import ACCEPTED, LONGEST_TEXT, FromThreads
from tasks.retrievers.protocol import Ranking
from tasks.settings import RetrieverService, SystemService, headers, masked, open_address

Given = TypeVar("Given")
Found = Sequence[tuple[object, float]]
Ask = Callable[[str, int], Found]
SHORT = Repr()
"""Cuts only what is far longer than the words that are stored, so that no part of a secret is left at their end."""
SHORT.maxstring = SHORT.maxother = 10_000
SHORT.maxlist = SHORT.maxtuple = SHORT.maxdict = SHORT.maxset = 1_000


class Outside:
    """Asks for one question at a time, several at once; whatever goes wrong with one is that question's error."""

    def __init__(self, ask: Ask, *, concurrency: int) -> None:
        """Takes what gives (id, distance) pairs, nearest first, and how many questions it can take at once."""
        self._ask, self._threads = ask, ThreadPoolExecutor(concurrency)  # shared by all batches, so that it holds
        self._secrets = ask.service.secrets if isinstance(ask, Remote) else ()

    def retrieve(self, questions: Sequence[str], vectors: Vectors | None, k: int, *, timed: int) -> list[Ranking]:
        """See `Retriever`."""
        return list(self._threads.map(lambda question: self._one(question, k), questions))

    def _one(self, question: str, k: int) -> Ranking:
        start = time.perf_counter()
        found, why = attempt(lambda: checked(self._ask(question, k), k), self._secrets)
        if found is None:
            return Ranking([], [], error=why)
        return Ranking(*found, (time.perf_counter() - start) * 1_000)


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
    words = masked(blotted(said, secrets))  # before it is cut: the rest of a secret would not be found
    return f"{type(error).__name__}: {' '.join(words.split())[:300]}"


def checked(found: Found, k: int) -> tuple[list[str], list[float]]:
    """The first k ids and distances, if they are a ranking; what comes after them is not looked at, for it may not end.

    Raises:
        ValueError: these are no pairs, an id comes twice, the distances do not ascend, or the ids are too long.
    """
    try:
        pairs = [(str(chunk), float(distance)) for chunk, distance in islice(found, k)]
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"expected pairs of id and distance, nearest first, not {short(found)}") from None
    ids, distances = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    require_storable(ids, "the ids of the ranking")
    if len(set(ids)) < len(ids):
        raise ValueError(f"id {Counter(ids).most_common(1)[0][0]!r} was returned twice")
    for rank, (near, far) in enumerate(pairwise((-math.inf, *distances))):
        if not near <= far:  # true of NaN too
            raise ValueError(f"distances do not ascend: {near} at rank {rank}, then {far}; return the nearest first")
    return ids, distances


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
        self._url = open_address(url, place)
        try:
            self._template = json.loads(service.request)
        except json.JSONDecodeError as error:
            raise InputError(f"{place}__REQUEST: {error}") from None
        sent = headers(service, place)
        self.secrets, self.echoes = tuple(sent.values()), echoes(sent)
        self._headers, self._timeout_s = httpx.Headers(ACCEPTED), service.timeout_s
        self._headers.update(sent)
        self._transport = FromThreads(url)

    def reply(self, values: Mapping[str, Any]) -> Any:
        """What it replies, read as JSON.

        Args:
            values: name in the request -> what stands there.

        Raises:
            ValueError: another status than 2xx, or no JSON.
            httpx.HTTPError: no connection, or it broke, or the exchange took too long, or the reply is too large.
        """
        request = httpx.Request("POST", self._url, headers=self._headers, json=filled(self._template, values))
        response = self._transport.exchange(request, self._timeout_s)
        said = response.content.decode("utf-8", "replace")  # whatever codec the header names
        if not response.is_success:
            raise ValueError(f"the service answered {response.status_code}: {said}")
        try:
            return json.loads(response.content)
        except (ValueError, RecursionError):
            raise ValueError(f"the reply is no JSON: {said}") from None


@dataclass(frozen=True)
class Remote:
    """A service that ranks, and the JMESPaths of what it found in its reply."""

    service: Service
    ids: Any
    distances: Any

    def __call__(self, question: str, k: int) -> Found:
        """The (id, distance) pairs that it replies; without distances, the order is all there is."""
        reply = blotted_within(self.service.reply({"$question": question, "$k": k}), self.service.echoes)
        names, far = self.ids.search(reply), self.distances.search(reply)
        if not isinstance(names, list):
            raise ValueError(
                f"{self.ids.expression!r} finds no list in the reply: {json.dumps(reply, ensure_ascii=False)}"
            )
        if not isinstance(far, list) or len(far) != len(names):
            far = list(range(len(names)))
        return list(zip(names, far, strict=True))


def from_service(url: str, service: RetrieverService) -> Ask:
    """Asks a service by POST; what to send and where the answer stands is set by `YARUS_RETRIEVER_SERVICE__…`.

    Raises:
        InputError: the address, the request template or a header cannot be used, or a path is no JMESPath.
    """
    place = "YARUS_RETRIEVER_SERVICE"
    try:
        paths = jmespath.compile(service.ids), jmespath.compile(service.distances)
    except jmespath.exceptions.JMESPathError as error:
        raise InputError(f"{place}: {error}") from None
    return Remote(Service(url, service, place), *paths)


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """The template with every text that is a name ("$question") replaced by its value, wherever it stands."""
    if isinstance(template, dict):
        return {name: filled(value, values) for name, value in template.items()}
    if isinstance(template, list):
        return [filled(value, values) for value in template]
    return values.get(template, template) if isinstance(template, str) else template

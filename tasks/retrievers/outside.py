"""Retrievers that are not ours: a Python callable, or a service that answers over HTTP."""

import importlib
import json
import math
import sys
import time
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import httpx
import jmespath

from db.errors import InputError
from tasks.confidential import blotted, blotted_within, echoes
from tasks.models.embedders import Vectors
from tasks.retrievers.protocol import Ranking
from tasks.settings import RetrieverService, SystemService, headers, masked, open_address

Given = TypeVar("Given")
Found = Sequence[tuple[object, float]]
Ask = Callable[[str, int], Found]


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

    Args:
        call: what is tried.
        secrets: which may not stand in the words.
    """
    try:
        return call(), ""
    except Exception as error:  # noqa: BLE001 - it may raise anything, which becomes the status of the case
        return None, reason(error, secrets)


def reason(error: BaseException, secrets: Sequence[str] = ()) -> str:
    """An error as it is stored with a case: on one line, not long, without a secret."""
    words = masked(blotted(str(error), secrets))  # before it is cut: the rest of a secret would not be found
    return f"{type(error).__name__}: {' '.join(words.split())[:300]}"


def checked(found: Found, k: int) -> tuple[list[str], list[float]]:
    """The first k ids and distances, if they are a ranking.

    Raises:
        ValueError: these are no pairs, an id comes twice, or the distances do not ascend.
    """
    try:
        pairs = [(str(chunk), float(distance)) for chunk, distance in found][:k]
    except (TypeError, ValueError):
        raise ValueError(f"expected pairs of id and distance, nearest first, not {found}") from None
    ids, distances = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    if len(set(ids)) < len(ids):
        raise ValueError(f"id {Counter(ids).most_common(1)[0][0]!r} was returned twice")
    for rank, (near, far) in enumerate(pairwise((-math.inf, *distances))):
        if not near <= far:  # true of NaN too
            raise ValueError(f"distances do not ascend: {near} at rank {rank}, then {far}; return the nearest first")
    return ids, distances


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
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a module that is not ours may raise anything
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
        limits = httpx.Limits(max_connections=service.concurrency)
        self._client = httpx.Client(timeout=service.timeout_s, headers=sent, limits=limits)
        weakref.finalize(self, self._client.close)

    def reply(self, values: Mapping[str, Any]) -> Any:
        """What it replies, read as JSON.

        Args:
            values: name in the request -> what stands there.

        Raises:
            ValueError: another status than 2xx, or no JSON.
            httpx.HTTPError: no connection, or it broke.
        """
        response = self._client.post(self._url, json=filled(self._template, values))
        if not response.is_success:
            raise ValueError(f"the service answered {response.status_code}: {response.text}")
        try:
            return response.json()
        except ValueError:
            raise ValueError(f"the reply is no JSON: {response.text}") from None


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

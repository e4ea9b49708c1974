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
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import jmespath

from db.errors import InputError
from tasks.models.embedders import Vectors
from tasks.retrievers.protocol import Ranking
from tasks.settings import RetrieverService, masked

Found = Sequence[tuple[object, float]]
Ask = Callable[[str, int], Found]


class Outside:
    """Asks for one question at a time, several at once; whatever goes wrong with one is that question's error."""

    def __init__(self, ask: Ask, *, concurrency: int) -> None:
        """Takes what gives (id, distance) pairs, nearest first, and how many questions it can take at once."""
        self._ask, self._threads = ask, ThreadPoolExecutor(concurrency)  # shared by all batches, so that it holds

    def retrieve(self, questions: Sequence[str], vectors: Vectors | None, k: int, *, timed: int) -> list[Ranking]:
        """See `Retriever`."""
        return list(self._threads.map(lambda question: self._one(question, k), questions))

    def _one(self, question: str, k: int) -> Ranking:
        start = time.perf_counter()
        try:
            ids, distances = checked(self._ask(question, k), k)
        except Exception as error:  # noqa: BLE001 - code that is not ours may raise anything; it becomes a status
            return Ranking([], [], error=masked(f"{type(error).__name__}: {' '.join(str(error).split())}"))
        return Ranking(ids, distances, (time.perf_counter() - start) * 1_000)


def checked(found: Found, k: int) -> tuple[list[str], list[float]]:
    """The first k ids and distances, if they are a ranking.

    Raises:
        ValueError: these are no pairs, an id comes twice, or the distances do not ascend.
    """
    try:
        pairs = [(str(chunk), float(distance)) for chunk, distance in found][:k]
    except (TypeError, ValueError):
        raise ValueError(f"expected pairs of id and distance, nearest first, not {str(found)[:100]}") from None
    ids, distances = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    if len(set(ids)) < len(ids):
        raise ValueError(f"id {Counter(ids).most_common(1)[0][0]!r} was returned twice")
    for rank, (near, far) in enumerate(pairwise((-math.inf, *distances))):
        if not near <= far:  # true of NaN too
            raise ValueError(f"distances do not ascend: {near} at rank {rank}, then {far}; return the nearest first")
    return ids, distances


def from_callable(name: str) -> Ask:
    """The function that `module:function` names; the current folder is searched too.

    Raises:
        InputError: no such module or function.
    """
    module, _, attribute = name.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, SyntaxError) as error:
        raise InputError(f"{name!r}: {error}; expected module:function, importable from here") from None
    if not callable(found):
        raise InputError(f"{name!r} is no function but {type(found).__name__}")
    ask: Ask = found
    return ask


def from_service(url: str, service: RetrieverService) -> Ask:
    """Asks a service by POST; what to send and where the answer stands is set by `YARUS_RETRIEVER_SERVICE__…`.

    Raises:
        InputError: the request template is not JSON, or a path is no JMESPath.
    """
    try:
        template = json.loads(service.request)
        ids, distances = jmespath.compile(service.ids), jmespath.compile(service.distances)
    except (json.JSONDecodeError, jmespath.exceptions.JMESPathError) as error:
        raise InputError(f"YARUS_RETRIEVER_SERVICE: {error}") from None
    headers = {name: value.get_secret_value() for name, value in service.headers.items()}
    client = httpx.Client(timeout=service.timeout_s, headers=headers)

    def ask(question: str, k: int) -> Found:
        response = client.post(url, json=filled(template, {"$question": question, "$k": k}))
        if not response.is_success:
            raise ValueError(f"the service answered {response.status_code}: {response.text[:200]}")
        try:
            reply = response.json()
        except ValueError:
            raise ValueError(f"the reply is no JSON: {response.text[:200]}") from None
        names, far = ids.search(reply), distances.search(reply)
        if not isinstance(names, list):
            raise ValueError(f"{service.ids!r} finds no list in the reply: {response.text[:200]}")
        if not isinstance(far, list) or len(far) != len(names):
            far = list(range(len(names)))  # no distances: the order is all there is
        return list(zip(names, far, strict=True))

    weakref.finalize(ask, client.close)
    return ask


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """The template with every text that is a name ("$question") replaced by its value, wherever it stands."""
    if isinstance(template, dict):
        return {name: filled(value, values) for name, value in template.items()}
    if isinstance(template, list):
        return [filled(value, values) for value in template]
    return values.get(template, template) if isinstance(template, str) else template

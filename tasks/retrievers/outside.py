"""Retrievers that are not ours: a Python callable, or a service that answers over HTTP."""

import importlib
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import jmespath

from db.errors import InputError
from tasks.models.embedders import Vectors
from tasks.retrievers.protocol import Ranking
from tasks.settings import RetrieverService

Found = Sequence[tuple[object, float]]
Ask = Callable[[str, int], Found]


class Outside:
    """Asks for one question at a time, several at once; whatever goes wrong with one is that question's error."""

    def __init__(self, ask: Ask, *, concurrency: int) -> None:
        """Takes what gives (id, distance) pairs, nearest first."""
        self._ask, self._concurrency = ask, concurrency

    def retrieve(self, questions: Sequence[str], vectors: Vectors | None, k: int, *, timed: int) -> list[Ranking]:
        """See `Retriever`."""
        with ThreadPoolExecutor(self._concurrency) as pool:
            return list(pool.map(lambda question: self._one(question, k), questions))

    def _one(self, question: str, k: int) -> Ranking:
        start = time.perf_counter()
        try:
            ids, distances = checked(self._ask(question, k), k)
        except Exception as error:  # noqa: BLE001 - code that is not ours may raise anything; it becomes a status
            return Ranking([], [], error=f"{type(error).__name__}: {error}")
        return Ranking(ids, distances, (time.perf_counter() - start) * 1_000)


def checked(found: Found, k: int) -> tuple[list[str], list[float]]:
    """The first k ids and distances, if they are a ranking.

    Raises:
        ValueError: pairs are malformed, an id comes twice, or the distances do not ascend.
    """
    pairs = [(str(chunk), float(distance)) for chunk, distance in found][:k]
    ids, distances = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    if twice := next((chunk for rank, chunk in enumerate(ids) if chunk in ids[:rank]), None):
        raise ValueError(f"id {twice!r} was returned twice")
    for rank, (near, far) in enumerate(pairwise(distances), start=1):
        if not near <= far or math.isnan(far):
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
    except (ImportError, AttributeError) as error:
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
    except (json.JSONDecodeError, jmespath.exceptions.ParseError) as error:
        raise InputError(f"YARUS_RETRIEVER_SERVICE: {error}") from None
    headers = {name: value.get_secret_value() for name, value in service.headers.items()}
    client = httpx.Client(timeout=service.timeout_s, headers=headers)

    def ask(question: str, k: int) -> Found:
        response = client.post(url, json=_filled(template, question, k))
        response.raise_for_status()
        reply = response.json()
        names, far = ids.search(reply), distances.search(reply)
        if not isinstance(names, list):
            raise ValueError(f"{service.ids!r} finds no list in the reply: {response.text[:200]}")
        if not isinstance(far, list) or len(far) != len(names):
            far = list(range(len(names)))  # no distances: the order is all there is
        return list(zip(names, far, strict=True))

    return ask


def _filled(template: Any, question: str, k: int) -> Any:
    """The template with "$question" and "$k" replaced, wherever they stand."""
    if isinstance(template, dict):
        return {name: _filled(value, question, k) for name, value in template.items()}
    if isinstance(template, list):
        return [_filled(value, question, k) for value in template]
    return {"$question": question, "$k": k}.get(template, template) if isinstance(template, str) else template

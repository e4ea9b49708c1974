"""Retrievers that are not ours: a Python callable, or a service that answers over HTTP."""

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

from yarus.tasks.config.secrets import redact_within
from yarus.tasks.config.settings import RetrieverService
from yarus.tasks.models.embedding.parts import Vectors
from yarus.tasks.models.progress import tick
from yarus.tasks.systems.external import Service, attempt, compile_path, require_question, require_storable, short
from yarus.tasks.systems.retrievers.protocol import Ranking

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
        found = []
        for ranking in self._threads.map(lambda question: self._one(question, k), questions):
            found.append(ranking)
            tick("retrieve", ranking.error)
        return found

    def _one(self, question: str, k: int) -> Ranking:
        start = time.perf_counter()
        found, why = attempt(lambda: checked(self._ask(question, k), k), self._secrets)
        if found is None:
            return Ranking([], [], error=why)
        return Ranking(*found, (time.perf_counter() - start) * 1_000)


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


@dataclass(frozen=True)
class Remote:
    """A service that ranks, and the JMESPaths of what it found in its reply."""

    service: Service
    ids: Any
    distances: Any

    def __call__(self, question: str, k: int) -> Found:
        """The (id, distance) pairs that it replies; without distances, the order is all there is."""
        reply = redact_within(self.service.reply({"$question": question, "$k": k}), self.service.echoes)
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
    paths = compile_path(service.ids, place), compile_path(service.distances, place)
    asked = Service(url, service, place)
    require_question(asked.template, place)
    return Remote(asked, *paths)

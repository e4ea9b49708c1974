"""Foreign retrievers: a Python callable, or a service that answers over HTTP."""

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
from yarus.tasks.models.embedding.partial_results import Vectors
from yarus.tasks.models.progress import count_step
from yarus.tasks.systems.external import (
    HttpService,
    call_safely,
    compile_path,
    require_question,
    require_storable,
    shorten_value,
)
from yarus.tasks.systems.retrievers.protocol import Ranking

RankedPairs = Sequence[tuple[object, float]]
RankFunction = Callable[[str, int], RankedPairs]


class ExternalRetriever:
    """Retriever that calls foreign code for each question, several at once. A failure concerns its question alone."""

    def __init__(self, ask: RankFunction, *, concurrency: int) -> None:
        """Take the function that returns (id, distance) pairs, nearest first, and the number of simultaneous calls."""
        # All batches share the threads, so that the limit holds.
        self._ask, self._threads = ask, ThreadPoolExecutor(concurrency)
        self._secrets = ask.service.secrets if isinstance(ask, RankingService) else ()

    def retrieve(self, questions: Sequence[str], vectors: Vectors | None, k: int, *, timed: int) -> list[Ranking]:
        """See `Retriever`."""
        rankings = []
        for ranking in self._threads.map(lambda question: self._rank_question(question, k), questions):
            rankings.append(ranking)
            count_step("retrieve", ranking.error)
        return rankings

    def _rank_question(self, question: str, k: int) -> Ranking:
        started_at = time.perf_counter()
        ranked, reason = call_safely(lambda: validate_ranking(self._ask(question, k), k), self._secrets)
        if ranked is None:
            return Ranking([], [], error=reason)
        return Ranking(*ranked, (time.perf_counter() - started_at) * 1_000)


def validate_ranking(raw_pairs: RankedPairs, k: int) -> tuple[list[str], list[float]]:
    """Return the first k ids and distances, if they are a ranking.

    Later pairs are not read, because the iterable may be endless.

    Raises:
        ValueError: the items are not pairs, an id occurs twice, the distances do not ascend, or the ids are too long.
    """
    try:
        pairs = [(str(chunk), float(distance)) for chunk, distance in islice(raw_pairs, k)]
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"expected pairs of id and distance, nearest first, not {shorten_value(raw_pairs)}") from None
    ids, distances = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    require_storable(ids, "the ids of the ranking")
    if len(set(ids)) < len(ids):
        raise ValueError(f"id {Counter(ids).most_common(1)[0][0]!r} was returned twice")
    for rank, (distance, next_distance) in enumerate(pairwise((-math.inf, *distances))):
        if not distance <= next_distance:  # also true for NaN
            raise ValueError(
                f"distances do not ascend: {distance} at rank {rank}, then {next_distance}; return the nearest first"
            )
    return ids, distances


@dataclass(frozen=True)
class RankingService:
    """Service that ranks, and the JMESPaths of the ranking in its reply."""

    service: HttpService
    ids: Any
    distances: Any

    def __call__(self, question: str, k: int) -> RankedPairs:
        """Return the (id, distance) pairs of the reply; without distances, its order decides."""
        reply = redact_within(self.service.reply({"$question": question, "$k": k}), self.service.echoes)
        ids, distances = self.ids.search(reply), self.distances.search(reply)
        if not isinstance(ids, list):
            raise ValueError(
                f"{self.ids.expression!r} finds no list in the reply: {json.dumps(reply, ensure_ascii=False)}"
            )
        if not isinstance(distances, list) or len(distances) != len(ids):
            distances = list(range(len(ids)))
        return list(zip(ids, distances, strict=True))


def open_ranking_service(url: str, service: RetrieverService) -> RankFunction:
    """Return a function that calls a service by POST, with the settings `YARUS_RETRIEVER_SERVICE__…`.

    Raises:
        InputError: the address, the request template or a header cannot be used, or a path is not a JMESPath.
    """
    prefix = "YARUS_RETRIEVER_SERVICE"
    paths = compile_path(service.ids, prefix), compile_path(service.distances, prefix)
    http_service = HttpService(url, service, prefix)
    require_question(http_service.template, prefix)
    return RankingService(http_service, *paths)

"""Re-ranking: the first results of a retriever in another order, by a score of question and text.

They order chunks, before pages are made of them. What comes after the first so many keeps its order behind them.
"""

import json
import math
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from yarus.tasks.config.factors import RerankerService
from yarus.tasks.config.secrets import redact_within
from yarus.tasks.config.services import is_address, is_function, open_address
from yarus.tasks.config.settings import RetrieverService, settings
from yarus.tasks.systems.external import Service, attempt, compile_path, require_question, short
from yarus.tasks.systems.retrievers.cross_encoder import cross_encoder
from yarus.tasks.systems.retrievers.protocol import Ranking
from yarus.tasks.systems.user_code import UserCodes

PLACE = "YARUS_RERANKER_SERVICE"
SERVICE, FUNCTION, MODEL = "http://…", "module:function", "name or folder"


def reranker_kind(name: str) -> str:
    """What a name means: SERVICE, FUNCTION or MODEL.

    Raises:
        InputError: an address that has a password in it, or a model that is not on this machine.
    """
    if is_address(name):
        open_address(name, PLACE)
        return SERVICE
    if is_function(name):
        return FUNCTION
    cross_encoder(name)
    return MODEL


def is_outside(name: str | None) -> bool:
    """Whether a service or somebody's function scores, which need not say the same twice."""
    return name is not None and (is_address(name) or is_function(name))


Score = Callable[[str, Sequence[str]], Iterable[float]]
"""A question and n texts: n scores, higher is better."""
IN_ORDER = "none"


class Scorer(NamedTuple):
    """What scores texts, and how it may be asked."""

    score: Score
    identity: str
    """Whatever decides its scores; stored with every result."""
    concurrency: int
    secrets: Sequence[str] = ()


class Reranker:
    """Orders rankings anew; whatever goes wrong with one question is that question's error."""

    def __init__(self, scorer: Scorer, texts: Mapping[str, str], depth: int) -> None:
        """Takes the scorer, the text of each chunk, and how many of a ranking's first chunks it orders."""
        self._scorer, self._texts, self.depth = scorer, texts, depth
        self._threads = ThreadPoolExecutor(scorer.concurrency, thread_name_prefix="reranker")
        weakref.finalize(self, self._threads.shutdown, wait=False)

    @property
    def identity(self) -> str:
        """Whatever decides its scores."""
        return self._scorer.identity

    def rerank(self, questions: Sequence[str], rankings: Sequence[Ranking]) -> list[Ranking]:
        """The rankings in their new order.

        Args:
            questions: n texts.
            rankings: of chunks, one a question.

        Returns:
            n rankings of the same chunks. A distance is the score times -1, behind the re-ranked ones that of the last
            of them; the latency has that of the re-ranker in it. A ranking that is an error stays one.
        """
        return list(self._threads.map(self._one, questions, rankings))

    def _one(self, question: str, ranking: Ranking) -> Ranking:
        if ranking.error is not None or not ranking.ids:
            return ranking
        head, start = ranking.ids[: self.depth], time.perf_counter()
        scores, why = attempt(
            lambda: checked(self._scorer.score(question, self._read(head)), len(head)), self._scorer.secrets
        )
        if scores is None:
            return Ranking([], [], error=f"the re-ranker: {why}")
        took_ms = (time.perf_counter() - start) * 1_000
        order = sorted(range(len(head)), key=lambda place: -scores[place])  # stable: equal ones as they were
        tail = ranking.ids[self.depth :]
        return Ranking(
            ids=[*(head[place] for place in order), *tail],
            distances=[0.0 - scores[place] for place in order] + [0.0 - min(scores)] * len(tail),
            latency_ms=None if ranking.latency_ms is None else ranking.latency_ms + took_ms,
        )

    def _read(self, chunks: Sequence[str]) -> list[str]:
        if gone := [chunk for chunk in chunks if chunk not in self._texts]:
            raise ValueError(f"the source has no chunk {gone[0]!r}, so that there is no text to score")
        return [self._texts[chunk] for chunk in chunks]


def checked(found: Iterable[float], n: int) -> list[float]:
    """The scores, if there is one for each text; what comes after them is not looked at, for it may not end.

    Raises:
        ValueError: they are no finite numbers, or too few or too many.
    """
    try:
        scores = [float(score) for score in islice(found, n + 1)]
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"expected a list of {n} scores, not {short(found)}") from None
    if len(scores) != n:
        raise ValueError(f"expected a score for each of {n} texts, not {'more' if len(scores) > n else len(scores)}")
    for place, score in enumerate(scores):
        if not math.isfinite(score):
            raise ValueError(f"the score of text {place} is {score}, not a finite number")
    return scores


@dataclass(frozen=True)
class Remote:
    """A service that scores, and the JMESPaths of what it found in its reply."""

    service: Service
    model: str | None
    indices: Any
    scores: Any

    def __call__(self, question: str, texts: Sequence[str]) -> list[float]:
        """The scores that it replies, in the order of the texts."""
        asked = {"$question": question, "$texts": list(texts), "$model": self.model}
        reply = redact_within(self.service.reply(asked), self.service.echoes)
        scores, places = (path and path.search(reply) for path in (self.scores, self.indices))
        if not isinstance(scores, list):
            raise ValueError(f"{self.scores.expression!r} finds no list in the reply: {short(reply)}")
        if self.indices is None:
            return scores
        if not isinstance(places, list) or len(places) != len(scores):
            raise ValueError(f"{self.indices.expression!r} finds no place for each score in the reply: {short(reply)}")
        return _placed(places, scores, len(texts))


def _placed(places: list[Any], scores: list[float], n: int) -> list[float]:
    """The scores by the place of their text.

    Raises:
        ValueError: a place that is none, twice or missing.
    """
    for place in places:
        if not isinstance(place, int) or isinstance(place, bool) or not 0 <= place < n:
            raise ValueError(f"index {short(place)} is no place from 0 to {n - 1}")
    by_place = dict(zip(places, scores, strict=True))
    if len(by_place) < len(places):
        raise ValueError("a text was scored twice")
    if len(by_place) < n:
        raise ValueError(f"expected a score for each of {n} texts, not {len(by_place)}")
    return [by_place[place] for place in range(n)]


def _service(url: str, codes: UserCodes) -> Scorer:
    service, model = settings().reranker_service, settings().reranker_model
    scores = compile_path(service.scores, PLACE)
    indices = None if service.indices == IN_ORDER else compile_path(service.indices, PLACE)
    remote = Service(url, _asked_with(service, model), PLACE)
    require_question(remote.template, PLACE)
    return Scorer(Remote(remote, model, indices, scores), _named(url), service.concurrency, tuple(remote.secrets))


def _asked_with(service: RerankerService, model: str | None) -> RetrieverService:
    """How a service is asked; without a model's name, none is sent."""
    request = service.request
    with suppress(json.JSONDecodeError):  # which the service itself says
        asked = json.loads(request)
        if model is None and isinstance(asked, dict):
            request = json.dumps({name: value for name, value in asked.items() if value != "$model"})
    return RetrieverService(request=request, headers=service.headers, timeout_s=service.timeout_s)


def _function(name: str, codes: UserCodes) -> Scorer:
    code = codes.get(name, "YARUS_RERANKER", "scores")
    return Scorer(lambda question, texts: code.call(question, list(texts))[0], _named(name), code.concurrency)


def _named(name: str) -> str:
    model = settings().reranker_model
    return f"{name}|model:{model}" if model else name


def _cross_encoder(name: str, codes: UserCodes) -> Scorer:
    model = cross_encoder(name)
    model.load()
    return Scorer(model, model.identity, concurrency=1)


OPEN: dict[str, Callable[[str, UserCodes], Scorer]] = {SERVICE: _service, FUNCTION: _function, MODEL: _cross_encoder}


def open_reranker(name: str, texts: Mapping[str, str], depth: int, codes: UserCodes) -> Reranker:
    """The re-ranker of that name, ready to be asked.

    Args:
        name: of a cross-encoder or its folder, an http(s) URL, or `module:function`.
        texts: of every chunk.
        depth: how many of a ranking's first chunks it orders.
        codes: by which a function is opened, and closed.

    Raises:
        InputError: there is none of that name, or its settings cannot work.
    """
    return Reranker(OPEN[reranker_kind(name)](name, codes), texts, depth)

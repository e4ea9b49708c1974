"""Re-ranking: the first results of a retriever in another order, by a score of question and text.

Chunks are ordered before pages are made of them. Results behind the first `depth` keep their order.
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
from yarus.tasks.config.services import is_function_path, is_http_url, require_public_address
from yarus.tasks.config.settings import RetrieverService, get_settings
from yarus.tasks.systems.external import HttpService, call_safely, compile_path, require_question, shorten_value
from yarus.tasks.systems.retrievers.cross_encoder import get_cross_encoder
from yarus.tasks.systems.retrievers.protocol import Ranking
from yarus.tasks.systems.user_code import UserFunctions

SETTING_PREFIX = "YARUS_RERANKER_SERVICE"
SERVICE, FUNCTION, MODEL = "http://…", "module:function", "name or folder"


def get_reranker_kind(name: str) -> str:
    """Return what a name means: SERVICE, FUNCTION or MODEL.

    Raises:
        InputError: an address has a password in it, or a model is not on this machine.
    """
    if is_http_url(name):
        require_public_address(name, SETTING_PREFIX)
        return SERVICE
    if is_function_path(name):
        return FUNCTION
    get_cross_encoder(name)
    return MODEL


def is_external_scorer(name: str | None) -> bool:
    """Return whether a service or a user's function scores, whose scores may vary."""
    return name is not None and (is_http_url(name) or is_function_path(name))


ScoreFunction = Callable[[str, Sequence[str]], Iterable[float]]
"""Function of a question and n texts that returns n scores; higher is better."""
IN_ORDER = "none"


class Scorer(NamedTuple):
    """Function that scores texts, and the limits of its use."""

    score: ScoreFunction
    identity: str
    """Everything that decides its scores; stored with every result."""
    concurrency: int
    secrets: Sequence[str] = ()


class Reranker:
    """Re-ranker of rankings; a failure concerns its question alone."""

    def __init__(self, scorer: Scorer, texts: Mapping[str, str], depth: int) -> None:
        """Take the scorer, the text of each chunk, and the number of first chunks of a ranking to order."""
        self._scorer, self._texts, self.depth = scorer, texts, depth
        self._threads = ThreadPoolExecutor(scorer.concurrency, thread_name_prefix="reranker")
        weakref.finalize(self, self._threads.shutdown, wait=False)

    @property
    def identity(self) -> str:
        """Return everything that decides its scores."""
        return self._scorer.identity

    def rerank(self, questions: Sequence[str], rankings: Sequence[Ranking]) -> list[Ranking]:
        """Return the rankings in their new order.

        Args:
            questions: n texts.
            rankings: of chunks, one per question.

        Returns:
            n rankings of the same chunks. A distance is minus the score; chunks behind the re-ranked ones get the
            distance of the last of these. The latency includes the re-ranker's. Errors stay errors.
        """
        return list(self._threads.map(self._rerank_question, questions, rankings))

    def _rerank_question(self, question: str, ranking: Ranking) -> Ranking:
        if ranking.error is not None or not ranking.ids:
            return ranking
        head, started_at = ranking.ids[: self.depth], time.perf_counter()
        scores, reason = call_safely(
            lambda: validate_scores(self._scorer.score(question, self._get_texts(head)), len(head)),
            self._scorer.secrets,
        )
        if scores is None:
            return Ranking([], [], error=f"the re-ranker: {reason}")
        elapsed_ms = (time.perf_counter() - started_at) * 1_000
        # Stable: equal scores keep their order.
        order = sorted(range(len(head)), key=lambda position: -scores[position])
        tail = ranking.ids[self.depth :]
        return Ranking(
            ids=[*(head[position] for position in order), *tail],
            distances=[0.0 - scores[position] for position in order] + [0.0 - min(scores)] * len(tail),
            latency_ms=None if ranking.latency_ms is None else ranking.latency_ms + elapsed_ms,
        )

    def _get_texts(self, chunks: Sequence[str]) -> list[str]:
        if missing := [chunk for chunk in chunks if chunk not in self._texts]:
            raise ValueError(f"the source has no chunk {missing[0]!r}, so that there is no text to score")
        return [self._texts[chunk] for chunk in chunks]


def validate_scores(raw_scores: Iterable[float], n: int) -> list[float]:
    """Return the scores, if there is one per text.

    Later scores are not read, because the iterable may be endless.

    Raises:
        ValueError: they are not finite numbers, or too few or too many.
    """
    try:
        scores = [float(score) for score in islice(raw_scores, n + 1)]
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"expected a list of {n} scores, not {shorten_value(raw_scores)}") from None
    if len(scores) != n:
        raise ValueError(f"expected a score for each of {n} texts, not {'more' if len(scores) > n else len(scores)}")
    for position, score in enumerate(scores):
        if not math.isfinite(score):
            raise ValueError(f"the score of text {position} is {score}, not a finite number")
    return scores


@dataclass(frozen=True)
class ScoringService:
    """Service that scores, and the JMESPaths of the scores in its reply."""

    service: HttpService
    model: str | None
    indices: Any
    scores: Any

    def __call__(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return the scores of the reply, in the order of the texts."""
        values = {"$question": question, "$texts": list(texts), "$model": self.model}
        reply = redact_within(self.service.reply(values), self.service.echoes)
        scores, indices = (path and path.search(reply) for path in (self.scores, self.indices))
        if not isinstance(scores, list):
            raise ValueError(f"{self.scores.expression!r} finds no list in the reply: {shorten_value(reply)}")
        if self.indices is None:
            return scores
        if not isinstance(indices, list) or len(indices) != len(scores):
            raise ValueError(
                f"{self.indices.expression!r} finds no place for each score in the reply: {shorten_value(reply)}"
            )
        return _sort_scores(indices, scores, len(texts))


def _sort_scores(indices: list[Any], scores: list[float], n: int) -> list[float]:
    """Return the scores in the order of their texts.

    Raises:
        ValueError: an index is invalid, occurs twice, or is missing.
    """
    for index in indices:
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < n:
            raise ValueError(f"index {shorten_value(index)} is no place from 0 to {n - 1}")
    score_by_index = dict(zip(indices, scores, strict=True))
    if len(score_by_index) < len(indices):
        raise ValueError("a text was scored twice")
    if len(score_by_index) < n:
        raise ValueError(f"expected a score for each of {n} texts, not {len(score_by_index)}")
    return [score_by_index[index] for index in range(n)]


def _open_service_scorer(url: str, codes: UserFunctions) -> Scorer:
    service, model = get_settings().reranker_service, get_settings().reranker_model
    scores = compile_path(service.scores, SETTING_PREFIX)
    indices = None if service.indices == IN_ORDER else compile_path(service.indices, SETTING_PREFIX)
    http = HttpService(url, _build_service_settings(service, model), SETTING_PREFIX)
    require_question(http.template, SETTING_PREFIX)
    return Scorer(
        ScoringService(http, model, indices, scores), _format_identity(url), service.concurrency, tuple(http.secrets)
    )


def _build_service_settings(service: RerankerService, model: str | None) -> RetrieverService:
    """Return the settings of the service; without a model's name, none is sent."""
    request = service.request
    with suppress(json.JSONDecodeError):  # `HttpService` reports the fault
        template = json.loads(request)
        if model is None and isinstance(template, dict):
            request = json.dumps({name: value for name, value in template.items() if value != "$model"})
    return RetrieverService(request=request, headers=service.headers, timeout_s=service.timeout_s)


def _open_function_scorer(name: str, codes: UserFunctions) -> Scorer:
    code = codes.get(name, "YARUS_RERANKER", "scores")
    return Scorer(lambda question, texts: code.call(question, list(texts))[0], _format_identity(name), code.concurrency)


def _format_identity(name: str) -> str:
    model = get_settings().reranker_model
    return f"{name}|model:{model}" if model else name


def _open_model_scorer(name: str, codes: UserFunctions) -> Scorer:
    model = get_cross_encoder(name)
    model.load()
    return Scorer(model, model.identity, concurrency=1)


SCORER_OPENERS: dict[str, Callable[[str, UserFunctions], Scorer]] = {
    SERVICE: _open_service_scorer,
    FUNCTION: _open_function_scorer,
    MODEL: _open_model_scorer,
}


def open_reranker(name: str, texts: Mapping[str, str], depth: int, codes: UserFunctions) -> Reranker:
    """Open the re-ranker of that name.

    Args:
        name: of a cross-encoder or its folder, an http(s) URL, or `module:function`.
        texts: of every chunk.
        depth: number of first chunks of a ranking to order.
        codes: opens and closes functions.

    Raises:
        InputError: the name is unknown, or its settings cannot work.
    """
    return Reranker(SCORER_OPENERS[get_reranker_kind(name)](name, codes), texts, depth)

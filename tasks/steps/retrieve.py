"""Retrieval: a ranking of chunks or pages for every question, by a retriever that is opened once a process."""

import threading
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from db.urls import canonical_url
from tasks.cases.labels import pages_of
from tasks.cases.table import with_columns
from tasks.config.connections import database
from tasks.config.settings import settings
from tasks.evaluation.run import Run
from tasks.evaluation.work_folder import read_stored_corpus
from tasks.models.embedders import Vectors, embedders
from tasks.models.embedding_cache import embed
from tasks.retrievers.protocol import Ranking, Retriever
from tasks.retrievers.registry import retriever_kind
from tasks.retrievers.shared_rankings import shared

TIMED = 100
"""Questions of an evaluation that are timed alone, where a batch is faster than its questions."""
WARM_UP = "?"
"""Embedded before anything is timed: loading the model is no part of what a user waits for."""


def retrieve(run: Run, cases: pa.Table) -> pa.Table:
    """Adds `retrieved`, `distances` and the latencies; a retriever that fails makes the case `sut_error`."""
    questions = cases["question"].to_pylist()
    timed = -(-TIMED // run.n_batches)
    rankings = rank(run, questions, run.resolved["k"], unit=run.resolved["unit"], timed=timed)
    statuses, reasons = cases["status"].to_pylist(), cases["reason"].to_pylist()
    for number, ranking in enumerate(rankings):
        if ranking.error is not None and statuses[number] == "ok":
            statuses[number], reasons[number] = "sut_error", ranking.error
    failed = [ranking.error is not None for ranking in rankings]
    latencies = [ranking.latency_ms for ranking in rankings]
    return with_columns(
        cases,
        status=statuses,
        reason=reasons,
        retrieved=[None if fail else ranking.ids for ranking, fail in zip(rankings, failed, strict=True)],
        distances=[None if fail else ranking.distances for ranking, fail in zip(rankings, failed, strict=True)],
        latency_ms=latencies,
        retrieval_latency_ms=latencies,
    )


def rank(run: Run, questions: Sequence[str], k: int, *, unit: str, timed: int) -> list[Ranking]:
    """Rankings of k chunks, or of k pages by the best chunk of each, fetching more chunks until they are found."""
    pages, _ = opened(run)
    named = tuple(run.resolved.get(name) for name in ("retriever", "embedder_identity", "vectors"))
    place = (named, unit, k, hash(tuple(pages.items())))
    return shared(place, questions, lambda some: _rank(run, some, k, unit=unit, timed=timed))


def _rank(run: Run, questions: Sequence[str], k: int, *, unit: str, timed: int) -> list[Ranking]:
    pages, retriever = opened(run)
    vectors = _question_vectors(run, questions)
    if unit == "chunk":
        return retriever.retrieve(questions, vectors, k, timed=timed)
    rankings: list[Ranking] = [Ranking([], [])] * len(questions)
    pending, fetch, n_pages = list(range(len(questions))), 4 * k, len({*pages.values()} - {None})
    while pending:
        some = vectors[pending] if vectors is not None else None
        chunks = retriever.retrieve([questions[number] for number in pending], some, fetch, timed=timed)
        short = []
        for number, ranking in zip(pending, chunks, strict=True):
            latency_ms = ranking.latency_ms if timed else rankings[number].latency_ms
            rankings[number] = replace(by_page(ranking, pages, k), latency_ms=latency_ms)
            if len(rankings[number].ids) < min(k, n_pages) and len(ranking.ids) == fetch:
                short.append(number)
        pending, fetch, timed = short if fetch < len(pages) else [], 4 * fetch, 0
    return rankings


def by_page(ranking: Ranking, pages: dict[str, str | None], k: int) -> Ranking:
    """The k best pages of a ranking of chunks, each where its best chunk stands."""
    best: dict[str, float] = {}
    for chunk, distance in zip(ranking.ids, ranking.distances, strict=True):
        page = pages.get(chunk) or (canonical_url(chunk) if chunk not in pages else None)
        if page is not None and page not in best and len(best) < k:
            best[page] = distance
    return replace(ranking, ids=list(best), distances=list(best.values()))


def _question_vectors(run: Run, questions: Sequence[str]) -> Vectors | None:
    if not retriever_kind(run.resolved["retriever"]).uses_vectors:
        return None
    model, _ = embedders(run.resolved["embedder"], settings())
    return embed(list(questions), model, database())


def opened(run: Run) -> tuple[dict[str, str | None], Retriever]:
    """The page of every chunk, and the retriever; made once a process."""
    with _OPENING:
        if run.id not in _OPEN:
            _OPEN.clear()
            corpus = read_stored_corpus(run)
            kind = retriever_kind(run.resolved["retriever"])
            _OPEN[run.id] = pages_of(corpus), kind.open(run, corpus)
            if kind.uses_vectors:
                embedders(run.resolved["embedder"], settings())[0].encode([WARM_UP])
        return _OPEN[run.id]


_OPENING = threading.Lock()
_OPEN: dict[str, tuple[dict[str, str | None], Retriever]] = {}

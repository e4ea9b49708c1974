"""Retrieval: a ranking of chunks or pages for every question, by a retriever that is opened once a process."""

import threading
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from db.urls import canonical_url
from tasks.cases.labels import NO_TWINS, pages_of
from tasks.cases.table import with_columns
from tasks.cases.vocabulary import Twins
from tasks.config.connections import database
from tasks.config.settings import settings
from tasks.evaluation.run import Run
from tasks.evaluation.work_folder import read_stored_corpus, read_twins
from tasks.models.embedders import Vectors, embedders
from tasks.models.embedding_cache import embed_each
from tasks.retrievers.protocol import Ranking, Retriever
from tasks.retrievers.registry import retriever_kind
from tasks.retrievers.shared_rankings import shared

TIMED = 100
"""Questions of an evaluation that are timed alone, where a batch is faster than its questions."""
WARM_UP = "?"
"""Embedded before anything is timed: loading the model is no part of what a user waits for."""


def retrieve(run: Run, cases: pa.Table) -> pa.Table:
    """Adds `retrieved`, `distances` and the latencies; a retriever that fails makes the case `sut_error`.

    So does an embedder over HTTP that has no vector for the question.
    """
    questions = cases["question"].to_pylist()
    timed = -(-TIMED // run.n_batches)
    k, unit = run.resolved["k"], run.resolved["unit"]
    rankings = rank(run, questions, k, unit=unit, timed=timed, twins=read_twins(run))
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


def rank(
    run: Run, questions: Sequence[str], k: int, *, unit: str, timed: int, twins: Twins = NO_TWINS
) -> list[Ranking]:
    """Rankings of k chunks, or of k pages by the best chunk of each; of twins only the best.

    More chunks are fetched until so many are found.
    """
    pages, _ = opened(run)
    named = tuple(run.resolved.get(name) for name in ("retriever", "embedder_identity", "vectors"))
    place = (named, unit, k, hash(tuple(pages.items())), hash(tuple(twins.items())))

    def ask(some: Sequence[str]) -> list[Ranking]:
        vectors, wrong = _question_vectors(run, some)
        found = [Ranking([], [], error=wrong.get(number)) for number in range(len(some))]
        fine = [number for number in range(len(some)) if number not in wrong]
        vectors = vectors[fine] if vectors is not None else None
        if fine:
            ranked = _rank(run, [some[number] for number in fine], vectors, k, unit=unit, timed=timed, twins=twins)
            for number, ranking in zip(fine, ranked, strict=True):
                found[number] = ranking
        return found

    return shared(place, questions, ask)


def _rank(
    run: Run, questions: Sequence[str], vectors: Vectors | None, k: int, *, unit: str, timed: int, twins: Twins
) -> list[Ranking]:
    pages, retriever = opened(run)
    by_chunk = unit == "chunk"
    if by_chunk and not twins:
        return retriever.retrieve(questions, vectors, k, timed=timed)
    rankings: list[Ranking] = [Ranking([], [])] * len(questions)
    pending, fetch = list(range(len(questions))), k if by_chunk else 4 * k
    n_units = len({twins.get(name, name) for name in (pages if by_chunk else pages.values()) if name is not None})
    while pending:
        some = vectors[pending] if vectors is not None else None
        chunks = retriever.retrieve([questions[number] for number in pending], some, fetch, timed=timed)
        short = []
        for number, ranking in zip(pending, chunks, strict=True):
            latency_ms = ranking.latency_ms if timed else rankings[number].latency_ms
            found = distinct(ranking, twins, k) if by_chunk else by_page(ranking, pages, k, twins)
            rankings[number] = replace(found, latency_ms=latency_ms)
            if len(found.ids) < min(k, n_units) and len(ranking.ids) == fetch:
                short.append(number)
        pending, fetch, timed = short if fetch < len(pages) else [], 4 * fetch, 0
    return rankings


def by_page(ranking: Ranking, pages: dict[str, str | None], k: int, twins: Twins = NO_TWINS) -> Ranking:
    """The k best pages of a ranking of chunks, each where its best chunk stands; of twins the best."""
    named = (pages.get(chunk) or (canonical_url(chunk) if chunk not in pages else None) for chunk in ranking.ids)
    on_pages = [(page, distance) for page, distance in zip(named, ranking.distances, strict=True) if page is not None]
    of_pages = replace(ranking, ids=[page for page, _ in on_pages], distances=[distance for _, distance in on_pages])
    return distinct(of_pages, twins, k)


def distinct(ranking: Ranking, twins: Twins, k: int) -> Ranking:
    """The k best of a ranking without what comes again, itself or as a twin."""
    best: dict[str, int] = {}
    for place, name in enumerate(ranking.ids):
        best.setdefault(twins.get(name, name), place)
    kept = list(best.values())[:k]
    return replace(
        ranking, ids=[ranking.ids[place] for place in kept], distances=[ranking.distances[place] for place in kept]
    )


def _question_vectors(run: Run, questions: Sequence[str]) -> tuple[Vectors | None, dict[int, str]]:
    """The vectors, if the retriever takes any, and why some questions have none."""
    if not retriever_kind(run.resolved["retriever"]).uses_vectors:
        return None, {}
    model, _ = embedders(run.resolved["embedder"], settings())
    vectors, wrong = embed_each(list(questions), model, database())
    return vectors, {number: f"embedder: {why}" for number, why in wrong.items()}


def opened(run: Run) -> tuple[dict[str, str | None], Retriever]:
    """The page of every chunk, and the retriever; made once a process."""
    place = run.id, run.resolved["retriever"]
    with _OPENING:
        if place not in _OPEN:
            for other in [key for key in _OPEN if key[0] != run.id]:
                del _OPEN[other]
            corpus = read_stored_corpus(run)
            kind = retriever_kind(run.resolved["retriever"])
            _OPEN[place] = pages_of(corpus), kind.open(run, corpus)
            if kind.uses_vectors:
                embedders(run.resolved["embedder"], settings())[0].encode([WARM_UP])
        return _OPEN[place]


_OPENING = threading.Lock()
_OPEN: dict[tuple[str, str], tuple[dict[str, str | None], Retriever]] = {}

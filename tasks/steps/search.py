"""Retrieval: index the corpus, and rank chunks or pages for every question."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from prefect import task
from prefect.cache_policies import NO_CACHE

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.retrieval_sets import page_of_document
from yarus.db.source_rows import Corpus
from yarus.db.urls import canonical_url
from yarus.tasks.cases.labels import NO_DUPLICATES, page_by_chunk
from yarus.tasks.cases.outcomes import CaseOutcome, add_outcomes
from yarus.tasks.cases.own_documents import own_documents
from yarus.tasks.cases.table import column_values, optional_column_values, set_columns
from yarus.tasks.cases.vocabulary import Duplicates, Note
from yarus.tasks.config.connections import database
from yarus.tasks.config.parameters import EmbeddingParameters, RetrievalParameters
from yarus.tasks.config.settings import get_settings
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.evaluation.work_folder import read_cases, read_duplicates, read_stored_corpus
from yarus.tasks.models.embedding.cache import check_stored_vectors, embed_texts_with_failures
from yarus.tasks.models.embedding.embedders import get_embedder_pair, resolve_embedder_name
from yarus.tasks.models.embedding.partial_results import Vectors
from yarus.tasks.systems.retrievers.database import PgvectorRetriever
from yarus.tasks.systems.retrievers.dense import DenseRetriever, normalise_vectors
from yarus.tasks.systems.retrievers.protocol import Ranking, Retriever, reuse_rankings
from yarus.tasks.systems.retrievers.registry import get_retriever_kind
from yarus.tasks.systems.user_code import UserFunctions

if TYPE_CHECKING:
    from yarus.tasks.systems.retrievers.reranking import Reranker

TIMED_QUESTIONS = 100
"""Questions of an evaluation, or of each of its strata, that are timed one by one; batches would look faster."""
WARM_UP_TEXT = "?"
"""Embedded before anything is timed: users do not wait for the model to load."""


def retrieve(run: EvaluationRun, cases: pa.Table) -> pa.Table:
    """Add `retrieved`, `distances` and the latencies; a failed retriever makes the case `sut_error`.

    So does an embedder over HTTP that returns no vector for the question.
    """
    questions = column_values(cases, "question")
    timed = -(-TIMED_QUESTIONS // run.n_batches)
    k, unit = run.config.k, run.config.unit
    order, timed = _timed_first(cases, timed)
    own = own_documents(cases)
    ranked = rank_results(
        run,
        [questions[number] for number in order],
        k,
        unit=unit,
        timed=timed,
        twins=read_duplicates(run),
        own=[own[number] for number in order],
    )
    by_number = dict(zip(order, ranked, strict=True))
    rankings = [by_number[number] for number in range(len(questions))]
    has_failed = [ranking.error is not None for ranking in rankings]
    outcomes = [
        CaseOutcome("answered") if ranking.error is None else CaseOutcome("failed", ranking.error)
        for ranking in rankings
    ]
    latencies = [ranking.latency_ms for ranking in rankings]
    return set_columns(
        add_outcomes(cases, outcomes),
        retrieved=[None if failed else ranking.ids for ranking, failed in zip(rankings, has_failed, strict=True)],
        distances=[None if failed else ranking.distances for ranking, failed in zip(rankings, has_failed, strict=True)],
        latency_ms=latencies,
        retrieval_latency_ms=latencies,
    )


def _timed_first(cases: pa.Table, timed: int) -> tuple[list[int], int]:
    """Return the numbers of the cases, those that are timed alone first, and how many these are.

    So many of each stratum are timed, because few cases of a long log are in the stratum that decides the tier.
    """
    names = optional_column_values(cases, "stratum")
    counts: Counter[str | None] = Counter()
    chosen = []
    for number, name in enumerate(names):
        counts[name] += 1
        if counts[name] <= timed:
            chosen.append(number)
    remaining = sorted(set(range(len(cases))).difference(chosen))
    return chosen + remaining, len(chosen)


def rank_results(
    run: EvaluationRun,
    questions: Sequence[str],
    k: int,
    *,
    unit: str,
    timed: int,
    twins: Duplicates = NO_DUPLICATES,
    own: Sequence[str | None] = (),
) -> list[Ranking]:
    """Rank k chunks, or k pages by the best chunk of each; of duplicates only the best counts.

    More chunks are fetched until k results are found. All re-rankers order the chunks of the same retrieval.

    Args:
        run: the evaluation.
        questions: n texts.
        k: how many results to return.
        unit: `chunk` or `page`.
        timed: how many questions are timed alone.
        twins: duplicates that count as one.
        own: the chunk that each question is itself; it is left out, and one more is fetched instead.
    """
    pages, _, reranker = open_retrieval(run)
    shared = run.resources.shared.rankings if run.resources.shared else None
    depth = reranker.depth if reranker else 0
    target = _Target(k, unit, twins, depth)
    if any(own):
        k, depth = k + 1, max(depth, k + 1)
    retrieval_key = (run.config.corpus, run.config.retriever, run.config.embedder_identity, run.config.vectors)
    key = (run.parameters.source, retrieval_key, unit, k, depth, hash(tuple(pages.items())), hash(tuple(twins.items())))
    fetching = _Target(k, unit, twins, depth)

    def fetch(texts: Sequence[str]) -> list[Ranking]:
        return reuse_rankings(shared, key, texts, lambda missing: _fetch_rankings(run, missing, fetching, timed=timed))

    if not depth:
        return fetch(questions)
    if reranker is None:
        chunks = fetch(questions)
    else:
        chunks = reuse_rankings(
            shared, (key, reranker.identity), questions, lambda texts: reranker.rerank(texts, fetch(texts))
        )
    own_removed = map(_remove_own, chunks, own) if any(own) else chunks
    return [_cut(ranking, pages, target) for ranking in own_removed]


class _Target(NamedTuple):
    """Requested content of a ranking."""

    k: int
    unit: str
    twins: Duplicates
    depth: int
    """Least number of chunks in a ranking that is cut later, because they are re-ranked or the question itself is
    removed; 0 otherwise."""


def _fetch_rankings(run: EvaluationRun, questions: Sequence[str], target: _Target, *, timed: int) -> list[Ranking]:
    """Return the rankings; a question that could not be embedded has an error instead."""
    vectors, errors = _question_vectors(run, questions)
    rankings = [Ranking([], [], error=errors.get(number)) for number in range(len(questions))]
    embedded = [number for number in range(len(questions)) if number not in errors]
    if embedded:
        embedded_vectors = vectors[embedded] if vectors is not None else None
        ranked = _retrieve(run, [questions[number] for number in embedded], embedded_vectors, target, timed=timed)
        for number, ranking in zip(embedded, ranked, strict=True):
            rankings[number] = ranking
    return rankings


def _retrieve(
    run: EvaluationRun, questions: Sequence[str], vectors: Vectors | None, target: _Target, *, timed: int
) -> list[Ranking]:
    """Return the retriever's rankings; if they are re-ranked later, of all fetched chunks."""
    pages, retriever, _ = open_retrieval(run)
    k, unit, twins, depth = target
    by_chunk = unit == "chunk"
    if by_chunk and not twins:
        return retriever.retrieve(questions, vectors, max(k, depth), timed=timed)
    rankings: list[Ranking] = [Ranking([], [])] * len(questions)
    pending, fetch = list(range(len(questions))), max(k if by_chunk else 4 * k, depth)
    n_units = len({twins.get(name, name) for name in (pages if by_chunk else pages.values()) if name is not None})
    while pending:
        pending_vectors = vectors[pending] if vectors is not None else None
        chunks = retriever.retrieve([questions[number] for number in pending], pending_vectors, fetch, timed=timed)
        too_short = []
        for number, ranking in zip(pending, chunks, strict=True):
            latency_ms = ranking.latency_ms if timed else rankings[number].latency_ms
            cut = _cut(ranking, pages, target)
            rankings[number] = replace(ranking if depth else cut, latency_ms=latency_ms)
            if len(cut.ids) < min(k, n_units) and len(ranking.ids) == fetch:
                too_short.append(number)
        pending, fetch, timed = too_short if fetch < len(pages) else [], 4 * fetch, 0
    return rankings


def _cut(ranking: Ranking, pages: dict[str, str | None], target: _Target) -> Ranking:
    """Cut a ranking of chunks to the best results of the requested unit and number."""
    if target.unit == "chunk":
        return keep_distinct(ranking, target.twins, target.k)
    return rank_pages(ranking, pages, target.k, target.twins)


def _remove_own(ranking: Ranking, own: str | None) -> Ranking:
    """Remove the document that the question is itself, named by its chunk or its page."""
    if own is None:
        return ranking
    itself = (own, page_of_document(own))
    kept = [rank for rank, name in enumerate(ranking.ids) if name not in itself]
    return replace(
        ranking, ids=[ranking.ids[rank] for rank in kept], distances=[ranking.distances[rank] for rank in kept]
    )


def rank_pages(ranking: Ranking, pages: dict[str, str | None], k: int, twins: Duplicates = NO_DUPLICATES) -> Ranking:
    """Return the k best pages of a ranking of chunks, each at the rank of its best chunk; of duplicates the best."""
    chunk_pages = (pages.get(chunk) or (canonical_url(chunk) if chunk not in pages else None) for chunk in ranking.ids)
    hits = [(page, distance) for page, distance in zip(chunk_pages, ranking.distances, strict=True) if page is not None]
    page_ranking = replace(ranking, ids=[page for page, _ in hits], distances=[distance for _, distance in hits])
    return keep_distinct(page_ranking, twins, k)


def keep_distinct(ranking: Ranking, twins: Duplicates, k: int) -> Ranking:
    """Return the k best of a ranking, without repetitions and duplicates."""
    best: dict[str, int] = {}
    for rank, name in enumerate(ranking.ids):
        best.setdefault(twins.get(name, name), rank)
    kept = list(best.values())[:k]
    return replace(
        ranking, ids=[ranking.ids[rank] for rank in kept], distances=[ranking.distances[rank] for rank in kept]
    )


def _question_vectors(run: EvaluationRun, questions: Sequence[str]) -> tuple[Vectors | None, dict[int, str]]:
    """Return the vectors, if the retriever uses any, and the errors of questions without one."""
    if not get_retriever_kind(run.config.retriever).uses_vectors:
        return None, {}
    model, _ = get_embedder_pair(run.config.embedder, get_settings())
    vectors, errors = embed_texts_with_failures(list(questions), model, database())
    return vectors, {number: f"embedder: {error}" for number, error in errors.items()}


OpenedRetrieval = tuple[dict[str, str | None], Retriever, "Reranker | None"]


def open_retrieval(run: EvaluationRun) -> OpenedRetrieval:
    """Return the page of every chunk, the retriever, and its re-ranker; made once."""

    def make() -> OpenedRetrieval:
        corpus = read_stored_corpus(run)
        kind = get_retriever_kind(run.config.retriever)
        parts = page_by_chunk(corpus), kind.open(run, corpus), _open_reranker(run, corpus)
        if kind.uses_vectors:
            get_embedder_pair(run.config.embedder, get_settings())[0].encode([WARM_UP_TEXT])
        return parts

    return run.resources.open_once(("retriever", run.config.retriever), make)


def _open_reranker(run: EvaluationRun, corpus: Corpus) -> "Reranker | None":
    if (name := run.config.reranker) is None:
        return None
    from yarus.tasks.systems.retrievers.reranking import open_reranker  # imports aiohttp, which searching does not need

    texts = dict(zip(corpus.ids, corpus.texts, strict=True))
    return open_reranker(name, texts, run.config.rerank_depth, run.resources.get(UserFunctions))


E = TypeVar("E", bound=EmbeddingParameters)
R = TypeVar("R", bound=RetrievalParameters)
ROUNDING = 1e-6
"""Tolerance above the rounding of pgvector's float32 distances."""


@task(task_run_name="index {run.parameters.source}", cache_policy=NO_CACHE)
async def index(run: EvaluationRun[R]) -> EvaluationRun[R]:
    """Index the corpus, and record the configuration; an external system searches by itself.

    Raises:
        InputError: the source's vectors do not belong to the embedder.
    """
    return await asyncio.to_thread(_index, run) if (run.config.sut or "local") == "local" else run


def _index(run: EvaluationRun[R]) -> EvaluationRun[R]:
    retrievers = [run.config.retriever, *(run.config.pool or ())]
    if any(get_retriever_kind(name).uses_vectors for name in retrievers):
        run = choose_vectors(run, read_stored_corpus(run))
    retriever, reranker = open_retrieval(run)[1:]
    if reranker is not None:
        _require_same_identity(run, run.config.reranker_identity, reranker.identity)
        run = replace(run, config=run.config | EvaluationConfig(reranker_identity=reranker.identity))
    if isinstance(retriever, PgvectorRetriever) and run.config.vectors == "stored":
        recall = _index_recall(run, retriever)
        if recall is not None:
            run = replace(run, config=run.config | EvaluationConfig(index_recall=recall))
            run = add_notes(run, [{"note": "index recall", "value": recall}])
    journal.update_evaluation(database(), run.id, resolved=run.config.stored())
    return run


def _require_same_identity(run: EvaluationRun, recorded: str | None, identity: str) -> None:
    if recorded not in (None, identity):
        raise InputError(
            "evaluation {evaluation} was started with {begun}, but it is now {identity}; restore the setting or start "
            "a new evaluation",
            evaluation=run.id,
            begun=recorded,
            identity=identity,
        )


def choose_vectors(run: EvaluationRun[E], corpus: Corpus) -> EvaluationRun[E]:
    """Choose the source's vectors or the embedder's, and record the choice.

    Raises:
        InputError: the source's vectors do not belong to the embedder, or are missing though requested.
    """
    configuration = get_settings()
    name = run.config.embedder or run.parameters.embedder or configuration.embedder
    name = resolve_embedder_name(name, configuration)
    questions, chunks = get_embedder_pair(name, configuration)
    _require_same_identity(run, run.config.embedder_identity, questions.identity)
    uses_stored = corpus.vectors is not None or run.parameters.vectors == "stored"
    notes = check_stored_vectors(corpus, chunks, run.parameters.source) if uses_stored else []
    config = run.config | EvaluationConfig(
        embedder=name, embedder_identity=questions.identity, vectors="stored" if uses_stored else "computed"
    )
    return add_notes(replace(run, config=config), notes)


def add_notes(run: EvaluationRun[E], notes: Sequence[Note]) -> EvaluationRun[E]:
    """Add these notes to the evaluation, each kind once: a resumed one has some already."""
    new_kinds = {note["note"] for note in notes}
    earlier = [note for note in run.config.notes if note["note"] not in new_kinds]
    return replace(run, config=run.config | EvaluationConfig(notes=[*earlier, *notes]))


def _index_recall(run: EvaluationRun, retriever: Retriever) -> float | None:
    """Return the share of the k nearest chunks that production's index finds; ties count as found."""
    texts = read_cases(run).slice(0, TIMED_QUESTIONS)["question"].to_pylist()
    corpus = read_stored_corpus(run)
    model, _ = get_embedder_pair(run.config.embedder, get_settings())
    vectors, errors = embed_texts_with_failures(texts, model, database())
    vectors = np.delete(vectors, list(errors), axis=0)
    texts = [text for number, text in enumerate(texts) if number not in errors]
    if corpus.vectors is None:
        raise ValueError("an index over stored vectors needs stored vectors")
    k = run.config.k
    exact = DenseRetriever(corpus.ids, normalise_vectors(corpus.vectors), model).retrieve(texts, vectors, k, timed=0)
    approximate = retriever.retrieve(texts, vectors, k, timed=0)
    shares = [
        sum(distance <= nearest.distances[-1] + ROUNDING for distance in ranking.distances) / len(nearest.ids)
        for ranking, nearest in zip(approximate, exact, strict=True)
        if nearest.ids
    ]
    return sum(shares) / len(shares) if shares else None

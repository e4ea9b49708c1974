"""Retrieval: the corpus made searchable, and a ranking of chunks or pages for every question."""

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
from yarus.tasks.cases.labels import NO_TWINS, pages_of
from yarus.tasks.cases.outcomes import Done, with_outcomes
from yarus.tasks.cases.own_documents import own_of
from yarus.tasks.cases.table import values_if_any, values_of, with_columns
from yarus.tasks.cases.vocabulary import Note, Twins
from yarus.tasks.config.connections import database
from yarus.tasks.config.parameters import Embedding, Retrieval
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.work_folder import read_cases, read_stored_corpus, read_twins
from yarus.tasks.models.embedding.cache import check_stored, embed_each
from yarus.tasks.models.embedding.embedders import embedders, full_name
from yarus.tasks.models.embedding.parts import Vectors
from yarus.tasks.systems.retrievers.database import Pgvector
from yarus.tasks.systems.retrievers.dense import Dense, unit_vectors
from yarus.tasks.systems.retrievers.protocol import Ranking, Retriever, reuse_rankings
from yarus.tasks.systems.retrievers.registry import retriever_kind
from yarus.tasks.systems.user_code import UserCodes

if TYPE_CHECKING:
    from yarus.tasks.systems.retrievers.reranking import Reranker

TIMED = 100
"""Questions of an evaluation, or of each of its strata, that are timed alone, where a batch is faster than these."""
WARM_UP = "?"
"""Embedded before anything is timed: loading the model is no part of what a user waits for."""


def retrieve(run: Run, cases: pa.Table) -> pa.Table:
    """Adds `retrieved`, `distances` and the latencies; a retriever that fails makes the case `sut_error`.

    So does an embedder over HTTP that has no vector for the question.
    """
    questions = values_of(cases, "question")
    timed = -(-TIMED // run.n_batches)
    k, unit = run.config.k, run.config.unit
    order, timed = _timed_first(cases, timed)
    own = own_of(cases)
    ranked = rank(
        run,
        [questions[number] for number in order],
        k,
        unit=unit,
        timed=timed,
        twins=read_twins(run),
        own=[own[number] for number in order],
    )
    by_number = dict(zip(order, ranked, strict=True))
    rankings = [by_number[number] for number in range(len(questions))]
    failed = [ranking.error is not None for ranking in rankings]
    done = [Done("answered") if ranking.error is None else Done("failed", ranking.error) for ranking in rankings]
    latencies = [ranking.latency_ms for ranking in rankings]
    return with_columns(
        with_outcomes(cases, done),
        retrieved=[None if fail else ranking.ids for ranking, fail in zip(rankings, failed, strict=True)],
        distances=[None if fail else ranking.distances for ranking, fail in zip(rankings, failed, strict=True)],
        latency_ms=latencies,
        retrieval_latency_ms=latencies,
    )


def _timed_first(cases: pa.Table, timed: int) -> tuple[list[int], int]:
    """The numbers of the cases, first those that are timed alone, and how many these are: so many of each stratum.

    Of a long log few are of the stratum that users confirmed, and by that the tier is judged.
    """
    names = values_if_any(cases, "stratum")
    of_stratum: Counter[str | None] = Counter()
    chosen = []
    for number, name in enumerate(names):
        of_stratum[name] += 1
        if of_stratum[name] <= timed:
            chosen.append(number)
    others = sorted(set(range(len(cases))).difference(chosen))
    return chosen + others, len(chosen)


def rank(
    run: Run,
    questions: Sequence[str],
    k: int,
    *,
    unit: str,
    timed: int,
    twins: Twins = NO_TWINS,
    own: Sequence[str | None] = (),
) -> list[Ranking]:
    """Rankings of k chunks, or of k pages by the best chunk of each; of twins only the best.

    More chunks are fetched until so many are found. Re-rankers order the chunks of one and the same retrieval.

    Args:
        run: the evaluation.
        questions: n texts.
        k: how many are wanted.
        unit: `chunk` or `page`.
        timed: how many questions are timed alone.
        twins: what counts as one.
        own: of each question, the chunk that it is itself, which is left out; one more is fetched in its place.
    """
    pages, _, reranker = opened(run)
    known = run.resources.shared.rankings if run.resources.shared else None
    depth = reranker.depth if reranker else 0
    wanted = _Wanted(k, unit, twins, depth)
    if any(own):
        k, depth = k + 1, max(depth, k + 1)
    named = (run.config.corpus, run.config.retriever, run.config.embedder_identity, run.config.vectors)
    place = (run.parameters.source, named, unit, k, depth, hash(tuple(pages.items())), hash(tuple(twins.items())))
    fetching = _Wanted(k, unit, twins, depth)

    def fetched(some: Sequence[str]) -> list[Ranking]:
        return reuse_rankings(known, place, some, lambda missing: _fetched(run, missing, fetching, timed=timed))

    if not depth:
        return fetched(questions)
    if reranker is None:
        chunks = fetched(questions)
    else:
        chunks = reuse_rankings(
            known, (place, reranker.identity), questions, lambda some: reranker.rerank(some, fetched(some))
        )
    others = map(_without, chunks, own) if any(own) else chunks
    return [_cut(ranking, pages, wanted) for ranking in others]


class _Wanted(NamedTuple):
    """What a ranking is to hold."""

    k: int
    unit: str
    twins: Twins
    depth: int
    """Least number of chunks of a ranking that is cut later, because they will be ordered anew or the question itself
    leaves it; 0 where that is not so."""


def _fetched(run: Run, questions: Sequence[str], wanted: _Wanted, *, timed: int) -> list[Ranking]:
    """The rankings; a question that could not be embedded has an error instead."""
    vectors, wrong = _question_vectors(run, questions)
    found = [Ranking([], [], error=wrong.get(number)) for number in range(len(questions))]
    fine = [number for number in range(len(questions)) if number not in wrong]
    if fine:
        some = vectors[fine] if vectors is not None else None
        ranked = _ranked(run, [questions[number] for number in fine], some, wanted, timed=timed)
        for number, ranking in zip(fine, ranked, strict=True):
            found[number] = ranking
    return found


def _ranked(
    run: Run, questions: Sequence[str], vectors: Vectors | None, wanted: _Wanted, *, timed: int
) -> list[Ranking]:
    """The retriever's rankings; where they will be ordered anew, of all chunks that were fetched."""
    pages, retriever, _ = opened(run)
    k, unit, twins, depth = wanted
    by_chunk = unit == "chunk"
    if by_chunk and not twins:
        return retriever.retrieve(questions, vectors, max(k, depth), timed=timed)
    rankings: list[Ranking] = [Ranking([], [])] * len(questions)
    pending, fetch = list(range(len(questions))), max(k if by_chunk else 4 * k, depth)
    n_units = len({twins.get(name, name) for name in (pages if by_chunk else pages.values()) if name is not None})
    while pending:
        some = vectors[pending] if vectors is not None else None
        chunks = retriever.retrieve([questions[number] for number in pending], some, fetch, timed=timed)
        short = []
        for number, ranking in zip(pending, chunks, strict=True):
            latency_ms = ranking.latency_ms if timed else rankings[number].latency_ms
            found = _cut(ranking, pages, wanted)
            rankings[number] = replace(ranking if depth else found, latency_ms=latency_ms)
            if len(found.ids) < min(k, n_units) and len(ranking.ids) == fetch:
                short.append(number)
        pending, fetch, timed = short if fetch < len(pages) else [], 4 * fetch, 0
    return rankings


def _cut(ranking: Ranking, pages: dict[str, str | None], wanted: _Wanted) -> Ranking:
    """The best of a ranking of chunks, of the unit and as many as are wanted."""
    if wanted.unit == "chunk":
        return distinct(ranking, wanted.twins, wanted.k)
    return by_page(ranking, pages, wanted.k, wanted.twins)


def _without(ranking: Ranking, own: str | None) -> Ranking:
    """The ranking without the document that the question is itself, named by its chunk or its page."""
    if own is None:
        return ranking
    itself = (own, page_of_document(own))
    kept = [place for place, name in enumerate(ranking.ids) if name not in itself]
    return replace(
        ranking, ids=[ranking.ids[place] for place in kept], distances=[ranking.distances[place] for place in kept]
    )


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
    if not retriever_kind(run.config.retriever).uses_vectors:
        return None, {}
    model, _ = embedders(run.config.embedder, settings())
    vectors, wrong = embed_each(list(questions), model, database())
    return vectors, {number: f"embedder: {why}" for number, why in wrong.items()}


Opened = tuple[dict[str, str | None], Retriever, "Reranker | None"]


def opened(run: Run) -> Opened:
    """The page of every chunk, the retriever, and what orders its rankings anew; made once."""

    def made() -> Opened:
        corpus = read_stored_corpus(run)
        kind = retriever_kind(run.config.retriever)
        found = pages_of(corpus), kind.open(run, corpus), _reranker(run, corpus)
        if kind.uses_vectors:
            embedders(run.config.embedder, settings())[0].encode([WARM_UP])
        return found

    return run.resources.open_once(("retriever", run.config.retriever), made)


def _reranker(run: Run, corpus: Corpus) -> "Reranker | None":
    if (name := run.config.reranker) is None:
        return None
    from yarus.tasks.systems.retrievers.reranking import open_reranker  # aiohttp, which no search of ours needs

    texts = dict(zip(corpus.ids, corpus.texts, strict=True))
    return open_reranker(name, texts, run.config.rerank_depth, run.resources.get(UserCodes))


E = TypeVar("E", bound=Embedding)
R = TypeVar("R", bound=Retrieval)
ROUNDING = 1e-6
"""Above what pgvector's float32 distances and ours can differ by."""


@task(task_run_name="index {run.parameters.source}", cache_policy=NO_CACHE)
async def index(run: Run[R]) -> Run[R]:
    """Makes the corpus searchable, and writes down by what; a system that is not ours searches by itself.

    Raises:
        InputError: the source's vectors are not the embedder's.
    """
    return await asyncio.to_thread(_index, run) if (run.config.sut or "local") == "local" else run


def _index(run: Run[R]) -> Run[R]:
    named = [run.config.retriever, *(run.config.pool or ())]
    if any(retriever_kind(name).uses_vectors for name in named):
        run = choose_vectors(run, read_stored_corpus(run))
    retriever, reranker = opened(run)[1:]
    if reranker is not None:
        _refuse_another(run, run.config.reranker_identity, reranker.identity)
        run = replace(run, config=run.config | EvaluationConfig(reranker_identity=reranker.identity))
    if isinstance(retriever, Pgvector) and run.config.vectors == "stored":
        recall = _index_recall(run, retriever)
        if recall is not None:
            run = replace(run, config=run.config | EvaluationConfig(index_recall=recall))
            run = with_notes(run, [{"note": "index recall", "value": recall}])
    journal.describe(database(), run.id, resolved=run.config.stored())
    return run


def _refuse_another(run: Run, begun: str | None, identity: str) -> None:
    if begun not in (None, identity):
        raise InputError(
            "evaluation {evaluation} was begun with {begun}, now it would go on with {identity}",
            evaluation=run.id,
            begun=begun,
            identity=identity,
        )


def choose_vectors(run: Run[E], corpus: Corpus) -> Run[E]:
    """Decides whose vectors are used, the source's or the embedder's, and writes it down.

    Raises:
        InputError: the source's are not the embedder's, or there are none where they were asked for.
    """
    configuration = settings()
    name = run.config.embedder or run.parameters.embedder or configuration.embedder
    name = full_name(name, configuration)
    questions, chunks = embedders(name, configuration)
    _refuse_another(run, run.config.embedder_identity, questions.identity)
    stored = corpus.vectors is not None or run.parameters.vectors == "stored"
    notes = check_stored(corpus, chunks, run.parameters.source) if stored else []
    config = run.config | EvaluationConfig(
        embedder=name, embedder_identity=questions.identity, vectors="stored" if stored else "computed"
    )
    return with_notes(replace(run, config=config), notes)


def with_notes(run: Run[E], notes: Sequence[Note]) -> Run[E]:
    """The evaluation with these notes, each kind once: a resumed one has some already."""
    fresh = {note["note"] for note in notes}
    known = [note for note in run.config.notes if note["note"] not in fresh]
    return replace(run, config=run.config | EvaluationConfig(notes=[*known, *notes]))


def _index_recall(run: Run, retriever: Retriever) -> float | None:
    """Share of the k nearest chunks that production's index finds; of equally near ones any will do."""
    questions = read_cases(run).slice(0, TIMED)["question"].to_pylist()
    corpus = read_stored_corpus(run)
    model, _ = embedders(run.config.embedder, settings())
    vectors, wrong = embed_each(questions, model, database())
    vectors = np.delete(vectors, list(wrong), axis=0)
    questions = [question for number, question in enumerate(questions) if number not in wrong]
    if corpus.vectors is None:
        raise ValueError("an index over stored vectors needs stored vectors")
    k = run.config.k
    exact = Dense(corpus.ids, unit_vectors(corpus.vectors), model).retrieve(questions, vectors, k, timed=0)
    found = retriever.retrieve(questions, vectors, k, timed=0)
    shares = [
        sum(distance <= nearest.distances[-1] + ROUNDING for distance in ranking.distances) / len(nearest.ids)
        for ranking, nearest in zip(found, exact, strict=True)
        if nearest.ids
    ]
    return sum(shares) / len(shares) if shares else None

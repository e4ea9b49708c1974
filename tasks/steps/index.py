"""Makes the corpus searchable, and checks vectors that are stored with it."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.source_rows import Corpus
from yarus.tasks.cases.vocabulary import Note
from yarus.tasks.config.connections import database
from yarus.tasks.config.parameters import Embedding, Retrieval
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation.resolved import Resolved
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.work_folder import read_cases, read_stored_corpus
from yarus.tasks.models.embedders import embedders, full_name
from yarus.tasks.models.embedding_cache import check_stored, embed_each
from yarus.tasks.retrievers.dense import Dense, unit_vectors
from yarus.tasks.retrievers.pgvector import Pgvector
from yarus.tasks.retrievers.protocol import Retriever
from yarus.tasks.retrievers.registry import retriever_kind
from yarus.tasks.steps.retrieve import TIMED, opened

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
    return await asyncio.to_thread(_index, run) if run.resolved.get("sut", "local") == "local" else run


def _index(run: Run[R]) -> Run[R]:
    named = [run.resolved["retriever"], *run.resolved.get("pool", ())]
    if any(retriever_kind(name).uses_vectors for name in named):
        run = choose_vectors(run, read_stored_corpus(run))
    retriever, reranker = opened(run)[1:]
    if reranker is not None:
        begun = run.resolved.get("reranker_identity", reranker.identity)
        if begun != reranker.identity:
            raise InputError(
                "evaluation {evaluation} was begun with {begun}, now it would go on with {identity}",
                evaluation=run.id,
                begun=begun,
                identity=reranker.identity,
            )
        run = replace(run, resolved=run.resolved | {"reranker_identity": reranker.identity})
    if isinstance(retriever, Pgvector) and run.resolved["vectors"] == "stored":
        recall = _index_recall(run, retriever)
        run = replace(run, resolved=run.resolved | {"index_recall": recall})
        run = with_notes(run, [{"note": "index recall", "value": recall}] if recall is not None else [])
    journal.describe(database(), run.id, resolved=run.resolved)
    return run


def choose_vectors(run: Run[E], corpus: Corpus) -> Run[E]:
    """Decides whose vectors are used, the source's or the embedder's, and writes it down.

    Raises:
        InputError: the source's are not the embedder's, or there are none where they were asked for.
    """
    configuration = settings()
    name = run.resolved.get("embedder") or run.parameters.embedder or configuration.embedder
    name = full_name(name, configuration)
    questions, chunks = embedders(name, configuration)
    begun = run.resolved.get("embedder_identity", questions.identity)
    if begun != questions.identity:
        raise InputError(
            "evaluation {evaluation} was begun with {begun}, now it would go on with {identity}",
            evaluation=run.id,
            begun=begun,
            identity=questions.identity,
        )
    stored = corpus.vectors is not None or run.parameters.vectors == "stored"
    notes = check_stored(corpus, chunks, run.parameters.source) if stored else []
    resolved: Resolved = {
        "embedder": name,
        "embedder_identity": questions.identity,
        "vectors": "stored" if stored else "computed",
    }
    return with_notes(replace(run, resolved=run.resolved | resolved), notes)


def with_notes(run: Run[E], notes: Sequence[Note]) -> Run[E]:
    """The evaluation with these notes, each kind once: a resumed one has some already."""
    fresh = {note["note"] for note in notes}
    known = [note for note in run.resolved["notes"] if note["note"] not in fresh]
    return replace(run, resolved=run.resolved | {"notes": [*known, *notes]})


def _index_recall(run: Run, retriever: Retriever) -> float | None:
    """Share of the k nearest chunks that production's index finds; of equally near ones any will do."""
    questions = read_cases(run).slice(0, TIMED)["question"].to_pylist()
    corpus = read_stored_corpus(run)
    model, _ = embedders(run.resolved["embedder"], settings())
    vectors, wrong = embed_each(questions, model, database())
    vectors = np.delete(vectors, list(wrong), axis=0)
    questions = [question for number, question in enumerate(questions) if number not in wrong]
    if corpus.vectors is None:
        raise ValueError("an index over stored vectors needs stored vectors")
    k = run.resolved["k"]
    exact = Dense(corpus.ids, unit_vectors(corpus.vectors), model).retrieve(questions, vectors, k, timed=0)
    found = retriever.retrieve(questions, vectors, k, timed=0)
    shares = [
        sum(distance <= nearest.distances[-1] + ROUNDING for distance in ranking.distances) / len(nearest.ids)
        for ranking, nearest in zip(found, exact, strict=True)
        if nearest.ids
    ]
    return sum(shares) / len(shares) if shares else None

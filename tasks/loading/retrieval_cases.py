"""The first step: questions with their labels, and the corpus, from one snapshot of the source."""

import asyncio
import logging
from collections import Counter
from typing import TypeVar

import pyarrow as pa
from prefect import task
from prefect.cache_policies import NO_CACHE

from yarus.db.errors import InputError
from yarus.db.source_rows import Corpus
from yarus.db.words import Words
from yarus.tasks.cases.labels import annotated_cases, labels_of, logged_cases, pages_of
from yarus.tasks.cases.perturbations import perturbed
from yarus.tasks.cases.ranked.own_documents import with_own_documents
from yarus.tasks.cases.ranked.pools import fillable
from yarus.tasks.cases.sampling import merged, page_and_stratum, topics
from yarus.tasks.cases.table import table
from yarus.tasks.cases.vocabulary import Note
from yarus.tasks.config.connections import connection_lost
from yarus.tasks.config.parameters import Fillable, RealUsers, Retrieval, Tier0, Tier1
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation.identity import filled_by, reranker_of
from yarus.tasks.evaluation.resolved import Resolved
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.work_folder import batch_size, keep_loaded, loaded
from yarus.tasks.loading.source import (
    pooled,
    read_source,
    reranked,
    sample,
    sample_of_questions,
    twins_for,
    unchanged,
    wants_vectors,
)
from yarus.tasks.retrievers.registry import RETRIEVERS

F = TypeVar("F", bound=Fillable)
CLUSTER_NOTES = {
    "chunks": ("chunks without clusters", "chunks alone in clusters"),
    "questions": ("questions without clusters", "questions alone in clusters"),
}
"""Where no text has a cluster, and where none shares its own."""
log = logging.getLogger("yarus")


@task(
    task_run_name="load {run.parameters.source}",
    cache_policy=NO_CACHE,
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=connection_lost,
)
async def load(run: Run[Tier1]) -> Run[Tier1]:
    """Tier 1's cases and the corpus; a resumed evaluation keeps those that it began with.

    Raises:
        InputError: the source has no questions or no chunks, or what it needs is missing there.
    """
    return await asyncio.to_thread(_load, run)


@task(
    task_run_name="load_log {run.parameters.source}",
    cache_policy=NO_CACHE,
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=connection_lost,
)
async def load_log(run: Run[RealUsers]) -> Run[RealUsers]:
    """The real users' cases and the corpus; errors as `load`."""
    return await asyncio.to_thread(_load_log, run)


@task(
    task_run_name="load_texts {run.parameters.source}",
    cache_policy=NO_CACHE,
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=connection_lost,
)
async def load_texts(run: Run[Tier0]) -> Run[Tier0]:
    """Tier 0's cases: chunks by page, or questions by topic; errors as `load`."""
    return await asyncio.to_thread(_load_texts, run)


def _load(run: Run[Tier1]) -> Run[Tier1]:
    if loaded(run):
        return _unchanged(run)
    where, questions, corpus = read_source(run, vectors=wants_vectors(run))
    asked = run.parameters.unit
    labelled = labels_of(questions)
    unit = labelled.unit if asked == "auto" else asked
    kept = sample_of_questions(run, questions)
    twins, about = twins_for(run, corpus, unit)
    cases, notes = annotated_cases(where.name, [questions[number] for number in kept], corpus, unit, twins)
    cases, own = with_own_documents(cases, [questions[number] for number in kept], corpus)
    resolved: Resolved = {"unit": unit, **_retrieval(run, cases)}
    resolved |= {"own_documents": "left out"} if own else {}
    if run.parameters.labels == "filled":
        resolved |= _filled(run, where.language, resolved["retriever"])
        cases = fillable(cases, [questions[number].get("answerable") for number in kept])
    return keep_loaded(run, where, cases, corpus, labelled.note(unit) + notes + own + about, resolved, twins=twins)


def _load_log(run: Run[RealUsers]) -> Run[RealUsers]:
    if loaded(run):
        return _unchanged(run)
    where, questions, corpus = read_source(run, vectors=wants_vectors(run))
    groups = merged(questions)
    kept = sample(run, (rows[0]["question_id"] for rows in groups), map(page_and_stratum, groups))
    twins, about = twins_for(run, corpus, "page")
    cases, notes = logged_cases(where.name, [groups[number] for number in kept], corpus, twins)
    resolved: Resolved = {"unit": "page", **_retrieval(run, cases)}
    if run.parameters.labels == "filled":
        resolved |= _filled(run, where.language, resolved["retriever"])
        cases = fillable(cases, [groups[number][0].get("answerable") for number in kept])
    return keep_loaded(run, where, cases, corpus, notes + about, resolved, twins=twins)


def _load_texts(run: Run[Tier0]) -> Run[Tier0]:
    if loaded(run):
        return run
    parameters = run.parameters
    chunks = parameters.texts == "chunks"
    if not chunks and parameters.vectors == "stored":
        raise InputError("tier0: the vectors of questions are always computed; leave out --vectors stored")
    vectors = chunks and parameters.vectors != "computed"
    where, questions, corpus = read_source(run, vectors=vectors, questions=not chunks, chunks=chunks)
    notes: list[Note] = []
    if chunks:
        ids, texts, clusters = corpus.ids, corpus.texts, list(pages_of(corpus).values())
    else:
        ids = [question["question_id"] for question in questions]
        texts = [question["question"] for question in questions]
        clusters, notes = topics(questions)
    lacking = Words("the passage names no page") if chunks else Words("the question has no topic and no page")
    cases = table(
        case_id=[f"{where.name}:{parameters.texts}:{text_id}" for text_id in ids],
        question_id=[None if chunks else text_id for text_id in ids],
        question=[None if chunks else text for text in texts],
        status=["ok" if cluster is not None else "unlabelled" for cluster in clusters],
        reason=[None if cluster is not None else lacking for cluster in clusters],
        group=clusters,
        text=texts,
        cluster=clusters,
    )
    kept = sample(run, ids, map(str, clusters))
    cases = cases.take(kept)
    notes += _cluster_notes(cases, parameters.texts)
    if chunks:  # the corpus and its vectors are then what is measured, row by row
        corpus = Corpus(
            ids=[corpus.ids[row] for row in kept],
            urls=[corpus.urls[row] for row in kept],
            texts=[corpus.texts[row] for row in kept],
            vectors=corpus.vectors[kept] if corpus.vectors is not None else None,
        )
    resolved: Resolved = {"batch_size": len(cases), "texts": parameters.texts, "distance": parameters.distance}
    return keep_loaded(run, where, cases, corpus, notes, resolved)


def _cluster_notes(cases: pa.Table, texts: str) -> list[Note]:
    """Why most metrics of clusters will have no value, if no text has a cluster or none shares its own."""
    without, alone = CLUSTER_NOTES[texts]
    sizes = Counter(cluster for cluster in cases["cluster"].to_pylist() if cluster is not None)
    if not sizes:
        return [{"note": without, "n": len(cases)}]
    return [{"note": alone, "n": len(sizes)}] if max(sizes.values()) == 1 else []


def _filled(run: Run[Fillable], language: str, retriever: str) -> Resolved:
    """Who fills the labels up, and in whose results."""
    pool = sorted({retriever, *pooled(run.parameters)})
    found: Resolved = {"labels": "filled", "pool": pool, "gain": "binary"}
    found["judge"] = filled_by(run.parameters, language)
    if name := reranker_of(run.parameters):
        found["pool_reranked"] = f"{name}@{run.parameters.rerank_depth}"
    return found


def _unchanged(run: Run[F]) -> Run[F]:
    if run.parameters.labels != "filled":
        return run
    return unchanged(run, judge=filled_by(run.parameters, run.resolved["language"]))


def _retrieval(run: Run[Retrieval], cases: pa.Table) -> Resolved:
    parameters, graded = run.parameters, cases["grades"].null_count < len(cases)
    resolved: Resolved = {
        "retriever": parameters.retriever or settings().retriever,
        "twins": "one" if parameters.twins else "apart",
        "k": parameters.k,
        "gain": "linear" if graded else "binary",
        **reranked(parameters),
    }
    if (
        resolved["retriever"] in RETRIEVERS and "reranker" not in resolved
    ):  # our own rank hundreds in the time that Prefect takes for a task run
        resolved["batch_size"] = max(batch_size(len(cases)), min(500, len(cases) // 10))
    if perturbation := perturbed(parameters):
        resolved["perturbation"] = perturbation
    return resolved

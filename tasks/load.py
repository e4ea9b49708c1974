"""The first step: questions with their labels, and the corpus, from one snapshot of the source."""

import asyncio
import hashlib
import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from prefect import task
from prefect.cache_policies import NO_CACHE

from db import journal
from db.errors import InputError
from db.sources import Corpus, Source, read_corpus, read_questions, registered, snapshot
from tasks.again import MARKS
from tasks.cases import declared, table
from tasks.connect import database, source
from tasks.dataset.freeze import frozen, frozen_questions
from tasks.files import parquet
from tasks.labels import (
    Note,
    Row,
    annotated_cases,
    default_unit,
    logged_cases,
    merged,
    page_and_stratum,
    pages_of,
    sampled,
    topic_and_score,
    topics,
)
from tasks.parameters import Tier0, Tier1
from tasks.perturb import perturbed
from tasks.retrievers import retriever_kind
from tasks.run import Run
from tasks.settings import settings

log = logging.getLogger("yarus")


@task(task_run_name="load {run.parameters.source}", cache_policy=NO_CACHE)
async def load(run: Run) -> Run:
    """Tier 1's cases and the corpus; a resumed evaluation keeps those that it began with.

    Raises:
        InputError: the source has no questions or no chunks, or what it needs is missing there.
    """
    return await asyncio.to_thread(_load, run)


@task(task_run_name="load the log of {run.parameters.source}", cache_policy=NO_CACHE)
async def load_log(run: Run) -> Run:
    """The real users' cases and the corpus; errors as `load`."""
    return await asyncio.to_thread(_load_log, run)


@task(task_run_name="load the texts of {run.parameters.source}", cache_policy=NO_CACHE)
async def load_texts(run: Run) -> Run:
    """Tier 0's cases: chunks by page, or questions by topic; errors as `load`."""
    return await asyncio.to_thread(_load_texts, run)


def case_set_hash(*tables: pa.Table) -> str:
    """SHA-256 of the questions and their labels, whatever their order: equal for equal content.

    Args:
        tables: the cases, and what else they are measured against.
    """
    lines = sorted(digest for cases in tables for digest in _digests(cases))
    return hashlib.sha256(b"".join(lines)).hexdigest()


def _digests(cases: pa.Table) -> Iterator[bytes]:
    content: tuple[str, ...] = (
        "case_id",
        "question",
        "text",
        "labelled",
        "cluster",
        "stratum",
        "reference",
        "answerable",
    )
    content += ("answer", "shown", "human_score")
    if "asked_at" in cases.column_names:  # the log in time, whose measures rest on these
        content += ("score", "asked_at", "dialog", "turn", "page")
    named = [name for name in content if name in cases.column_names]
    rows = (row for some in cases.select(named).to_batches(10_000) for row in some.to_pylist())
    for row in rows:
        text = json.dumps(row, ensure_ascii=False, sort_keys=True, default=str)
        yield hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def read_cases(run: Run, batch: int | None = None) -> pa.Table:
    """The cases as they were loaded; all, or those of a batch."""
    cases = parquet(run.work / "cases.parquet", group=batch)
    return cases.cast(pa.schema([(name, declared(name).type) for name in cases.column_names]))


def read_stored_corpus(run: Run) -> Corpus:
    """The corpus as it was loaded."""
    stored = parquet(run.work / "corpus.parquet")
    vectors = run.work / "stored.npy"
    ids, urls, texts = (stored[name].to_pylist() for name in ("id", "url", "text"))
    return Corpus(ids, urls, texts, np.load(vectors, mmap_mode="r") if vectors.exists() else None)


def statuses(cases: pa.Table) -> dict[str, int]:
    """How many cases have each status."""
    return dict(Counter(cases["status"].to_pylist()).most_common())


def _load(run: Run) -> Run:
    if loaded(run):
        return run
    where, questions, corpus = read_source(run, vectors=wants_vectors(run))
    parameters = run.retrieval
    unit = default_unit(questions)
    if isinstance(parameters, Tier1) and parameters.unit != "auto":
        unit = parameters.unit
    kept = sample(run, map(topic_and_score, questions))
    cases, notes = annotated_cases(where.name, [questions[number] for number in kept], corpus, unit)
    return keep_loaded(run, where, cases, corpus, notes, unit=unit, **_retrieval(run, cases))


def _load_log(run: Run) -> Run:
    if loaded(run):
        return run
    where, questions, corpus = read_source(run, vectors=wants_vectors(run))
    groups = merged(questions)
    kept = sample(run, map(page_and_stratum, groups))
    cases, notes = logged_cases(where.name, [groups[number] for number in kept], corpus)
    return keep_loaded(run, where, cases, corpus, notes, unit="page", **_retrieval(run, cases))


def _load_texts(run: Run) -> Run:
    if loaded(run):
        return run
    parameters = run.parameters
    if not isinstance(parameters, Tier0):
        raise TypeError(f"{run.tier} has no texts to load")
    chunks = parameters.texts == "chunks"
    if not chunks and parameters.vectors == "stored":
        raise InputError("tier0: the vectors of questions are always computed; leave out --vectors stored")
    where, questions, corpus = read_source(run, vectors=chunks and parameters.vectors != "computed")
    notes: list[Note] = []
    if chunks:
        ids, texts, clusters = corpus.ids, corpus.texts, list(pages_of(corpus).values())
    else:
        ids = [question["question_id"] for question in questions]
        texts = [question["question"] for question in questions]
        clusters, notes = topics(questions)
    cases = table(
        case_id=[f"{where.name}:{parameters.texts}:{text_id}" for text_id in ids],
        question_id=[None if chunks else text_id for text_id in ids],
        question=[None if chunks else text for text in texts],
        status=["ok" if cluster is not None else "unlabelled" for cluster in clusters],
        reason=[None if cluster is not None else "the text has no cluster" for cluster in clusters],
        group=clusters,
        text=texts,
        cluster=clusters,
    )
    kept = sample(run, map(str, clusters))
    cases = cases.take(kept)
    if chunks:  # the corpus and its vectors are then what is measured, row by row
        corpus = Corpus(
            ids=[corpus.ids[row] for row in kept],
            urls=[corpus.urls[row] for row in kept],
            texts=[corpus.texts[row] for row in kept],
            vectors=corpus.vectors[kept] if corpus.vectors is not None else None,
        )
    return keep_loaded(
        run, where, cases, corpus, notes, batch_size=len(cases), texts=parameters.texts, distance=parameters.distance
    )


def loaded(run: Run) -> bool:
    """Whether an earlier try of this evaluation has loaded what it works on."""
    return bool(run.resolved) and (run.work / "cases.parquet").exists()


def wants_vectors(run: Run) -> bool:
    """Whether the source's own vectors are to be read."""
    parameters = run.retrieval
    kind = retriever_kind(parameters.retriever or settings().retriever)
    return kind.uses_vectors and parameters.vectors != "computed"


def read_source(run: Run, *, vectors: bool) -> tuple[Source, list[Row], Corpus]:
    """Questions and chunks from one snapshot; the questions of a frozen case set as they were frozen.

    Raises:
        InputError: there are none of either, what is needed is missing, or the frozen case set is of another source.
    """
    name, cases, read = run.parameters.source, run.parameters.cases, _READ.get()
    if read is not None and (known := read.get((name, cases, True)) or read.get((name, cases, vectors))):
        where, questions, corpus = known
        return where, questions, corpus if vectors else replace(corpus, vectors=None)
    where = source(name)
    with snapshot(where) as connection:
        where = registered(connection, where)
        questions = frozen_questions(cases, where.name) if cases else read_questions(connection, where)
        corpus = read_corpus(connection, where, vectors=vectors)
    for what, rows in (("questions", questions), ("chunks", corpus.ids)):
        if not rows:
            raise InputError(f"source {where.name!r} has no {what}; load some: yarus load … --into {where.name}")
    if read is not None:
        read[name, cases, vectors] = where, questions, corpus
    return where, questions, corpus


@contextmanager
def sources_shared(part_of: str | None = None) -> Iterator[None]:
    """While it lasts, a source is read once: all evaluations of a night see the same questions and the same corpus.

    Args:
        part_of: the sweep or the probes whose arms the evaluations are; they stay out of histories.
    """
    read, part = _READ.set({}), _PART_OF.set(part_of)
    try:
        yield
    finally:
        _READ.reset(read)
        _PART_OF.reset(part)


Read = dict[tuple[str, str | None, bool], tuple[Source, list[Row], Corpus]]
"""What was read: by source, frozen case set, and whether with vectors."""
_READ: ContextVar[Read | None] = ContextVar("sources of this night", default=None)
_PART_OF: ContextVar[str | None] = ContextVar("the sweep whose arms these evaluations are", default=None)


def sample(run: Run, strata: Iterable[str]) -> list[int]:
    """The numbers of the cases that are evaluated: all, or a seeded sample in which every stratum keeps its share."""
    return sampled(list(strata), run.parameters.limit, run.parameters.seed)


def _retrieval(run: Run, cases: pa.Table) -> dict[str, Any]:
    graded = cases["grades"].null_count < len(cases)
    retriever = run.retrieval.retriever or settings().retriever
    resolved = {"retriever": retriever, "k": run.retrieval.k, "gain": "linear" if graded else "binary"}
    return resolved | perturbed(run.parameters)


def keep_loaded(
    run: Run,
    where: Source,
    cases: pa.Table,
    corpus: Corpus,
    notes: list[Note],
    *,
    beside: Sequence[pa.Table] = (),
    **resolved: Any,
) -> Run:
    """Writes cases and corpus into the working folder, and into the journal what they are.

    Args:
        run: of which.
        where: the source.
        cases: as loaded.
        corpus: what is searched.
        notes: on what was met.
        beside: what else the cases are measured against, so that it belongs to the case set.
        resolved: what the parameters came to.
    """
    resolved = {"batch_size": max(100, -(-len(cases) // 50)), "language": where.language, "notes": notes} | resolved
    if run.parameters.cases and resolved.get("texts") != "chunks":  # chunks are the corpus, which is never frozen
        resolved["cases"] = frozen(run.parameters.cases, where.name).identity
    if where.loaded_at and resolved.get("retriever") == "pgvector":  # which may go on reading the source
        resolved["source_loaded_at"] = where.loaded_at.isoformat()
    resolved |= {mark: name for mark in MARKS if (name := getattr(run.parameters, mark, None))}
    resolved |= {"part_of": part} if (part := _PART_OF.get()) else {}
    columns = {"id": corpus.ids, "url": corpus.urls, "text": corpus.texts}
    schema = pa.schema([(name, pa.string()) for name in columns])
    pq.write_table(pa.table(columns, schema=schema), run.work / "corpus.parquet")
    if corpus.vectors is not None:
        np.save(run.work / "stored.npy", corpus.vectors)
    pq.write_table(cases, run.work / "cases.parquet", row_group_size=resolved["batch_size"])  # a batch is a group
    run = replace(run, resolved=resolved, n_cases=len(cases))
    digest = case_set_hash(cases, *beside)
    journal.describe(database(), run.id, n_cases=len(cases), case_set_hash=digest, resolved=resolved)
    log.info("%s: %d cases, %d chunks", where.name, len(cases), len(corpus.ids))
    return run

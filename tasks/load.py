"""The first step: questions with their labels, and the corpus, from one snapshot of the source."""

import asyncio
import hashlib
import json
import logging
import random
from collections import Counter
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from prefect import task

from db import journal
from db.errors import InputError
from db.sources import Corpus, Source, read_corpus, read_questions, snapshot
from db.urls import canonical_url
from tasks.cases import table
from tasks.connect import database, source
from tasks.parameters import Parameters
from tasks.retrievers import retriever_kind
from tasks.run import Run
from tasks.settings import settings

log = logging.getLogger("yarus")
Row = dict[str, Any]
Unit = Literal["chunk", "page"]


@task(task_run_name="load {run.parameters.source}")
async def load(run: Run) -> Run:
    """Writes the cases and the corpus into the working folder; a resumed evaluation keeps those that it began with.

    Raises:
        InputError: the source has no questions or no chunks, or what it needs is missing there.
    """
    return await asyncio.to_thread(_load, run)


def _load(run: Run) -> Run:
    if run.resolved and (run.work / "cases.parquet").exists():
        return run
    parameters = run.retrieval
    where = source(parameters.source)
    retriever = parameters.retriever or settings().retriever
    stored = retriever_kind(retriever).uses_vectors and parameters.vectors != "computed"
    with snapshot(where) as connection:
        questions = read_questions(connection, where)
        corpus = read_corpus(connection, where, vectors=stored)
    for what, rows in (("questions", questions), ("chunks", corpus.ids)):
        if not rows:
            raise InputError(f"source {where.name!r} has no {what}; load some: yarus load … --into {where.name}")
    notes: list[str] = []
    questions = _sampled(questions, parameters)
    unit = parameters.unit if parameters.unit != "auto" else _unit(questions)
    cases = label(where, questions, corpus, unit, notes)
    gain = "binary" if cases["grades"].null_count == len(cases) else "linear"
    resolved = {"retriever": retriever, "unit": unit, "k": parameters.k, "gain": gain}
    resolved |= {"language": where.language, "notes": notes}
    run = replace(run, resolved=resolved, n_cases=len(cases))
    _write(run, cases, corpus)
    digest = case_set_hash(cases)
    journal.describe(database(), run.id, n_cases=len(cases), case_set_hash=digest, resolved=resolved)
    log.info("%s: %d questions, %d chunks", where.name, len(cases), len(corpus.ids))
    return run


def label(where: Source, questions: list[Row], corpus: Corpus, unit: Unit, notes: list[str]) -> pa.Table:
    """The table of cases with what is relevant for each question.

    Args:
        where: the source, for the case ids.
        questions: rows of `question_answer` with their annotation, if they have one.
        corpus: the chunks, to tell labels that name nothing.
        unit: `chunk` or `page`.
        notes: gets a sentence for every fallback that was used.
    """
    pages = dict(zip(corpus.ids, map(canonical_url, corpus.urls), strict=True))
    there = set(pages) if unit == "chunk" else set(pages.values())
    grades = [_labels(question, unit, pages) for question in questions]
    fallbacks = sum(
        unit == "page" and not _annotated_pages(question, pages) and bool(labels)
        for question, labels in zip(questions, grades, strict=True)
    )
    if fallbacks:
        notes.append(f"relevant page = confluence_url for {fallbacks} questions without an annotation")
    kept = [{name: grade for name, grade in labels.items() if name in there} for labels in grades]
    stale = sum(len(labels) - len(known) for labels, known in zip(grades, kept, strict=True))
    if stale:
        notes.append(f"{stale} labels name a {unit} that is not in the corpus and were left out")
    states = [_state(labels, known, unit) for labels, known in zip(grades, kept, strict=True)]
    graded = any(grade != 1 for labels in kept for grade in labels.values())
    ids = [question["question_id"] for question in questions]
    return table(
        case_id=[f"{where.name}:{question_id}" for question_id in ids],
        question_id=ids,
        question=[question["question"] for question in questions],
        status=[status for status, _ in states],
        reason=[reason for _, reason in states],
        group=[_group(question, known, unit, pages) for question, known in zip(questions, kept, strict=True)],
        relevant=[list(labels) for labels in kept],
        grades=[list(labels.values()) if graded else None for labels in kept],
    )


def case_set_hash(cases: pa.Table) -> str:
    """SHA-256 of the questions and their labels, whatever their order: equal for equal content."""
    rows = cases.select(["case_id", "question", "relevant", "grades"]).to_pylist()
    lines = sorted(json.dumps(row, ensure_ascii=False, sort_keys=True) for row in rows)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def read_cases(run: Run, batch: int | None = None) -> pa.Table:
    """The cases as they were loaded; all, or those of a batch."""
    cases = pq.read_table(run.work / "cases.parquet")
    return cases if batch is None else cases.slice(batch * run.batch_size, run.batch_size)


def read_stored_corpus(run: Run) -> Corpus:
    """The corpus as it was loaded."""
    stored = pq.read_table(run.work / "corpus.parquet")
    vectors = run.work / "stored.npy"
    ids, urls, texts = (stored[name].to_pylist() for name in ("id", "url", "text"))
    return Corpus(ids, urls, texts, np.load(vectors, mmap_mode="r") if vectors.exists() else None)


def _write(run: Run, cases: pa.Table, corpus: Corpus) -> None:
    columns = {"id": corpus.ids, "url": corpus.urls, "text": corpus.texts}
    schema = pa.schema([(name, pa.string()) for name in columns])
    pq.write_table(pa.table(columns, schema=schema), run.work / "corpus.parquet")
    if corpus.vectors is not None:
        np.save(run.work / "stored.npy", corpus.vectors)
    pq.write_table(cases, run.work / "cases.parquet")


def _sampled(questions: list[Row], parameters: Parameters) -> list[Row]:
    """A seeded sample in the order of the source, or all."""
    if parameters.limit is None or parameters.limit >= len(questions):
        return questions
    chosen = random.Random(parameters.seed).sample(range(len(questions)), parameters.limit)
    return [questions[number] for number in sorted(chosen)]


def _unit(questions: list[Row]) -> Unit:
    return "chunk" if any(question.get("relevant_chunk_ids") for question in questions) else "page"


def _labels(question: Row, unit: Unit, pages: dict[str, str | None]) -> dict[str, float]:
    """Id -> grade of what is relevant, of the unit."""
    if unit == "chunk":
        return {name: grade for name, grade in _graded(question.get("relevant_chunk_ids")).items() if grade > 0}
    annotated = _annotated_pages(question, pages)
    if annotated or question.get("origin"):
        return annotated
    shown = canonical_url(question["confluence_url"])
    return {shown: 1.0} if shown else {}


def _annotated_pages(question: Row, pages: dict[str, str | None]) -> dict[str, float]:
    named = [(canonical_url(url), grade) for url, grade in _graded(question.get("relevant_urls")).items()]
    named += [(pages.get(chunk), grade) for chunk, grade in _graded(question.get("relevant_chunk_ids")).items()]
    labels: dict[str, float] = {}
    for page, grade in named:  # a page is as relevant as its most relevant chunk
        if page is not None and grade > 0:
            labels[page] = max(grade, labels.get(page, 0))
    return labels


def _graded(labels: Any) -> dict[str, float]:
    """A list of ids has grade 1 each; an object gives the grade of each."""
    if isinstance(labels, dict):
        return {str(name): float(grade) for name, grade in labels.items()}
    return {str(name): 1.0 for name in labels or ()}


def _state(labels: dict[str, float], known: dict[str, float], unit: Unit) -> tuple[str, str | None]:
    if known:
        return "ok", None
    if labels:
        return "stale_label", f"the {unit} that is labelled relevant is not in the corpus: {', '.join(labels)}"
    return "unlabelled", f"no {unit} is labelled relevant"


def _group(question: Row, known: dict[str, float], unit: Unit, pages: dict[str, str | None]) -> str | None:
    """Questions of one user, or about one page, are not independent."""
    if question["user_id"] is not None:
        return f"user {question['user_id']}"
    page = next(iter(known), None)
    return pages.get(page) if page is not None and unit == "chunk" else page


def statuses(cases: pa.Table) -> dict[str, int]:
    """How many cases have each status."""
    return dict(Counter(cases["status"].to_pylist()).most_common())

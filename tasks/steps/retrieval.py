"""Questions with labels and the corpus, from one snapshot; questions perturbed and restored; rankings scored."""

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
from yarus.tasks.cases.labels import NO_TWINS, annotated_cases, labels_of, logged_cases, pages_of
from yarus.tasks.cases.outcomes import fail
from yarus.tasks.cases.own_documents import with_own_documents
from yarus.tasks.cases.perturbations import change, perturbed
from yarus.tasks.cases.privacy.masking import mask, own_key
from yarus.tasks.cases.rankings import by_judge, fillable, score, seen
from yarus.tasks.cases.sampling import merged, page_and_stratum, topics
from yarus.tasks.cases.table import rows_of, table, values_of, with_columns
from yarus.tasks.cases.vocabulary import Note
from yarus.tasks.config.connections import connection_lost
from yarus.tasks.config.parameters import Fillable, Perturbable, RealUsers, Retrieval, Tier0, Tier1
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.identity import filled_by, reranker_of
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.work_folder import batch_size, keep_loaded, loaded, read_twins
from yarus.tasks.models.calls import Call
from yarus.tasks.models.prompts import FOLDER, Prompt, Shape
from yarus.tasks.steps.opened import open_model
from yarus.tasks.steps.source import (
    pooled,
    read_source,
    reranked,
    sample,
    sample_of_questions,
    twins_for,
    unchanged,
    wants_vectors,
)
from yarus.tasks.systems.retrievers.registry import RETRIEVERS

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
    config = EvaluationConfig(unit=unit) | _retrieval(run, cases)
    if own:
        config |= EvaluationConfig(own_documents="left out")
    if run.parameters.labels == "filled":
        config |= _filled(run, where.language, config.retriever)
        cases = fillable(cases, [questions[number].get("answerable") for number in kept])
    return keep_loaded(run, where, cases, corpus, labelled.note(unit) + notes + own + about, config, twins=twins)


def _load_log(run: Run[RealUsers]) -> Run[RealUsers]:
    if loaded(run):
        return _unchanged(run)
    where, questions, corpus = read_source(run, vectors=wants_vectors(run))
    groups = merged(questions)
    kept = sample(run, (rows[0]["question_id"] for rows in groups), map(page_and_stratum, groups))
    twins, about = twins_for(run, corpus, "page")
    cases, notes = logged_cases(where.name, [groups[number] for number in kept], corpus, twins)
    config = EvaluationConfig(unit="page") | _retrieval(run, cases)
    if run.parameters.labels == "filled":
        config |= _filled(run, where.language, config.retriever)
        cases = fillable(cases, [groups[number][0].get("answerable") for number in kept])
    return keep_loaded(run, where, cases, corpus, notes + about, config, twins=twins)


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
    config = EvaluationConfig(batch_size=len(cases), texts=parameters.texts, distance=parameters.distance)
    return keep_loaded(run, where, cases, corpus, notes, config)


def _cluster_notes(cases: pa.Table, texts: str) -> list[Note]:
    """Why most metrics of clusters will have no value, if no text has a cluster or none shares its own."""
    without, alone = CLUSTER_NOTES[texts]
    sizes = Counter(cluster for cluster in values_of(cases, "cluster") if cluster is not None)
    if not sizes:
        return [{"note": without, "n": len(cases)}]
    return [{"note": alone, "n": len(sizes)}] if max(sizes.values()) == 1 else []


def _filled(run: Run[Fillable], language: str, retriever: str) -> EvaluationConfig:
    """Who fills the labels up, and in whose results."""
    pool = sorted({retriever, *pooled(run.parameters)})
    config = EvaluationConfig(labels="filled", pool=pool, gain="binary", judge=filled_by(run.parameters, language))
    if name := reranker_of(run.parameters):
        config |= EvaluationConfig(pool_reranked=f"{name}@{run.parameters.rerank_depth}")
    return config


def _unchanged(run: Run[F]) -> Run[F]:
    if run.parameters.labels != "filled":
        return run
    return unchanged(run, EvaluationConfig(judge=filled_by(run.parameters, run.config.language)))


def _retrieval(run: Run[Retrieval], cases: pa.Table) -> EvaluationConfig:
    parameters, graded = run.parameters, cases["grades"].null_count < len(cases)
    config = reranked(parameters) | EvaluationConfig(
        retriever=parameters.retriever or settings().retriever,
        twins="one" if parameters.twins else "apart",
        k=parameters.k,
        gain="linear" if graded else "binary",
    )
    if config.retriever in RETRIEVERS and config.reranker is None:
        # our own rank hundreds in the time that Prefect takes for a task run
        config |= EvaluationConfig(batch_size=max(batch_size(len(cases)), min(500, len(cases) // 10)))
    if perturbation := perturbed(parameters):
        config |= EvaluationConfig(perturbation=perturbation)
    return config


PARAPHRASE = Shape("generator", "text", ("question",), "question")


async def perturb_questions(run: Run[Perturbable], cases: pa.Table) -> pa.Table:
    """Puts the changed question in the place of the question until `restore_questions`, which undoes it.

    A question that the model could not paraphrase is `not_applicable`: it is nobody's failure, and no measurement.
    """
    questions, kind = values_of(cases, "question"), run.parameters.perturbation
    if kind is None:
        return cases
    if kind == "paraphrase":
        asked = await _paraphrases(run, questions)
        without = (number for number, text in enumerate(asked) if text is None)
        cases = fail(
            cases, ((number, "not_applicable", Words("the generator gave no paraphrase")) for number in without)
        )
    else:
        # Pseudonyms come before the change, after which no name has a capital letter and no address its @.
        key = own_key() if settings().mask_calls else None
        plain = [question if key is None else mask(question, key, run.config.language) for question in questions]
        asked = [change(question, kind, seed=run.parameters.seed) for question in plain]
    shown = [question if text is None else text for question, text in zip(questions, asked, strict=True)]
    kept = [None if text is None else question for question, text in zip(questions, asked, strict=True)]
    return with_columns(cases, question=shown, asked=kept)


def restore_questions(run: Run, cases: pa.Table) -> pa.Table:
    """Puts the question back, for judging and scoring; what was asked is kept beside it."""
    if run.config.perturbation is None:
        return cases
    asked, meant = values_of(cases, "question"), values_of(cases, "asked")
    came = rows_of(cases, "retrieved", "outcome")
    rows = [(said, question, *of) for said, question, of in zip(asked, meant, came, strict=True)]
    return with_columns(
        cases,
        question=[said if question is None else question for said, question, *_ in rows],
        asked=[None if question is None else said for said, question, *_ in rows],
        retrieved=[None if question is None else ranking for _, question, ranking, _ in rows],
        outcome=[None if question is None else done for _, question, _, done in rows],
    )


async def _paraphrases(run: Run, questions: list[str]) -> list[str | None]:
    prompt = _prompt(run.config.language)
    calls = [Call(prompt, {"question": question}) for question in questions]
    # By the settings' generator, whatever model the evaluation measures: all are asked the same questions.
    async with open_model(run, "generator", settings()) as model:
        replies = await model.complete(calls)
    return [reply.text.strip() or None if reply.status == "ok" else None for reply in replies]


def _prompt(language: str) -> Prompt:
    text = (FOLDER / language / "paraphrase.txt").read_text(encoding="utf-8")
    return Prompt("paraphrase", PARAPHRASE, text, "")


def score_rankings(run: Run, cases: pa.Table) -> pa.Table:
    """Adds the metrics of rankings; NULL in all of them without a label, or where the retriever failed."""
    if "pooled" not in cases.column_names:
        return score(cases, read_twins(run), run.config.k)
    said = [None if pool is None else by_judge(pool) for pool in values_of(cases, "pooled")]
    scored = score(seen(cases, said), NO_TWINS, run.config.k)  # in pools twins are one already
    for name in scored.column_names[len(cases.column_names) :]:
        cases = cases.append_column(scored.field(name), scored[name])
    return cases

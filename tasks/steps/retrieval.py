"""Load labelled questions and corpus from one snapshot, perturb and restore questions, and score rankings."""

import asyncio
import logging
from collections import Counter
from typing import TypeVar

import pyarrow as pa
from prefect import task
from prefect.cache_policies import NO_CACHE

from yarus.db.errors import InputError
from yarus.db.messages import Words
from yarus.db.source_rows import Corpus
from yarus.tasks.cases.labels import NO_DUPLICATES, annotated_cases, count_labels, logged_cases, page_by_chunk
from yarus.tasks.cases.outcomes import set_failures
from yarus.tasks.cases.own_documents import add_own_documents
from yarus.tasks.cases.perturbations import perturb_question, perturbation_signature
from yarus.tasks.cases.privacy.masking import load_own_key, mask
from yarus.tasks.cases.rankings import add_metrics, make_unlabelled_measurable, relabel_cases, relevance_by_judge
from yarus.tasks.cases.sampling import duplicates_stratum, group_duplicate_questions, question_topics
from yarus.tasks.cases.table import column_values, iterate_rows, make_cases, set_columns
from yarus.tasks.cases.vocabulary import Note
from yarus.tasks.config.connections import should_retry_read
from yarus.tasks.config.parameters import (
    LLMLabelParameters,
    PerturbationParameters,
    RealUsers,
    RetrievalParameters,
    Tier0,
    Tier1,
)
from yarus.tasks.config.settings import get_settings
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.identity import labelling_judge, reranker_name
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.evaluation.work_folder import choose_batch_size, is_loaded, read_duplicates, save_loaded
from yarus.tasks.models.calls import Call
from yarus.tasks.models.prompts import PROMPTS_FOLDER, Prompt, PromptShape
from yarus.tasks.steps.open_models import open_model
from yarus.tasks.steps.source import (
    find_twins,
    parse_pool,
    read_source,
    require_unchanged,
    rerank_config,
    sample_numbers,
    sample_questions,
    should_read_vectors,
)
from yarus.tasks.systems.retrievers.registry import RETRIEVERS

F = TypeVar("F", bound=LLMLabelParameters)
CLUSTER_NOTES = {
    "chunks": ("chunks without clusters", "chunks alone in clusters"),
    "questions": ("questions without clusters", "questions alone in clusters"),
}
"""Notes if no text has a cluster, and if no two texts share one."""
log = logging.getLogger("yarus")


@task(
    task_run_name="load {run.parameters.source}",
    cache_policy=NO_CACHE,
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=should_retry_read,
)
async def load(run: EvaluationRun[Tier1]) -> EvaluationRun[Tier1]:
    """Load tier 1's cases and the corpus; a resumed evaluation keeps its own.

    Raises:
        InputError: the source has no questions or no chunks, or what it needs is missing there.
    """
    return await asyncio.to_thread(_load, run)


@task(
    task_run_name="load_log {run.parameters.source}",
    cache_policy=NO_CACHE,
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=should_retry_read,
)
async def load_log(run: EvaluationRun[RealUsers]) -> EvaluationRun[RealUsers]:
    """Load the real users' cases and the corpus; errors as `load`."""
    return await asyncio.to_thread(_load_log, run)


@task(
    task_run_name="load_texts {run.parameters.source}",
    cache_policy=NO_CACHE,
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=should_retry_read,
)
async def load_texts(run: EvaluationRun[Tier0]) -> EvaluationRun[Tier0]:
    """Load tier 0's cases: chunks by page, or questions by topic; errors as `load`."""
    return await asyncio.to_thread(_load_texts, run)


def _load(run: EvaluationRun[Tier1]) -> EvaluationRun[Tier1]:
    if is_loaded(run):
        return _require_unchanged(run)
    source, questions, corpus = read_source(run, vectors=should_read_vectors(run))
    requested_unit = run.parameters.unit
    counts = count_labels(questions)
    unit = counts.unit if requested_unit == "auto" else requested_unit
    numbers = sample_questions(run, questions)
    twins, twin_notes = find_twins(run, corpus, unit)
    cases, notes = annotated_cases(source.name, [questions[number] for number in numbers], corpus, unit, twins)
    cases, own_notes = add_own_documents(cases, [questions[number] for number in numbers], corpus)
    config = EvaluationConfig(unit=unit) | _retrieval_config(run, cases)
    if own_notes:
        config |= EvaluationConfig(own_documents="left out")
    if run.parameters.labels == "llm":
        config |= _filling_config(run, source.language, config.retriever)
        cases = make_unlabelled_measurable(cases, [questions[number].get("answerable") for number in numbers])
    return save_loaded(
        run, source, cases, corpus, counts.note(unit) + notes + own_notes + twin_notes, config, twins=twins
    )


def _load_log(run: EvaluationRun[RealUsers]) -> EvaluationRun[RealUsers]:
    if is_loaded(run):
        return _require_unchanged(run)
    source, questions, corpus = read_source(run, vectors=should_read_vectors(run))
    groups = group_duplicate_questions(questions)
    numbers = sample_numbers(run, (rows[0]["question_id"] for rows in groups), map(duplicates_stratum, groups))
    twins, twin_notes = find_twins(run, corpus, "page")
    cases, notes = logged_cases(source.name, [groups[number] for number in numbers], corpus, twins)
    config = EvaluationConfig(unit="page") | _retrieval_config(run, cases)
    if run.parameters.labels == "llm":
        config |= _filling_config(run, source.language, config.retriever)
        cases = make_unlabelled_measurable(cases, [groups[number][0].get("answerable") for number in numbers])
    return save_loaded(run, source, cases, corpus, notes + twin_notes, config, twins=twins)


def _load_texts(run: EvaluationRun[Tier0]) -> EvaluationRun[Tier0]:
    if is_loaded(run):
        return run
    parameters = run.parameters
    chunks = parameters.texts == "chunks"
    if not chunks and parameters.vectors == "stored":
        raise InputError("tier0: the vectors of questions are always computed; leave out --vectors stored")
    vectors = chunks and parameters.vectors != "computed"
    source, questions, corpus = read_source(run, vectors=vectors, questions=not chunks, chunks=chunks)
    notes: list[Note] = []
    if chunks:
        ids, texts, clusters = corpus.ids, corpus.texts, list(page_by_chunk(corpus).values())
    else:
        ids = [question["question_id"] for question in questions]
        texts = [question["question"] for question in questions]
        clusters, notes = question_topics(questions)
    missing_reason = Words("the passage names no page") if chunks else Words("the question has no topic and no page")
    cases = make_cases(
        case_id=[f"{source.name}:{parameters.texts}:{text_id}" for text_id in ids],
        question_id=[None if chunks else text_id for text_id in ids],
        question=[None if chunks else text for text in texts],
        status=["ok" if cluster is not None else "unlabelled" for cluster in clusters],
        reason=[None if cluster is not None else missing_reason for cluster in clusters],
        group=clusters,
        text=texts,
        cluster=clusters,
    )
    rows = sample_numbers(run, ids, map(str, clusters))
    cases = cases.take(rows)
    notes += _cluster_notes(cases, parameters.texts)
    if chunks:  # then the corpus and its vectors are measured, row by row
        corpus = Corpus(
            ids=[corpus.ids[row] for row in rows],
            urls=[corpus.urls[row] for row in rows],
            texts=[corpus.texts[row] for row in rows],
            vectors=corpus.vectors[rows] if corpus.vectors is not None else None,
        )
    config = EvaluationConfig(batch_size=len(cases), texts=parameters.texts, distance=parameters.distance)
    return save_loaded(run, source, cases, corpus, notes, config)


def _cluster_notes(cases: pa.Table, texts: str) -> list[Note]:
    """Return why most cluster metrics will be undefined: no text has a cluster, or none shares its own."""
    no_clusters, single_texts = CLUSTER_NOTES[texts]
    sizes = Counter(cluster for cluster in column_values(cases, "cluster") if cluster is not None)
    if not sizes:
        return [{"note": no_clusters, "n": len(cases)}]
    return [{"note": single_texts, "n": len(sizes)}] if max(sizes.values()) == 1 else []


def _filling_config(run: EvaluationRun[LLMLabelParameters], language: str, retriever: str) -> EvaluationConfig:
    """Return the configuration of labels filled by a judge, and of the pooled retrievers."""
    pool = sorted({retriever, *parse_pool(run.parameters)})
    config = EvaluationConfig(
        labels="filled", pool=pool, gain="binary", judge=labelling_judge(run.parameters, language)
    )
    if name := reranker_name(run.parameters):
        config |= EvaluationConfig(pool_reranked=f"{name}@{run.parameters.rerank_depth}")
    return config


def _require_unchanged(run: EvaluationRun[F]) -> EvaluationRun[F]:
    if run.parameters.labels != "llm":
        return run
    return require_unchanged(run, EvaluationConfig(judge=labelling_judge(run.parameters, run.config.language)))


def _retrieval_config(run: EvaluationRun[RetrievalParameters], cases: pa.Table) -> EvaluationConfig:
    parameters, graded = run.parameters, cases["grades"].null_count < len(cases)
    config = rerank_config(parameters) | EvaluationConfig(
        retriever=parameters.retriever or get_settings().retriever,
        twins="one" if parameters.merge_duplicates else "apart",
        k=parameters.k,
        gain="linear" if graded else "binary",
    )
    if config.retriever in RETRIEVERS and config.reranker is None:
        # our retrievers rank hundreds in the time of a Prefect task run
        config |= EvaluationConfig(batch_size=max(choose_batch_size(len(cases)), min(500, len(cases) // 10)))
    if perturbation := perturbation_signature(parameters):
        config |= EvaluationConfig(perturbation=perturbation)
    return config


PARAPHRASE = PromptShape("generator", "text", ("question",), "question")


async def perturb_questions(run: EvaluationRun[PerturbationParameters], cases: pa.Table) -> pa.Table:
    """Replace the question by its perturbed form, until `restore_questions` undoes it.

    A question that the model could not paraphrase is `not_applicable`: that is neither a failure nor a measurement.
    """
    questions, kind = column_values(cases, "question"), run.parameters.perturbation
    if kind is None:
        return cases
    if kind == "paraphrase":
        texts = await _ask_paraphrases(run, questions)
        missing = (number for number, text in enumerate(texts) if text is None)
        cases = set_failures(
            cases, ((number, "not_applicable", Words("the generator gave no paraphrase")) for number in missing)
        )
    else:
        # Masking comes before the change, which may remove capital letters of names and the @ of addresses.
        key = load_own_key() if get_settings().mask_model_input else None
        masked = [question if key is None else mask(question, key, run.config.language) for question in questions]
        texts = [perturb_question(question, kind, seed=run.parameters.seed) for question in masked]
    asked_questions = [question if text is None else text for question, text in zip(questions, texts, strict=True)]
    originals = [None if text is None else question for question, text in zip(questions, texts, strict=True)]
    return set_columns(cases, question=asked_questions, asked=originals)


def restore_questions(run: EvaluationRun, cases: pa.Table) -> pa.Table:
    """Restore the question for judging and scoring; the asked form is stored in `asked`."""
    if run.config.perturbation is None:
        return cases
    texts, originals = column_values(cases, "question"), column_values(cases, "asked")
    results = iterate_rows(cases, "retrieved", "outcome")
    rows = [(text, question, *result) for text, question, result in zip(texts, originals, results, strict=True)]
    return set_columns(
        cases,
        question=[text if question is None else question for text, question, *_ in rows],
        asked=[None if question is None else text for text, question, *_ in rows],
        retrieved=[None if question is None else ranking for _, question, ranking, _ in rows],
        outcome=[None if question is None else outcome for _, question, _, outcome in rows],
    )


async def _ask_paraphrases(run: EvaluationRun, questions: list[str]) -> list[str | None]:
    prompt = _paraphrase_prompt(run.config.language)
    calls = [Call(prompt, {"question": question}) for question in questions]
    # By the settings' generator, not the evaluated model, so that all models get the same questions.
    async with open_model(run, "generator", get_settings()) as model:
        replies = await model.complete(calls)
    return [reply.text.strip() or None if reply.status == "ok" else None for reply in replies]


def _paraphrase_prompt(language: str) -> Prompt:
    text = (PROMPTS_FOLDER / language / "paraphrase.txt").read_text(encoding="utf-8")
    return Prompt("paraphrase", PARAPHRASE, text, "")


def score_rankings(run: EvaluationRun, cases: pa.Table) -> pa.Table:
    """Add the metrics of rankings; NULL in all of them without a label, or if the retriever failed."""
    if "pooled" not in cases.column_names:
        return add_metrics(cases, read_duplicates(run), run.config.k)
    judged_rankings = [None if pool is None else relevance_by_judge(pool) for pool in column_values(cases, "pooled")]
    scored = add_metrics(
        relabel_cases(cases, judged_rankings), NO_DUPLICATES, run.config.k
    )  # pools have no duplicates left
    for name in scored.column_names[len(cases.column_names) :]:
        cases = cases.append_column(scored.field(name), scored[name])
    return cases

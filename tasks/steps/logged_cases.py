"""The first step of the tiers that judge the log: what the bot said, and what it said it from."""

import asyncio
from typing import Any, TypeVar

import pyarrow.parquet as pq
from prefect import task
from prefect.cache_policies import NO_CACHE

from yarus.db.errors import InputError, nothing_in
from yarus.db.source_rows import Corpus, Row
from yarus.db.urls import canonical_url
from yarus.db.words import Words
from yarus.tasks.cases.dialogs import by_time, places, sampled_whole
from yarus.tasks.cases.labels import GOOD, pages_of
from yarus.tasks.cases.outcomes import shown_rightly
from yarus.tasks.cases.table import table
from yarus.tasks.cases.text import fit
from yarus.tasks.cases.vocabulary import Note
from yarus.tasks.config.connections import connection_lost
from yarus.tasks.config.parameters import JudgeQuality, JudgesLog, Ux
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.identity import judge_identity
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.work_folder import keep_loaded, loaded
from yarus.tasks.models.embedding.embedders import measuring_embedder
from yarus.tasks.steps.exam.examine import exam_identity, exam_period, with_exam
from yarus.tasks.steps.production import has_answers, with_production
from yarus.tasks.steps.recorded import contexts_of, traced
from yarus.tasks.steps.source import read_source, sample_of_questions, unchanged

J = TypeVar("J", bound=JudgesLog)


@task(
    task_run_name="load_logged_answers {run.parameters.source}",
    cache_policy=NO_CACHE,
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=connection_lost,
)
async def load_logged_answers(run: Run[J]) -> Run[J]:
    """Cases of the tiers `judge` and `judge_pipeline`: logged answers with the text of the page that they came from.

    Raises:
        InputError: the source has no questions or no chunks, or what it needs is missing there.
    """
    return await asyncio.to_thread(_load_answered, run)


@task(
    task_run_name="load_dialogs {run.parameters.source}",
    cache_policy=NO_CACHE,
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=connection_lost,
)
async def load_dialogs(run: Run[Ux]) -> Run[Ux]:
    """Cases of the tier `ux`, whole dialogs where it is a sample, and beside them what the log could answer them from.

    Raises:
        InputError: as `load_logged_answers`, or nothing in the log has a time or an order.
    """
    return await asyncio.to_thread(_load_dialogs, run)


def _load_answered(run: Run[J]) -> Run[J]:
    if loaded(run):
        return unchanged(run, _identities(run, run.config.language))
    where, questions, corpus = read_source(run, vectors=False, chunks=False)
    chosen = [questions[number] for number in sample_of_questions(run, questions)]
    recorded = contexts_of(chosen, corpus, run.parameters.context_tokens)
    if not corpus.ids and not any(recorded):
        raise nothing_in(where.name, Words("chunks"))
    pages = _contexts(chosen, corpus, run.parameters.context_tokens)
    contexts = [page if known is None else known[:2] for page, known in zip(pages, recorded, strict=True)]
    shown = [shown_rightly(question) for question in chosen]
    states = [_state(run.tier, *row) for row in zip(chosen, contexts, shown, strict=True)]
    cases = table(
        **_identity(where.name, chosen),
        status=["ok" if reason is None else status for status, reason in states],
        reason=[reason for _, reason in states],
        page=[canonical_url(question["confluence_url"]) for question in chosen],
        context=[text for text, _ in contexts],
        truncated=[cut for _, cut in contexts],
        answer=[question["answer"] for question in chosen],
        shown=shown,
        human_score=[{5: 1.0, 1: 0.0}.get(question["score"] or 0) for question in chosen],
        **traced(chosen),
    )
    cases = with_production(cases, chosen, logs_answers=has_answers(questions))
    config = _identities(run, where.language)
    if any(recorded):
        config |= EvaluationConfig(contexts="recorded")
    if isinstance(run.parameters, JudgeQuality) and run.parameters.exam:
        cases = with_exam(run.parameters, cases, questions, chosen, corpus, where.language)
        config |= EvaluationConfig(exam_period=exam_period())
    return keep_loaded(run, where, cases, corpus, [], config)


def _identities(run: Run[J], language: str) -> EvaluationConfig:
    """Who judges, and who is examined."""
    parameters = run.parameters
    if not isinstance(parameters, JudgeQuality):
        return EvaluationConfig(judge=judge_identity(parameters, language, ["gate"], name="gate"))
    config = EvaluationConfig(judge=judge_identity(parameters, language, ["faithfulness"]))
    return config | EvaluationConfig(exam_of=exam_identity(parameters, language)) if parameters.exam else config


def _load_dialogs(run: Run[Ux]) -> Run[Ux]:
    if loaded(run) and (run.work / "log.parquet").exists():  # an older version kept none
        return unchanged(run, EvaluationConfig(similarity_embedder=measuring_embedder()))
    where, questions, corpus = read_source(run, vectors=False, chunks=False)
    log = by_time(questions)
    found = places(log)
    timed = [question["created_at"] is not None for question in log]
    if not any(timed) and not any(place.turn == 2 for place in found):
        raise InputError(
            "source {source!r}: no question has created_at, so none is earlier than another, and no dialog of two is "
            "annotated (dialog_id with turn): nothing can be measured",
            source=where.name,
        )
    chosen = sampled_whole(log, found, run.parameters.limit, run.parameters.seed)
    cached = {row for row, question in enumerate(log) if question["score"] == GOOD and timed[row]}
    seen = [log[row] for row in sorted(cached.union(chosen))]
    kept = table(**_identity(where.name, seen), **_asked(seen))
    pq.write_table(kept, run.work / "log.parquet")
    rows = [log[row] for row in chosen]
    alone = [not timed[row] and found[row].dialog is None for row in chosen]
    cases = table(
        **_identity(where.name, rows),
        status=["not_applicable" if some else "ok" for some in alone],
        reason=[Words("the question has no time, and no place in a dialog") if some else None for some in alone],
        **_asked(rows),
        dialog=[found[row].dialog for row in chosen],
        turn=[found[row].turn for row in chosen],
    )
    timeless = sum(not timed[row] for row in chosen)
    notes: list[Note] = [{"note": "no time", "n": timeless}] if timeless else []
    config = EvaluationConfig(batch_size=max(1, len(cases)), similarity_embedder=measuring_embedder())
    return keep_loaded(run, where, cases, corpus, notes, config, beside=[kept])


def _asked(questions: list[Row]) -> dict[str, list[Any]]:
    """What a cache knows of the questions."""
    return {
        "page": [canonical_url(question["confluence_url"]) for question in questions],
        "score": [question["score"] for question in questions],
        "asked_at": [question["created_at"] for question in questions],
    }


def _identity(source: str, questions: list[Row]) -> dict[str, list[Any]]:
    return {
        "case_id": [f"{source}:{question['question_id']}" for question in questions],
        "question_id": [question["question_id"] for question in questions],
        "question": [question["question"] for question in questions],
        "group": [None if q["user_id"] is None else f"user {q['user_id']}" for q in questions],
    }


def _contexts(questions: list[Row], corpus: Corpus, tokens: int) -> list[tuple[str | None, bool | None]]:
    """The text of the page that each answer came from."""
    by_page: dict[str | None, list[str]] = {}
    for chunk, page in pages_of(corpus).items():
        by_page.setdefault(page, []).append(chunk)
    texts = dict(zip(corpus.ids, corpus.texts, strict=True))
    pages = [canonical_url(question["confluence_url"]) for question in questions]
    return [
        fit([texts[chunk] for chunk in by_page[page]], tokens) if page in by_page and page else (None, None)
        for page in pages
    ]


def _state(
    tier: str, question: Row, context: tuple[str | None, bool | None], shown: bool | None
) -> tuple[str, str | None]:
    if not (question["answer"] or "").strip():
        return "not_applicable", Words("the bot gave no answer")
    if context[0] is None:
        return "stale_label", Words(
            "what the answer was given is not recorded; its page is not named, or not in the corpus"
        )
    if tier == "judge_pipeline" and shown is None:
        return "unlabelled", Words("nobody said whether the answer should be shown")
    return "ok", None

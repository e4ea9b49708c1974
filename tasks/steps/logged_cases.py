"""First step of the tiers that judge the log: load the bot's answers and their contexts."""

import asyncio
from typing import Any, TypeVar

import pyarrow.parquet as pq
from prefect import task
from prefect.cache_policies import NO_CACHE

from yarus.db.errors import InputError, empty_source_error
from yarus.db.messages import Words
from yarus.db.source_rows import Corpus, QuestionRow
from yarus.db.urls import canonical_url
from yarus.tasks.cases.dialogs import dialog_turns, sample_whole_dialogs, sort_by_time
from yarus.tasks.cases.labels import GOOD, page_by_chunk
from yarus.tasks.cases.outcomes import should_be_shown
from yarus.tasks.cases.table import make_cases
from yarus.tasks.cases.text import join_within_limit
from yarus.tasks.cases.vocabulary import Note
from yarus.tasks.config.connections import should_retry_read
from yarus.tasks.config.parameters import JudgeQuality, LoggedAnswerParameters, Ux
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.identity import judge_identity
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.evaluation.work_folder import is_loaded, save_loaded
from yarus.tasks.models.embedding.embedders import get_measuring_embedder_name
from yarus.tasks.steps.exam.examine import add_exam, exam_identity, exam_period
from yarus.tasks.steps.production import add_production, has_answers
from yarus.tasks.steps.recorded import find_contexts, find_trace_ids
from yarus.tasks.steps.source import read_source, require_unchanged, sample_questions

J = TypeVar("J", bound=LoggedAnswerParameters)


@task(
    task_run_name="load_logged_answers {run.parameters.source}",
    cache_policy=NO_CACHE,
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=should_retry_read,
)
async def load_logged_answers(run: EvaluationRun[J]) -> EvaluationRun[J]:
    """Load cases of tiers `judge` and `judge_pipeline`: logged answers with the text of their page.

    Raises:
        InputError: the source has no questions or no chunks, or what it needs is missing there.
    """
    return await asyncio.to_thread(_load_answered, run)


@task(
    task_run_name="load_dialogs {run.parameters.source}",
    cache_policy=NO_CACHE,
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=should_retry_read,
)
async def load_dialogs(run: EvaluationRun[Ux]) -> EvaluationRun[Ux]:
    """Load cases of tier `ux`, whole dialogs if sampled, and the log from which a cache could answer them.

    Raises:
        InputError: as `load_logged_answers`, or nothing in the log has a time or an order.
    """
    return await asyncio.to_thread(_load_dialogs, run)


def _load_answered(run: EvaluationRun[J]) -> EvaluationRun[J]:
    if is_loaded(run):
        return require_unchanged(run, _resolve_judges(run, run.config.language))
    source, questions, corpus = read_source(run, vectors=False, chunks=False)
    chosen = [questions[number] for number in sample_questions(run, questions)]
    recorded = find_contexts(chosen, corpus, run.parameters.context_tokens)
    if not corpus.ids and not any(recorded):
        raise empty_source_error(source.name, Words("chunks"))
    pages = _page_contexts(chosen, corpus, run.parameters.context_tokens)
    contexts = [page if context is None else context[:2] for page, context in zip(pages, recorded, strict=True)]
    shown_labels = [should_be_shown(question) for question in chosen]
    states = [_case_state(run.tier, *row) for row in zip(chosen, contexts, shown_labels, strict=True)]
    cases = make_cases(
        **_identity_columns(source.name, chosen),
        status=["ok" if reason is None else status for status, reason in states],
        reason=[reason for _, reason in states],
        page=[canonical_url(question["confluence_url"]) for question in chosen],
        context=[text for text, _ in contexts],
        truncated=[is_cut for _, is_cut in contexts],
        answer=[question["answer"] for question in chosen],
        shown=shown_labels,
        human_score=[{5: 1.0, 1: 0.0}.get(question["score"] or 0) for question in chosen],
        **find_trace_ids(chosen),
    )
    cases = add_production(cases, chosen, logs_answers=has_answers(questions))
    config = _resolve_judges(run, source.language)
    if any(recorded):
        config |= EvaluationConfig(contexts="recorded")
    if isinstance(run.parameters, JudgeQuality) and run.parameters.exam:
        cases = add_exam(run.parameters, cases, questions, chosen, corpus, source.language)
        config |= EvaluationConfig(exam_period=exam_period())
    return save_loaded(run, source, cases, corpus, [], config)


def _resolve_judges(run: EvaluationRun[J], language: str) -> EvaluationConfig:
    """Return the judge, and the judges that are examined."""
    parameters = run.parameters
    if not isinstance(parameters, JudgeQuality):
        return EvaluationConfig(judge=judge_identity(parameters, language, ["gate"], name="gate"))
    config = EvaluationConfig(judge=judge_identity(parameters, language, ["faithfulness"]))
    return config | EvaluationConfig(exam_of=exam_identity(parameters, language)) if parameters.exam else config


def _load_dialogs(run: EvaluationRun[Ux]) -> EvaluationRun[Ux]:
    if is_loaded(run) and (run.work / "log.parquet").exists():  # older versions did not write it
        return require_unchanged(run, EvaluationConfig(similarity_embedder=get_measuring_embedder_name()))
    source, questions, corpus = read_source(run, vectors=False, chunks=False)
    log = sort_by_time(questions)
    turns = dialog_turns(log)
    has_time = [question["created_at"] is not None for question in log]
    if not any(has_time) and not any(place.turn == 2 for place in turns):
        raise InputError(
            "source {source!r}: no question has created_at, so none is earlier than another, and no dialog of two is "
            "annotated (dialog_id with turn): nothing can be measured",
            source=source.name,
        )
    chosen = sample_whole_dialogs(log, turns, run.parameters.limit, run.parameters.seed)
    cacheable_rows = {row for row, question in enumerate(log) if question["score"] == GOOD and has_time[row]}
    log_questions = [log[row] for row in sorted(cacheable_rows.union(chosen))]
    log_table = make_cases(**_identity_columns(source.name, log_questions), **_cache_columns(log_questions))
    pq.write_table(log_table, run.work / "log.parquet")
    rows = [log[row] for row in chosen]
    is_unusable = [not has_time[row] and turns[row].dialog is None for row in chosen]
    cases = make_cases(
        **_identity_columns(source.name, rows),
        status=["not_applicable" if skip else "ok" for skip in is_unusable],
        reason=[Words("the question has no time, and no place in a dialog") if skip else None for skip in is_unusable],
        **_cache_columns(rows),
        dialog=[turns[row].dialog for row in chosen],
        turn=[turns[row].turn for row in chosen],
    )
    n_timeless = sum(not has_time[row] for row in chosen)
    notes: list[Note] = [{"note": "no time", "n": n_timeless}] if n_timeless else []
    config = EvaluationConfig(batch_size=max(1, len(cases)), similarity_embedder=get_measuring_embedder_name())
    return save_loaded(run, source, cases, corpus, notes, config, beside=[log_table])


def _cache_columns(questions: list[QuestionRow]) -> dict[str, list[Any]]:
    """Return the columns of questions that a cache needs."""
    return {
        "page": [canonical_url(question["confluence_url"]) for question in questions],
        "score": [question["score"] for question in questions],
        "asked_at": [question["created_at"] for question in questions],
    }


def _identity_columns(source: str, questions: list[QuestionRow]) -> dict[str, list[Any]]:
    return {
        "case_id": [f"{source}:{question['question_id']}" for question in questions],
        "question_id": [question["question_id"] for question in questions],
        "question": [question["question"] for question in questions],
        "group": [None if question["user_id"] is None else f"user {question['user_id']}" for question in questions],
    }


def _page_contexts(questions: list[QuestionRow], corpus: Corpus, tokens: int) -> list[tuple[str | None, bool | None]]:
    """Return the text of the page that each answer came from."""
    by_page: dict[str | None, list[str]] = {}
    for chunk, page in page_by_chunk(corpus).items():
        by_page.setdefault(page, []).append(chunk)
    texts = dict(zip(corpus.ids, corpus.texts, strict=True))
    pages = [canonical_url(question["confluence_url"]) for question in questions]
    return [
        join_within_limit([texts[chunk] for chunk in by_page[page]], tokens)
        if page in by_page and page
        else (None, None)
        for page in pages
    ]


def _case_state(
    tier: str, question: QuestionRow, context: tuple[str | None, bool | None], shown_label: bool | None
) -> tuple[str, str | None]:
    if not (question["answer"] or "").strip():
        return "not_applicable", Words("the bot gave no answer")
    if context[0] is None:
        return "stale_label", Words(
            "what the answer was given is not recorded; its page is not named, or not in the corpus"
        )
    if tier == "judge_pipeline" and shown_label is None:
        return "unlabelled", Words("nobody said whether the answer should be shown")
    return "ok", None

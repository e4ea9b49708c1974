"""First step of the tiers that judge answers: load questions with references, and the contexts to answer from."""

import asyncio
from collections.abc import Sequence
from typing import TypeVar

import pyarrow as pa
from prefect import task
from prefect.cache_policies import NO_CACHE

from yarus.db.errors import InputError, nothing_to_search_error
from yarus.db.messages import Words
from yarus.db.source_rows import Corpus, QuestionRow
from yarus.tasks.cases.dialogs import dialog_turns_if_any
from yarus.tasks.cases.labels import annotated_cases, count_labels, default_unit, page_by_chunk
from yarus.tasks.cases.outcomes import ideal_context, is_answerable, logged_reference, reference_answer
from yarus.tasks.cases.own_documents import add_own_documents
from yarus.tasks.cases.perturbations import perturbation_signature
from yarus.tasks.cases.table import column_values, iterate_rows, optional_column_values, set_columns
from yarus.tasks.cases.text import join_within_limit, text_offsets
from yarus.tasks.cases.vocabulary import NO_PAGES_NOTE, Note, Unit
from yarus.tasks.config.connections import should_retry_read
from yarus.tasks.config.parameters import AnswerParameters, Tier2, Tier3
from yarus.tasks.config.settings import get_settings
from yarus.tasks.dataset.nuggets import nuggets_of
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.identity import (
    FOLLOW_UPS,
    JUDGED_END_TO_END,
    JUDGED_ON_IDEAL_CONTEXT,
    judge_identity,
)
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.evaluation.work_folder import is_loaded, save_loaded
from yarus.tasks.steps.contexts.change import change_contexts, context_perturbation_record
from yarus.tasks.steps.production import add_production, has_answers
from yarus.tasks.steps.recorded import (
    RECORDED_SYSTEM,
    copy_answers,
    drop_log_labels,
    find_contexts,
    note_missing_contexts,
    save_recorded,
    use_recorded_contexts,
)
from yarus.tasks.steps.source import (
    add_dialogs,
    find_twins,
    generator_config,
    judge_config,
    read_source,
    rerank_config,
    resume_answering,
    sample_dialogs,
    sample_questions,
    should_read_vectors,
    system_config,
)

A = TypeVar("A", bound=AnswerParameters)
PAGE_NOTES = ("stale labels", "page from the log", "pages only", "chunks as pages")
"""Notes on labels, which are omitted if the source has no pages."""


@task(
    task_run_name="load_ideal {run.parameters.source}",
    cache_policy=NO_CACHE,
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=should_retry_read,
)
async def load_ideal(run: EvaluationRun[Tier2]) -> EvaluationRun[Tier2]:
    """Load tier 2's cases: every question with the full text of its relevant chunks.

    Raises:
        InputError: the source has no questions or no chunks, or what it needs is missing there.
    """
    return await asyncio.to_thread(_load_ideal, run)


@task(
    task_run_name="load_end_to_end {run.parameters.source}",
    cache_policy=NO_CACHE,
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=should_retry_read,
)
async def load_end_to_end(run: EvaluationRun[Tier3]) -> EvaluationRun[Tier3]:
    """Load tier 3's cases: every question with its reference and relevant chunks or pages; errors as `load_ideal`."""
    return await asyncio.to_thread(_load_end_to_end, run)


def _load_ideal(run: EvaluationRun[Tier2]) -> EvaluationRun[Tier2]:
    if is_loaded(run):
        return resume_answering(run, JUDGED_ON_IDEAL_CONTEXT)
    parameters = run.parameters
    reused = _reused_config(run)
    is_recorded = (reused.sut or parameters.sut or get_settings().sut) == RECORDED_SYSTEM
    if is_recorded and (parameters.repeats > 1 or parameters.logprobs):
        raise InputError("recorded answers are not asked for again: leave out --repeats and --logprobs")
    if is_recorded and parameters.context_perturbation:
        raise InputError("recorded answers were made from their own contexts: leave out --context-perturbation")
    source, questions, corpus = read_source(run, vectors=False, chunks=not is_recorded)
    chosen = [questions[number] for number in sample_questions(run, questions)]
    chosen = drop_log_labels(chosen) if is_recorded else chosen
    unit = default_unit(questions)
    cases, notes = annotated_cases(source.name, chosen, corpus, unit)
    pages = page_by_chunk(corpus)
    golds = [tuple(ideal_context(question, corpus, pages)) for question in chosen]
    tokens, kind = parameters.context_tokens, parameters.context_perturbation
    cases = add_context(_add_labels(run, cases, chosen), chosen, golds, corpus, tokens)
    config = EvaluationConfig(unit=unit)
    if is_recorded:
        contexts = find_contexts(chosen, corpus, tokens)
        cases = use_recorded_contexts(cases, contexts)
        if reused.answers_of is None:
            save_recorded(run, cases, chosen, corpus, None)
        config |= EvaluationConfig(sut=RECORDED_SYSTEM)
        if any(contexts):
            config |= EvaluationConfig(contexts=RECORDED_SYSTEM)
        notes += note_missing_contexts(chosen, contexts)
    else:
        config |= generator_config(parameters, source.language)
    if kind is not None:
        cases = change_contexts(
            cases, chosen, golds, corpus, kind, seed=parameters.seed, tokens=tokens, language=source.language
        )
        config |= EvaluationConfig(context_perturbation=context_perturbation_record(kind, parameters.seed))
    config |= judge_config(parameters, source.language, JUDGED_ON_IDEAL_CONTEXT) | reused
    notes += [*_reference_notes(chosen), *_nugget_notes(cases), *_cut_notes(cases), *_reuse_notes(reused)]
    return save_loaded(run, source, cases, corpus, notes, config)


def _load_end_to_end(run: EvaluationRun[Tier3]) -> EvaluationRun[Tier3]:
    if is_loaded(run):
        return resume_answering(run, JUDGED_END_TO_END)
    reused = _reused_config(run)
    system = reused if reused.sut else system_config(run)
    sut = system.sut
    is_recorded = sut == RECORDED_SYSTEM
    is_local = sut == "local"
    source, questions, corpus = read_source(run, vectors=is_local and should_read_vectors(run), chunks=False)
    if is_local and not corpus.ids:
        raise nothing_to_search_error(source.name)
    turns = dialog_turns_if_any(questions)
    numbers = sample_dialogs(run, questions, turns) if turns else sample_questions(run, questions)
    chosen = [questions[number] for number in numbers]
    chosen = drop_log_labels(chosen) if is_recorded else chosen
    config = _resolve_config(run, system, default_unit(questions), source.language, in_dialogs=bool(turns)) | reused
    twins, twin_notes = find_twins(run, corpus, config.unit)
    cases, notes = annotated_cases(source.name, chosen, corpus, config.unit, twins)
    cases = _add_labels(run, cases, chosen)
    if is_recorded:  # recorded by production itself: nothing to compare with
        if reused.answers_of is None:
            save_recorded(run, cases, chosen, corpus, config.unit)
        if cases["reference"].null_count:
            config |= EvaluationConfig(unreferenced="judged")
        cases = set_columns(cases, status=["ok"] * len(cases), reason=[None] * len(cases))
        notes += note_missing_contexts(chosen, find_contexts(chosen, corpus, None))
    else:
        cases = add_production(_set_answer_states(cases), chosen, logs_answers=has_answers(questions))
        if _has_unreferenced(cases):
            config |= EvaluationConfig(unreferenced="judged")
    cases = add_dialogs(cases, [turns[number] for number in numbers]) if turns else cases
    cases, own_notes = add_own_documents(cases, chosen, corpus)
    if own_notes:
        config |= EvaluationConfig(own_documents="left out")
    config |= EvaluationConfig(gain="linear" if cases["grades"].null_count < len(cases) else "binary")
    notes += [*own_notes, *twin_notes, *_reference_notes(chosen), *_nugget_notes(cases), *_reuse_notes(reused)]
    if sut in ("local", RECORDED_SYSTEM):
        notes += count_labels(questions).note(config.unit)
    if not corpus.ids:
        notes = [{"note": NO_PAGES_NOTE}, *(note for note in notes if note["note"] not in PAGE_NOTES)]
    return save_loaded(run, source, cases, corpus, notes, config, twins=twins)


def _resolve_config(
    run: EvaluationRun[Tier3], system: EvaluationConfig, unit: Unit, language: str, *, in_dialogs: bool
) -> EvaluationConfig:
    """Return the configuration that tier 3's parameters resolve to.

    Args:
        run: the evaluation.
        system: the system under test, as `system_config` gives it.
        unit: of the labels of the source.
        language: of the source.
        in_dialogs: whether questions follow each other.
    """
    parameters, sut = run.parameters, system.sut
    unit = unit if sut in ("local", RECORDED_SYSTEM) else "page"
    config = EvaluationConfig(
        sut=sut,
        unit=unit if parameters.unit == "auto" else parameters.unit,
        twins="one" if parameters.merge_duplicates else "apart",
        k=parameters.k,
        context_tokens=parameters.context_tokens,
    )
    if sut == "local":
        config |= EvaluationConfig(retriever=parameters.retriever or get_settings().retriever)
        config |= rerank_config(parameters) | generator_config(parameters, language)
    config |= judge_config(parameters, language, JUDGED_END_TO_END)
    if in_dialogs:
        config |= EvaluationConfig(dialogs=judge_identity(parameters, language, FOLLOW_UPS))
        if sut != RECORDED_SYSTEM:
            config |= EvaluationConfig(takes_history=bool(system.takes_history))
    if perturbation := perturbation_signature(parameters):
        config |= EvaluationConfig(perturbation=perturbation)
    return config


def _reused_config(run: EvaluationRun[AnswerParameters]) -> EvaluationConfig:
    """Return the configuration of reused answers; empty if new answers are requested."""
    parameters = run.parameters
    if parameters.reuse_answers and not parameters.anchor:  # an anchor is checked below
        if perturbation_signature(parameters):
            raise InputError("answers to the questions as they are cannot be reused: leave out --perturbation")
        if getattr(parameters, "context_perturbation", None):
            raise InputError("answers from the contexts as they are cannot be reused: leave out --context-perturbation")
    return copy_answers(run, parameters.reuse_answers) if parameters.reuse_answers else EvaluationConfig()


def _reuse_notes(reused: EvaluationConfig) -> list[Note]:
    return [{"note": "answers reused", "evaluation": reused.answers_of}] if reused.answers_of else []


def _add_labels(run: EvaluationRun[A], cases: pa.Table, questions: list[QuestionRow]) -> pa.Table:
    """Add the references, which questions have an answer, and the nuggets if requested."""
    cases = set_columns(
        cases,
        reference=[reference_answer(question) for question in questions],
        answerable=[is_answerable(question) for question in questions],
    )
    if not run.parameters.nuggets:
        return cases
    nuggets = [nuggets_of(question) for question in questions]
    if not any(nuggets):
        name = run.parameters.source
        raise InputError("no question has nuggets; make some: yarus dataset nuggets --source {name}", name=name)
    return set_columns(cases, nuggets=[[{**nugget, "support": None} for nugget in items] or None for items in nuggets])


def add_context(
    cases: pa.Table, questions: Sequence[QuestionRow], golds: Sequence[tuple[str, ...]], corpus: Corpus, tokens: int
) -> pa.Table:
    """Add `context`, the starts of its passages, and whether it was cut.

    A question whose page label gives it chunks can be measured too.

    Args:
        cases: n rows.
        questions: their rows in the source.
        golds: ids of the chunks that answer each question.
        corpus: the chunks.
        tokens: the longest context.
    """
    texts = dict(zip(corpus.ids, corpus.texts, strict=True))
    context_by_chunks: dict[tuple[str, ...], tuple[int, bool, list[int]]] = {}
    contexts: list[str] = []  # each once: questions about the same passage share its text
    numbers: list[int | None] = []
    truncated: list[bool | None] = []
    passage_starts: list[list[int] | None] = []
    statuses, reasons = column_values(cases, "status"), column_values(cases, "reason")
    for number, (question, chunks) in enumerate(zip(questions, golds, strict=True)):
        if chunks and chunks not in context_by_chunks:
            passages = [texts[chunk] for chunk in chunks]
            context, is_cut = join_within_limit(passages, tokens)
            context_by_chunks[chunks] = len(contexts), is_cut, text_offsets(passages, context)
            contexts.append(context)
        context_number, was_cut, passage_begins = context_by_chunks[chunks] if chunks else (None, None, None)
        numbers.append(context_number)
        truncated.append(was_cut)
        passage_starts.append(passage_begins)
        if chunks:
            statuses[number], reasons[number] = "ok", None
        elif is_answerable(question) is False:
            statuses[number], reasons[number] = (
                "not_applicable",
                Words("the corpus has no answer: there is no ideal context"),
            )
    shared = pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), pa.array(contexts, pa.string()))
    cases = set_columns(cases, status=statuses, reason=reasons, truncated=truncated, passage_starts=passage_starts)
    return cases.append_column("context", shared)


def _set_answer_states(cases: pa.Table) -> pa.Table:
    """Set the status of end-to-end cases: a question needs a reference, nuggets, or the label "unanswerable"."""
    nuggets = optional_column_values(cases, "nuggets")
    labels = zip(column_values(cases, "reference"), column_values(cases, "answerable"), nuggets, strict=True)
    usable = [reference is not None or has_answer is False or bool(items) for reference, has_answer, items in labels]
    return set_columns(
        cases,
        status=["ok" if is_usable else "unlabelled" for is_usable in usable],
        reason=[None if is_usable else Words("no reference answer") for is_usable in usable],
    )


def _has_unreferenced(cases: pa.Table) -> bool:
    """Return whether an answer is judged that can only be compared with nuggets."""
    rows = iterate_rows(cases, "status", "reference", "answerable")
    return any(
        status == "ok" and reference is None and has_answer is not False for status, reference, has_answer in rows
    )


def _nugget_notes(cases: pa.Table) -> list[Note]:
    if "nuggets" not in cases.column_names:
        return []
    pairs = iterate_rows(cases, "reference", "nuggets")
    n = sum(reference is not None and nuggets is None for reference, nuggets in pairs)
    return [{"note": "no nuggets", "n": n}] if n else []


def _cut_notes(cases: pa.Table) -> list[Note]:
    n_cut = column_values(cases, "truncated").count(True)
    return [{"note": "contexts cut", "n": n_cut}] if n_cut else []


def _reference_notes(questions: list[QuestionRow]) -> list[Note]:
    n = sum(logged_reference(question) is not None for question in questions)
    return [{"note": "reference from the log", "n": n}] if n else []

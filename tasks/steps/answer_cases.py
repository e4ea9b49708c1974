"""The first step of the tiers that judge answers: questions with references, and the context to answer from."""

import asyncio
from collections.abc import Sequence
from typing import TypeVar

import pyarrow as pa
from prefect import task
from prefect.cache_policies import NO_CACHE

from yarus.db.errors import InputError, nothing_to_search
from yarus.db.source_rows import Corpus, Row
from yarus.db.words import Words
from yarus.tasks.cases.dialogs import followed
from yarus.tasks.cases.labels import annotated_cases, default_unit, labels_of, pages_of
from yarus.tasks.cases.outcomes import answerable, ideal_context, logged_reference, reference_of
from yarus.tasks.cases.own_documents import with_own_documents
from yarus.tasks.cases.perturbations import perturbed
from yarus.tasks.cases.table import rows_of, values_if_any, values_of, with_columns
from yarus.tasks.cases.text import fit, starts
from yarus.tasks.cases.vocabulary import NO_PAGES, Note, Unit
from yarus.tasks.config.connections import connection_lost
from yarus.tasks.config.parameters import Answering, Tier2, Tier3
from yarus.tasks.config.settings import settings
from yarus.tasks.dataset.nuggets import nuggets_of
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.identity import (
    FOLLOW_UPS,
    JUDGED_END_TO_END,
    JUDGED_ON_IDEAL_CONTEXT,
    judge_identity,
)
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.work_folder import keep_loaded, loaded
from yarus.tasks.steps.contexts.change import change_contexts, perturbed_context
from yarus.tasks.steps.production import has_answers, with_production
from yarus.tasks.steps.recorded import (
    RECORDED,
    contexts_of,
    copy_answers,
    keep_recorded,
    on_recorded_contexts,
    recorded_notes,
    without_log_labels,
)
from yarus.tasks.steps.source import (
    answering,
    asked_system,
    measuring,
    read_source,
    reranked,
    resumed,
    sample_of_dialogs,
    sample_of_questions,
    twins_for,
    wants_vectors,
    with_dialogs,
)

A = TypeVar("A", bound=Answering)
OF_PAGES = ("stale labels", "page from the log", "pages only", "chunks as pages")
"""Notes on labels, of which nothing is worth saying where there is no page that could be found."""


@task(
    task_run_name="load_ideal {run.parameters.source}",
    cache_policy=NO_CACHE,
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=connection_lost,
)
async def load_ideal(run: Run[Tier2]) -> Run[Tier2]:
    """Tier 2's cases: every question with the full text of its relevant chunks.

    Raises:
        InputError: the source has no questions or no chunks, or what it needs is missing there.
    """
    return await asyncio.to_thread(_load_ideal, run)


@task(
    task_run_name="load_end_to_end {run.parameters.source}",
    cache_policy=NO_CACHE,
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=connection_lost,
)
async def load_end_to_end(run: Run[Tier3]) -> Run[Tier3]:
    """Tier 3's cases: every question with its reference and its relevant chunks or pages; errors as `load_ideal`."""
    return await asyncio.to_thread(_load_end_to_end, run)


def _load_ideal(run: Run[Tier2]) -> Run[Tier2]:
    if loaded(run):
        return resumed(run, JUDGED_ON_IDEAL_CONTEXT)
    parameters = run.parameters
    made_with = _reused(run)
    recorded = (made_with.sut or parameters.sut or settings().sut) == RECORDED
    if recorded and (parameters.repeats > 1 or parameters.logprobs):
        raise InputError("recorded answers are not asked for again: leave out --repeats and --logprobs")
    if recorded and parameters.context_perturbation:
        raise InputError("recorded answers were made from their own contexts: leave out --context-perturbation")
    where, questions, corpus = read_source(run, vectors=False, chunks=not recorded)
    chosen = [questions[number] for number in sample_of_questions(run, questions)]
    chosen = without_log_labels(chosen) if recorded else chosen
    unit = default_unit(questions)
    cases, notes = annotated_cases(where.name, chosen, corpus, unit)
    pages = pages_of(corpus)
    golds = [tuple(ideal_context(question, corpus, pages)) for question in chosen]
    tokens, kind = parameters.context_tokens, parameters.context_perturbation
    cases = with_context(_with_labels(run, cases, chosen), chosen, golds, corpus, tokens)
    config = EvaluationConfig(unit=unit)
    if recorded:
        contexts = contexts_of(chosen, corpus, tokens)
        cases = on_recorded_contexts(cases, contexts)
        if made_with.answers_of is None:
            keep_recorded(run, cases, chosen, corpus, None)
        config |= EvaluationConfig(sut=RECORDED)
        if any(contexts):
            config |= EvaluationConfig(contexts=RECORDED)
        notes += recorded_notes(chosen, contexts)
    else:
        config |= answering(parameters, where.language)
    if kind is not None:
        cases = change_contexts(
            cases, chosen, golds, corpus, kind, seed=parameters.seed, tokens=tokens, language=where.language
        )
        config |= EvaluationConfig(context_perturbation=perturbed_context(kind, parameters.seed))
    config |= measuring(parameters, where.language, JUDGED_ON_IDEAL_CONTEXT) | made_with
    notes += [*_reference_notes(chosen), *_nugget_notes(cases), *_cut_notes(cases), *_reuse_notes(made_with)]
    return keep_loaded(run, where, cases, corpus, notes, config)


def _load_end_to_end(run: Run[Tier3]) -> Run[Tier3]:
    if loaded(run):
        return resumed(run, JUDGED_END_TO_END)
    made_with = _reused(run)
    asked = made_with if made_with.sut else asked_system(run)
    sut = asked.sut
    recorded = sut == RECORDED
    local = sut == "local"
    where, questions, corpus = read_source(run, vectors=local and wants_vectors(run), chunks=False)
    if local and not corpus.ids:
        raise nothing_to_search(where.name)
    found = followed(questions)
    numbers = sample_of_dialogs(run, questions, found) if found else sample_of_questions(run, questions)
    chosen = [questions[number] for number in numbers]
    chosen = without_log_labels(chosen) if recorded else chosen
    config = _asked_for(run, asked, default_unit(questions), where.language, in_dialogs=bool(found)) | made_with
    twins, about = twins_for(run, corpus, config.unit)
    cases, notes = annotated_cases(where.name, chosen, corpus, config.unit, twins)
    cases = _with_labels(run, cases, chosen)
    if recorded:  # which is what production did: there is nothing to compare it with
        if made_with.answers_of is None:
            keep_recorded(run, cases, chosen, corpus, config.unit)
        if cases["reference"].null_count:
            config |= EvaluationConfig(unreferenced="judged")
        cases = with_columns(cases, status=["ok"] * len(cases), reason=[None] * len(cases))
        notes += recorded_notes(chosen, contexts_of(chosen, corpus, None))
    else:
        cases = with_production(_answer_states(cases), chosen, logs_answers=has_answers(questions))
        if _has_unreferenced(cases):
            config |= EvaluationConfig(unreferenced="judged")
    cases = with_dialogs(cases, [found[number] for number in numbers]) if found else cases
    cases, own = with_own_documents(cases, chosen, corpus)
    if own:
        config |= EvaluationConfig(own_documents="left out")
    config |= EvaluationConfig(gain="linear" if cases["grades"].null_count < len(cases) else "binary")
    notes += [*own, *about, *_reference_notes(chosen), *_nugget_notes(cases), *_reuse_notes(made_with)]
    if sut in ("local", RECORDED):
        notes += labels_of(questions).note(config.unit)
    if not corpus.ids:
        notes = [{"note": NO_PAGES}, *(note for note in notes if note["note"] not in OF_PAGES)]
    return keep_loaded(run, where, cases, corpus, notes, config, twins=twins)


def _asked_for(
    run: Run[Tier3], asked: EvaluationConfig, unit: Unit, language: str, *, in_dialogs: bool
) -> EvaluationConfig:
    """What the parameters of tier 3 come to.

    Args:
        run: the evaluation.
        asked: the system under test, as `asked_system` gives it.
        unit: of the labels of the source.
        language: of the source.
        in_dialogs: whether questions follow each other.
    """
    parameters, sut = run.parameters, asked.sut
    unit = unit if sut in ("local", RECORDED) else "page"
    config = EvaluationConfig(
        sut=sut,
        unit=unit if parameters.unit == "auto" else parameters.unit,
        twins="one" if parameters.twins else "apart",
        k=parameters.k,
        context_tokens=parameters.context_tokens,
    )
    if sut == "local":
        config |= EvaluationConfig(retriever=parameters.retriever or settings().retriever)
        config |= reranked(parameters) | answering(parameters, language)
    config |= measuring(parameters, language, JUDGED_END_TO_END)
    if in_dialogs:
        config |= EvaluationConfig(dialogs=judge_identity(parameters, language, FOLLOW_UPS))
        if sut != RECORDED:
            config |= EvaluationConfig(takes_history=bool(asked.takes_history))
    if perturbation := perturbed(parameters):
        config |= EvaluationConfig(perturbation=perturbation)
    return config


def _reused(run: Run[Answering]) -> EvaluationConfig:
    """What the answers were made with that are scored again; nothing where new ones are asked for."""
    parameters = run.parameters
    if parameters.reuse_answers and not parameters.anchor:  # an anchor's own is refused below
        if perturbed(parameters):
            raise InputError("answers to the questions as they are cannot be reused: leave out --perturbation")
        if getattr(parameters, "context_perturbation", None):
            raise InputError("answers from the contexts as they are cannot be reused: leave out --context-perturbation")
    return copy_answers(run, parameters.reuse_answers) if parameters.reuse_answers else EvaluationConfig()


def _reuse_notes(made_with: EvaluationConfig) -> list[Note]:
    return [{"note": "answers reused", "evaluation": made_with.answers_of}] if made_with.answers_of else []


def _with_labels(run: Run[A], cases: pa.Table, questions: list[Row]) -> pa.Table:
    """Adds the references, which questions have an answer, and the nuggets where these are asked for."""
    cases = with_columns(
        cases,
        reference=[reference_of(question) for question in questions],
        answerable=[answerable(question) for question in questions],
    )
    if not run.parameters.nuggets:
        return cases
    nuggets = [nuggets_of(question) for question in questions]
    if not any(nuggets):
        name = run.parameters.source
        raise InputError("no question has nuggets; make some: yarus dataset nuggets --source {name}", name=name)
    return with_columns(cases, nuggets=[[{**one, "support": None} for one in some] or None for some in nuggets])


def with_context(
    cases: pa.Table, questions: Sequence[Row], golds: Sequence[tuple[str, ...]], corpus: Corpus, tokens: int
) -> pa.Table:
    """Adds `context`, where its passages start, and whether it was cut; a question that has chunks by its page's label
    can be measured too.

    Args:
        cases: n rows.
        questions: their rows in the source.
        golds: ids of the chunks that answer each question.
        corpus: the chunks.
        tokens: the longest context.
    """
    texts = dict(zip(corpus.ids, corpus.texts, strict=True))
    known: dict[tuple[str, ...], tuple[int, bool, list[int]]] = {}
    contexts: list[str] = []  # each once: questions about one passage share its text
    numbers: list[int | None] = []
    truncated: list[bool | None] = []
    passage_starts: list[list[int] | None] = []
    statuses, reasons = values_of(cases, "status"), values_of(cases, "reason")
    for number, (question, chunks) in enumerate(zip(questions, golds, strict=True)):
        if chunks and chunks not in known:
            passages = [texts[chunk] for chunk in chunks]
            context, cut = fit(passages, tokens)
            known[chunks] = len(contexts), cut, starts(passages, context)
            contexts.append(context)
        context_number, was_cut, begins = known[chunks] if chunks else (None, None, None)
        numbers.append(context_number)
        truncated.append(was_cut)
        passage_starts.append(begins)
        if chunks:
            statuses[number], reasons[number] = "ok", None
        elif answerable(question) is False:
            statuses[number], reasons[number] = (
                "not_applicable",
                Words("the corpus has no answer: there is no ideal context"),
            )
    shared = pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), pa.array(contexts, pa.string()))
    cases = with_columns(cases, status=statuses, reason=reasons, truncated=truncated, passage_starts=passage_starts)
    return cases.append_column("context", shared)


def _answer_states(cases: pa.Table) -> pa.Table:
    """End to end a question counts if it has a reference, or is known to have none: then a refusal is right. Where
    nuggets are looked for, it counts if it has some.
    """
    nuggets = values_if_any(cases, "nuggets")
    known = zip(values_of(cases, "reference"), values_of(cases, "answerable"), nuggets, strict=True)
    measurable = [reference is not None or can is False or bool(named) for reference, can, named in known]
    return with_columns(
        cases,
        status=["ok" if can else "unlabelled" for can in measurable],
        reason=[None if can else Words("no reference answer") for can in measurable],
    )


def _has_unreferenced(cases: pa.Table) -> bool:
    """Whether an answer is judged that has nothing but nuggets to be compared with."""
    rows = rows_of(cases, "status", "reference", "answerable")
    return any(status == "ok" and reference is None and can is not False for status, reference, can in rows)


def _nugget_notes(cases: pa.Table) -> list[Note]:
    if "nuggets" not in cases.column_names:
        return []
    pairs = rows_of(cases, "reference", "nuggets")
    n = sum(reference is not None and nuggets is None for reference, nuggets in pairs)
    return [{"note": "no nuggets", "n": n}] if n else []


def _cut_notes(cases: pa.Table) -> list[Note]:
    cut = values_of(cases, "truncated").count(True)
    return [{"note": "contexts cut", "n": cut}] if cut else []


def _reference_notes(questions: list[Row]) -> list[Note]:
    n = sum(logged_reference(question) is not None for question in questions)
    return [{"note": "reference from the log", "n": n}] if n else []

"""Read the questions and corpus of a source, once for all tiers of a night; configure generator and judges."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from yarus.db import journal
from yarus.db.errors import InputError, empty_source_error
from yarus.db.messages import Words
from yarus.db.source_rows import Corpus, QuestionRow, read_corpus, read_questions
from yarus.db.sources import Source, open_snapshot, refresh_source
from yarus.tasks.cases.dialogs import DialogTurn, group_by_dialog, sample_whole_dialogs, with_earlier_turns
from yarus.tasks.cases.frozen_sets import read_frozen_questions
from yarus.tasks.cases.perturbations import perturbation_signature
from yarus.tasks.cases.sampling import question_stratum, stratified_sample
from yarus.tasks.cases.table import column_values, set_columns
from yarus.tasks.cases.vocabulary import Duplicates, Note, Unit
from yarus.tasks.config.connections import database, open_source
from yarus.tasks.config.parameters import AnswerParameters, LLMLabelParameters, Parameters, RetrievalParameters, Tier3
from yarus.tasks.config.settings import get_settings
from yarus.tasks.dataset.duplicates import duplicate_representatives
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.findings.persistence import changed_questions, failed_cases
from yarus.tasks.evaluation.identity import (
    CITATIONS,
    CLAIMS,
    FOLLOW_UPS,
    NUGGETS,
    generator_identity,
    judge_identity,
    prompt_identity,
    reranker_name,
)
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.models.embedding.embedders import get_measuring_embedder_name
from yarus.tasks.models.prompts import load_rubrics
from yarus.tasks.steps.open_models import open_system
from yarus.tasks.steps.recorded import RECORDED_SYSTEM
from yarus.tasks.systems.retrievers.registry import get_retriever_kind
from yarus.tasks.systems.retrievers.reranking import get_reranker_kind

P = TypeVar("P", bound=Parameters)


def should_read_vectors(run: EvaluationRun[RetrievalParameters]) -> bool:
    """Return whether to read the source's own vectors."""
    parameters = run.parameters
    retrievers = [parameters.retriever or get_settings().retriever, *parse_pool(parameters)]
    return any(get_retriever_kind(name).uses_vectors for name in retrievers) and parameters.vectors != "computed"


def parse_pool(parameters: RetrievalParameters) -> list[str]:
    """Return the other retrievers whose results a judge grades too.

    Raises:
        InputError: a name is unknown, or labels are not filled.
    """
    if not isinstance(parameters, LLMLabelParameters) or not parameters.pool:
        return []
    if parameters.labels != "llm":
        raise InputError("--pool says whose results a judge grades too: it needs --labels llm")
    names = [name.strip() for name in parameters.pool.split(",")]
    for name in names:
        get_retriever_kind(name)
    return names


def rerank_config(parameters: RetrievalParameters) -> EvaluationConfig:
    """Return the re-ranker and the number of chunks it orders; empty if there is none.

    Raises:
        InputError: there is no re-ranker of that name.
    """
    if (name := reranker_name(parameters)) is None:
        return EvaluationConfig()
    get_reranker_kind(name)
    return EvaluationConfig(reranker=name, rerank_depth=parameters.rerank_depth)


ReadSources = dict[Hashable, tuple[Source, list[QuestionRow], Corpus]]
"""Data read so far, by source, frozen case set, and whether with vectors."""


def read_source(
    run: EvaluationRun, *, vectors: bool, questions: bool = True, chunks: bool = True
) -> tuple[Source, list[QuestionRow], Corpus]:
    """Read questions and chunks from one snapshot; questions of a frozen case set as they were frozen.

    Args:
        run: the evaluation.
        vectors: whether the chunks' stored vectors are needed.
        questions: whether there must be questions.
        chunks: whether there must be chunks.

    Raises:
        InputError: required data is missing, or the frozen case set is of another source.
    """
    name, cases, shared = run.parameters.source, run.parameters.cases, run.resources.shared
    sources: ReadSources | None = shared.sources if shared else None
    if sources is not None and (stored := sources.get((name, cases, True)) or sources.get((name, cases, vectors))):
        source, rows, corpus = stored
        corpus = corpus if vectors else replace(corpus, vectors=None)
    else:
        source = open_source(name)
        with open_snapshot(source) as connection:
            source = refresh_source(connection, source)
            rows = read_frozen_questions(cases, source.name) if cases else read_questions(connection, source)
            corpus = read_corpus(connection, source, vectors=vectors)
        if sources is not None:
            sources[name, cases, vectors] = source, rows, corpus
    for kind, items, is_required in ((Words("questions"), rows, questions), (Words("chunks"), corpus.ids, chunks)):
        if is_required and not items:
            raise empty_source_error(source.name, kind)
    return source, rows, corpus


def find_twins(run: EvaluationRun[RetrievalParameters], corpus: Corpus, unit: Unit) -> tuple[Duplicates, list[Note]]:
    """Return the duplicates in an evaluation, and a note on them; empty if duplicates count separately."""
    twins = duplicate_representatives(corpus, unit) if run.parameters.merge_duplicates else {}
    n = len(twins) - len(set(twins.values()))
    return twins, [{"note": f"twin {unit}s", "n": n}] if n else []


def sample_numbers(run: EvaluationRun, ids: Iterable[str], strata: Iterable[str]) -> list[int]:
    """Return the numbers of the evaluated cases: all, or a seeded sample with the share of every stratum.

    If another evaluation is confirmed, these are the cases that changed in it; likewise those that failed in one.

    Raises:
        InputError: nothing changed in it, or the source has none of the failed cases any more.
    """
    if confirms := getattr(run.parameters, "recheck", None):
        changed = changed_questions(database(), confirms)
        return [number for number, id_ in enumerate(ids) if f"{run.parameters.source}:{id_}" in changed]
    if failed := getattr(run.parameters, "retry_failed", None):
        failed_ids = failed_cases(journal.find_evaluation(database(), failed))
        numbers = [number for number, id_ in enumerate(ids) if f"{run.parameters.source}:{id_}" in failed_ids]
        if not numbers:
            raise InputError(
                "--retry-failed {id}: the source has none of the cases that failed in it any more", id=failed
            )
        return numbers
    return stratified_sample(list(ids), list(strata), run.parameters.limit, run.parameters.seed)


def sample_questions(run: EvaluationRun, questions: Sequence[QuestionRow]) -> list[int]:
    """Sample questions, by topic and score."""
    return sample_numbers(run, (question["question_id"] for question in questions), map(question_stratum, questions))


def require_unchanged(run: EvaluationRun[P], current: EvaluationConfig) -> EvaluationRun[P]:
    """Return the resumed evaluation, if its measurement and its system are still configured as they began.

    Raises:
        InputError: a setting was changed meanwhile, so that half of the cases would be measured otherwise.
    """
    for name, value in current.stored().items():
        began = getattr(run.config, name)
        if began != value:
            raise InputError(
                "evaluation {evaluation} began with {name} {began!r}, the settings now say {value!r}: set it as it "
                "was to resume, or run the tier anew",
                evaluation=run.id,
                name=name,
                began=began,
                value=value,
            )
    return run


def sample_dialogs(run: EvaluationRun, questions: Sequence[QuestionRow], turns: Sequence[DialogTurn]) -> list[int]:
    """Return the numbers of the questions of a seeded sample of whole dialogs, or of all, dialog by dialog.

    If another evaluation is confirmed or its failed cases repeated, these are its questions, and the turns before them.

    Raises:
        InputError: as `sample_questions`.
    """
    if not any(getattr(run.parameters, mark, None) for mark in ("recheck", "retry_failed")):
        return group_by_dialog(sample_whole_dialogs(questions, turns, run.parameters.limit, run.parameters.seed), turns)
    return group_by_dialog(with_earlier_turns(sample_questions(run, questions), turns), turns)


def add_dialogs(cases: pa.Table, turns: Sequence[DialogTurn]) -> pa.Table:
    """Add `dialog` and `turn`, and make sure that no group splits a dialog.

    A dialog whose questions share a user, or a page, stays in that larger group; any other dialog is a group.

    Args:
        cases: n rows with `group`.
        turns: dialog and turn of each case.
    """
    pairs = list(zip(column_values(cases, "group"), (turn.dialog for turn in turns), strict=True))
    by_dialog: dict[str | None, list[str | None]] = {}
    for group, name in pairs:
        by_dialog.setdefault(name, []).append(group)
    shared = {name for name, groups in by_dialog.items() if len(groups) == 1 or {*groups} - {None} == {groups[0]}}
    return set_columns(
        cases,
        dialog=[turn.dialog for turn in turns],
        turn=[turn.turn for turn in turns],
        group=[group if name is None or name in shared else f"dialog {name}" for group, name in pairs],
    )


A = TypeVar("A", bound=AnswerParameters)


def resume_answering(run: EvaluationRun[A], metrics: Sequence[str]) -> EvaluationRun[A]:
    """Return the resumed evaluation, if judges and generator are those that it was started with."""
    current = judge_config(run.parameters, run.config.language, metrics)
    if run.config.generator is not None and run.config.answers_of is None:
        current |= generator_config(run.parameters, run.config.language)
    if run.config.dialogs is not None:
        current |= EvaluationConfig(dialogs=judge_identity(run.parameters, run.config.language, FOLLOW_UPS))
    return require_unchanged(run, current)


def generator_config(parameters: AnswerParameters, language: str) -> EvaluationConfig:
    """Return the generator, and its prompt if that is the user's own."""
    config = EvaluationConfig(generator=generator_identity(parameters))
    prompt = prompt_identity(parameters, language)
    return config | EvaluationConfig(generator_prompt=prompt) if prompt else config


def system_config(run: EvaluationRun[Tier3]) -> EvaluationConfig:
    """Return the system under test, and whether it takes history; invalid combinations are reported before any call."""
    parameters, configuration = run.parameters, get_settings()
    sut = parameters.sut or configuration.sut
    if sut == RECORDED_SYSTEM and perturbation_signature(parameters):
        raise InputError("recorded answers are to the questions as they are: leave out --perturbation")
    if sut in ("local", RECORDED_SYSTEM):
        return EvaluationConfig(sut=sut)
    system = open_system(run, sut, configuration)
    if parameters.unit == "chunk":
        raise InputError("unit 'chunk' needs the system 'local': another one names pages; leave out --unit")
    for name in ("reranker", "generator_prompt"):
        if getattr(parameters, name):
            raise InputError(
                "{name} {given!r} needs the system 'local': another one has its own; leave out --{option}",
                name=name,
                given=getattr(parameters, name),
                option=name.replace("_", "-"),
            )
    return EvaluationConfig(sut=sut, takes_history=system.takes_history)


def judge_config(parameters: AnswerParameters, language: str, metrics: Sequence[str]) -> EvaluationConfig:
    """Return the judges with their prompts, and the embedder that measures similarity."""
    config = EvaluationConfig(
        judge=judge_identity(parameters, language, (*metrics, *load_rubrics(get_settings()))),
        similarity_embedder=get_measuring_embedder_name(),
    )
    if parameters.claims:
        config |= EvaluationConfig(claims=judge_identity(parameters, language, CLAIMS))
    if parameters.nuggets:
        config |= EvaluationConfig(nuggets=judge_identity(parameters, language, NUGGETS))
    if isinstance(parameters, Tier3) and (parameters.claims or parameters.citations):
        config |= EvaluationConfig(citations=judge_identity(parameters, language, CITATIONS))
    return config

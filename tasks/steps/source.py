"""The questions and the corpus of a source, read once for all tiers of a night; who answers, and who judges."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from yarus.db import journal
from yarus.db.errors import InputError, nothing_in
from yarus.db.source_rows import Corpus, Row, read_corpus, read_questions
from yarus.db.sources import Source, registered, snapshot
from yarus.db.words import Words
from yarus.tasks.cases.dialogs import Place, sampled_whole, together, with_what_was_said
from yarus.tasks.cases.frozen_sets import frozen_questions
from yarus.tasks.cases.perturbations import perturbed
from yarus.tasks.cases.sampling import sampled, topic_and_score
from yarus.tasks.cases.table import values_of, with_columns
from yarus.tasks.cases.vocabulary import Note, Twins, Unit
from yarus.tasks.config.connections import database, source
from yarus.tasks.config.parameters import Answering, Fillable, Parameters, Retrieval, Tier3
from yarus.tasks.config.settings import settings
from yarus.tasks.dataset.duplicates import twins_of
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
    reranker_of,
)
from yarus.tasks.evaluation.run import Run
from yarus.tasks.models.embedding.embedders import measuring_embedder
from yarus.tasks.models.prompts import rubrics
from yarus.tasks.steps.opened import open_system
from yarus.tasks.steps.recorded import RECORDED
from yarus.tasks.systems.retrievers.registry import retriever_kind
from yarus.tasks.systems.retrievers.reranking import reranker_kind

P = TypeVar("P", bound=Parameters)


def wants_vectors(run: Run[Retrieval]) -> bool:
    """Whether the source's own vectors are to be read."""
    parameters = run.parameters
    named = [parameters.retriever or settings().retriever, *pooled(parameters)]
    return any(retriever_kind(name).uses_vectors for name in named) and parameters.vectors != "computed"


def pooled(parameters: Retrieval) -> list[str]:
    """The other retrievers whose results a judge grades too.

    Raises:
        InputError: there is none of a name, or labels are not filled.
    """
    if not isinstance(parameters, Fillable) or not parameters.pool:
        return []
    if parameters.labels != "filled":
        raise InputError("--pool says whose results a judge grades too: it needs --labels filled")
    named = [name.strip() for name in parameters.pool.split(",")]
    for name in named:
        retriever_kind(name)
    return named


def reranked(parameters: Retrieval) -> EvaluationConfig:
    """What orders the rankings anew, and how many of their chunks; nothing where nothing does.

    Raises:
        InputError: there is no re-ranker of that name.
    """
    if (name := reranker_of(parameters)) is None:
        return EvaluationConfig()
    reranker_kind(name)
    return EvaluationConfig(reranker=name, rerank_depth=parameters.rerank_depth)


Read = dict[Hashable, tuple[Source, list[Row], Corpus]]
"""What was read: by source, frozen case set, and whether with vectors."""


def read_source(
    run: Run, *, vectors: bool, questions: bool = True, chunks: bool = True
) -> tuple[Source, list[Row], Corpus]:
    """Questions and chunks from one snapshot; the questions of a frozen case set as they were frozen.

    Args:
        run: the evaluation.
        vectors: whether the chunks' stored vectors are wanted.
        questions: whether there must be any.
        chunks: the same of chunks.

    Raises:
        InputError: there are none of what there must be, what is needed is missing, or the frozen case set is of
            another source.
    """
    name, cases, common = run.parameters.source, run.parameters.cases, run.resources.shared
    read: Read | None = common.sources if common else None
    if read is not None and (known := read.get((name, cases, True)) or read.get((name, cases, vectors))):
        where, rows, corpus = known
        corpus = corpus if vectors else replace(corpus, vectors=None)
    else:
        where = source(name)
        with snapshot(where) as connection:
            where = registered(connection, where)
            rows = frozen_questions(cases, where.name) if cases else read_questions(connection, where)
            corpus = read_corpus(connection, where, vectors=vectors)
        if read is not None:
            read[name, cases, vectors] = where, rows, corpus
    for what, found, needed in ((Words("questions"), rows, questions), (Words("chunks"), corpus.ids, chunks)):
        if needed and not found:
            raise nothing_in(where.name, what)
    return where, rows, corpus


def twins_for(run: Run[Retrieval], corpus: Corpus, unit: Unit) -> tuple[Twins, list[Note]]:
    """What counts as one in an evaluation, and a note on it; nothing where twins are to stand apart."""
    twins = twins_of(corpus, unit) if run.parameters.twins else {}
    n = len(twins) - len(set(twins.values()))
    return twins, [{"note": f"twin {unit}s", "n": n}] if n else []


def sample(run: Run, ids: Iterable[str], strata: Iterable[str]) -> list[int]:
    """The numbers of the cases that are evaluated: all, or a seeded sample in which every stratum keeps its share.

    Where another evaluation is confirmed, they are those that changed in it; or those that failed in one.

    Raises:
        InputError: nothing changed in it, or the source has nothing of what failed any more.
    """
    if confirms := getattr(run.parameters, "confirms", None):
        changed = changed_questions(database(), confirms)
        return [number for number, one in enumerate(ids) if f"{run.parameters.source}:{one}" in changed]
    if failed := getattr(run.parameters, "failed", None):
        wanted = failed_cases(journal.find(database(), failed))
        kept = [number for number, one in enumerate(ids) if f"{run.parameters.source}:{one}" in wanted]
        if not kept:
            raise InputError("--failed {id}: the source has none of the cases that failed in it any more", id=failed)
        return kept
    return sampled(list(ids), list(strata), run.parameters.limit, run.parameters.seed)


def sample_of_questions(run: Run, questions: Sequence[Row]) -> list[int]:
    """The same of questions, by topic and score."""
    return sample(run, (question["question_id"] for question in questions), map(topic_and_score, questions))


def unchanged(run: Run[P], now: EvaluationConfig) -> Run[P]:
    """The evaluation that is resumed, if it is still measured, and its system still served, as it began.

    Raises:
        InputError: a setting was changed meanwhile, so that half of the cases would be another evaluation's.
    """
    for name, value in now.stored().items():
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


def sample_of_dialogs(run: Run, questions: Sequence[Row], found: Sequence[Place]) -> list[int]:
    """The numbers of the questions of a seeded sample of whole dialogs, or of all, each dialog's one after another.

    Where another evaluation is confirmed, or what failed in one asked again, they are those questions, and what was
    said before them.

    Raises:
        InputError: as `sample_of_questions`.
    """
    if not any(getattr(run.parameters, mark, None) for mark in ("confirms", "failed")):
        return together(sampled_whole(questions, found, run.parameters.limit, run.parameters.seed), found)
    return together(with_what_was_said(sample_of_questions(run, questions), found), found)


def with_dialogs(cases: pa.Table, found: Sequence[Place]) -> pa.Table:
    """Adds `dialog` and `turn`, and makes sure that no group parts a dialog.

    A dialog whose questions share a user, or a page, stays in that group, which is the larger one; another is a group.

    Args:
        cases: n rows with `group`.
        found: the place of each.
    """
    pairs = list(zip(values_of(cases, "group"), (place.dialog for place in found), strict=True))
    of: dict[str | None, list[str | None]] = {}
    for group, name in pairs:
        of.setdefault(name, []).append(group)
    shared = {name for name, groups in of.items() if len(groups) == 1 or {*groups} - {None} == {groups[0]}}
    return with_columns(
        cases,
        dialog=[place.dialog for place in found],
        turn=[place.turn for place in found],
        group=[group if name is None or name in shared else f"dialog {name}" for group, name in pairs],
    )


A = TypeVar("A", bound=Answering)


def resumed(run: Run[A], metrics: Sequence[str]) -> Run[A]:
    """The evaluation that is resumed, if it is made with what it was begun with."""
    now = measuring(run.parameters, run.config.language, metrics)
    if run.config.generator is not None and run.config.answers_of is None:
        now |= answering(run.parameters, run.config.language)
    if run.config.dialogs is not None:
        now |= EvaluationConfig(dialogs=judge_identity(run.parameters, run.config.language, FOLLOW_UPS))
    return unchanged(run, now)


def answering(parameters: Answering, language: str) -> EvaluationConfig:
    """Who answers, and by which prompt where it is one of the user's own."""
    config = EvaluationConfig(generator=generator_identity(parameters))
    prompt = prompt_identity(parameters, language)
    return config | EvaluationConfig(generator_prompt=prompt) if prompt else config


def asked_system(run: Run[Tier3]) -> EvaluationConfig:
    """The system under test, and whether it takes history; what cannot work is found before anything is asked."""
    parameters, configuration = run.parameters, settings()
    sut = parameters.sut or configuration.sut
    if sut == RECORDED and perturbed(parameters):
        raise InputError("recorded answers are to the questions as they are: leave out --perturbation")
    if sut in ("local", RECORDED):
        return EvaluationConfig(sut=sut)
    found = open_system(run, sut, configuration)
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
    return EvaluationConfig(sut=sut, takes_history=found.takes_history)


def measuring(parameters: Answering, language: str, metrics: Sequence[str]) -> EvaluationConfig:
    """Who judges, by which prompts, and what measures similarity."""
    config = EvaluationConfig(
        judge=judge_identity(parameters, language, (*metrics, *rubrics(settings()))),
        similarity_embedder=measuring_embedder(),
    )
    if parameters.claims:
        config |= EvaluationConfig(claims=judge_identity(parameters, language, CLAIMS))
    if parameters.nuggets:
        config |= EvaluationConfig(nuggets=judge_identity(parameters, language, NUGGETS))
    if isinstance(parameters, Tier3) and (parameters.claims or parameters.citations):
        config |= EvaluationConfig(citations=judge_identity(parameters, language, CITATIONS))
    return config

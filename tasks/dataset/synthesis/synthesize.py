"""Synthesis of cases: the generator writes questions and answers from the chunks of a source into another source.

The call store keeps every reply, so that an interrupted synthesis resumes with the same parameters without repeated
calls and gives the same questions.
"""

import asyncio
import hashlib
from collections.abc import Iterable

import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE

from yarus.db.errors import InputError
from yarus.db.loading.load_rows import ImportedRows, load_rows
from yarus.db.loading.load_rows import IncomingRow as Loaded
from yarus.db.source_rows import Corpus, read_corpus, read_questions
from yarus.db.sources import find_loaded_source, open_snapshot
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.config.connections import database, open_source, should_retry_read
from yarus.tasks.config.settings import get_settings
from yarus.tasks.dataset.dataset_schema import SynthesisExample, SynthesisResult
from yarus.tasks.dataset.synthesis.checks import (
    KnownQuestions,
    SynthesisPlan,
    plan_questions,
    split_by_kind,
    usable_chunks,
)
from yarus.tasks.dataset.synthesis.generator import ORIGIN_FORMAT, QAPair, SynthesisParameters, check_parameters
from yarus.tasks.dataset.synthesis.pipeline import SynthesisInput, SynthesisModels, SynthesisOutcome, run_rounds
from yarus.tasks.models.calls import sum_costs
from yarus.tasks.models.chat import ChatPool, open_chat

N_EXAMPLES = 5


@task(
    task_run_name="gather {parameters.source}",
    cache_policy=NO_CACHE,
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=should_retry_read,
)
async def gather(parameters: SynthesisParameters) -> SynthesisInput:
    """Load the chunks and questions of the source.

    Raises:
        InputError: the source does not exist or has no usable chunk, or the receiving source has other content.
    """
    return await asyncio.to_thread(_load_input, parameters)


@task(task_run_name="write {parameters.n} questions", cache_policy=NO_CACHE, retries=0)
async def write(parameters: SynthesisParameters, material: SynthesisInput) -> SynthesisOutcome:
    """Generate and check questions, round by round, until there are enough or all chunks have been tried.

    The task has no retries, because each call has its own (`RetryPolicy`).
    """
    configuration = get_settings().model_copy(update={"language": material.language})
    payer = "synthesize-" + hashlib.sha256(parameters.model_dump_json().encode()).hexdigest()[:12]
    known_questions = KnownQuestions([row["question"] for row in material.questions] + material.taken)
    outcome, engine, chats = SynthesisOutcome(), database(), ChatPool()
    async with (
        open_chat("generator", configuration, engine, evaluation=payer, chats=chats) as generator,
        open_chat("judge", configuration, engine, evaluation=payer, chats=chats) as judge,
    ):
        outcome.generator, outcome.judge = generator.describe(), judge.describe()
        models = SynthesisModels(configuration, material, generator, judge)
        for kind, n_wanted in split_by_kind(parameters.kinds, parameters.n).items():
            plans = plan_questions(kind, n_wanted, material.corpus, material.questions, parameters.seed)
            if n_wanted and not plans:
                outcome.rejected["no_page_with_two_chunks"] += n_wanted
            await run_rounds(models, plans, n_wanted, known_questions, outcome)
    return outcome


@task(task_run_name="keep {parameters.into}", cache_policy=NO_CACHE)
async def keep(parameters: SynthesisParameters, material: SynthesisInput, made: SynthesisOutcome) -> SynthesisResult:
    """Store the questions with their annotations and the same chunks in the receiving source, and return a summary."""
    return await asyncio.to_thread(_save_questions, parameters, material, made)


def _load_input(parameters: SynthesisParameters) -> SynthesisInput:
    check_parameters(parameters)
    data_source = open_source(parameters.source)
    with open_snapshot(data_source) as connection:
        questions = read_questions(connection, data_source)
        corpus = read_corpus(connection, data_source, vectors=True)
    if not usable_chunks(corpus):
        raise InputError(
            "source {source!r} has no chunk of a sentence or more; load some: yarus load …", source=data_source.name
        )
    return SynthesisInput(data_source.name, data_source.language, questions, corpus, _existing_questions(parameters))


def _existing_questions(parameters: SynthesisParameters) -> list[str]:
    """Return the receiving source's questions from other parameters; those from equal ones are generated again."""
    try:
        receiving_source = find_loaded_source(database(), parameters.into)
    except InputError:  # the source does not exist yet
        return []
    with open_snapshot(receiving_source) as connection:
        rows = read_questions(connection, receiving_source, all_rows=True)
    own_parameters = _parameters_key(parameters)
    return [row["question"] for row in rows if (row.get("review") or {}).get("asked_by") != own_parameters]


def _save_questions(
    parameters: SynthesisParameters, material: SynthesisInput, outcome: SynthesisOutcome
) -> SynthesisResult:
    rows = [_question_rows(parameters, material, plan, pair) for plan, pair in outcome.accepted]
    if rows:
        loaded_rows = ImportedRows(
            [question for question, _ in rows], list(_chunk_rows(material.corpus)), [label for _, label in rows]
        )
        origin = ORIGIN_FORMAT.format(material.source) + outcome.generator
        load_rows(database(), parameters.into, loaded_rows, language=material.language, origin=origin)
    examples: list[SynthesisExample] = [
        {"kind": plan.kind, "question": pair.question, "answer": pair.answer}
        for plan, pair in outcome.accepted[:N_EXAMPLES]
    ]
    return {
        "state": "completed" if rows else "invalid",
        "source": material.source,
        "into": parameters.into if rows else None,
        "n_requested": parameters.n,
        "n_accepted": len(rows),
        "kinds": {kind: sum(plan.kind == kind for plan, _ in outcome.accepted) for kind in parameters.kinds},
        "rejected": dict(sorted((+outcome.rejected).items())),
        "generator": outcome.generator,
        "judge": outcome.judge,
        **sum_costs(outcome.replies),
        "examples": pseudonyms.mask_document(examples, material.source),
    }


def _question_rows(
    parameters: SynthesisParameters, material: SynthesisInput, plan: SynthesisPlan, pair: QAPair
) -> tuple[Loaded, Loaded]:
    chunks = [material.corpus.ids[position] for position in plan.chunks]
    urls = list(dict.fromkeys(url for position in plan.chunks if (url := material.corpus.urls[position])))
    identity = f"{plan.kind}|{chunks}|{pair.question}"
    question_id = "syn-" + hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    is_answerable = plan.kind != "unanswerable"
    question = {
        "id": question_id, "question": pair.question, "answer": None,
        "confluence_url": urls[0] if is_answerable and urls else None,
        "score": None, "user_id": None, "created_at": None,
    }  # fmt: skip
    label = {
        "question_id": question_id,
        "ground_truth_answer": pair.answer if is_answerable else None,
        "relevant_chunk_ids": chunks if is_answerable else [],
        "relevant_urls": urls if is_answerable else [],
        "ground_truth_show": None,
        "answerable": is_answerable,
        "cluster": urls[0] if urls else None,
        "origin": "synthetic",
        "review": {"kind": plan.kind, "made_from": chunks, "asked_by": _parameters_key(parameters)},
    }
    return Loaded(question_id, question), Loaded(question_id, label)


def _parameters_key(parameters: SynthesisParameters) -> str:
    return f"n {parameters.n}, kinds {','.join(parameters.kinds)}, seed {parameters.seed}"


def _chunk_rows(corpus: Corpus) -> Iterable[Loaded]:
    """Yield the same chunks, with their vectors if there are any."""
    for position, name in enumerate(corpus.ids):
        row = {"id": name, "confluence_url": corpus.urls[position], "text": corpus.texts[position]}
        if corpus.vectors is not None:
            row["embedding"] = None if np.isnan(corpus.vectors[position]).any() else corpus.vectors[position]
        yield Loaded(f"chunk {name}", row)

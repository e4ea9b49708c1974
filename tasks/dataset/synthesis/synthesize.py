"""Making cases: questions and answers from the chunks of a source, written by the generator into another source.

Every reply goes through the call store: an interrupted synthesis that is started again with the same parameters buys
nothing twice and comes to the same questions.
"""

import asyncio
import hashlib
from collections.abc import Iterable

import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE

from yarus.db.errors import InputError
from yarus.db.loading.fill import Row as Loaded
from yarus.db.loading.fill import Rows, fill
from yarus.db.source_rows import Corpus, read_corpus, read_questions
from yarus.db.sources import Source, loaded, snapshot
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.config.connections import connection_lost, database, source
from yarus.tasks.config.settings import settings
from yarus.tasks.dataset.dataset_schema import SynthesisExample, SynthesisResult
from yarus.tasks.dataset.synthesis.checks import Known, Plan, plans, quotas, usable
from yarus.tasks.dataset.synthesis.generator import ORIGIN, Pair, Synthesis, check
from yarus.tasks.dataset.synthesis.pipeline import Made, Makers, Material, rounds
from yarus.tasks.models.calls import bill
from yarus.tasks.models.chat import Chats, chat

SHOWN = 5


@task(
    task_run_name="gather {parameters.source}",
    cache_policy=NO_CACHE,
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=connection_lost,
)
async def gather(parameters: Synthesis) -> Material:
    """The chunks and questions of the source.

    Raises:
        InputError: no such source, nothing to ask about in it, or the receiving source is somebody else's.
    """
    return await asyncio.to_thread(_gather, parameters)


@task(task_run_name="write {parameters.n} questions", cache_policy=NO_CACHE, retries=0)
async def write(parameters: Synthesis, material: Material) -> Made:
    """Has questions made and checked, round by round, until there are enough or all chunks have been tried.

    No retries: every call is tried by itself (`RetryPolicy`).
    """
    configuration = settings().model_copy(update={"language": material.language})
    payer = "synthesize-" + hashlib.sha256(parameters.model_dump_json().encode()).hexdigest()[:12]
    known = Known([row["question"] for row in material.questions] + material.taken)
    made, engine, chats = Made(), database(), Chats()
    async with (
        chat("generator", configuration, engine, evaluation=payer, chats=chats) as generator,
        chat("judge", configuration, engine, evaluation=payer, chats=chats) as judge,
    ):
        made.generator, made.judge = generator.describe(), judge.describe()
        makers = Makers(configuration, material, generator, judge)
        for kind, wanted in quotas(parameters.kinds, parameters.n).items():
            waiting = plans(kind, wanted, material.corpus, material.questions, parameters.seed)
            if wanted and not waiting:
                made.rejected["no_page_with_two_chunks"] += wanted
            await rounds(makers, waiting, wanted, known, made)
    return made


@task(task_run_name="keep {parameters.into}", cache_policy=NO_CACHE)
async def keep(parameters: Synthesis, material: Material, made: Made) -> SynthesisResult:
    """Writes the questions with their annotations, and the same chunks, into the source; says what was made."""
    return await asyncio.to_thread(_keep, parameters, material, made)


def _gather(parameters: Synthesis) -> Material:
    check(parameters)
    where = source(parameters.source)
    with snapshot(where) as connection:
        questions = read_questions(connection, where)
        corpus = read_corpus(connection, where, vectors=True)
    if not usable(corpus):
        raise InputError(
            "source {source!r} has no chunk of a sentence or more; load some: yarus load …", source=where.name
        )
    return Material(where.name, where.language, questions, corpus, _taken(parameters, where))


def _taken(parameters: Synthesis, where: Source) -> list[str]:
    """What is in the receiving source from other parameters; the same ones come to the same questions again."""
    try:
        into = loaded(database(), parameters.into)
    except InputError:  # it is not there yet
        return []
    with snapshot(into) as connection:
        rows = read_questions(connection, into, all_rows=True)
    ours = _asked_by(parameters)
    return [row["question"] for row in rows if (row.get("review") or {}).get("asked_by") != ours]


def _keep(parameters: Synthesis, material: Material, made: Made) -> SynthesisResult:
    rows = [_rows(parameters, material, plan, pair) for plan, pair in made.accepted]
    if rows:
        given = Rows([one for one, _ in rows], list(_chunks(material.corpus)), [label for _, label in rows])
        origin = ORIGIN.format(material.source) + made.generator
        fill(database(), parameters.into, given, language=material.language, origin=origin)
    examples: list[SynthesisExample] = [
        {"kind": plan.kind, "question": pair.question, "answer": pair.answer} for plan, pair in made.accepted[:SHOWN]
    ]
    return {
        "state": "completed" if rows else "invalid",
        "source": material.source,
        "into": parameters.into if rows else None,
        "asked": parameters.n,
        "accepted": len(rows),
        "kinds": {kind: sum(plan.kind == kind for plan, _ in made.accepted) for kind in parameters.kinds},
        "rejected": dict(sorted((+made.rejected).items())),
        "generator": made.generator,
        "judge": made.judge,
        **bill(made.replies),
        "examples": pseudonyms.document(examples, material.source),
    }


def _rows(parameters: Synthesis, material: Material, plan: Plan, pair: Pair) -> tuple[Loaded, Loaded]:
    chunks = [material.corpus.ids[place] for place in plan.chunks]
    urls = list(dict.fromkeys(url for place in plan.chunks if (url := material.corpus.urls[place])))
    said = f"{plan.kind}|{chunks}|{pair.question}"
    name = "syn-" + hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    can = plan.kind != "unanswerable"
    question = {
        "id": name, "question": pair.question, "answer": None, "confluence_url": urls[0] if can and urls else None,
        "score": None, "user_id": None, "created_at": None,
    }  # fmt: skip
    label = {
        "question_id": name,
        "ground_truth_answer": pair.answer if can else None,
        "relevant_chunk_ids": chunks if can else [],
        "relevant_urls": urls if can else [],
        "ground_truth_show": None,
        "answerable": can,
        "cluster": urls[0] if urls else None,
        "origin": "synthetic",
        "review": {"kind": plan.kind, "made_from": chunks, "asked_by": _asked_by(parameters)},
    }
    return Loaded(name, question), Loaded(name, label)


def _asked_by(parameters: Synthesis) -> str:
    return f"n {parameters.n}, kinds {','.join(parameters.kinds)}, seed {parameters.seed}"


def _chunks(corpus: Corpus) -> Iterable[Loaded]:
    """The same chunks, with their vectors where there are any."""
    for place, name in enumerate(corpus.ids):
        row = {"id": name, "confluence_url": corpus.urls[place], "text": corpus.texts[place]}
        if corpus.vectors is not None:
            row["embedding"] = None if np.isnan(corpus.vectors[place]).any() else corpus.vectors[place]
        yield Loaded(f"chunk {name}", row)

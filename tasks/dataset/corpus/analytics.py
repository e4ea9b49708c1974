"""Corpus analytics: which pages are used, what people ask, what to write next; kept with every night."""

import asyncio
from collections.abc import Sequence

import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE
from sqlalchemy import Engine

from yarus.db import analyses
from yarus.tasks.config.connections import database
from yarus.tasks.dataset.corpus.cohesion import counted_apart, held_together, kinds_of
from yarus.tasks.dataset.corpus.corpus_schema import CorpusAnalytics
from yarus.tasks.dataset.corpus.languages import content
from yarus.tasks.dataset.corpus.profile import profile
from yarus.tasks.dataset.corpus.projection import map_of, reduced, unit
from yarus.tasks.dataset.corpus.question_log import evaluations_of, read_log
from yarus.tasks.dataset.corpus.topics import cluster, served
from yarus.tasks.dataset.corpus.usage import utilisation
from yarus.tasks.models.embedding.embedders import Embedder, Lexical, embedder, measuring_embedder

POINTS = 50_000
SEED = 0


def corpus(
    engine: Engine, source: str, *, evaluation: str | None = None, points: int = POINTS, limit: int | None = None
) -> CorpusAnalytics:
    """What a source's corpus and log are like.

    Args:
        engine: of our own database.
        source: its name.
        evaluation: whose rankings and outcomes count; None: the newest of the source.
        points: most points of the map.
        limit: most questions, the newest ones; None: all.

    Raises:
        InputError: no such source or evaluation, or there is nothing to look at.
    """
    evaluations = evaluations_of(engine, source, evaluation)
    log = read_log(source, evaluations, limit=limit)
    used, uses = utilisation(log, evaluations)
    kinds = kinds_of(log)
    asked = log.of(np.flatnonzero([kind is None for kind in kinds]))
    model = embedder(measuring_embedder())
    texts = [question["question"] for question in asked.questions]
    questions, chunks, variance = reduced(
        _meant(texts, model), _meant(log.corpus.texts, model), model, engine, seed=SEED
    )
    directions = unit(questions)
    held = held_together(questions, cluster(directions, seed=SEED), seed=SEED)
    drawn = map_of(asked, questions, chunks, held.codes, uses, variance=variance, points=points, seed=SEED)
    return {
        "source": source,
        "embedder": model.identity,
        "utilisation": used,
        "chatter": counted_apart(log, kinds),
        **served(asked, directions, held),
        "profile": profile(log),
        "map": drawn,
    }


def _meant(texts: Sequence[str], model: Embedder) -> Sequence[str]:
    """What an embedder is given: one that knows no meaning only the words that say what a text is about."""
    if not isinstance(model, Lexical):
        return texts
    return [" ".join(content(text)) or text for text in texts]


POINTS_OF_NIGHT, QUESTIONS_OF_NIGHT = 3_000, 20_000


@task(task_run_name="describe_corpus {source}", cache_policy=NO_CACHE)
async def describe_corpus(source: str) -> str:
    """Keeps what the corpus and the newest of the log are like, for the report of the night; the id of what is kept."""
    return await asyncio.to_thread(_describe, source)


def _describe(source: str) -> str:
    engine = database()
    parameters = {"points": POINTS_OF_NIGHT, "limit": QUESTIONS_OF_NIGHT}
    with analyses.analysing(engine, "corpus", source, parameters) as corpus_id:
        found = corpus(engine, source, points=POINTS_OF_NIGHT, limit=QUESTIONS_OF_NIGHT)
        analyses.keep(engine, corpus_id, found, "completed")
    return corpus_id

"""Corpus analytics: what of the corpus is used, what people ask about, what to write next, and a map of both."""

import asyncio
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from sqlalchemy import Engine

from db import analyses
from tasks.config.connections import database
from tasks.corpus.documents import CorpusAnalytics
from tasks.corpus.profile import profile
from tasks.corpus.projection import map_of, reduced, unit
from tasks.corpus.question_log import evaluations_of, read_log
from tasks.corpus.topics import cluster, served
from tasks.corpus.usage import utilisation
from tasks.models.embedders import embedder, measuring_embedder

POINTS, POINTS_OF_NIGHT, QUESTIONS_OF_NIGHT = 50_000, 3_000, 20_000
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
    log = read_log(engine, source, evaluations, limit=limit)
    used, uses = utilisation(log, evaluations)
    model = embedder(measuring_embedder())
    texts = [question["question"] for question in log.questions]
    questions, chunks, variance = reduced(texts, log.corpus.texts, model, engine, seed=SEED)
    directions = unit(questions)
    topics = cluster(directions, seed=SEED)
    drawn = map_of(log, questions, chunks, topics, uses, variance=variance, points=points, seed=SEED)
    return {
        "source": source,
        "embedder": model.identity,
        "utilisation": used,
        **served(log, directions, topics),
        "profile": profile(log),
        "map": drawn,
    }


@task(task_run_name="describe_corpus {source}", cache_policy=NO_CACHE)
async def describe_corpus(source: str) -> str:
    """Keeps what the corpus and the newest of the log are like, for the report of the night; the id of what is kept."""
    return await asyncio.to_thread(_describe, source)


def stored(engine: Engine, source: str) -> dict[str, Any] | None:
    """What was last kept of a source, with `corpus_id` and `described_at`; None where nothing was."""
    kept = [row for row in analyses.listing(engine, "corpus", source=source, limit=5) if row["document"]]
    if not kept:
        return None
    row = kept[0]
    return dict(row["document"]) | {"corpus_id": row["id"], "described_at": row["started_at"].isoformat()}


def _describe(source: str) -> str:
    engine = database()
    taken: dict[str, Any] = {"points": POINTS_OF_NIGHT, "limit": QUESTIONS_OF_NIGHT}
    with analyses.analysing(engine, "corpus", source, taken) as corpus_id:
        analyses.keep(engine, corpus_id, dict(corpus(engine, source, **taken)), "completed")
    return corpus_id

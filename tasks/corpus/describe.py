"""Keeps what a corpus is like with every night."""

import asyncio
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from yarus.db import analyses
from yarus.tasks.config.connections import database
from yarus.tasks.corpus.analytics import corpus

POINTS_OF_NIGHT, QUESTIONS_OF_NIGHT = 3_000, 20_000


@task(task_run_name="describe_corpus {source}", cache_policy=NO_CACHE)
async def describe_corpus(source: str) -> str:
    """Keeps what the corpus and the newest of the log are like, for the report of the night; the id of what is kept."""
    return await asyncio.to_thread(_describe, source)


def _describe(source: str) -> str:
    engine = database()
    taken: dict[str, Any] = {"points": POINTS_OF_NIGHT, "limit": QUESTIONS_OF_NIGHT}
    with analyses.analysing(engine, "corpus", source, taken) as corpus_id:
        analyses.keep(engine, corpus_id, dict(corpus(engine, source, **taken)), "completed")
    return corpus_id

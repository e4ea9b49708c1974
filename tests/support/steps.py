"""Evaluations in the tests' own process, step by step without Prefect, which is slow. Imported by full name."""

import asyncio
import secrets
from typing import Any

from yarus.tasks.config.parameters import RealUsers, Tier0, Tier1
from yarus.tasks.evaluation.batch import evaluate_batch
from yarus.tasks.evaluation.run import Run
from yarus.tasks.steps import retrieval
from yarus.tasks.steps.embedding_clusters import embed_texts, measure_clusters
from yarus.tasks.steps.finish import finish
from yarus.tasks.steps.lifecycle import evaluation
from yarus.tasks.steps.retrieval import score_rankings
from yarus.tasks.steps.search import index, retrieve

Document = dict[str, Any]


OPENED: list[Run] = []


def close_opened() -> None:
    """Closes what `opened` has opened: functions of the user's have processes."""
    for run in OPENED:
        run.resources.close()
    OPENED.clear()


def opened(**parameters: Any) -> Run:
    """A tier 1 evaluation whose cases are loaded and whose corpus is searchable."""
    run = Run(f"tier1-test-{secrets.token_hex(4)}", "tier1", Tier1.model_validate(parameters))
    run.work.mkdir(parents=True)
    OPENED.append(run)

    async def steps() -> Run:
        return await index.fn(await retrieval.load.fn(run))

    return asyncio.run(steps())


def tier0(**parameters: Any) -> Document:
    """The summary of a tier 0 evaluation: the flow's steps in its order."""

    async def steps() -> Document:
        async with evaluation("tier0", Tier0.model_validate(parameters)) as run:
            run = await embed_texts.fn(await retrieval.load_texts.fn(run))
            whole = await measure_clusters.fn(run)
            return await finish.fn(run, lambda cases, seed: whole)

    return asyncio.run(steps())


def real_users(**parameters: Any) -> Document:
    """The summary of a real users' evaluation: the flow's steps in its order."""

    async def steps() -> Document:
        async with evaluation("real_users", RealUsers.model_validate(parameters)) as run:
            run = await index.fn(await retrieval.load_log.fn(run))
            for batch in range(run.n_batches):
                await evaluate_batch.fn(run, batch, (retrieve, score_rankings))
            return await finish.fn(run)

    return asyncio.run(steps())

"""Run evaluations in the test process, step by step, without the slow start of Prefect. Imported by full name."""

import asyncio
import secrets
from typing import Any

from yarus.tasks.config.parameters import RealUsers, Tier0, Tier1
from yarus.tasks.evaluation.batch import evaluate_batch
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.steps import retrieval
from yarus.tasks.steps.embedding_clusters import embed_texts, measure_clusters
from yarus.tasks.steps.finish import finish
from yarus.tasks.steps.lifecycle import open_evaluation
from yarus.tasks.steps.retrieval import score_rankings
from yarus.tasks.steps.search import index, retrieve

Document = dict[str, Any]


OPENED_RUNS: list[EvaluationRun] = []


def close_opened_runs() -> None:
    """Close the runs that `open_run` has opened, because user functions have processes."""
    for run in OPENED_RUNS:
        run.resources.close()
    OPENED_RUNS.clear()


def open_run(**parameters: Any) -> EvaluationRun:
    """Return a tier 1 run whose cases are loaded and whose corpus is indexed."""
    run = EvaluationRun(f"tier1-test-{secrets.token_hex(4)}", "tier1", Tier1.model_validate(parameters))
    run.work.mkdir(parents=True)
    OPENED_RUNS.append(run)

    async def steps() -> EvaluationRun:
        return await index.fn(await retrieval.load.fn(run))

    return asyncio.run(steps())


def evaluate_tier0(**parameters: Any) -> Document:
    """Evaluate tier 0 with the flow's steps in order, and return the summary."""

    async def steps() -> Document:
        async with open_evaluation("tier0", Tier0.model_validate(parameters)) as run:
            run = await embed_texts.fn(await retrieval.load_texts.fn(run))
            cluster_metrics = await measure_clusters.fn(run)
            return await finish.fn(run, lambda cases, seed: cluster_metrics)

    return asyncio.run(steps())


def evaluate_real_users(**parameters: Any) -> Document:
    """Evaluate real users with the flow's steps in order, and return the summary."""

    async def steps() -> Document:
        async with open_evaluation("real_users", RealUsers.model_validate(parameters)) as run:
            run = await index.fn(await retrieval.load_log.fn(run))
            for batch in range(run.n_batches):
                await evaluate_batch.fn(run, batch, (retrieve, score_rankings))
            return await finish.fn(run)

    return asyncio.run(steps())

"""Sweep: systems that differ in model, prompt, retriever, re-ranker, depth or chunking, on the same questions."""

import asyncio
from typing import Any

from prefect import flow, task
from prefect.artifacts import acreate_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.states import Completed

from yarus.flows import flow_of
from yarus.tasks.comparison.experiments import experiments_schema
from yarus.tasks.comparison.experiments.arms import Arm, outcome
from yarus.tasks.comparison.experiments.sweep import Sweeping, sweeping
from yarus.tasks.comparison.experiments.sweep_table import rows
from yarus.tasks.config.flow_parameters import Sweep
from yarus.tasks.evaluation.resources import share
from yarus.tasks.models.progress import numbered


@flow(name="sweep", flow_run_name="sweep {parameters.source}")
async def sweep(parameters: Sweep) -> Any:
    """Evaluates every arm, one after another; one that fails does not stop the others.

    Args:
        parameters: what to compare, and on what.

    Returns:
        The sweep, as `yarus sweep --json` prints it.
    """
    with sweeping(parameters) as running, share(running.id, rankings=True):
        for arm in numbered(running.waiting()):
            running.keep(outcome(arm, await evaluated(arm)))
        document = await compare_arms(running)
        await show_arms(document)
        return incomplete(document)


def incomplete(document: experiments_schema.Sweep | experiments_schema.Robustness) -> Any:
    """What the flow returns: its run bears the name of what it came to, where that is not all that was asked for."""
    if document["state"] == "completed":
        return document
    return Completed(name="Incomplete", message=f"an evaluation is {document['state']}", data=document)


async def evaluated(arm: Arm) -> Any:
    """The summary of an arm's evaluation, or what ended it."""
    evaluate = flow_of(arm.tier)
    state = await evaluate(arm.parameters, return_state=True)
    return await state.aresult(raise_on_failure=False)


@task(task_run_name="compare_arms", cache_policy=NO_CACHE)
async def compare_arms(running: Sweeping) -> experiments_schema.Sweep:
    """Writes what the arms come to."""
    return await asyncio.to_thread(running.finish)


@task(task_run_name="show_arms", cache_policy=NO_CACHE)
async def show_arms(document: experiments_schema.Sweep) -> None:
    """The table of arms, as an artifact in the Prefect UI."""
    await acreate_table_artifact(rows(document), key="sweep", description=document["sweep_id"])

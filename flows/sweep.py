"""Sweep: systems that differ in model, prompt, retriever, re-ranker, depth or chunking, on the same questions."""

import asyncio
from typing import Any

from prefect import flow, task
from prefect.artifacts import acreate_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.states import Completed

from yarus.flows import get_flow
from yarus.tasks.comparison.experiments import experiments_schema
from yarus.tasks.comparison.experiments.arms import Arm, arm_outcome
from yarus.tasks.comparison.experiments.sweep import RunningSweep, open_sweep
from yarus.tasks.comparison.experiments.sweep_table import table_rows
from yarus.tasks.config.flow_parameters import SweepParameters
from yarus.tasks.evaluation.resources import share_sources
from yarus.tasks.models.progress import number_evaluations


@flow(name="sweep", flow_run_name="sweep {parameters.source}")
async def sweep(parameters: SweepParameters) -> Any:
    """Evaluate every arm, one after another; an arm that fails does not stop the others.

    Args:
        parameters: what to compare, and on what.

    Returns:
        The sweep, as `yarus sweep --json` prints it.
    """
    with open_sweep(parameters) as running, share_sources(running.id, rankings=True):
        for arm in number_evaluations(running.waiting()):
            running.keep(arm_outcome(arm, await evaluate_arm(arm)))
        document = await compare_arms(running)
        await show_arms(document)
        return make_flow_result(document)


def make_flow_result(document: experiments_schema.Sweep | experiments_schema.Robustness) -> Any:
    """Return the flow's result; the flow run's state is named Incomplete if an evaluation did not complete."""
    if document["state"] == "completed":
        return document
    return Completed(name="Incomplete", message=f"an evaluation is {document['state']}", data=document)


async def evaluate_arm(arm: Arm) -> Any:
    """Return the summary of an arm's evaluation, or the error that ended it."""
    evaluate = get_flow(arm.tier)
    state = await evaluate(arm.parameters, return_state=True)
    return await state.aresult(raise_on_failure=False)


@task(task_run_name="compare_arms", cache_policy=NO_CACHE)
async def compare_arms(running: RunningSweep) -> experiments_schema.Sweep:
    """Compare the arms, and store the result."""
    return await asyncio.to_thread(running.finish)


@task(task_run_name="show_arms", cache_policy=NO_CACHE)
async def show_arms(document: experiments_schema.Sweep) -> None:
    """Show the table of arms as an artifact in the Prefect UI."""
    await acreate_table_artifact(table_rows(document), key="sweep", description=document["sweep_id"])

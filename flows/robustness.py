"""Robustness: the same questions with typing errors, in lower case and so on; do ranks and answers stay?"""

import asyncio
from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from yarus.db import analyses
from yarus.flows.sweep import evaluated, incomplete
from yarus.tasks.comparison.experiments import experiments_schema
from yarus.tasks.comparison.experiments.arms import outcome
from yarus.tasks.comparison.experiments.robustness import arms, combined
from yarus.tasks.config.connections import database
from yarus.tasks.config.flow_parameters import Robustness
from yarus.tasks.evaluation.resources import share
from yarus.tasks.models.progress import numbered


@flow(name="robustness", flow_run_name="robustness {parameters.source}")
async def robustness(parameters: Robustness) -> Any:
    """Evaluates the questions as they are and changed in every way; one kind that fails does not stop the others.

    Args:
        parameters: what to ask, and how.

    Returns:
        The probes, as `yarus robustness --json` prints them.
    """
    given = parameters.model_dump(mode="json")
    with analyses.analysing(database(), "robustness", parameters.source, given) as robustness_id:
        with share(robustness_id):
            outcomes = [outcome(arm, await evaluated(arm)) for arm in numbered(arms(parameters))]
        return incomplete(await compare_kinds(robustness_id, parameters, outcomes))


@task(task_run_name="compare_kinds", cache_policy=NO_CACHE)
async def compare_kinds(
    robustness_id: str, parameters: Robustness, outcomes: list[experiments_schema.Outcome]
) -> experiments_schema.Robustness:
    """Writes what the probes come to."""
    found = await asyncio.to_thread(combined, parameters, outcomes)
    document: experiments_schema.Robustness = {"robustness_id": robustness_id, **found}
    await asyncio.to_thread(analyses.keep, database(), robustness_id, dict(document), document["state"])
    return document

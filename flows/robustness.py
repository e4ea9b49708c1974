"""Robustness: the same questions with typos, in lower case and so on; do ranks and answers stay the same?"""

import asyncio
from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from yarus.db import analyses
from yarus.flows.sweep import evaluate_arm, make_flow_result
from yarus.tasks.comparison.experiments import experiments_schema
from yarus.tasks.comparison.experiments.arms import arm_outcome
from yarus.tasks.comparison.experiments.robustness import combine_outcomes, plan_arms
from yarus.tasks.config.connections import database
from yarus.tasks.config.flow_parameters import RobustnessParameters
from yarus.tasks.evaluation.resources import share_sources
from yarus.tasks.models.progress import number_evaluations


@flow(name="robustness", flow_run_name="robustness {parameters.source}")
async def robustness(parameters: RobustnessParameters) -> Any:
    """Evaluate the questions unchanged and with every perturbation; a kind that fails does not stop the others.

    Args:
        parameters: what to ask, and how.

    Returns:
        The probes, as `yarus robustness --json` prints them.
    """
    settings = parameters.stored()
    with analyses.open_analysis(database(), "robustness", parameters.source, settings) as robustness_id:
        with share_sources(robustness_id):
            outcomes = [arm_outcome(arm, await evaluate_arm(arm)) for arm in number_evaluations(plan_arms(parameters))]
        return make_flow_result(await compare_kinds(robustness_id, parameters, outcomes))


@task(task_run_name="compare_kinds", cache_policy=NO_CACHE)
async def compare_kinds(
    robustness_id: str, parameters: RobustnessParameters, outcomes: list[experiments_schema.Outcome]
) -> experiments_schema.Robustness:
    """Store the results of the probes."""
    results = await asyncio.to_thread(combine_outcomes, parameters, outcomes)
    document: experiments_schema.Robustness = {"robustness_id": robustness_id, **results}
    await asyncio.to_thread(analyses.save_analysis, database(), robustness_id, dict(document), document["state"])
    return document

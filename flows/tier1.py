"""Tier 1, retrieval: are the relevant chunks or pages found, and how far up?"""

from prefect import flow

from yarus.deployments.prefect.flow_states import FlowResult, flow_state
from yarus.tasks.config.parameters import Tier1
from yarus.tasks.evaluation.batches import run_in_batches
from yarus.tasks.steps.fill_labels import fill
from yarus.tasks.steps.finish import finish
from yarus.tasks.steps.lifecycle import open_evaluation
from yarus.tasks.steps.retrieval import load, perturb_questions, restore_questions, score_rankings
from yarus.tasks.steps.search import index, retrieve


@flow(name="tier1", flow_run_name="tier1 {parameters.source}")
async def tier1(parameters: Tier1) -> FlowResult:
    """Rank the corpus for every question, and score the rankings against the labels.

    Args:
        parameters: what to evaluate, and with what.

    Returns:
        The summary of the evaluation, as `yarus run tier1 --json` prints it.
    """
    async with open_evaluation("tier1", parameters) as run:
        run = await load(run)
        run = await index(run)
        await run_in_batches(run, steps=(perturb_questions, retrieve, restore_questions, fill, score_rankings))
        summary = await finish(run)
    return await flow_state(summary)

"""Tier 1, retrieval: are the relevant chunks or pages found, and how far up?"""

from prefect import flow
from prefect.runtime import flow_run

from tasks.config.parameters import Tier1
from tasks.evaluation.batches import in_batches
from tasks.evaluation.finish import finish
from tasks.evaluation.lifecycle import evaluation
from tasks.loading.retrieval_cases import load
from tasks.orchestration.flow_states import Ended, flow_state
from tasks.steps.index import index
from tasks.steps.judging.fill import fill
from tasks.steps.perturb import perturb_questions, restore_questions
from tasks.steps.retrieve import retrieve
from tasks.steps.score_rankings import score_rankings


@flow(name="tier1", flow_run_name="tier1 {parameters.source}")
async def tier1(parameters: Tier1) -> Ended:
    """Ranks the corpus for every question and scores the rankings against the labels.

    Args:
        parameters: what to evaluate, and with what.

    Returns:
        The summary of the evaluation, as `yarus run tier1 --json` prints it.
    """
    async with evaluation("tier1", parameters, flow_run_id=flow_run.get_id()) as run:
        run = await load(run)
        run = await index(run)
        await in_batches(run, steps=(perturb_questions, retrieve, restore_questions, fill, score_rankings))
        summary = await finish(run)
    return await flow_state(summary)

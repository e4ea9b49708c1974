"""Tier 3, end to end: is the answer of the whole system as useful as the reference?"""

from prefect import flow
from prefect.runtime import flow_run

from tasks.config.parameters import Tier3
from tasks.evaluation.batches import in_batches
from tasks.evaluation.finish import finish
from tasks.evaluation.lifecycle import evaluation
from tasks.loading.answer_cases import load_end_to_end
from tasks.orchestration.flow_states import Ended, flow_state
from tasks.steps.answer import answer
from tasks.steps.claims.check import check_claims
from tasks.steps.claims.cite import score_citations
from tasks.steps.claims.find_nuggets import find_nuggets
from tasks.steps.claims.score_facts import score_facts
from tasks.steps.find_failures import find_failures
from tasks.steps.index import index
from tasks.steps.judging.dialogs import judge_dialogs
from tasks.steps.judging.judge import judge
from tasks.steps.perturb import perturb_questions, restore_questions
from tasks.steps.production import beside_production
from tasks.steps.score_rankings import score_rankings
from tasks.steps.score_texts import score_similarity, score_texts


@flow(name="tier3", flow_run_name="tier3 {parameters.source}")
async def tier3(parameters: Tier3) -> Ended:
    """Asks the system under test every question, has its answers judged, and compares them with the references.

    Args:
        parameters: what to evaluate, and with what.

    Returns:
        The summary of the evaluation, as `yarus run tier3 --json` prints it.
    """
    async with evaluation("tier3", parameters, flow_run_id=flow_run.get_id()) as run:
        run = await load_end_to_end(run)
        run = await index(run)
        asking = (perturb_questions, answer, restore_questions)
        judging = (beside_production, judge, judge_dialogs, check_claims, find_nuggets, score_facts, score_citations)
        scoring = (find_failures, score_rankings, score_texts, score_similarity)
        await in_batches(run, steps=asking + judging + scoring)
        summary = await finish(run)
    return await flow_state(summary)

"""Tier 3, end to end: is the answer of the whole system as useful as the reference?"""

from prefect import flow

from yarus.deployments.prefect.flow_states import Ended, flow_state
from yarus.tasks.config.parameters import Tier3
from yarus.tasks.evaluation.batches import in_batches
from yarus.tasks.steps.answer_cases import load_end_to_end
from yarus.tasks.steps.claims.citations import score_citations
from yarus.tasks.steps.claims.claims import check_claims
from yarus.tasks.steps.claims.facts import score_facts
from yarus.tasks.steps.claims.nuggets import find_nuggets
from yarus.tasks.steps.failures import find_failures
from yarus.tasks.steps.finish import finish
from yarus.tasks.steps.generation import answer
from yarus.tasks.steps.judging.judge import judge, judge_dialogs
from yarus.tasks.steps.lifecycle import evaluation
from yarus.tasks.steps.production import beside_production
from yarus.tasks.steps.retrieval import perturb_questions, restore_questions, score_rankings
from yarus.tasks.steps.score_texts import score_similarity, score_texts
from yarus.tasks.steps.search import index


@flow(name="tier3", flow_run_name="tier3 {parameters.source}")
async def tier3(parameters: Tier3) -> Ended:
    """Asks the system under test every question, has its answers judged, and compares them with the references.

    Args:
        parameters: what to evaluate, and with what.

    Returns:
        The summary of the evaluation, as `yarus run tier3 --json` prints it.
    """
    async with evaluation("tier3", parameters) as run:
        run = await load_end_to_end(run)
        run = await index(run)
        asking = (perturb_questions, answer, restore_questions)
        judging = (beside_production, judge, judge_dialogs, check_claims, find_nuggets, score_facts, score_citations)
        scoring = (find_failures, score_rankings, score_texts, score_similarity)
        await in_batches(run, steps=asking + judging + scoring)
        summary = await finish(run)
    return await flow_state(summary)

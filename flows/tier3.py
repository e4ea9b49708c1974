"""Tier 3, end to end: is the system's answer as useful as the reference?"""

from prefect import flow

from yarus.deployments.prefect.flow_states import FlowResult, flow_state
from yarus.tasks.config.parameters import Tier3
from yarus.tasks.evaluation.batches import run_in_batches
from yarus.tasks.steps.answer_cases import load_end_to_end
from yarus.tasks.steps.claims.citations import score_citations
from yarus.tasks.steps.claims.claims import check_claims
from yarus.tasks.steps.claims.facts import score_facts
from yarus.tasks.steps.claims.nuggets import find_nuggets
from yarus.tasks.steps.failures import add_failures
from yarus.tasks.steps.finish import finish
from yarus.tasks.steps.generation import answer
from yarus.tasks.steps.judging.judge import judge, judge_dialogs
from yarus.tasks.steps.lifecycle import open_evaluation
from yarus.tasks.steps.production import compare_with_production
from yarus.tasks.steps.retrieval import perturb_questions, restore_questions, score_rankings
from yarus.tasks.steps.score_texts import score_similarity, score_texts
from yarus.tasks.steps.search import index


@flow(name="tier3", flow_run_name="tier3 {parameters.source}")
async def tier3(parameters: Tier3) -> FlowResult:
    """Ask the system under test every question, judge its answers, and compare them with the references.

    Args:
        parameters: what to evaluate, and with what.

    Returns:
        The summary of the evaluation, as `yarus run tier3 --json` prints it.
    """
    async with open_evaluation("tier3", parameters) as run:
        run = await load_end_to_end(run)
        run = await index(run)
        answer_steps = (perturb_questions, answer, restore_questions)
        judge_steps = (compare_with_production, judge, judge_dialogs, check_claims, find_nuggets, score_facts)
        score_steps = (score_citations, add_failures, score_rankings, score_texts, score_similarity)
        await run_in_batches(run, steps=answer_steps + judge_steps + score_steps)
        summary = await finish(run)
    return await flow_state(summary)

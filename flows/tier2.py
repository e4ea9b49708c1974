"""Tier 2, generation on ideal context: does the model answer well when it is given the right chunks?"""

from prefect import flow

from yarus.deployments.prefect.flow_states import FlowResult, flow_state
from yarus.tasks.config.parameters import Tier2
from yarus.tasks.evaluation.batches import run_in_batches
from yarus.tasks.steps.answer_cases import load_ideal
from yarus.tasks.steps.claims.claims import check_claims
from yarus.tasks.steps.claims.facts import score_facts
from yarus.tasks.steps.claims.nuggets import find_nuggets
from yarus.tasks.steps.contexts.change import score_contexts
from yarus.tasks.steps.finish import finish
from yarus.tasks.steps.generation import answer_ideal
from yarus.tasks.steps.judging.judge import judge
from yarus.tasks.steps.lifecycle import open_evaluation
from yarus.tasks.steps.score_texts import score_repeats, score_texts


@flow(name="tier2", flow_run_name="tier2 {parameters.source}")
async def tier2(parameters: Tier2) -> FlowResult:
    """Answer every question from its relevant chunks, judge the answers, and compare them with the references.

    Args:
        parameters: what to evaluate, and with what.

    Returns:
        The summary of the evaluation, as `yarus run tier2 --json` prints it.
    """
    async with open_evaluation("tier2", parameters) as run:
        run = await load_ideal(run)
        judge_steps = (judge, check_claims, find_nuggets)
        score_steps = (score_texts, score_facts, score_contexts, score_repeats)
        await run_in_batches(run, steps=(answer_ideal, *judge_steps, *score_steps))
        summary = await finish(run)
    return await flow_state(summary)

"""The production judge: are the right answers shown, and only they?"""

from prefect import flow

from yarus.deployments.prefect.flow_states import FlowResult, flow_state
from yarus.tasks.config.parameters import JudgePipeline
from yarus.tasks.evaluation.batches import run_in_batches
from yarus.tasks.steps.claims.facts import score_facts
from yarus.tasks.steps.finish import finish
from yarus.tasks.steps.judging.production_judge import decide
from yarus.tasks.steps.lifecycle import open_evaluation
from yarus.tasks.steps.logged_cases import load_logged_answers
from yarus.tasks.steps.production import compare_with_production


@flow(name="judge_pipeline", flow_run_name="judge_pipeline {parameters.source}")
async def judge_pipeline(parameters: JudgePipeline) -> FlowResult:
    """Let the gate decide on every logged answer, and compare its decisions with the right ones.

    Args:
        parameters: what to evaluate, and with what.

    Returns:
        The summary of the evaluation, as `yarus run judge_pipeline --json` prints it.
    """
    async with open_evaluation("judge_pipeline", parameters) as run:
        run = await load_logged_answers(run)
        await run_in_batches(run, steps=(decide, score_facts, compare_with_production))
        summary = await finish(run)
    return await flow_state(summary)

"""The judge itself: does it repeat its verdicts, and do irrelevant changes move them?"""

from prefect import flow

from yarus.deployments.prefect.flow_states import FlowResult, flow_state
from yarus.tasks.config.parameters import JudgeQuality
from yarus.tasks.evaluation.batches import run_in_batches
from yarus.tasks.steps.exam.examine import examine
from yarus.tasks.steps.finish import finish
from yarus.tasks.steps.judging.quality import judge_again, measure_judge
from yarus.tasks.steps.lifecycle import open_evaluation
from yarus.tasks.steps.logged_cases import load_logged_answers


@flow(name="judge", flow_run_name="judge {parameters.source}")
async def judge(parameters: JudgeQuality) -> FlowResult:
    """Judge every logged answer repeatedly, and changed versions of it; examine every judged prompt.

    Args:
        parameters: what to evaluate, and with what.

    Returns:
        The summary of the evaluation, as `yarus run judge --json` prints it.
    """
    async with open_evaluation("judge", parameters) as run:
        run = await load_logged_answers(run)
        await run_in_batches(run, steps=(judge_again, examine))
        summary = await finish(run, measure_judge)
    return await flow_state(summary)

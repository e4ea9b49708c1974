"""The judge itself: does it say the same twice, and is it moved by what should not matter?"""

from prefect import flow

from yarus.deployments.prefect.flow_states import Ended, flow_state
from yarus.tasks.config.parameters import JudgeQuality
from yarus.tasks.evaluation.batches import in_batches
from yarus.tasks.steps.exam.examine import examine
from yarus.tasks.steps.finish import finish
from yarus.tasks.steps.judging.quality import judge_again, measure_judge
from yarus.tasks.steps.lifecycle import evaluation
from yarus.tasks.steps.logged_cases import load_logged_answers


@flow(name="judge", flow_run_name="judge {parameters.source}")
async def judge(parameters: JudgeQuality) -> Ended:
    """Judges every logged answer again and again, and changed versions of it; examines every judged prompt.

    Args:
        parameters: what to evaluate, and with what.

    Returns:
        The summary of the evaluation, as `yarus run judge --json` prints it.
    """
    async with evaluation("judge", parameters) as run:
        run = await load_logged_answers(run)
        await in_batches(run, steps=(judge_again, examine))
        summary = await finish(run, measure_judge)
    return await flow_state(summary)

"""The judge itself: does it say the same twice, and is it moved by what should not matter?"""

from prefect import flow
from prefect.runtime import flow_run

from tasks.ending import Ended, ended
from tasks.judge_judge import judge_again, measure_judge
from tasks.load_log import load_answered
from tasks.parameters import Judge
from tasks.persist import finish, in_batches
from tasks.run import evaluation


@flow(name="judge", flow_run_name="judge {parameters.source}")
async def judge(parameters: Judge) -> Ended:
    """Judges every logged answer again and again, and changed versions of it.

    Args:
        parameters: what to evaluate, and with what.

    Returns:
        The summary of the evaluation, as `yarus run judge --json` prints it.
    """
    async with evaluation("judge", parameters, flow_run_id=flow_run.get_id()) as run:
        run = await load_answered(run)
        await in_batches(run, steps=(judge_again,))
        summary = await finish(run, measure_judge)
    return await ended(summary)

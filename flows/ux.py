"""User experience: would a cache of answers help or mislead, and do dialogs stay on their topic?"""

from prefect import flow

from yarus.deployments.prefect.flow_states import FlowResult, flow_state
from yarus.tasks.config.parameters import Ux
from yarus.tasks.steps.finish import finish
from yarus.tasks.steps.lifecycle import open_evaluation
from yarus.tasks.steps.logged_cases import load_dialogs
from yarus.tasks.steps.user_experience import measure_experience


@flow(name="ux", flow_run_name="ux {parameters.source}")
async def ux(parameters: Ux) -> FlowResult:
    """Compare every question of the log with earlier ones, and the questions of every dialog with each other.

    Args:
        parameters: what to evaluate, and with what.

    Returns:
        The summary of the evaluation, as `yarus run ux --json` prints it.
    """
    async with open_evaluation("ux", parameters) as run:
        run = await load_dialogs(run)
        experience_metrics = await measure_experience(run)
        summary = await finish(run, lambda cases, seed: experience_metrics)
    return await flow_state(summary)

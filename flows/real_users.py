"""Real users: does the retriever find the page that the bot showed, and that users confirmed?"""

from prefect import flow

from yarus.deployments.prefect.flow_states import FlowResult, flow_state
from yarus.tasks.config.parameters import RealUsers
from yarus.tasks.evaluation.batches import run_in_batches
from yarus.tasks.steps.fill_labels import fill
from yarus.tasks.steps.finish import finish
from yarus.tasks.steps.lifecycle import open_evaluation
from yarus.tasks.steps.retrieval import load_log, score_rankings
from yarus.tasks.steps.search import index, retrieve


@flow(name="real_users", flow_run_name="real_users {parameters.source}")
async def real_users(parameters: RealUsers) -> FlowResult:
    """Compute tier 1's metrics on the log, in strata by the users' feedback.

    Args:
        parameters: what to evaluate, and with what.

    Returns:
        The summary of the evaluation, as `yarus run real_users --json` prints it; its metrics are the stratum
        `confirmed`.
    """
    async with open_evaluation("real_users", parameters) as run:
        run = await load_log(run)
        run = await index(run)
        await run_in_batches(run, steps=(retrieve, fill, score_rankings))
        summary = await finish(run)
    return await flow_state(summary)

"""Real users: does the retriever find the page that the bot showed, and that users confirmed?"""

from prefect import flow
from prefect.runtime import flow_run

from yarus.tasks.config.parameters import RealUsers
from yarus.tasks.evaluation.batches import in_batches
from yarus.tasks.evaluation.finish import finish
from yarus.tasks.evaluation.lifecycle import evaluation
from yarus.tasks.loading.retrieval_cases import load_log
from yarus.tasks.orchestration.flow_states import Ended, flow_state
from yarus.tasks.steps.index import index
from yarus.tasks.steps.judging.fill import fill
from yarus.tasks.steps.retrieve import retrieve
from yarus.tasks.steps.score_rankings import score_rankings


@flow(name="real_users", flow_run_name="real_users {parameters.source}")
async def real_users(parameters: RealUsers) -> Ended:
    """Tier 1's metrics on the log, in strata by what users said of the answer.

    Args:
        parameters: what to evaluate, and with what.

    Returns:
        The summary of the evaluation, as `yarus run real_users --json` prints it; its metrics are the stratum
        `confirmed`.
    """
    async with evaluation("real_users", parameters, flow_run_id=flow_run.get_id()) as run:
        run = await load_log(run)
        run = await index(run)
        await in_batches(run, steps=(retrieve, fill, score_rankings))
        summary = await finish(run)
    return await flow_state(summary)

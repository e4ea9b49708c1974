"""Tier 0, embedding quality: do texts that belong together lie together?"""

from prefect import flow

from yarus.deployments.prefect.flow_states import FlowResult, flow_state
from yarus.tasks.config.parameters import Tier0
from yarus.tasks.steps.embedding_clusters import embed_texts, measure_clusters
from yarus.tasks.steps.finish import finish
from yarus.tasks.steps.lifecycle import open_evaluation
from yarus.tasks.steps.retrieval import load_texts


@flow(name="tier0", flow_run_name="tier0 {parameters.source}")
async def tier0(parameters: Tier0) -> FlowResult:
    """Measure how the texts of a page or topic cluster in the embedder's space.

    Args:
        parameters: what to evaluate, and with what.

    Returns:
        The summary of the evaluation, as `yarus run tier0 --json` prints it.
    """
    async with open_evaluation("tier0", parameters) as run:
        run = await load_texts(run)
        run = await embed_texts(run)
        cluster_metrics = await measure_clusters(run)
        summary = await finish(run, lambda cases, seed: cluster_metrics)
    return await flow_state(summary)

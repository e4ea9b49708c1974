"""Synthesis: questions with answers from the chunks of a source, checked, as a source of their own."""

from prefect import flow

from yarus.tasks.dataset.dataset_schema import SynthesisResult
from yarus.tasks.dataset.synthesis.generator import Synthesis
from yarus.tasks.dataset.synthesis.synthesize import gather, keep, write


@flow(name="synthesize", flow_run_name="synthesize {parameters.into}")
async def synthesize(parameters: Synthesis) -> SynthesisResult:
    """Has questions written from chunks, in the voice of the source's users, and keeps those that pass the checks.

    Args:
        parameters: from what, how many, of which kinds, and where they go.

    Returns:
        How many were accepted and why others were not, as `yarus dataset synthesize --json` prints it.
    """
    material = await gather(parameters)
    made = await write(parameters, material)
    return await keep(parameters, material, made)

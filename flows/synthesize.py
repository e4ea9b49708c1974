"""Synthesis: generate questions with answers from a source's chunks, check them, and store them as a source."""

from prefect import flow

from yarus.tasks.dataset.dataset_schema import SynthesisResult
from yarus.tasks.dataset.synthesis.generator import SynthesisParameters
from yarus.tasks.dataset.synthesis.synthesize import gather, keep, write


@flow(name="synthesize", flow_run_name="synthesize {parameters.into}")
async def synthesize(parameters: SynthesisParameters) -> SynthesisResult:
    """Generate questions from chunks in the voice of the source's users, and keep those that pass the checks.

    Args:
        parameters: source, number and kinds of the questions, and the source to write to.

    Returns:
        How many were accepted and why others were not, as `yarus dataset synthesize --json` prints it.
    """
    material = await gather(parameters)
    generated = await write(parameters, material)
    return await keep(parameters, material, generated)

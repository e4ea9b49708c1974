"""Nightly: every tier in order over one source; a tier that fails does not stop the others."""

import asyncio
import logging
from collections.abc import Sequence
from typing import cast
from uuid import UUID

from prefect import flow
from prefect.runtime import flow_run

from yarus.deployments.alarms.incidents import follow_flow_run
from yarus.deployments.alarms.night_message import NightMessage, open_message
from yarus.deployments.alarms.nightly_retry import find_completed, read_started, resume_parameters
from yarus.deployments.prefect.artifacts import show_night, write_night_report
from yarus.deployments.prefect.flow_states import FlowResult, add_gate_outcome, flow_state
from yarus.flows import get_flow
from yarus.flows.preflight.night_plan import describe_skipped, plan_night_or_all
from yarus.tasks.comparison.gate_rules import configured_gate_rules
from yarus.tasks.config.connections import database
from yarus.tasks.config.flow_parameters import NightlyParameters
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.texts.messages import told
from yarus.tasks.dataset.corpus.analytics import describe_corpus
from yarus.tasks.evaluation.repeats import anchor_evaluations
from yarus.tasks.evaluation.resources import share_sources
from yarus.tasks.evaluation.summary import (
    EvaluationSummary,
    FailedEvaluation,
    combine_summaries,
    has_metrics,
    read_summary,
)
from yarus.tasks.models.progress import number_evaluations

log = logging.getLogger("yarus")


@flow(name="nightly", flow_run_name="nightly {parameters.source}")
async def nightly(parameters: NightlyParameters) -> FlowResult:
    """Evaluate every tier and combine their summaries; a retry continues the interrupted run.

    A tier that can measure nothing of the source is skipped, and a log line says why.

    Args:
        parameters: what to evaluate.

    Returns:
        The state of the night and the summary of every evaluation, as `yarus run nightly --json` prints it.

    Raises:
        InputError: an anchor or a gate that cannot serve, or a source without anything to measure, before anything is
            evaluated.
    """
    configured_gate_rules()
    plan = await asyncio.to_thread(plan_night_or_all, parameters)
    for skipped in plan.skipped:
        log.warning("%s", told(describe_skipped(skipped), get_settings().language))
    with open_message(parameters.source) as message:
        summaries = await _evaluate_tiers(parameters, plan.begun, message)
        if plan.has_corpus:
            # Its failure does not fail the night; Prefect types the call as if it were not awaited.
            await describe_corpus(parameters.source, return_state=True)  # type: ignore[misc]
        # The exam of the night's judge applies to the tiers before it, too.
        checked = [
            add_gate_outcome(read_summary(database(), result["evaluation_id"])) if has_metrics(result) else result
            for result in summaries
        ]
        night = combine_summaries(checked)
        if plan.skipped:
            night["skipped"] = plan.skipped
        page = message.report = await write_night_report(night)
    await show_night(night, parameters.source, page)
    if page:
        night["report"] = str(page)
    return await flow_state(night)


async def _evaluate_tiers(
    parameters: NightlyParameters, tiers: Sequence[str], message: NightMessage
) -> list[EvaluationSummary | FailedEvaluation]:
    """Return the summaries of the tiers and anchors, each checked by its gate when it has ended."""
    summaries: list[EvaluationSummary | FailedEvaluation] = []
    live_parts = ((tier, parameters.of(tier)) for tier in tiers)
    parts = [*live_parts, *anchor_evaluations(database(), parameters)]
    started = await read_started(database(), flow_run.get_id())
    with share_sources():
        for tier, tier_parameters in number_evaluations(parts):
            evaluate = get_flow(tier)
            if earlier := find_completed(started, tier, tier_parameters):
                # The earlier attempt may have ended before its gate check.
                await follow_flow_run(UUID(earlier["flow_run_id"]), evaluate, message.add)
                summaries.append(add_gate_outcome(read_summary(database(), earlier["id"])))
                continue
            state = await evaluate(resume_parameters(database(), started, tier, tier_parameters), return_state=True)
            result = await state.aresult(raise_on_failure=False)
            await follow_flow_run(state.state_details.flow_run_id, evaluate, message.add)
            failure: FailedEvaluation = {"tier": tier, "state": "failed", "error": str(result)}
            summaries.append(cast(EvaluationSummary, result) if isinstance(result, dict) else failure)
    return summaries

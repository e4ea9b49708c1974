"""Nightly: every tier in order over one source; a tier that fails does not stop the others."""

import asyncio
import logging
from collections.abc import Sequence
from typing import cast
from uuid import UUID

from prefect import flow
from prefect.runtime import flow_run

from yarus.deployments.alarms.incidents import follow
from yarus.deployments.alarms.night_message import NightMessage, one_message
from yarus.deployments.alarms.nightly_retry import begun_by, completed, going_on
from yarus.deployments.prefect.artifacts import report_of, show_night
from yarus.deployments.prefect.flow_states import Ended, flow_state, with_gate
from yarus.flows import flow_of
from yarus.flows.before.night_plan import describe_skipped, plan_night_or_all
from yarus.tasks.comparison.gate_rules import policy_set
from yarus.tasks.config.connections import database
from yarus.tasks.config.flow_parameters import Nightly
from yarus.tasks.config.settings import settings
from yarus.tasks.config.texts.messages import told
from yarus.tasks.dataset.corpus.analytics import describe_corpus
from yarus.tasks.evaluation.repeats import anchored
from yarus.tasks.evaluation.resources import share
from yarus.tasks.evaluation.summary import EvaluationSummary, FailedEvaluation, has_metrics, summary, together
from yarus.tasks.models.progress import numbered

log = logging.getLogger("yarus")


@flow(name="nightly", flow_run_name="nightly {parameters.source}")
async def nightly(parameters: Nightly) -> Ended:
    """Evaluates every tier and puts their summaries together; a retry goes on where the night was left.

    A tier that can measure nothing of the source is skipped, with a line that says why.

    Args:
        parameters: what to evaluate.

    Returns:
        The state of the night and the summary of every evaluation, as `yarus run nightly --json` prints it.

    Raises:
        InputError: an anchor or a gate that cannot serve, or a source without anything to measure, before anything is
            evaluated.
    """
    policy_set()
    plan = await asyncio.to_thread(plan_night_or_all, parameters)
    for skipped in plan.skipped:
        log.warning("%s", told(describe_skipped(skipped), settings().language))
    with one_message(parameters.source) as message:
        summaries = await _every_tier(parameters, plan.begun, message)
        if plan.has_corpus:
            # A night is no worse where it fails; Prefect types the call as if it were not awaited.
            await describe_corpus(parameters.source, return_state=True)  # type: ignore[misc]
        # What the judge of the night was found to be worth holds for the tiers before it, too.
        judged = [with_gate(summary(database(), of["evaluation_id"])) if has_metrics(of) else of for of in summaries]
        night = together(judged)
        if plan.skipped:
            night["skipped"] = plan.skipped
        page = message.report = await report_of(night)
    await show_night(night, parameters.source, page)
    if page:
        night["report"] = str(page)
    return await flow_state(night)


async def _every_tier(
    parameters: Nightly, tiers: Sequence[str], message: NightMessage
) -> list[EvaluationSummary | FailedEvaluation]:
    """The summaries of the tiers and anchors, each judged when it has ended."""
    summaries: list[EvaluationSummary | FailedEvaluation] = []
    live = ((tier, parameters.of(tier)) for tier in tiers)
    parts = [*live, *anchored(database(), parameters)]
    begun = await begun_by(database(), flow_run.get_id())
    with share():
        for tier, chosen in numbered(parts):
            evaluate = flow_of(tier)
            if done := completed(begun, tier, chosen):
                # The try may have ended before it was judged.
                await follow(UUID(done["flow_run_id"]), evaluate, message.add)
                summaries.append(with_gate(summary(database(), done["id"])))
                continue
            state = await evaluate(going_on(database(), begun, tier, chosen), return_state=True)
            result = await state.aresult(raise_on_failure=False)
            await follow(state.state_details.flow_run_id, evaluate, message.add)
            failed: FailedEvaluation = {"tier": tier, "state": "failed", "error": str(result)}
            summaries.append(cast(EvaluationSummary, result) if isinstance(result, dict) else failed)
    return summaries

"""Nightly: every tier in order over one source; a tier that fails does not stop the others."""

from importlib import import_module
from typing import Any

from prefect import flow

from tasks.again import anchored
from tasks.artifacts import report_of, show_night
from tasks.connect import database
from tasks.ending import Ended, ended
from tasks.load import sources_shared
from tasks.parameters import TIERS, Nightly
from tasks.report import together


@flow(name="nightly", flow_run_name="nightly {parameters.source}")
async def nightly(parameters: Nightly) -> Ended:
    """Evaluates every tier and puts their summaries together.

    Args:
        parameters: what to evaluate.

    Returns:
        The state of the night and the summary of every evaluation, as `yarus run nightly --json` prints it.
    """
    summaries: list[dict[str, Any]] = []
    live = [(tier, TIERS[tier](**parameters.shared())) for tier in parameters.tiers]
    with sources_shared():
        for tier, chosen in (*live, *anchored(database(), parameters)):
            evaluate = getattr(import_module(f"flows.{tier}"), tier)
            state = await evaluate(chosen, return_state=True)
            result = await state.aresult(raise_on_failure=False)
            summaries.append(
                result if isinstance(result, dict) else {"tier": tier, "state": "failed", "error": str(result)}
            )
    night = together(summaries)
    await show_night(night, parameters.source, await report_of(night))
    return await ended(night)

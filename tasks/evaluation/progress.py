"""The size and the progress of an evaluation in Prefect's UI."""

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx
from prefect.artifacts import acreate_progress_artifact, aupdate_progress_artifact
from prefect.client.orchestration import PrefectClient
from prefect.context import FlowRunContext
from prefect.exceptions import PrefectException

from tasks.evaluation.run import Run

log = logging.getLogger("yarus")

LONG = 4
"""Batches; a shorter evaluation is over before anybody has looked at its progress."""
EVERY_S = 1.0
PATIENCE_S = 10


@asynccontextmanager
async def progress(run: Run, done: int) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Puts the size into the flow run's name, and shows how far a long evaluation is.

    Args:
        run: with its cases loaded.
        done: batches that an earlier try has finished.

    Yields:
        What to call after every batch.
    """
    shown: UUID | None = None
    if run.n_batches > LONG:
        await show_size(run.tier, run.parameters.source, run.n_cases)
        key = artifact_key(run.tier, run.parameters.source, "progress")
        shown = await best_effort(acreate_progress_artifact(progress=_percent(done, run), key=key))
    said = time.monotonic()

    async def advance() -> None:
        nonlocal done, said
        done += 1
        if shown is not None and (time.monotonic() - said >= EVERY_S or done == run.n_batches):
            said = time.monotonic()
            await best_effort(aupdate_progress_artifact(shown, progress=_percent(done, run)))

    yield advance


async def show_size(tier: str, source: str, n_cases: int) -> None:
    """Names the flow run by tier, source and number of cases, which is known only now."""
    context = FlowRunContext.get()
    if context is not None and context.flow_run is not None and isinstance(context.client, PrefectClient):
        await best_effort(context.client.update_flow_run(context.flow_run.id, name=f"{tier} {source} · {n_cases}"))


async def best_effort(request: Awaitable[Any]) -> Any:
    """What Prefect's server answered; None where it did not, for the record is ours.

    Its patience is in seconds in which this process ran: one that was suspended (Ctrl-Z, a debugger) finds the answer
    waiting when it goes on.
    """
    asked = asyncio.ensure_future(request)
    try:
        for _ in range(PATIENCE_S):
            if (await asyncio.wait({asked}, timeout=1.0))[0]:
                return asked.result()
        raise TimeoutError
    except (httpx.HTTPError, PrefectException, TimeoutError) as error:
        log.warning(
            "the results could not be shown on Prefect's server (%s); they are stored completely", type(error).__name__
        )
        return None
    finally:
        asked.cancel()


def _percent(done: int, run: Run) -> float:
    return 100.0 * done / run.n_batches


def artifact_key(*parts: str) -> str:
    """A key as Prefect allows it: small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")

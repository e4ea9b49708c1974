"""Let runs from the command line be cancelled in Prefect's UI: the run watches its own state, as no worker does."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

import httpx

from yarus.tasks.evaluation.process_exit import CANCELLED_MESSAGE, report_stops_as_cancelled

if TYPE_CHECKING:
    from prefect import Flow
    from prefect.client.schemas.objects import FlowRun

log = logging.getLogger("yarus")
POLL_S = 2.0
STORE_S = 5.0
"""Longest wait for a server to store that the run is cancelled; the server itself may have died."""


@asynccontextmanager
async def make_cancellable(flow: "Flow[..., Any]") -> AsyncIterator[Any]:
    """Yield the flow, whose run ends as with Ctrl-C if it or a part of it is cancelled in the UI.

    However it is stopped, Prefect then stores it as cancelled, not as crashed.
    """
    report_stops_as_cancelled()
    main = asyncio.current_task()
    _started_runs.clear()

    async def watch() -> None:
        await _wait_for_cancellation()
        if main is not None:
            log.warning("cancelled in Prefect's UI")
            main.cancel()

    watcher = asyncio.create_task(watch())
    try:
        yield flow.with_options(on_running=[_note_start])
    except asyncio.CancelledError:
        watcher.cancel()
        if _started_runs:
            await _store_cancelled(_started_runs[0])
        raise
    finally:
        watcher.cancel()


_started_runs: list[UUID] = []
"""Flow runs of this process, oldest first. Not a closure: Dask sends the flow with its hooks to workers."""


def started_flow_run() -> UUID | None:
    """Return the flow run of this process, if there is one."""
    return _started_runs[0] if _started_runs else None


def _note_start(flow: Any, flow_run: Any, state: Any) -> None:
    _started_runs.append(flow_run.id)


async def _wait_for_cancellation() -> None:
    """Return when the run or a part of it is being cancelled; an unreachable server is asked again."""
    while True:
        await asyncio.sleep(POLL_S)
        with suppress(httpx.HTTPError):
            runs = await read_flow_runs(_started_runs[0]) if _started_runs else []
            if any(run.state and (run.state.is_cancelling() or run.state.is_cancelled()) for run in runs):
                return


async def read_flow_runs(flow_run_id: UUID) -> list["FlowRun"]:
    """Return the flow run and those that it has started."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId, FlowRunFilterParentFlowRunId

    async with get_client() as client:
        children = await client.read_flow_runs(
            flow_run_filter=FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[flow_run_id]))
        )
        own_run = await client.read_flow_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[flow_run_id])))
    return [*own_run, *children]


async def _store_cancelled(flow_run_id: UUID) -> None:
    """Set the run and its unfinished parts to Cancelled, if Prefect does not have that state yet."""
    from prefect.client.orchestration import get_client
    from prefect.states import Cancelled

    with suppress(httpx.HTTPError, TimeoutError):
        async with asyncio.timeout(STORE_S), get_client() as client:
            for run in await read_flow_runs(flow_run_id):
                if run.state is None or not (run.state.is_completed() or run.state.is_cancelled()):
                    await client.set_flow_run_state(run.id, Cancelled(message=CANCELLED_MESSAGE), force=True)

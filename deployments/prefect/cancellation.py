"""A run from the command line that can be cancelled in Prefect's UI: it watches its own state, for no worker does."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

import httpx

from yarus.tasks.evaluation.process_exit import CANCELLED, stops_are_cancelled

if TYPE_CHECKING:
    from prefect import Flow
    from prefect.client.schemas.objects import FlowRun

log = logging.getLogger("yarus")
POLL_S = 2.0
TELL_S = 5.0
"""How long a server may take to hear that the run is cancelled; it may be the server that died."""


@asynccontextmanager
async def cancellable(flow: "Flow[..., Any]") -> AsyncIterator[Any]:
    """The flow, whose run ends as Ctrl-C would end it when somebody cancels it, or a part of it, in the UI.

    However it is stopped, Prefect then has it as cancelled, not as crashed.
    """
    stops_are_cancelled()
    main = asyncio.current_task()
    _begun.clear()

    async def watch() -> None:
        await _cancelling()
        if main is not None:
            log.warning("cancelled in Prefect's UI")
            main.cancel()

    watcher = asyncio.create_task(watch())
    try:
        yield flow.with_options(on_running=[_note])
    except asyncio.CancelledError:
        watcher.cancel()
        if _begun:
            await _tell(_begun[0])
        raise
    finally:
        watcher.cancel()


_begun: list[UUID] = []
"""Flow runs of this process, the first first. No closure: Dask sends the flow with its hooks to workers."""


def begun() -> UUID | None:
    """The flow run of this process, where there is one."""
    return _begun[0] if _begun else None


def _note(flow: Any, flow_run: Any, state: Any) -> None:
    _begun.append(flow_run.id)


async def _cancelling() -> None:
    """Returns when the run or a part of it is being cancelled; a server that is away is asked again."""
    while True:
        await asyncio.sleep(POLL_S)
        with suppress(httpx.HTTPError):
            runs = await runs_of(_begun[0]) if _begun else []
            if any(run.state and (run.state.is_cancelling() or run.state.is_cancelled()) for run in runs):
                return


async def runs_of(flow_run_id: UUID) -> list["FlowRun"]:
    """The flow run and those that it has begun."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId, FlowRunFilterParentFlowRunId

    async with get_client() as client:
        found = await client.read_flow_runs(
            flow_run_filter=FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[flow_run_id]))
        )
        itself = await client.read_flow_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[flow_run_id])))
    return [*itself, *found]


async def _tell(flow_run_id: UUID) -> None:
    """Puts the run and the parts of it that did not finish into state Cancelled, where Prefect does not know yet."""
    from prefect.client.orchestration import get_client
    from prefect.states import Cancelled

    with suppress(httpx.HTTPError, TimeoutError):
        async with asyncio.timeout(TELL_S), get_client() as client:
            for run in await runs_of(flow_run_id):
                if run.state is None or not (run.state.is_completed() or run.state.is_cancelled()):
                    await client.set_flow_run_state(run.id, Cancelled(message=CANCELLED), force=True)

"""Stops: end the process in time, and report them to Prefect as cancellations."""

import asyncio
import atexit
import logging
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

GRACE_S = 3.0
"""Longest delay of a stopped process by a step that cannot be interrupted, such as a running model."""
ENDING_S = 20.0
"""Time for Prefect to send remaining events to its server; without a server it retries each event for 7 s."""
STOPPED_EXIT_CODE = 130
CLOSED_PIPE_EXIT_CODE = 141
"""As of a program that SIGPIPE ends, e.g. `cat FILE | head -1`."""
CANCELLED_MESSAGE = "Stopped; the evaluation's row in the journal says how to resume it."
"""Message that Prefect shows for a stopped run."""


def force_exit_after(seconds: float, code: int, *, unless: Callable[[], bool] = lambda: False) -> None:
    """End the process after a delay even if a thread is still running; the journal is complete by now.

    Args:
        seconds: given to the process to end by itself.
        code: its exit code.
        unless: called after the delay; if true, the process is left alone.
    """

    def leave() -> None:
        if not unless():
            atexit._run_exitfuncs()  # the embedded database and Prefect's own server end here
            sys.stdout.flush()
            os._exit(code)

    timer = threading.Timer(seconds, leave)
    timer.daemon = True
    timer.start()


def report_stops_as_cancelled() -> None:
    """Make Prefect treat stopped runs of this process (Ctrl-C, SIGTERM, its own UI) as cancelled.

    By default it treats them as crashed, notifies listeners, and logs errors.
    """
    from prefect.flow_engine import AsyncFlowRunEngine
    from prefect.task_engine import AsyncTaskRunEngine

    for engine in (AsyncFlowRunEngine, AsyncTaskRunEngine):
        if not hasattr(engine.handle_crash, "__wrapped__"):
            engine.handle_crash = _unless_stopped(engine.handle_crash)  # type: ignore[method-assign,assignment]
    for name in ("prefect.flow_runs", "prefect.task_runs"):
        logger = logging.getLogger(name)
        if _downgrade_cancelled not in logger.filters:
            logger.addFilter(_downgrade_cancelled)


def _unless_stopped(handle_crash: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Wrap an engine's crash handler: stops set the state Cancelled, other problems go to the handler."""

    @wraps(handle_crash)
    async def handle_end(engine: Any, error: BaseException) -> None:
        from anyio import CancelScope
        from prefect.exceptions import TerminationSignal
        from prefect.states import Cancelled

        if not isinstance(error, asyncio.CancelledError | KeyboardInterrupt | TerminationSignal):
            await handle_crash(engine, error)
            return
        with CancelScope(shield=True):
            await engine.set_state(Cancelled(message=CANCELLED_MESSAGE), force=True)
            engine._raised = error

    return handle_end


def _downgrade_cancelled(record: logging.LogRecord) -> bool:
    """Lower the level of Prefect's last message about a cancelled run; pass every record.

    Prefect logs it as an error if the run is not completed.
    """
    if record.getMessage().startswith("Finished in state Cancelled("):
        record.levelno, record.levelname = logging.INFO, logging.getLevelName(logging.INFO)
    return True

"""A stop: it ends the process in time, and Prefect hears of it as what it is."""

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
"""How long a step that nothing can interrupt, such as a model at work, may delay the end of a stopped process."""
ENDING_S = 20.0
"""How long Prefect may take to tell its server what is left; where that is gone, it tries for 7 s with each event."""
STOPPED = 130
CANCELLED = "Stopped; the evaluation's row in the journal says how to resume it."
"""What Prefect shows of a run that was stopped."""


def exit_within(seconds: float, code: int, *, unless: Callable[[], bool] = lambda: False) -> None:
    """Ends the process even where a thread goes on: by now the journal has its last word, and nothing is half done.

    Args:
        seconds: what the process has to end by itself.
        code: its exit code.
        unless: asked then; whether it is to be let be.
    """

    def leave() -> None:
        if not unless():
            atexit._run_exitfuncs()  # the embedded database and Prefect's own server end here
            sys.stdout.flush()
            os._exit(code)

    timer = threading.Timer(seconds, leave)
    timer.daemon = True
    timer.start()


def stops_are_cancelled() -> None:
    """Has Prefect take runs of this process that are stopped (Ctrl-C, SIGTERM, its own UI) for cancelled.

    Of itself it takes them for crashed, tells whoever listens so, and logs errors that are none.
    """
    from prefect.flow_engine import AsyncFlowRunEngine
    from prefect.task_engine import AsyncTaskRunEngine

    for engine in (AsyncFlowRunEngine, AsyncTaskRunEngine):
        if not hasattr(engine.handle_crash, "__wrapped__"):
            engine.handle_crash = _unless_stopped(engine.handle_crash)  # type: ignore[method-assign,assignment]
    for name in ("prefect.flow_runs", "prefect.task_runs"):
        logger = logging.getLogger(name)
        if _no_error not in logger.filters:
            logger.addFilter(_no_error)


def _unless_stopped(crashed: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """What an engine does with an end that is no exception of the flow's: where it is a stop, says so."""

    @wraps(crashed)
    async def ended(engine: Any, problem: BaseException) -> None:
        from anyio import CancelScope
        from prefect.exceptions import TerminationSignal
        from prefect.states import Cancelled

        if not isinstance(problem, asyncio.CancelledError | KeyboardInterrupt | TerminationSignal):
            await crashed(engine, problem)
            return
        with CancelScope(shield=True):
            await engine.set_state(Cancelled(message=CANCELLED), force=True)
            engine._raised = problem

    return ended


def _no_error(record: logging.LogRecord) -> bool:
    """Lets every record pass; Prefect's last word of a run is an error to it wherever the run is not completed."""
    if record.getMessage().startswith("Finished in state Cancelled("):
        record.levelno, record.levelname = logging.INFO, logging.getLevelName(logging.INFO)
    return True

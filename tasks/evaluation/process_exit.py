"""Ends the process in time."""

import atexit
import os
import sys
import threading
from collections.abc import Callable

GRACE_S = 3.0
"""How long a step that nothing can interrupt, such as a model at work, may delay the end of a stopped process."""
ENDING_S = 20.0
"""How long Prefect may take to tell its server what is left; where that is gone, it tries for 7 s with each event."""
STOPPED = 130


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

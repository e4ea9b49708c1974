"""Handle Ctrl-C and SIGTERM, so that a command ends with its own message, whatever library is running."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any, TypeVar

from yarus.tasks.evaluation.process_exit import GRACE_S, STOPPED_EXIT_CODE, force_exit_after

T = TypeVar("T")
RECEIVED_SIGNALS: list[int] = []


def install_signal_handlers() -> None:
    """Handle both signals as Python handles Ctrl-C, and record them for `is_stop_requested`."""
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, partial(_record_signal, signal.default_int_handler))
    sys.unraisablehook = _ignore_dropped_stop


def is_stop_requested() -> bool:
    """Return whether a stop was requested.

    A library may turn the KeyboardInterrupt into its own error, without a cause, as pydantic does in nested models.
    """
    return bool(RECEIVED_SIGNALS)


def ignore_signals() -> None:
    """Ignore further signals, so that a second Ctrl-C does not keep the servers from being stopped."""
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, signal.SIG_IGN)


def exit_if_stopped(codes: Sequence[int]) -> None:
    """End a process that was asked to stop with its own exit code, after everything else has ended.

    Otherwise `python -m` itself dies of a Ctrl-C that was raised in code compiled from text, as named tuples run some,
    although it was handled.

    Args:
        codes: the exit code, or empty if it is not known yet.
    """
    if is_stop_requested() and codes:
        with suppress(OSError):  # stdout may be closed
            sys.stdout.flush()
        os._exit(codes[0])


def run_cancellable(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run like `asyncio.run`, and cancel the work at the first Ctrl-C.

    `asyncio.run` does so only if Python's own handler is installed.

    Raises:
        KeyboardInterrupt: a stop was asked for, also if Python has dropped it, as in the callback of a weak reference.
    """

    async def run_work() -> T:
        signal.signal(signal.SIGINT, partial(_record_signal, signal.getsignal(signal.SIGINT)))
        try:
            return await work()
        except asyncio.CancelledError:
            force_exit_after(GRACE_S, STOPPED_EXIT_CODE, unless=asyncio.get_running_loop().is_closed)
            raise

    if is_stop_requested():
        raise KeyboardInterrupt
    previous = {signal_number: signal.getsignal(signal_number) for signal_number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return asyncio.run(run_work())
    finally:
        for signal_number, handler in previous.items():  # a loop that ends restores the system's default handler
            signal.signal(signal_number, handler)


def _ignore_dropped_stop(unraisable: "sys.UnraisableHookArgs") -> None:
    """Report an exception that Python has to drop, except a stop, which `is_stop_requested` reports."""
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)


def _record_signal(handler: Any, signal_number: int, frame: FrameType | None) -> None:
    RECEIVED_SIGNALS.append(signal_number)
    handler(signal_number, frame)

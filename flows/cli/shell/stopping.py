"""Ctrl-C and SIGTERM: they end a command in its own words, whatever library is at work when they come."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any, TypeVar

from yarus.tasks.evaluation.process_exit import GRACE_S, STOPPED, exit_within

T = TypeVar("T")
ASKED: list[int] = []


def listen() -> None:
    """Take both signals as Python takes Ctrl-C, and remember them: see `asked`."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, partial(_note, signal.default_int_handler))
    sys.unraisablehook = _pass_over_stop


def asked() -> bool:
    """Whether a stop was asked for: a library may make an error of its own of the KeyboardInterrupt, without a cause,
    as pydantic does where a model holds a model.
    """
    return bool(ASKED)


def no_more() -> None:
    """Hears no further signal: what is left is to end our servers, which a second Ctrl-C would keep."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def leave(codes: Sequence[int]) -> None:
    """Ends a process that was asked to stop with its own exit code, when everything else has ended.

    Python itself would die of a Ctrl-C that has left code made of text, as every named tuple runs some, though we have
    heard it: `python -m` remembers.

    Args:
        codes: the exit code, where there is one by now.
    """
    if asked() and codes:
        with suppress(OSError):  # nobody may read what is said
            sys.stdout.flush()
        os._exit(codes[0])


def run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """`asyncio.run`, which cancels the work at the first Ctrl-C: it does so in place of Python's own handler only.

    Raises:
        KeyboardInterrupt: a stop was asked for, also if Python has dropped it, as in the callback of a weak reference.
    """

    async def heard() -> T:
        signal.signal(signal.SIGINT, partial(_note, signal.getsignal(signal.SIGINT)))
        try:
            return await work()
        except asyncio.CancelledError:
            exit_within(GRACE_S, STOPPED, unless=asyncio.get_running_loop().is_closed)
            raise

    if asked():
        raise KeyboardInterrupt
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return asyncio.run(heard())
    finally:
        for number, handler in before.items():  # a loop that ends leaves the system's own for what it has handled
            signal.signal(number, handler)


def _pass_over_stop(unraisable: "sys.UnraisableHookArgs") -> None:
    """Report what Python has to drop, but for a stop, which `asked` knows."""
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)


def _note(passed_on: Any, number: int, frame: FrameType | None) -> None:
    ASKED.append(number)
    passed_on(number, frame)

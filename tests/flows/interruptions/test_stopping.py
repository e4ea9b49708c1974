"""Check that a stop that a library wraps in its own error is reported as a stop, not as a bug."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import click
import pytest
from pydantic import BaseModel, model_serializer

from yarus import __main__
from yarus.flows.cli.framework import stopping


class Inner(BaseModel):
    @model_serializer
    def interrupted(self) -> dict[str, Any]:
        os.kill(os.getpid(), signal.SIGTERM)
        return {}


class Outer(BaseModel):
    inner: Inner = Inner()

    @model_serializer(mode="wrap")
    def passed_on(self, handler: Callable[["Outer"], Any]) -> Any:
        return handler(self)


@pytest.fixture
def handled_signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    stopping.install_signal_handlers()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    stopping.RECEIVED_SIGNALS.clear()


def interrupt_serialiser() -> None:
    Outer().model_dump()


async def interrupted_once() -> NoReturn:
    os.kill(os.getpid(), signal.SIGINT)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        raise RuntimeError("the connection was closed") from None
    raise AssertionError("nobody stopped it")


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def wait() -> None:
    stopping.run_cancellable(interrupted_once)


def fail() -> None:
    raise RuntimeError("by itself")


def fail_together() -> None:
    """Fail in a task group that cancels its host, like anyio's: that is not a stop."""

    async def member() -> NoReturn:
        raise RuntimeError("by itself")

    async def host() -> None:
        task = asyncio.current_task()
        assert task
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(member())
        except ExceptionGroup as failed:
            task.cancel()
            raise failed.exceptions[0] from None

    stopping.run_cancellable(host)


@pytest.mark.parametrize(
    ("work", "code"),
    [(interrupt_serialiser, 130), (interrupt, 130), (wait, 130), (fail, 3), (fail_together, 3)],
)
def test_stop_ends_command(
    handled_signals: None, monkeypatch: pytest.MonkeyPatch, work: Callable[[], None], code: int
) -> None:
    monkeypatch.setattr(__main__, "cli", click.Command("work", callback=work))
    assert __main__.run_command_line([]) == code


def test_signal_handlers_are_restored(handled_signals: None) -> None:
    async def add_handler() -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, int)

    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    stopping.run_cancellable(add_handler)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before

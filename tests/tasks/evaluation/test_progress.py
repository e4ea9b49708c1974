"""What is shown on Prefect's server is waited for, but not longer than a person would."""

import asyncio
import time

import pytest

from yarus.tasks.evaluation import batches


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "PATIENCE_S", 2)


async def answered_in_steps() -> str:
    """As a request is: its answer comes in several parts, each when the loop looks at its sockets."""
    for _ in range(5):
        await asyncio.to_thread(time.sleep, 0.01)
    return "shown"


@pytest.mark.slow("wait: a process is suspended")
async def test_a_process_that_was_suspended_finds_its_answer(caplog: pytest.LogCaptureFixture) -> None:
    async def suspended() -> None:
        time.sleep(2.5)  # noqa: ASYNC251  # nothing runs meanwhile, as after Ctrl-Z

    shown, _ = await asyncio.gather(batches.best_effort(answered_in_steps()), suspended())
    assert shown == "shown"
    assert caplog.text == ""


@pytest.mark.slow("wait: patience runs out")
@pytest.mark.usefixtures("english")
async def test_an_answer_that_does_not_come_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    asked = asyncio.ensure_future(asyncio.Event().wait())
    start = time.monotonic()
    assert await batches.best_effort(asked) is None
    assert 2 <= time.monotonic() - start < 60
    assert "could not be shown on Prefect's server (TimeoutError)" in caplog.text
    await asyncio.sleep(0)
    assert asked.cancelled()


async def test_a_stop_also_ends_the_request() -> None:
    asked = asyncio.ensure_future(asyncio.Event().wait())
    waiting = asyncio.ensure_future(batches.best_effort(asked))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.sleep(0)
    assert asked.cancelled()

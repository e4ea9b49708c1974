"""Requests to Prefect's server are awaited, up to a timeout."""

import asyncio
import time

import pytest

from yarus.tasks.evaluation import batches


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "REQUEST_TIMEOUT_S", 2)


async def answer_in_steps() -> str:
    """Answer like a request: in several parts, each when the loop checks its sockets."""
    for _ in range(5):
        await asyncio.to_thread(time.sleep, 0.01)
    return "shown"


@pytest.mark.slow("wait: a process is suspended")
async def test_best_effort_returns_answer_after_suspension(caplog: pytest.LogCaptureFixture) -> None:
    async def suspend() -> None:
        time.sleep(2.5)  # noqa: ASYNC251  # nothing runs meanwhile, as after Ctrl-Z

    answer, _ = await asyncio.gather(batches.request_best_effort(answer_in_steps()), suspend())
    assert answer == "shown"
    assert caplog.text == ""


@pytest.mark.slow("wait: patience runs out")
@pytest.mark.usefixtures("english")
async def test_best_effort_gives_up_after_timeout(caplog: pytest.LogCaptureFixture) -> None:
    request = asyncio.ensure_future(asyncio.Event().wait())
    start = time.monotonic()
    assert await batches.request_best_effort(request) is None
    assert 2 <= time.monotonic() - start < 60
    assert "could not be shown on Prefect's server (TimeoutError)" in caplog.text
    await asyncio.sleep(0)
    assert request.cancelled()


async def test_best_effort_cancels_request_when_stopped() -> None:
    request = asyncio.ensure_future(asyncio.Event().wait())
    waiting = asyncio.ensure_future(batches.request_best_effort(request))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.sleep(0)
    assert request.cancelled()

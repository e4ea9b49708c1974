"""What is said while a server does not answer."""

import asyncio
import logging

import pytest

from tests.support.llm_clients import QUICK, call, settings
from tests.support.llm_server import Do, FakeLLMServer, scores
from yarus.tasks.models import rate_limits
from yarus.tasks.models.chat import chat
from yarus.tasks.models.rate_limits import CircuitBreaker, RetryPolicy


@pytest.mark.usefixtures("english")
async def test_a_server_that_takes_its_time_is_named_with_how_long_yet(
    llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(rate_limits, "EVERY_S", 0.1)
    caplog.set_level("INFO", "yarus")
    said, handler = asyncio.Event(), logging.Handler()
    monkeypatch.setattr(
        handler, "emit", lambda record: said.set() if "without a reply" in record.getMessage() else None
    )
    monkeypatch.setattr(rate_limits.log, "handlers", [*rate_limits.log.handlers, handler])
    llm_server.script = lambda number, request: Do(after_s=3_600)
    async with asyncio.timeout(60), chat("judge", settings(llm_server.url, timeout_s=50), retries=QUICK) as judge:
        asking = asyncio.create_task(judge.ask(call()))
        await said.wait()
        asking.cancel()
    (message, *_) = [message for message in caplog.messages if "without a reply of judge" in message]
    assert f"at {llm_server.url}" in message
    assert "no reply yet, which may take 50 s" in message
    assert "Ctrl-C stops" in message


@pytest.mark.slow("wait: a server is slow")
@pytest.mark.usefixtures("english")
async def test_slow_server_is_logged_once(
    llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(rate_limits, "EVERY_S", 0.1)
    caplog.set_level("INFO", "yarus")
    llm_server.script = lambda number, request: Do(scores(0.5), after_s=0.4)
    async with chat("judge", settings(llm_server.url, concurrency=1)) as judge:
        await judge.complete([call(number) for number in range(8)])
    told = [message for message in caplog.messages if "without a reply of judge" in message]
    again = [message for message in caplog.messages if "answers again, after" in message]
    assert 1 <= len(told) <= 3  # of the first reply alone
    assert len(again) == 1


async def test_nothing_is_said_of_one_that_answers(llm_server: FakeLLMServer, caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO", "yarus")
    llm_server.script = lambda number, request: scores(0.5)
    async with chat("judge", settings(llm_server.url)) as judge:
        await judge.complete([call(number) for number in range(20)])
    assert not [message for message in caplog.messages if "without a reply" in message]


def test_the_last_call_of_a_server_that_is_gone_goes_with_the_probes():
    """By itself it doubled its waits and needed five minutes for the twenty faults after which a server is given up."""
    policy = RetryPolicy()
    breaker = CircuitBreaker(policy)
    for _ in range(CircuitBreaker.FAULTS):
        breaker.failed("unreachable", "refused")
    assert policy.wait_s("unreachable", CircuitBreaker.GIVEN_UP, breaker) <= policy.probe_s
    assert breaker.waits is not None
    assert breaker.waits.startswith("refused; given up in ")
    assert policy.wait_s("busy", 10, breaker) > policy.probe_s

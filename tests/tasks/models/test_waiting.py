"""Log messages while a server does not answer."""

import asyncio
import logging

import pytest

from tests.support.llm_clients import QUICK_RETRIES, make_call, make_chat_settings
from tests.support.llm_server import Action, FakeLLMServer, make_score_completion
from yarus.tasks.models import rate_limits
from yarus.tasks.models.chat import open_chat
from yarus.tasks.models.rate_limits import CircuitBreaker, RetryPolicy


@pytest.mark.usefixtures("english")
async def test_silent_server_is_logged_with_its_timeout(
    llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(rate_limits, "CHECK_INTERVAL_S", 0.1)
    caplog.set_level("INFO", "yarus")
    reported, handler = asyncio.Event(), logging.Handler()
    monkeypatch.setattr(
        handler, "emit", lambda record: reported.set() if "without a reply" in record.getMessage() else None
    )
    monkeypatch.setattr(rate_limits.log, "handlers", [*rate_limits.log.handlers, handler])
    llm_server.script = lambda number, request: Action(after_s=3_600)
    async with (
        asyncio.timeout(60),
        open_chat("judge", make_chat_settings(llm_server.url, timeout_s=50), retries=QUICK_RETRIES) as judge,
    ):
        task = asyncio.create_task(judge.ask(make_call()))
        await reported.wait()
        task.cancel()
    (message, *_) = [message for message in caplog.messages if "without a reply of judge" in message]
    assert f"at {llm_server.url}" in message
    assert "no reply yet, which may take 50 s" in message
    assert "Ctrl-C stops" in message


@pytest.mark.slow("wait: a server is slow")
@pytest.mark.usefixtures("english")
async def test_slow_server_is_logged_once(
    llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(rate_limits, "CHECK_INTERVAL_S", 0.1)
    caplog.set_level("INFO", "yarus")
    llm_server.script = lambda number, request: Action(make_score_completion(0.5), after_s=0.4)
    async with open_chat("judge", make_chat_settings(llm_server.url, concurrency=1)) as judge:
        await judge.complete([make_call(number) for number in range(8)])
    reports = [message for message in caplog.messages if "without a reply of judge" in message]
    recoveries = [message for message in caplog.messages if "answers again, after" in message]
    assert 1 <= len(reports) <= 3  # only for the first reply
    assert len(recoveries) == 1


async def test_answering_server_is_not_logged(llm_server: FakeLLMServer, caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO", "yarus")
    llm_server.script = lambda number, request: make_score_completion(0.5)
    async with open_chat("judge", make_chat_settings(llm_server.url)) as judge:
        await judge.complete([make_call(number) for number in range(20)])
    assert not [message for message in caplog.messages if "without a reply" in message]


def test_wait_during_an_outage_ends_with_the_probe():
    """A call that doubled its waits needed five minutes for the twenty faults before giving up."""
    policy = RetryPolicy()
    breaker = CircuitBreaker(policy)
    for _ in range(CircuitBreaker.FAULTS):
        breaker.record_failure("unreachable", "refused")
    assert policy.wait_s("unreachable", CircuitBreaker.GIVEN_UP, breaker) <= policy.probe_s
    assert breaker.wait_reason is not None
    assert breaker.wait_reason.startswith("refused; given up in ")
    assert policy.wait_s("busy", 10, breaker) > policy.probe_s

"""Rate and duration of calls to a chat server: limits, outages, the end of the evaluation."""

import asyncio
import datetime
import time
from dataclasses import replace
from email.utils import format_datetime

import pytest

from tests.support.llm_clients import QUICK_RETRIES, make_call, make_chat_settings
from tests.support.llm_server import Action, FakeLLMServer, make_response, make_score_completion
from yarus.tasks.models.chat import ChatPool, open_chat
from yarus.tasks.models.verdicts import ask_for_score


async def test_retry_after_delays_all_calls(llm_server: FakeLLMServer):
    arrived = []

    def script(number, request):
        arrived.append(time.monotonic())
        return make_response(429, "", "Retry-After: 1") if number == 1 else make_score_completion(0.5)

    llm_server.script = script
    async with open_chat(
        "judge", make_chat_settings(llm_server.url, concurrency=1), retries=replace(QUICK_RETRIES, busy_s=5)
    ) as judge:
        replies = await judge.complete([make_call(number) for number in range(3)])
    assert [reply.status for reply in replies] == ["ok"] * 3
    assert arrived[1] - arrived[0] >= 0.95


@pytest.mark.slow("wait: a server asks for it")
async def test_retry_after_as_a_date(llm_server: FakeLLMServer):
    started = time.monotonic()
    date = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=2)
    refusal = make_response(503, "", f"Retry-After: {format_datetime(date, usegmt=True)}")
    llm_server.script = lambda number, request: refusal if number == 1 else make_score_completion(0.5)
    async with open_chat(
        "judge", make_chat_settings(llm_server.url), retries=replace(QUICK_RETRIES, busy_s=5)
    ) as judge:
        assert (await ask_for_score(judge, make_call())).value == 0.5
    assert 0.9 < time.monotonic() - started < 30  # the date has whole seconds


@pytest.mark.slow("breadth: 1,400 calls")
async def test_concurrency_falls_after_429_and_comes_back(llm_server: FakeLLMServer):
    limit = 4

    def script(number, request):
        return make_response(429) if llm_server.in_flight > limit else Action(make_score_completion(0.5), after_s=0.01)

    llm_server.script = script
    async with open_chat(
        "judge", make_chat_settings(llm_server.url, concurrency=32), retries=replace(QUICK_RETRIES, busy_s=30)
    ) as judge:
        replies = await judge.complete([make_call(number) for number in range(400)])
        assert 1 <= judge._attempts._concurrency.limit < 32
        llm_server.script = lambda number, request: make_score_completion(0.5)
        await judge.complete([make_call(number) for number in range(400, 1400)])
        assert judge._attempts._concurrency.limit > 25
    assert {reply.status for reply in replies} == {"ok"}


@pytest.mark.slow("wait: limits a minute are reached")
async def test_concurrency_and_rate_limits_are_kept(llm_server: FakeLLMServer):
    llm_server.script = lambda number, request: Action(make_score_completion(0.5), after_s=0.1)
    async with open_chat("judge", make_chat_settings(llm_server.url, concurrency=5), retries=QUICK_RETRIES) as judge:
        await judge.complete([make_call(number) for number in range(40)])
    assert llm_server.most_in_flight == 5
    for limit in ({"rpm": 600}, {"tpm": 72_000}):  # 10 calls per second; 120 tokens per call as the server counts
        started = time.monotonic()
        async with open_chat("judge", make_chat_settings(llm_server.url, **limit), retries=QUICK_RETRIES) as judge:
            await judge.complete([make_call(number) for number in range(10)])
        assert 0.6 < time.monotonic() - started < 30


async def test_batches_share_one_limit(llm_server: FakeLLMServer):
    llm_server.script = lambda number, request: Action(make_score_completion(0.5), after_s=0.02)

    chats = ChatPool()

    async def batch(start):
        async with open_chat(
            "judge", make_chat_settings(llm_server.url, concurrency=3), retries=QUICK_RETRIES, chats=chats
        ) as judge:
            return await judge.complete([make_call(number) for number in range(start, start + 20)])

    await asyncio.gather(*(batch(start) for start in (0, 20, 40)))
    assert (llm_server.most_in_flight, len(llm_server.requests)) == (3, 60)


async def test_equal_calls_at_once_are_bought_once(llm_server: FakeLLMServer):
    llm_server.script = lambda number, request: Action(make_score_completion(0.5), after_s=0.1)
    async with open_chat("judge", make_chat_settings(llm_server.url), retries=QUICK_RETRIES) as judge:
        replies = await judge.complete([make_call()] * 10 + [replace(make_call(), repeat=1)])
    assert len(llm_server.requests) == 2
    assert [reply.from_store for reply in replies[:10]].count(False) == 1  # the first caller has paid
    assert len({replace(reply, from_store=True) for reply in replies[:10]}) == 1


@pytest.mark.slow("wait: a server is away")
async def test_server_outage_loses_no_call(llm_server: FakeLLMServer):
    async def outage():
        while len(llm_server.requests) < 20:  # noqa: ASYNC110 - of four at once: it has answered some
            await asyncio.sleep(0.01)
        await asyncio.to_thread(llm_server.stop)
        await asyncio.sleep(1)
        await asyncio.to_thread(llm_server.start)

    llm_server.script = lambda number, request: Action(make_score_completion(0.5), after_s=0.02)
    async with open_chat(
        "judge", make_chat_settings(llm_server.url, concurrency=4), retries=replace(QUICK_RETRIES, outage_s=60)
    ) as judge:
        replies, _ = await asyncio.gather(judge.complete([make_call(number) for number in range(200)]), outage())
    assert {reply.status for reply in replies} == {"ok"}
    assert len(llm_server.requests) <= 200 + 4  # no call was sent twice during the outage


async def test_unreachable_server_is_given_up_once_for_all(llm_server: FakeLLMServer):
    llm_server.stop()
    started = time.monotonic()
    async with open_chat("judge", make_chat_settings(llm_server.url, concurrency=4), retries=QUICK_RETRIES) as judge:
        replies = await judge.complete([make_call(number) for number in range(1_000)])
    assert time.monotonic() - started < 30  # separate retries of each call would take minutes
    assert {reply.status for reply in replies} == {"error"}
    assert all("Connect call failed" in reply.reason for reply in replies)
    llm_server.start()


@pytest.mark.slow("wait: a limit of time runs out")
async def test_evaluation_timeout_ends_calls(llm_server: FakeLLMServer):
    llm_server.script = lambda number, request: Action(make_score_completion(0.5), after_s=0.05)
    limited = make_chat_settings(llm_server.url, concurrency=2).model_copy(update={"evaluation_timeout_s": 1.5})
    started = time.monotonic()
    async with open_chat("judge", limited, evaluation="timed", retries=QUICK_RETRIES) as judge:
        replies = await judge.complete([make_call(number) for number in range(4_000)])
    assert time.monotonic() - started < 30  # all of them would take 100 s
    assert {reply.status for reply in replies} == {"ok", "error"}
    assert any("YARUS_EVALUATION_TIMEOUT_S" in reply.reason for reply in replies)


async def test_cancelled_calls_end_quickly(llm_server: FakeLLMServer):
    llm_server.script = lambda number, request: Action(after_s=30)
    async with open_chat("judge", make_chat_settings(llm_server.url, timeout_s=30), retries=QUICK_RETRIES) as judge:
        task = asyncio.create_task(judge.complete([make_call(number) for number in range(50)]))
        await asyncio.sleep(0.2)
        task.cancel()
        started = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 15

"""A stop during calls: received answers are stored, because they are paid for."""

import asyncio

from sqlalchemy import Engine

from tests.support.llm_clients import make_call, make_chat_settings, make_priced_settings
from tests.support.llm_server import Action, FakeLLMServer, make_score_completion
from yarus.tasks.models.chat import ChatClient, open_chat


async def test_answer_waiting_to_be_stored_is_stored(llm_server: FakeLLMServer, engine: Engine) -> None:
    llm_server.script = lambda number, request: Action(make_score_completion(0.5))
    configuration = make_chat_settings(llm_server.url, concurrency=1, model=f"stopped-{llm_server.own}")
    async with open_chat("judge", configuration, engine) as judge:
        assert isinstance(judge, ChatClient)
        await judge._unsaved.acquire()  # as if other answers were still being stored
        task = asyncio.create_task(judge.ask(make_call(1)))
        while not judge._unsaved._waiters:  # noqa: ASYNC110 - it does not report its waiters
            await asyncio.sleep(0.01)
    await asyncio.wait([task])
    async with open_chat("judge", configuration, engine) as judge:
        reply = await judge.ask(make_call(1))
    assert (reply.from_store, len(llm_server.requests)) == (True, 1)


async def test_answer_with_impossible_cost_is_stored(llm_server: FakeLLMServer, engine: Engine) -> None:
    llm_server.script = lambda number, request: Action(
        make_score_completion(0.5, tokens=(100, 20 if len(llm_server.requests) < 2 else 10**9))
    )
    first, second = make_call(0), make_call(int(llm_server.own, 16))
    configuration = make_priced_settings(
        llm_server.url, concurrency=1, model="asked", max_tokens=int(llm_server.own[:4], 16) + 1_000
    )
    async with open_chat("judge", configuration, engine, evaluation=f"stopped-{llm_server.own}") as judge:
        assert isinstance(judge, ChatClient)
        await judge.ask(first)  # money is drawn for several calls
        ledger = judge._budget._ledger_lock
        await ledger.acquire()  # as if another call were drawing money
        task = asyncio.create_task(judge.ask(second))
        while not ledger._waiters:  # noqa: ASYNC110 - it does not report its waiters
            await asyncio.sleep(0.01)
        assert len(llm_server.requests) == 2
        asyncio.get_running_loop().call_later(0.1, ledger.release)
    await asyncio.wait([task])
    async with open_chat("judge", configuration, engine, evaluation=f"stopped-{llm_server.own}") as judge:
        reply = await judge.ask(second)
    assert (reply.from_store, len(llm_server.requests)) == (True, 2)

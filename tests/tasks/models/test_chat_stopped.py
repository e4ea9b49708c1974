"""A stop in the middle of calls: what a model has answered is kept, for it is paid for."""

import asyncio

from sqlalchemy import Engine

from tests.support.llm_clients import call, priced, settings
from tests.support.llm_server import Do, FakeLLMServer, scores
from yarus.tasks.models.chat import Chat, chat


async def test_an_answer_that_waits_for_its_place_in_the_store_is_stored(
    llm_server: FakeLLMServer, engine: Engine
) -> None:
    llm_server.script = lambda number, request: Do(scores(0.5))
    asked = settings(llm_server.url, concurrency=1, model=f"stopped-{llm_server.own}")
    async with chat("judge", asked, engine) as judge:
        assert isinstance(judge, Chat)
        await judge._unsaved.acquire()  # as if others' answers were still being stored
        asking = asyncio.create_task(judge.ask(call(1)))
        while not judge._unsaved._waiters:  # noqa: ASYNC110 - it tells nobody that one waits
            await asyncio.sleep(0.01)
    await asyncio.wait([asking])
    async with chat("judge", asked, engine) as judge:
        reply = await judge.ask(call(1))
    assert (reply.from_store, len(llm_server.requests)) == (True, 1)


async def test_an_answer_that_cost_more_than_it_can_have_is_stored(llm_server: FakeLLMServer, engine: Engine) -> None:
    llm_server.script = lambda number, request: Do(
        scores(0.5, tokens=(100, 20 if len(llm_server.requests) < 2 else 10**9))
    )
    first, called = call(0), call(int(llm_server.own, 16))
    asked = priced(llm_server.url, concurrency=1, model="asked", max_tokens=int(llm_server.own[:4], 16) + 1_000)
    async with chat("judge", asked, engine, evaluation=f"stopped-{llm_server.own}") as judge:
        assert isinstance(judge, Chat)
        await judge.ask(first)  # money is drawn for more than one
        ledger = judge._budget._at_ledger
        await ledger.acquire()  # as if another call were drawing money
        asking = asyncio.create_task(judge.ask(called))
        while not ledger._waiters:  # noqa: ASYNC110 - it tells nobody that one waits
            await asyncio.sleep(0.01)
        assert len(llm_server.requests) == 2
        asyncio.get_running_loop().call_later(0.1, ledger.release)
    await asyncio.wait([asking])
    async with chat("judge", asked, engine, evaluation=f"stopped-{llm_server.own}") as judge:
        reply = await judge.ask(called)
    assert (reply.from_store, len(llm_server.requests)) == (True, 2)

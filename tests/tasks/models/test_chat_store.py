"""The call store: no call is bought twice, only calls in flight are lost, and the budget is kept."""

import asyncio
import os
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import replace
from datetime import date
from pathlib import Path

import psutil
import pytest
from pydantic import SecretStr
from sqlalchemy import Engine, text

from tests.support.llm_clients import make_settings
from tests.support.llm_server import Action, FakeLLMServer, make_completion, make_response, make_score_completion
from yarus.db.embedded import server as embedded
from yarus.db.engine import open_own_database
from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.tasks.config.services import Price
from yarus.tasks.config.settings import ModelRole, Settings
from yarus.tasks.models import call_store
from yarus.tasks.models.calls import Call
from yarus.tasks.models.chat import open_chat
from yarus.tasks.models.prices import estimate_calls, find_unstored_calls
from yarus.tasks.models.prompts import read_prompts
from yarus.tasks.models.rate_limits import RetryPolicy
from yarus.tasks.models.verdicts import ask_for_score

QUICK = RetryPolicy(attempts=2, first_s=0.01, unreached_s=0.3, wrong_s=0.3, busy_s=0.3, probe_s=0.02)
PROMPTS = read_prompts(Settings(_env_file=None))
MILLION = 1_000_000


def settings(url: str, *, price: float | None = None, budget: float | None = None, **role: object) -> Settings:
    model_role = ModelRole(**({"base_url": url, "model": "asked", "timeout_s": 60} | role))
    prices = {} if price is None else {"asked": Price(input=price, output=price, as_of=date(2026, 11, 1))}
    return make_settings(
        judge=model_role, production_judge=model_role, generator=model_role, prices=prices, budget_usd=budget
    )


@pytest.fixture
def tag() -> str:
    """Return a text that makes the calls of a test unique in the shared store."""
    return uuid.uuid4().hex


def calls(tag: str, n: int) -> list[Call]:
    texts = ({"question": f"{tag} {number}", "context": "Контекст", "answer": "Ответ"} for number in range(n))
    return [Call(PROMPTS["faithfulness"], call_texts) for call_texts in texts]


async def ask(configuration: Settings, engine: Engine, judge_calls: list[Call], **options: object):
    async with open_chat("judge", configuration, engine, retries=QUICK, **options) as judge:
        return await judge.complete(judge_calls)


async def test_nul_is_replaced_in_all_fields_of_a_reply(llm_server: FakeLLMServer, engine, tag):
    llm_server.script = lambda number, request: make_score_completion(0.5, model="served\0-1", finish="st\0op")
    (reply,) = await ask(settings(llm_server.url), engine, calls(tag, 1))
    assert (reply.status, reply.served_model, reply.finish_reason) == ("ok", "served\ufffd-1", "st\ufffdop")
    (again,) = await ask(settings(llm_server.url), engine, calls(tag, 1))
    assert (again.from_store, again.served_model) == (True, "served\ufffd-1")


async def test_repeated_calls_come_from_the_store(llm_server: FakeLLMServer, engine, tag):
    logprobs = {"logprobs": {"content": [{"logprob": -0.5}, {"logprob": -1.0}]}}
    llm_server.script = lambda number, request: make_score_completion(number % 10 / 10, **logprobs)
    first = await ask(settings(llm_server.url), engine, calls(tag, 50))
    again = await ask(settings(llm_server.url), engine, calls(tag, 50))
    assert len(llm_server.requests) == 50
    assert [replace(reply, from_store=False, cost_usd=None) for reply in again] == first
    assert all(reply.from_store and reply.logprobs == (-0.5, -1.0) and reply.cost_usd == 0 for reply in again)
    assert first[0].served_model == "served-1"

    await ask(settings(llm_server.url, model="another"), engine, calls(tag, 50))
    assert len(llm_server.requests) == 100
    for change in ({"temperature": 0.5}, {"max_tokens": 99}):
        await ask(settings(llm_server.url, **change), engine, calls(tag, 50)[:1])
    await ask(settings(llm_server.url), engine, [replace(calls(tag, 1)[0], repeat=1)])
    assert len(llm_server.requests) == 103
    # Address, key and limits are not part of a call.
    await ask(settings(llm_server.url + "/", concurrency=3, api_key=SecretStr("k" * 20)), engine, calls(tag, 50))
    assert len(llm_server.requests) == 103


@pytest.mark.usefixtures("english")
async def test_change_of_model_is_recorded_and_logged_once(llm_server: FakeLLMServer, engine, tag, caplog):
    llm_server.script = lambda number, request: make_score_completion(0.5, model="asked" if number < 3 else "cheaper")
    async with open_chat("judge", settings(llm_server.url, concurrency=1), engine) as judge:
        replies = [await judge.ask(call) for call in calls(tag, 5)]
    assert [reply.served_model for reply in replies] == ["asked"] * 2 + ["cheaper"] * 3
    assert {reply.requested_model for reply in replies} == {"asked"}
    assert caplog.messages == ["judge: asked for the model asked, served by cheaper"]


async def test_batcher_runs_full_and_waiting_groups():
    groups: list[list[int]] = []

    def double(numbers):
        groups.append(list(numbers))
        return [2 * number for number in numbers]

    batcher = call_store.Batcher(double, 3, 60)
    assert await asyncio.wait_for(asyncio.gather(*map(batcher, (1, 2, 3))), 10) == [2, 4, 6]
    first = asyncio.ensure_future(batcher(4))
    await asyncio.sleep(0.01)  # it waits for other items now
    assert await asyncio.wait_for(asyncio.gather(first, batcher(5), batcher(6)), 10) == [8, 10, 12]
    small_batcher = call_store.Batcher(double, 3, 0.01)
    assert await asyncio.wait_for(small_batcher(7), 10) == 14
    assert groups == [[1, 2, 3], [4, 5, 6], [7]]


async def test_each_role_has_its_own_calls(llm_server: FakeLLMServer, engine, tag):
    for name in ("judge", "gate"):
        async with open_chat(name, settings(llm_server.url), engine) as model:
            await model.ask(calls(tag, 1)[0])
    assert len(llm_server.requests) == 2


async def test_unreadable_replies_are_stored_and_failures_are_not(llm_server: FakeLLMServer, engine, tag):
    llm_server.script = lambda n, _: make_completion("Оценка 0.9", finish="length" if n == 1 else "stop")
    async with open_chat("judge", settings(llm_server.url), engine) as judge:
        for _ in range(2):
            score = await ask_for_score(judge, calls(tag, 1)[0])
            assert (score.status, len(score.replies)) == ("parse_error", 3)  # cut off, unreadable, unreadable
    assert len(llm_server.requests) == 3
    llm_server.script = lambda number, request: make_response(500)
    failed = calls(tag, 2)[1:]
    assert [reply.status for reply in await ask(settings(llm_server.url), engine, failed)] == ["error"]
    llm_server.script = lambda number, request: make_score_completion(1)
    assert [reply.status for reply in await ask(settings(llm_server.url), engine, failed)] == ["ok"]


BUYER = """
import asyncio, sys
from pathlib import Path
from yarus.db.engine import open_own_database
from yarus.tasks.models.calls import Call
from yarus.tasks.models.chat import open_chat
from yarus.tasks.models.prompts import read_prompts
from yarus.tasks.config.settings import ModelRole, Settings

async def main(home, url, tag):
    role = ModelRole(base_url=url, model="asked", concurrency=8)
    settings = Settings(_env_file=None, judge=role)
    prompt = read_prompts(settings)["faithfulness"]
    calls = [Call(prompt, {"question": f"{tag} {n}", "context": "", "answer": ""}) for n in range(600)]
    async with open_chat("judge", settings, open_own_database(Path(home), None)) as judge:
        replies = await judge.complete(calls)
    print(sum(reply.status == "ok" for reply in replies))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow("process: it is killed three times")
def test_kill_loses_only_calls_in_flight(llm_server: FakeLLMServer, home: Path, tag):
    llm_server.script = lambda number, request: Action(make_score_completion(0.5), after_s=0.02)
    kills, n_requests = 3, 0
    for _ in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", BUYER, str(home), llm_server.url, tag], stdout=subprocess.PIPE
        )
        while len(llm_server.requests) < n_requests + 100 and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        assert process.communicate()[0] == b""  # it had not finished
        n_requests = len(llm_server.requests)
    done = subprocess.run([sys.executable, "-c", BUYER, str(home), llm_server.url, tag], capture_output=True, text=True)
    assert done.stdout == "600\n", done.stderr
    # In flight: 8 at the server, and replies that arrived while the last group was being committed.
    assert 600 <= len(llm_server.requests) <= 600 + kills * 2 * 8


@pytest.mark.slow("process: a PostgreSQL stops and starts")
async def test_short_database_outage_loses_no_call(llm_server: FakeLLMServer, tmp_path, tag):
    own_engine = open_own_database(tmp_path, None)

    async def outage():
        await asyncio.sleep(0.3)
        await asyncio.to_thread(embedded.release_server, tmp_path)
        await asyncio.sleep(0.5)
        await asyncio.to_thread(embedded.acquire_server, tmp_path)

    llm_server.script = lambda number, request: Action(make_score_completion(0.5), after_s=0.02)
    try:
        replies, _ = await asyncio.gather(
            ask(settings(llm_server.url, concurrency=4), own_engine, calls(tag, 200)), outage()
        )
        with own_engine.connect() as connection:
            assert connection.scalar(text("SELECT count(*) FROM yarus.call")) == 200
    finally:
        own_engine.dispose()
        embedded.release_server(tmp_path)
    assert {reply.status for reply in replies} == {"ok"}
    assert len(llm_server.requests) == 200


@pytest.mark.slow("process: a PostgreSQL of its own")
async def test_lasting_database_outage_raises(llm_server: FakeLLMServer, tmp_path, tag, monkeypatch):
    monkeypatch.setattr(call_store, "RETRY_WAITS_S", (0.05, 0.1))
    own_engine = open_own_database(tmp_path, None)
    embedded.release_server(tmp_path)
    with pytest.raises(DatabaseUnavailable):
        await ask(settings(llm_server.url), own_engine, calls(tag, 20))
    own_engine.dispose()
    assert llm_server.requests == []


async def test_reply_of_a_cancelled_caller_is_stored(llm_server: FakeLLMServer, engine, tag):
    llm_server.script = lambda number, request: Action(make_score_completion(0.5), after_s=0.2)
    async with open_chat("judge", settings(llm_server.url), engine) as judge:
        task = asyncio.create_task(judge.ask(calls(tag, 1)[0]))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.sleep(0.3)
    replies = await ask(settings(llm_server.url), engine, calls(tag, 1))
    assert (replies[0].from_store, len(llm_server.requests)) == (True, 1)


# --- money ---


async def test_cost_follows_the_price_table(llm_server: FakeLLMServer, engine, tag):
    llm_server.script = lambda number, request: make_score_completion(0.5, tokens=(1_000, 200))
    (reply,) = await ask(settings(llm_server.url, price=2.0), engine, calls(tag, 1))
    assert reply.cost_usd == pytest.approx(1_200 * 2 / MILLION)
    (reply,) = await ask(settings(llm_server.url), engine, calls(tag + "x", 1))
    assert reply.cost_usd is None  # no price


async def test_budget_is_used_but_not_exceeded(llm_server: FakeLLMServer, engine, tag):
    llm_server.script = lambda number, request: Action(make_score_completion(0.5, tokens=(100, 20)), after_s=0.01)
    limited = settings(llm_server.url, price=1.0, budget=50 * 120 / MILLION + 0.002, max_tokens=50, concurrency=16)
    replies = await ask(limited, engine, calls(tag, 200), evaluation=tag)
    bought = [reply for reply in replies if reply.status == "ok"]
    skipped = [reply for reply in replies if reply.status == "skipped_budget"]
    assert len(bought) == len(llm_server.requests)
    assert len(bought) + len(skipped) == 200
    spent = sum(reply.cost_usd for reply in bought)
    assert 0.5 * limited.budget_usd < spent <= limited.budget_usd
    assert "YARUS_BUDGET_USD" in skipped[0].reason
    # A resumed evaluation pays for no call twice and keeps its own costs.
    again = await ask(limited, engine, calls(tag, 200), evaluation=tag)
    assert [reply.cost_usd for reply in again] == [reply.cost_usd for reply in replies]
    assert len(llm_server.requests) == len(bought)


async def test_budget_without_price_is_rejected(llm_server: FakeLLMServer):
    with pytest.raises(InputError, match="no price for 'asked'"):
        await ask(settings(llm_server.url, budget=1.0), None, [])
    assert llm_server.requests == []


async def test_estimate_follows_history(llm_server: FakeLLMServer, engine, tag):
    configuration = settings(llm_server.url, price=1.0, model=tag, concurrency=2)
    configuration.prices[tag] = configuration.prices["asked"]
    unknown = estimate_calls("judge", configuration, engine, {"faithfulness": 10})
    assert (unknown.calls, unknown.tokens_in, unknown.cost_usd, unknown.seconds) == (10, None, None, None)
    await ask(configuration, engine, calls(tag, 4))
    assert find_unstored_calls("judge", configuration, engine, calls(tag, 6)) == calls(tag, 6)[4:]
    estimated = estimate_calls("judge", configuration, engine, {"faithfulness": 10, "answer_relevance": 0})
    assert (estimated.calls, estimated.tokens_in, estimated.tokens_out) == (10, 1_000, 200)
    assert estimated.cost_usd == pytest.approx(1_200 / MILLION)
    assert 0 < estimated.seconds < 1
    slow = configuration.model_copy(update={"judge": configuration.judge.model_copy(update={"rpm": 60})})
    assert estimate_calls("judge", slow, engine, {"faithfulness": 10}).seconds == 10
    assert estimate_calls("judge", Settings(_env_file=None), engine, {"faithfulness": 10}).calls == 0


@pytest.mark.slow("breadth: thousands of calls")
async def test_memory_does_not_grow_with_calls(llm_server: FakeLLMServer):
    """The last 3,000 of 6,000 calls add less memory than their requests or replies would take (5 kB each)."""
    reply = make_score_completion(0.5)

    def script(number, request):
        llm_server.requests.clear(), llm_server.headers.clear()
        return reply

    llm_server.script = script
    process = psutil.Process(os.getpid())
    sizes = []
    async with open_chat("judge", settings(llm_server.url, concurrency=32)) as judge:
        for block in range(6):
            for portion in range(4):
                await judge.complete(calls(f"{block} {portion}", 250))
            sizes.append(process.memory_info().rss)
    assert sizes[-1] - sizes[2] < 5e6

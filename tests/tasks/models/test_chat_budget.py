"""The budget is never exceeded: a call of unknown cost always counts as the most that it can cost."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from datetime import date

import pytest

from tests.support.llm_clients import MAX_TOKENS, complete_calls, make_calls, make_priced_settings
from tests.support.llm_server import (
    JSON_HEADER,
    Action,
    FakeLLMServer,
    make_completion,
    make_response,
    make_score_completion,
)
from yarus.db.stores.calls import evaluation_spending, reserved_usd
from yarus.tasks.config.services import Price
from yarus.tasks.config.settings import Settings
from yarus.tasks.models.calls import build_request
from yarus.tasks.models.prices import TEMPLATE_TOKENS, Budget
from yarus.tasks.models.server_profile import ServerProfile

MILLION = 1_000_000


@pytest.fixture
def tag() -> str:
    """Return a text that makes the calls of a test unique in the shared store."""
    return uuid.uuid4().hex


def compute_max_usd(settings: Settings) -> float:
    """Return the most USD that one of the calls can cost; all have the same length."""
    request, _ = ServerProfile().encode(build_request(make_calls("0" * 32, 1)[0], settings.judge))
    return (len(request) + TEMPLATE_TOKENS + MAX_TOKENS) / MILLION


def test_server_without_counts_gets_the_budget_once(llm_server: FakeLLMServer, engine, tag):
    llm_server.script = lambda number, request: make_score_completion(0.5, tokens=None)
    max_usd = compute_max_usd(make_priced_settings(llm_server.url))
    limited = make_priced_settings(llm_server.url, budget=26.5 * max_usd)
    for _ in range(3):  # each in a separate loop, as in another process
        replies = asyncio.run(complete_calls(limited, engine, make_calls(tag, 60), tag))
        assert [reply.status for reply in replies].count("ok") == len(llm_server.requests) == 26
        assert {reply.cost_usd for reply in replies} == {None}  # unknown costs are not numbers
        assert reserved_usd(engine, tag) == pytest.approx(26 * max_usd)
    assert evaluation_spending(engine, tag)["cost_usd"] is None


NO_COUNTS = {
    "nothing": None,
    "bool": True,
    "text": "100",
    "float": 12.0,
    "part": 1.5,
    "nan": float("nan"),
    "list": [1],
    "infinite": float("inf"),
    "negative": -1_000_000,
    "missing": ...,
}


@pytest.mark.parametrize("wrong", [pytest.param(value, id=name) for name, value in NO_COUNTS.items()])
async def test_invalid_count_is_unknown_and_reply_is_kept(llm_server: FakeLLMServer, engine, tag, wrong):
    usage = {"prompt_tokens": 100, "completion_tokens": wrong}
    usage = {name: value for name, value in usage.items() if value is not ...}
    llm_server.script = lambda number, request: with_usage(usage)
    (reply,) = await complete_calls(make_priced_settings(llm_server.url), engine, make_calls(tag, 1), tag)
    assert (reply.status, len(llm_server.requests)) == ("ok", 1)
    assert (reply.tokens_in, reply.tokens_out, reply.cost_usd) == (100, None, None)
    assert reserved_usd(engine, tag) == pytest.approx((100 + MAX_TOKENS) / MILLION)


@pytest.mark.parametrize("usage", [None, [], "12", 12, {}, {"prompt_tokens": -1, "completion_tokens": -1}])
async def test_missing_counts_book_the_most(llm_server: FakeLLMServer, engine, tag, usage):
    llm_server.script = lambda number, request: with_usage(usage)
    (reply,) = await complete_calls(make_priced_settings(llm_server.url), engine, make_calls(tag, 1), tag)
    assert (reply.status, reply.tokens_in, reply.tokens_out, reply.cost_usd) == ("ok", None, None, None)
    assert reserved_usd(engine, tag) == pytest.approx(compute_max_usd(make_priced_settings(llm_server.url)))


@pytest.mark.parametrize("claim", [MAX_TOKENS + 1, 10**12, 10**400])
@pytest.mark.usefixtures("english")
async def test_impossible_count_is_booked_and_not_reported(llm_server: FakeLLMServer, engine, tag, claim, caplog):
    """Some servers charge for thinking beyond their limit."""
    llm_server.script = lambda number, request: with_usage({"prompt_tokens": 100, "completion_tokens": claim})
    replies = await complete_calls(make_priced_settings(llm_server.url), engine, make_calls(tag, 2), tag)
    assert [(reply.status, reply.tokens_out, reply.cost_usd) for reply in replies] == [("ok", None, None)] * 2
    assert reserved_usd(engine, tag) == pytest.approx(2 * (100 + min(claim, 2**63 - 1)) / MILLION)
    assert sum("the cost of calls is unknown" in message for message in caplog.messages) == 1
    again = await complete_calls(make_priced_settings(llm_server.url), engine, make_calls(tag, 2), tag)
    assert all(reply.from_store for reply in again)


async def test_count_of_12_digits_is_stored(llm_server: FakeLLMServer, engine, tag):
    """The columns hold all counts that the settings allow; a chat template may add a few tokens."""
    llm_server.script = lambda number, request: with_usage({"prompt_tokens": 1_500, "completion_tokens": 10**9})
    (reply,) = await complete_calls(
        make_priced_settings(llm_server.url, max_tokens=10**9), engine, [make_calls(tag, 1)[0]], tag
    )
    assert (reply.tokens_in, reply.tokens_out) == (1_500, 10**9)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE yarus.call SET tokens_in = {10**12} WHERE evaluation_id = '{tag}'")
    assert evaluation_spending(engine, tag)["tokens_in"] == 10**12


def with_usage(usage: object) -> bytes:
    reply = make_completion('{"reason": "", "score": 0.5}', tokens=None)
    body = reply.split(b"\r\n\r\n", 1)[1].replace(b'"usage": null', b'"usage": ' + dump_long_numbers(usage))
    return make_response(200, body, JSON_HEADER)


def dump_long_numbers(usage: object) -> bytes:
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return json.dumps(usage).encode()
    finally:
        sys.set_int_max_str_digits(limit)


UNKNOWN_COSTS = {
    "500": make_response(500),
    "503": make_response(503),
    "408": make_response(408),
    "rubbish": make_response(200, "{}", JSON_HEADER),
    "empty": make_response(200, b""),
    "closed": Action(b"", then="close"),
    "cut off": Action(make_score_completion(1)[:-40], then="reset"),
    "late": Action(after_s=30),
}
FREE_REFUSALS = {"429": make_response(429), "413": make_response(413)}


@pytest.mark.parametrize("deed", [pytest.param(deed, id=name) for name, deed in UNKNOWN_COSTS.items()])
async def test_every_chargeable_try_is_booked(llm_server: FakeLLMServer, engine, tag, deed):
    llm_server.script = lambda number, request: deed
    settings = make_priced_settings(llm_server.url, timeout_s=0.2 if isinstance(deed, Action) and deed.after_s else 60)
    (reply,) = await complete_calls(settings, engine, make_calls(tag, 1), tag)
    tries = len(llm_server.requests)
    # Before its first answer, a server may mean by 500 that it does not take a parameter.
    assert (reply.status, reply.cost_usd, tries) == ("error", None, 8 if deed == UNKNOWN_COSTS["500"] else 2)
    sizes = [len(json.dumps(request, ensure_ascii=False).encode()) for request in llm_server.requests]
    assert reserved_usd(engine, tag) == pytest.approx(
        sum(sizes) / MILLION + tries * (TEMPLATE_TOKENS + MAX_TOKENS) / MILLION
    )
    # A try that could exceed the budget is not started, and the call is skipped.
    (reply,) = await complete_calls(
        settings.model_copy(update={"budget_usd": 1.5 * compute_max_usd(settings)}),
        engine,
        make_calls(tag, 1),
        tag + "b",
    )
    assert (reply.status, len(llm_server.requests)) == ("skipped_budget", tries + 1)


@pytest.mark.parametrize("deed", [pytest.param(deed, id=name) for name, deed in FREE_REFUSALS.items()])
async def test_refusal_is_free(llm_server: FakeLLMServer, engine, tag, deed):
    llm_server.script = lambda number, request: deed
    (reply,) = await complete_calls(make_priced_settings(llm_server.url), engine, make_calls(tag, 1), tag)
    assert (reply.status, reply.cost_usd, reserved_usd(engine, tag)) == ("error", 0.0, 0.0)


async def test_unreachable_server_is_free(engine, tag):
    (reply,) = await complete_calls(make_priced_settings("http://127.0.0.1:1/v1"), engine, make_calls(tag, 1), tag)
    assert (reply.status, reply.cost_usd, reserved_usd(engine, tag)) == ("error", 0.0, 0.0)


async def test_cancelled_calls_in_flight_are_booked(llm_server: FakeLLMServer, engine, tag):
    reply = make_score_completion(0.5, tokens=None)
    llm_server.script = lambda number, request: Action(reply, after_s=30 if number > 1 else 0)  # the first goes alone
    limited = make_priced_settings(llm_server.url, budget=1.0, concurrency=3)
    task = asyncio.create_task(complete_calls(limited, engine, make_calls(tag, 10), tag))
    while len(llm_server.requests) < 4:  # noqa: ASYNC110 - the server has no event
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert reserved_usd(engine, tag) == pytest.approx(4 * compute_max_usd(limited))


def test_known_costs_are_booked_without_budget_too(llm_server: FakeLLMServer, engine, tag):
    llm_server.script = lambda number, request: make_score_completion(0.5, tokens=(100, 20))
    asyncio.run(complete_calls(make_priced_settings(llm_server.url), engine, make_calls(tag, 100), tag))
    assert reserved_usd(engine, tag) == pytest.approx(100 * 120 / MILLION)
    # Set for the resumed evaluation: it is already spent.
    limited = make_priced_settings(llm_server.url, budget=100 * 120 / MILLION)
    replies = asyncio.run(complete_calls(limited, engine, make_calls(tag, 101), tag))
    assert [reply.status for reply in replies] == ["ok"] * 100 + ["skipped_budget"]


async def test_money_is_drawn_for_many_calls_at_once(llm_server: FakeLLMServer, engine, tag, monkeypatch):
    draws = []
    from yarus.tasks.models import prices

    reserve_usd = prices.reserve_usd
    monkeypatch.setattr(prices, "reserve_usd", lambda *arguments: draws.append(arguments) or reserve_usd(*arguments))
    llm_server.script = lambda number, request: make_score_completion(0.5, tokens=(200, 50))
    replies = await complete_calls(make_priced_settings(llm_server.url, budget=10.0), engine, make_calls(tag, 300), tag)
    assert {reply.status for reply in replies} == {"ok"}
    assert len(draws) <= 300 / 20


BUYER_CODE = """
import asyncio, sys
from pathlib import Path
from yarus.db.engine import open_own_database
from tests.support.llm_clients import complete_calls, make_calls, make_priced_settings

async def main(home, url, tag, n, budget):
    limited = make_priced_settings(url, budget=float(budget), concurrency=4)
    replies = await complete_calls(limited, open_own_database(Path(home), None), make_calls(tag, int(n)), tag)
    print(sum(reply.status == "ok" for reply in replies))

asyncio.run(main(*sys.argv[1:]))
"""


def start_buyer(home, llm_server: FakeLLMServer, tag: str, n: int, budget: float) -> "subprocess.Popen[bytes]":
    arguments = [str(home), llm_server.url, tag, str(n), repr(budget)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, "-c", BUYER_CODE, *arguments], stdout=subprocess.PIPE, env=environment)


@pytest.mark.slow("process: it is killed three times")
def test_kill_before_reply_returns_no_money(llm_server: FakeLLMServer, engine, home, tag):
    reply = make_score_completion(0.5, tokens=None)  # each process sends one call alone, then four
    llm_server.script = lambda number, request: Action(reply, after_s=0 if number % 5 == 1 else 30)
    max_usd = compute_max_usd(make_priced_settings(llm_server.url))
    for kill in range(1, 4):
        process = start_buyer(home, llm_server, tag, 60, 40.5 * max_usd)
        while len(llm_server.requests) < 5 * kill and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert len(llm_server.requests) * max_usd <= reserved_usd(engine, tag)
    llm_server.script = lambda number, request: make_score_completion(0.5, tokens=None)
    assert int(start_buyer(home, llm_server, tag, 60, 40.5 * max_usd).communicate()[0]) > 0
    assert 12 < len(llm_server.requests) <= 40


@pytest.mark.slow("process: two of them")
def test_processes_of_one_evaluation_share_its_budget(llm_server: FakeLLMServer, engine, home, tag):
    """Two processes behave like the workers of a Dask cluster."""
    llm_server.script = lambda number, request: Action(make_score_completion(0.5, tokens=None), after_s=0.02)
    max_usd = compute_max_usd(make_priced_settings(llm_server.url))
    buyers = [start_buyer(home, llm_server, tag, 60 + index, 30.5 * max_usd) for index in range(2)]
    n_bought = [int(process.communicate()[0]) for process in buyers]
    assert len(llm_server.requests) <= 30
    assert max(n_bought) > 10
    assert reserved_usd(engine, tag) == pytest.approx(len(llm_server.requests) * max_usd)


async def test_free_model_continues_after_the_budget_is_spent(llm_server: FakeLLMServer, engine, tag):
    llm_server.script = lambda number, request: make_score_completion(0.5, tokens=None)
    limited = make_priced_settings(llm_server.url, budget=1.5 * compute_max_usd(make_priced_settings(llm_server.url)))
    assert [reply.status for reply in await complete_calls(limited, engine, make_calls(tag, 3), tag)].count("ok") == 1
    limited.prices["asked"] = Price(input=0, output=0, as_of=date(2026, 11, 1))
    free = limited.model_copy(update={"judge": limited.judge.model_copy(update={"temperature": 0.5})})
    assert {reply.status for reply in await complete_calls(free, engine, make_calls(tag, 3), tag)} == {"ok"}


async def test_reserve_waits_for_calls_in_flight():
    budget = Budget(1.0)
    assert await budget.reserve(0.9)
    second = asyncio.create_task(budget.reserve(0.9))
    await asyncio.sleep(0)
    assert not second.done()
    budget.charge(0.9, 0.05)
    assert await second
    budget.charge(0.9, 0.1)
    assert not await budget.reserve(0.9)
    assert budget.spent_usd == pytest.approx(0.15)


@pytest.mark.parametrize("limit", [1e-12, 0.1, 1e308])
async def test_budget_of_any_size_is_used_up(engine, tag, limit):
    """The parts are thirds, whose float sums are inexact."""
    budget = Budget(limit, engine, f"{tag} {limit}")
    for _ in range(3):
        assert await budget.reserve(limit / 3)
        budget.charge(limit / 3, limit / 3)
    assert not await budget.reserve(limit / 1_000)
    await budget.settle()
    assert reserved_usd(engine, f"{tag} {limit}") == pytest.approx(limit)


async def test_reserve_answers_all_waiting_calls(engine, tag):
    budget = Budget(1.0, engine, tag)

    async def pay_call(number: int) -> bool:
        if not await budget.reserve(0.09):
            return False
        await asyncio.sleep(0)
        budget.charge(0.09, 0.09 if number % 2 else 0.0)
        return True

    results = await asyncio.gather(*(pay_call(number) for number in range(200)))
    await budget.settle()
    spent = 0.09 * sum(is_paid for number, is_paid in enumerate(results) if number % 2)
    assert spent == pytest.approx(reserved_usd(engine, tag)) and 0.9 < spent <= 1.0

"""The budget is not passed: a call whose cost is not known counts as the most that it can cost, for ever."""

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

from tests.support.llm_clients import MAX_TOKENS, ask, calls, priced
from tests.support.llm_server import JSON, Do, FakeLLMServer, http, says, scores
from yarus.db.stores.calls import booked_usd, bought
from yarus.tasks.config.services import Price
from yarus.tasks.config.settings import Settings
from yarus.tasks.models.calls import build_request
from yarus.tasks.models.prices import TEMPLATE_TOKENS, Budget
from yarus.tasks.models.server_profile import ServerProfile

MILLION = 1_000_000


@pytest.fixture
def tag() -> str:
    """Makes the texts of a test its own in the shared store."""
    return uuid.uuid4().hex


def most(configuration: Settings) -> float:
    """USD that one of the calls can cost at most; they are all of one length."""
    request, _ = ServerProfile().encode(build_request(calls("0" * 32, 1)[0], configuration.judge))
    return (len(request) + TEMPLATE_TOKENS + MAX_TOKENS) / MILLION


def test_a_server_that_counts_nothing_gets_what_the_budget_allows_once_for_all(llm_server: FakeLLMServer, engine, tag):
    llm_server.script = lambda number, request: scores(0.5, tokens=None)
    dear = most(priced(llm_server.url))
    limited = priced(llm_server.url, budget=26.5 * dear)
    for _ in range(3):  # each in a loop of its own, as in another process
        replies = asyncio.run(ask(limited, engine, calls(tag, 60), tag))
        assert [reply.status for reply in replies].count("ok") == len(llm_server.requests) == 26
        assert {reply.cost_usd for reply in replies} == {None}  # not known is no number
        assert booked_usd(engine, tag) == pytest.approx(26 * dear)
    assert bought(engine, tag)["cost_usd"] is None


NO_COUNTS = {
    "nothing": None, "bool": True, "text": "100", "float": 12.0, "part": 1.5, "nan": float("nan"), "list": [1],
    "infinite": float("inf"), "negative": -1_000_000, "missing": ...,
}  # fmt: skip


@pytest.mark.parametrize("wrong", [pytest.param(value, id=name) for name, value in NO_COUNTS.items()])
async def test_what_is_no_count_is_not_known_and_the_reply_is_one(llm_server: FakeLLMServer, engine, tag, wrong):
    usage = {"prompt_tokens": 100, "completion_tokens": wrong}
    usage = {name: value for name, value in usage.items() if value is not ...}
    llm_server.script = lambda number, request: with_usage(usage)
    (reply,) = await ask(priced(llm_server.url), engine, calls(tag, 1), tag)
    assert (reply.status, len(llm_server.requests)) == ("ok", 1)
    assert (reply.tokens_in, reply.tokens_out, reply.cost_usd) == (100, None, None)
    assert booked_usd(engine, tag) == pytest.approx((100 + MAX_TOKENS) / MILLION)


@pytest.mark.parametrize("usage", [None, [], "12", 12, {}, {"prompt_tokens": -1, "completion_tokens": -1}])
async def test_without_any_count_the_most_is_booked(llm_server: FakeLLMServer, engine, tag, usage):
    llm_server.script = lambda number, request: with_usage(usage)
    (reply,) = await ask(priced(llm_server.url), engine, calls(tag, 1), tag)
    assert (reply.status, reply.tokens_in, reply.tokens_out, reply.cost_usd) == ("ok", None, None, None)
    assert booked_usd(engine, tag) == pytest.approx(most(priced(llm_server.url)))


@pytest.mark.parametrize("claim", [MAX_TOKENS + 1, 10**12, 10**400])
@pytest.mark.usefixtures("english")
async def test_more_than_was_allowed_is_not_believed_and_yet_booked(
    llm_server: FakeLLMServer, engine, tag, claim, caplog
):
    """Some servers charge for thinking beyond what they were allowed to write."""
    llm_server.script = lambda number, request: with_usage({"prompt_tokens": 100, "completion_tokens": claim})
    replies = await ask(priced(llm_server.url), engine, calls(tag, 2), tag)
    assert [(reply.status, reply.tokens_out, reply.cost_usd) for reply in replies] == [("ok", None, None)] * 2
    assert booked_usd(engine, tag) == pytest.approx(2 * (100 + min(claim, 2**63 - 1)) / MILLION)
    assert sum("the cost of calls is unknown" in message for message in caplog.messages) == 1
    again = await ask(priced(llm_server.url), engine, calls(tag, 2), tag)
    assert all(reply.from_store for reply in again)


async def test_a_count_of_12_digits_may_be_true(llm_server: FakeLLMServer, engine, tag):
    """The columns hold what the settings allow; a template may read a little more than it was sent."""
    llm_server.script = lambda number, request: with_usage({"prompt_tokens": 1_500, "completion_tokens": 10**9})
    (reply,) = await ask(priced(llm_server.url, max_tokens=10**9), engine, [calls(tag, 1)[0]], tag)
    assert (reply.tokens_in, reply.tokens_out) == (1_500, 10**9)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE yarus.call SET tokens_in = {10**12} WHERE evaluation_id = '{tag}'")
    assert bought(engine, tag)["tokens_in"] == 10**12


def with_usage(usage: object) -> bytes:
    plain = says('{"reason": "", "score": 0.5}', tokens=None)
    body_ = plain.split(b"\r\n\r\n", 1)[1].replace(b'"usage": null', b'"usage": ' + dumped(usage))
    return http(200, body_, JSON)


def dumped(usage: object) -> bytes:
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return json.dumps(usage).encode()
    finally:
        sys.set_int_max_str_digits(limit)


UNKNOWN = {
    "500": http(500), "503": http(503), "408": http(408), "rubbish": http(200, "{}", JSON), "empty": http(200, b""),
    "closed": Do(b"", then="close"), "cut off": Do(scores(1)[:-40], then="reset"), "late": Do(after_s=30),
}  # fmt: skip
FREE = {"429": http(429), "413": http(413)}


@pytest.mark.parametrize("deed", [pytest.param(deed, id=name) for name, deed in UNKNOWN.items()])
async def test_every_try_that_the_server_may_charge_for_is_booked(llm_server: FakeLLMServer, engine, tag, deed):
    llm_server.script = lambda number, request: deed
    short = priced(llm_server.url, timeout_s=0.2 if isinstance(deed, Do) and deed.after_s else 60)
    (reply,) = await ask(short, engine, calls(tag, 1), tag)
    tries = len(llm_server.requests)
    # A server that has answered nothing yet may mean by 500 that it does not take a parameter.
    assert (reply.status, reply.cost_usd, tries) == ("error", None, 8 if deed == UNKNOWN["500"] else 2)
    sizes = [len(json.dumps(request, ensure_ascii=False).encode()) for request in llm_server.requests]
    assert booked_usd(engine, tag) == pytest.approx(
        sum(sizes) / MILLION + tries * (TEMPLATE_TOKENS + MAX_TOKENS) / MILLION
    )
    # No try is begun that could pass the budget, and no reply is what was not asked again.
    (reply,) = await ask(short.model_copy(update={"budget_usd": 1.5 * most(short)}), engine, calls(tag, 1), tag + "b")
    assert (reply.status, len(llm_server.requests)) == ("skipped_budget", tries + 1)


@pytest.mark.parametrize("deed", [pytest.param(deed, id=name) for name, deed in FREE.items()])
async def test_what_is_refused_is_free(llm_server: FakeLLMServer, engine, tag, deed):
    llm_server.script = lambda number, request: deed
    (reply,) = await ask(priced(llm_server.url), engine, calls(tag, 1), tag)
    assert (reply.status, reply.cost_usd, booked_usd(engine, tag)) == ("error", 0.0, 0.0)


async def test_a_server_that_is_not_there_is_free(engine, tag):
    (reply,) = await ask(priced("http://127.0.0.1:1/v1"), engine, calls(tag, 1), tag)
    assert (reply.status, reply.cost_usd, booked_usd(engine, tag)) == ("error", 0.0, 0.0)


async def test_what_is_cancelled_in_flight_counts(llm_server: FakeLLMServer, engine, tag):
    usual = scores(0.5, tokens=None)
    llm_server.script = lambda number, request: Do(usual, after_s=30 if number > 1 else 0)  # the first goes alone
    limited = priced(llm_server.url, budget=1.0, concurrency=3)
    asking = asyncio.create_task(ask(limited, engine, calls(tag, 10), tag))
    while len(llm_server.requests) < 4:  # noqa: ASYNC110 - the server has no event of ours
        await asyncio.sleep(0.01)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert booked_usd(engine, tag) == pytest.approx(4 * most(limited))


def test_what_is_known_is_booked_to_the_cent_and_without_a_budget_too(llm_server: FakeLLMServer, engine, tag):
    llm_server.script = lambda number, request: scores(0.5, tokens=(100, 20))
    asyncio.run(ask(priced(llm_server.url), engine, calls(tag, 100), tag))
    assert booked_usd(engine, tag) == pytest.approx(100 * 120 / MILLION)
    limited = priced(llm_server.url, budget=100 * 120 / MILLION)  # set when it is resumed: it is spent already
    replies = asyncio.run(ask(limited, engine, calls(tag, 101), tag))
    assert [reply.status for reply in replies] == ["ok"] * 100 + ["skipped_budget"]


async def test_money_is_drawn_for_many_calls_at_once(llm_server: FakeLLMServer, engine, tag, monkeypatch):
    drawn = []
    from yarus.tasks.models import prices

    real = prices.draw_usd
    monkeypatch.setattr(prices, "draw_usd", lambda *given: drawn.append(given) or real(*given))
    llm_server.script = lambda number, request: scores(0.5, tokens=(200, 50))
    replies = await ask(priced(llm_server.url, budget=10.0), engine, calls(tag, 300), tag)
    assert {reply.status for reply in replies} == {"ok"}
    assert len(drawn) <= 300 / 20


BUYER = """
import asyncio, sys
from pathlib import Path
from yarus.db.engine import own
from tests.support.llm_clients import ask, calls, priced

async def main(home, url, tag, n, budget):
    limited = priced(url, budget=float(budget), concurrency=4)
    replies = await ask(limited, own(Path(home), None), calls(tag, int(n)), tag)
    print(sum(reply.status == "ok" for reply in replies))

asyncio.run(main(*sys.argv[1:]))
"""


def buyer(home, llm_server: FakeLLMServer, tag: str, n: int, budget: float) -> "subprocess.Popen[bytes]":
    given = [str(home), llm_server.url, tag, str(n), repr(budget)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, "-c", BUYER, *given], stdout=subprocess.PIPE, env=environment)


@pytest.mark.slow("process: it is killed three times")
def test_a_kill_between_request_and_reply_gives_nothing_back(llm_server: FakeLLMServer, engine, home, tag):
    usual = scores(0.5, tokens=None)  # of each process the first goes alone, then four
    llm_server.script = lambda number, request: Do(usual, after_s=0 if number % 5 == 1 else 30)
    dear = most(priced(llm_server.url))
    for kill in range(1, 4):
        process = buyer(home, llm_server, tag, 60, 40.5 * dear)
        while len(llm_server.requests) < 5 * kill and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert len(llm_server.requests) * dear <= booked_usd(engine, tag)
    llm_server.script = lambda number, request: scores(0.5, tokens=None)
    assert int(buyer(home, llm_server, tag, 60, 40.5 * dear).communicate()[0]) > 0
    assert 12 < len(llm_server.requests) <= 40


@pytest.mark.slow("process: two of them")
def test_processes_of_one_evaluation_share_its_budget(llm_server: FakeLLMServer, engine, home, tag):
    """As the workers of a Dask cluster do."""
    llm_server.script = lambda number, request: Do(scores(0.5, tokens=None), after_s=0.02)
    dear = most(priced(llm_server.url))
    both = [buyer(home, llm_server, tag, 60 + place, 30.5 * dear) for place in range(2)]
    said = [int(process.communicate()[0]) for process in both]
    assert len(llm_server.requests) <= 30
    assert max(said) > 10
    assert booked_usd(engine, tag) == pytest.approx(len(llm_server.requests) * dear)


async def test_a_model_that_costs_nothing_goes_on_when_the_money_is_spent(llm_server: FakeLLMServer, engine, tag):
    llm_server.script = lambda number, request: scores(0.5, tokens=None)
    limited = priced(llm_server.url, budget=1.5 * most(priced(llm_server.url)))
    assert [one.status for one in await ask(limited, engine, calls(tag, 3), tag)].count("ok") == 1
    limited.prices["asked"] = Price(input=0, output=0, as_of=date(2026, 11, 1))
    free = limited.model_copy(update={"judge": limited.judge.model_copy(update={"temperature": 0.5})})
    assert {one.status for one in await ask(free, engine, calls(tag, 3), tag)} == {"ok"}


async def test_a_budget_waits_for_what_is_in_flight():
    budget = Budget(1.0)
    assert await budget.set_aside(0.9)
    second = asyncio.create_task(budget.set_aside(0.9))
    await asyncio.sleep(0)
    assert not second.done()
    budget.book(0.9, 0.05)
    assert await second
    budget.book(0.9, 0.1)
    assert not await budget.set_aside(0.9)
    assert budget.spent_usd == pytest.approx(0.15)


@pytest.mark.parametrize("limit", [1e-12, 0.1, 1e308])
async def test_budgets_of_any_size_come_to_an_end(engine, tag, limit):
    """Thirds, so that sums that should be equal are not."""
    budget = Budget(limit, engine, f"{tag} {limit}")
    for _ in range(3):
        assert await budget.set_aside(limit / 3)
        budget.book(limit / 3, limit / 3)
    assert not await budget.set_aside(limit / 1_000)
    await budget.settle()
    assert booked_usd(engine, f"{tag} {limit}") == pytest.approx(limit)


async def test_of_many_that_wait_all_are_answered(engine, tag):
    budget = Budget(1.0, engine, tag)

    async def one(number: int) -> bool:
        if not await budget.set_aside(0.09):
            return False
        await asyncio.sleep(0)
        budget.book(0.09, 0.09 if number % 2 else 0.0)
        return True

    done = await asyncio.gather(*(one(number) for number in range(200)))
    await budget.settle()
    spent = 0.09 * sum(kept for number, kept in enumerate(done) if number % 2)
    assert spent == pytest.approx(booked_usd(engine, tag)) and 0.9 < spent <= 1.0

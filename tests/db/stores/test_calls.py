"""The call store: what goes in comes out, once."""

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, create_engine, text

from yarus.db.engine import autocommitting
from yarus.db.errors import DatabaseUnavailable
from yarus.db.stores.calls import (
    History,
    StoredCall,
    booked_usd,
    bought,
    draw_usd,
    give_back_usd,
    history,
    store_calls,
    stored_calls,
)


def one(**changes: object) -> StoredCall:
    plain = StoredCall(
        key=os.urandom(32),
        role="judge",
        model="m",
        served_model="m-1",
        prompt="faithfulness",
        evaluation_id="e",
        reply='{"score": 0.5} «ё» 😀',
        finish_reason="stop",
        tokens_in=100,
        tokens_out=20,
        cost_usd=0.000_012_5,
        latency_ms=51.25,
        logprobs=[-0.1, -2.5],
    )
    return replace(plain, **changes)


def test_what_goes_in_comes_out_in_the_order_asked(engine: Engine):
    first, second = one(), one(served_model=None, tokens_in=None, tokens_out=None, cost_usd=None, logprobs=None)
    store_calls(engine, [first, second])
    assert stored_calls(engine, [second.key, os.urandom(32), first.key]) == [second, None, first]
    assert stored_calls(engine, []) == []
    store_calls(engine, [])


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    st.floats(allow_nan=False, allow_infinity=False),
    st.lists(st.floats(allow_nan=False), min_size=1) | st.none(),
    st.binary(),
)
def test_every_text_and_number_comes_out_as_it_went_in(engine: Engine, words, number, logprobs, key):
    stored = one(key=os.urandom(8) + key, reply=words, model=words, latency_ms=number, logprobs=logprobs)
    store_calls(engine, [stored])
    assert stored_calls(engine, [stored.key]) == [stored]


def test_a_connection_that_was_lost_is_opened_anew(engine: Engine):
    stored = one()
    store_calls(engine, [stored])
    with autocommitting(engine).connect() as connection:
        server_process = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": server_process})
    assert stored_calls(engine, [stored.key]) == [stored]


def test_the_first_reply_stays(engine: Engine):
    first = one()
    store_calls(engine, [first, one(key=first.key, reply="another")])
    store_calls(engine, [one(key=first.key, reply="a third")])
    assert stored_calls(engine, [first.key]) == [first]


def test_money_is_booked_before_it_is_spent_and_never_more_than_the_limit(engine: Engine):
    assert draw_usd(engine, "drawn", 0.1, 0.5, 1.0) == 0.25  # of what is left, no more than a quarter for a while
    assert draw_usd(engine, "drawn", 0.5, 0.9, 1.0) == 0.5  # but what is needed
    assert draw_usd(engine, "drawn", 0.26, 0.26, 1.0) == 0.0
    assert booked_usd(engine, "drawn") == 0.75
    give_back_usd(engine, "drawn", 0.5)
    assert booked_usd(engine, "drawn") == 0.25
    give_back_usd(engine, "drawn", -2.0)  # spent beyond it
    assert (booked_usd(engine, "drawn"), draw_usd(engine, "drawn", 1e-9, 1.0, 2.25)) == (2.25, 0.0)
    assert draw_usd(engine, "unlimited", 0.5, 4.0, math.inf) == 4.0
    assert booked_usd(engine, "nothing") == 0.0


def test_many_at_once_do_not_draw_more_than_there_is(engine: Engine):
    with ThreadPoolExecutor(8) as pool:
        drawn = list(pool.map(lambda _: draw_usd(engine, "many", 0.01, 0.01, 0.255), range(60)))
    assert sum(drawn) == pytest.approx(booked_usd(engine, "many")) == pytest.approx(0.25)


def test_a_sum_that_the_journal_cannot_hold_is_not_known(engine: Engine):
    store_calls(engine, [one(evaluation_id="dear", tokens_in=10**12, cost_usd=600_000.0) for _ in range(2)])
    assert bought(engine, "dear") == {"tokens_in": 2 * 10**12, "tokens_out": 40, "cost_usd": None}


def test_history_by_prompt(engine: Engine):
    calls = [one(model="h", tokens_in=10, latency_ms=20), one(model="h", tokens_in=30, latency_ms=40)]
    store_calls(engine, [*calls, one(model="h", prompt="gate", tokens_in=None, tokens_out=None), one(model="other")])
    assert history(engine, "judge", "h") == {
        "faithfulness": History(2, 20, 20, 30),
        "gate": History(1, None, None, 51.25),
    }
    assert history(engine, "gate", "h") == {}


def test_every_column_is_described(engine: Engine):
    query = """SELECT count(*), count(col_description(attrelid, attnum)) FROM pg_attribute
               WHERE attrelid = 'yarus.call'::regclass AND attnum > 0 AND NOT attisdropped"""
    with engine.connect() as connection:
        columns, described = connection.execute(text(query)).one()
    assert columns == described == 14


def test_an_unreachable_database_is_named():
    away = create_engine("postgresql+psycopg://nobody:geheim@127.0.0.1:1/none")
    for use in (lambda: stored_calls(away, [b"1"]), lambda: store_calls(away, [one()]), lambda: booked_usd(away, "e")):
        with pytest.raises(DatabaseUnavailable, match=r"127\.0\.0\.1:1") as raised:
            use()
        assert "geheim" not in str(raised.value)

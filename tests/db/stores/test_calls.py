"""The store of model calls: calls come out as they went in, once."""

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, create_engine, text

from yarus.db.engine import get_autocommit_engine
from yarus.db.errors import DatabaseUnavailable
from yarus.db.stores.calls import (
    CallHistory,
    StoredCall,
    call_history_by_prompt,
    evaluation_spending,
    find_calls,
    release_usd,
    reserve_usd,
    reserved_usd,
    store_calls,
)


def make_call(**changes: object) -> StoredCall:
    default_call = StoredCall(
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
    return replace(default_call, **changes)


def test_find_calls_returns_calls_in_key_order(engine: Engine):
    first, second = (
        make_call(),
        make_call(served_model=None, tokens_in=None, tokens_out=None, cost_usd=None, logprobs=None),
    )
    store_calls(engine, [first, second])
    assert find_calls(engine, [second.key, os.urandom(32), first.key]) == [second, None, first]
    assert find_calls(engine, []) == []
    store_calls(engine, [])


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    st.floats(allow_nan=False, allow_infinity=False),
    st.lists(st.floats(allow_nan=False), min_size=1) | st.none(),
    st.binary(),
)
def test_store_calls_keeps_any_text_and_number(engine: Engine, words, number, logprobs, key):
    stored = make_call(key=os.urandom(8) + key, reply=words, model=words, latency_ms=number, logprobs=logprobs)
    store_calls(engine, [stored])
    assert find_calls(engine, [stored.key]) == [stored]


def test_find_calls_reconnects_after_a_lost_connection(engine: Engine):
    stored = make_call()
    store_calls(engine, [stored])
    with get_autocommit_engine(engine).connect() as connection:
        server_process = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": server_process})
    assert find_calls(engine, [stored.key]) == [stored]


def test_store_calls_keeps_the_first_reply_of_a_key(engine: Engine):
    first = make_call()
    store_calls(engine, [first, make_call(key=first.key, reply="another")])
    store_calls(engine, [make_call(key=first.key, reply="a third")])
    assert find_calls(engine, [first.key]) == [first]


def test_reserve_usd_reserves_at_most_the_limit(engine: Engine):
    assert reserve_usd(engine, "drawn", 0.1, 0.5, 1.0) == 0.25  # at most a quarter of the rest beyond the need
    assert reserve_usd(engine, "drawn", 0.5, 0.9, 1.0) == 0.5  # the need is met in full
    assert reserve_usd(engine, "drawn", 0.26, 0.26, 1.0) == 0.0
    assert reserved_usd(engine, "drawn") == 0.75
    release_usd(engine, "drawn", 0.5)
    assert reserved_usd(engine, "drawn") == 0.25
    release_usd(engine, "drawn", -2.0)  # spent more than reserved
    assert (reserved_usd(engine, "drawn"), reserve_usd(engine, "drawn", 1e-9, 1.0, 2.25)) == (2.25, 0.0)
    assert reserve_usd(engine, "unlimited", 0.5, 4.0, math.inf) == 4.0
    assert reserved_usd(engine, "nothing") == 0.0


def test_reserve_usd_keeps_the_limit_in_parallel(engine: Engine):
    with ThreadPoolExecutor(8) as pool:
        drawn = list(pool.map(lambda _: reserve_usd(engine, "many", 0.01, 0.01, 0.255), range(60)))
    assert sum(drawn) == pytest.approx(reserved_usd(engine, "many")) == pytest.approx(0.25)


def test_spending_is_none_for_sums_beyond_the_column_range(engine: Engine):
    store_calls(engine, [make_call(evaluation_id="dear", tokens_in=10**12, cost_usd=600_000.0) for _ in range(2)])
    assert evaluation_spending(engine, "dear") == {"tokens_in": 2 * 10**12, "tokens_out": 40, "cost_usd": None}


def test_history_averages_calls_by_prompt(engine: Engine):
    calls = [make_call(model="h", tokens_in=10, latency_ms=20), make_call(model="h", tokens_in=30, latency_ms=40)]
    store_calls(
        engine, [*calls, make_call(model="h", prompt="gate", tokens_in=None, tokens_out=None), make_call(model="other")]
    )
    assert call_history_by_prompt(engine, "judge", "h") == {
        "faithfulness": CallHistory(2, 20, 20, 30),
        "gate": CallHistory(1, None, None, 51.25),
    }
    assert call_history_by_prompt(engine, "gate", "h") == {}


def test_call_columns_have_database_comments(engine: Engine):
    query = """SELECT count(*), count(col_description(attrelid, attnum)) FROM pg_attribute
               WHERE attrelid = 'yarus.call'::regclass AND attnum > 0 AND NOT attisdropped"""
    with engine.connect() as connection:
        columns, described = connection.execute(text(query)).one()
    assert columns == described == 14


def test_unreachable_database_is_named_without_password():
    unreachable_engine = create_engine("postgresql+psycopg://nobody:geheim@127.0.0.1:1/none")
    for access in (
        lambda: find_calls(unreachable_engine, [b"1"]),
        lambda: store_calls(unreachable_engine, [make_call()]),
        lambda: reserved_usd(unreachable_engine, "e"),
    ):
        with pytest.raises(DatabaseUnavailable, match=r"127\.0\.0\.1:1") as raised:
            access()
        assert "geheim" not in str(raised.value)

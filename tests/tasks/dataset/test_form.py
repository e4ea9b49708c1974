"""Format and parser of nuggets."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.db.errors import InputError
from yarus.tasks.dataset.nuggets import (
    MAX_NUGGETS,
    Nugget,
    format_nuggets,
    nuggets_of,
    parse_nuggets,
    parse_nuggets_reply,
    select_most_important,
)


def nugget(text: str, vital: bool = True) -> Nugget:
    return {"nugget": text, "vital": vital}


def test_parse_nuggets_inverts_format_nuggets() -> None:
    nuggets = [nugget("до 25 июля"), nugget("можно почтой", vital=False)]
    assert parse_nuggets(format_nuggets(nuggets)) == nuggets


@given(st.text())
def test_parse_nuggets_is_stable_after_formatting(text: str) -> None:
    nuggets = parse_nuggets(text)
    assert parse_nuggets(format_nuggets(nuggets)) == nuggets
    assert len(nuggets) <= MAX_NUGGETS and [entry["vital"] for entry in nuggets] == sorted(
        (entry["vital"] for entry in nuggets), reverse=True
    )


def test_parse_nuggets_skips_empty_lines_and_duplicates() -> None:
    assert parse_nuggets("\n!\n  ! До 25  июля\r\nдо 25 июля.\n\n") == [nugget("До 25 июля")]
    assert select_most_important([nugget("Почтой", vital=False), nugget("почтой")]) == [nugget("почтой")]


def test_parse_nuggets_keeps_nuggets_that_differ_in_a_sign() -> None:
    assert len(parse_nuggets("! -5 °C\n! 5 °C\n12.01\n12:01")) == 4


@pytest.mark.parametrize("value", [None, [], {}])
def test_question_nuggets_are_empty_without_nuggets(value: Any) -> None:
    assert nuggets_of({"question_id": "1", "nuggets": value}) == []
    assert nuggets_of({"question_id": "1"}) == []


@pytest.mark.parametrize("value", ["до мая", {"nugget": "a"}, [{"nugget": "a"}], [{"nugget": " ", "vital": True}], [1]])
def test_question_nuggets_reject_other_values(value: Any) -> None:
    with pytest.raises(InputError, match=r"annotation.nuggets of question 7: expected a list of"):
        nuggets_of({"question_id": "7", "nuggets": value})


def parse_reply(*entries: Any) -> Any:
    return parse_nuggets_reply(json.dumps({"nuggets": list(entries)}, ensure_ascii=False))


def test_parse_nuggets_reply_orders_merges_and_limits() -> None:
    verdict = parse_reply(nugget("Почтой\nтоже", vital=False), nugget("до 25 июля"), nugget("До 25 июля!"))
    assert verdict.value == [nugget("до 25 июля"), nugget("Почтой тоже", vital=False)]
    assert parse_reply().value == []
    assert len(parse_reply(*(nugget(f"сбор {n} рублей") for n in range(50))).value) == MAX_NUGGETS


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"nugget": "a"}, "'vital' of nugget 1 of 2 is None, not true or false"),
        ({"nugget": "a", "vital": "yes"}, "'vital' of nugget 1 of 2 is 'yes'"),
        ({"nugget": " ", "vital": True}, "nugget 1 of 2 is ' ', not a text"),
        ({"vital": True}, "nugget 1 of 2 is None, not a text"),
    ],
)
def test_parse_nuggets_reply_fails_on_one_unreadable_entry(entry: Any, reason: str) -> None:
    verdict = parse_reply(nugget("b"), entry)
    assert verdict.status == "parse_error" and reason in verdict.reason


@pytest.mark.slow("simulation: hundreds of replies")
@given(st.recursive(st.none() | st.booleans() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_parse_nuggets_reply_accepts_any_json(reply: Any) -> None:
    for text in (json.dumps(reply), json.dumps({"nuggets": reply}), json.dumps({"nuggets": [reply]})):
        assert parse_nuggets_reply(text).status in ("ok", "parse_error")

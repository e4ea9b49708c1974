"""Nuggets as they are stored and as people edit them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.db.errors import InputError
from yarus.tasks.dataset.nuggets import MOST, Nugget, as_text, from_text, most_important, nuggets_of, read_nuggets


def nugget(text: str, vital: bool = True) -> Nugget:
    return {"nugget": text, "vital": vital}


def test_lines_are_read_back() -> None:
    some = [nugget("до 25 июля"), nugget("можно почтой", vital=False)]
    assert from_text(as_text(some)) == some


@given(st.text())
def test_what_people_write_is_read_as_it_will_be_shown(text: str) -> None:
    once = from_text(text)
    assert from_text(as_text(once)) == once
    assert len(once) <= MOST and [one["vital"] for one in once] == sorted((one["vital"] for one in once), reverse=True)


def test_empty_lines_marks_alone_and_what_stands_twice_count_for_nothing() -> None:
    assert from_text("\n!\n  ! До 25  июля\r\nдо 25 июля.\n\n") == [nugget("До 25 июля")]
    assert most_important([nugget("Почтой", vital=False), nugget("почтой")]) == [nugget("почтой")]


def test_nuggets_that_differ_in_a_sign_are_two() -> None:
    assert len(from_text("! -5 °C\n! 5 °C\n12.01\n12:01")) == 4


@pytest.mark.parametrize("given", [None, [], {}])
def test_none(given: Any) -> None:
    assert nuggets_of({"question_id": "1", "nuggets": given}) == []
    assert nuggets_of({"question_id": "1"}) == []


@pytest.mark.parametrize("given", ["до мая", {"nugget": "a"}, [{"nugget": "a"}], [{"nugget": " ", "vital": True}], [1]])
def test_a_column_that_holds_something_else_is_named(given: Any) -> None:
    with pytest.raises(InputError, match=r"annotation.nuggets of question 7: expected a list of"):
        nuggets_of({"question_id": "7", "nuggets": given})


def read(*entries: Any) -> Any:
    return read_nuggets(json.dumps({"nuggets": list(entries)}, ensure_ascii=False))


def test_a_reply() -> None:
    found = read(nugget("Почтой\nтоже", vital=False), nugget("до 25 июля"), nugget("До 25 июля!"))
    assert found.value == [nugget("до 25 июля"), nugget("Почтой тоже", vital=False)]
    assert read().value == []
    assert len(read(*(nugget(f"сбор {n} рублей") for n in range(50))).value) == MOST


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"nugget": "a"}, "'vital' of nugget 1 of 2 is None, not true or false"),
        ({"nugget": "a", "vital": "yes"}, "'vital' of nugget 1 of 2 is 'yes'"),
        ({"nugget": " ", "vital": True}, "nugget 1 of 2 is ' ', not a text"),
        ({"vital": True}, "nugget 1 of 2 is None, not a text"),
    ],
)
def test_one_entry_that_cannot_be_read_makes_the_whole_unreadable(entry: Any, why: str) -> None:
    found = read(nugget("b"), entry)
    assert found.status == "parse_error" and why in found.reason


@pytest.mark.slow("simulation: hundreds of replies")
@given(st.recursive(st.none() | st.booleans() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_no_reply_breaks_the_reader(reply: Any) -> None:
    for text in (json.dumps(reply), json.dumps({"nuggets": reply}), json.dumps({"nuggets": [reply]})):
        assert read_nuggets(text).status in ("ok", "parse_error")

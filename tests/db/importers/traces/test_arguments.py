"""Questions and answers as tracing SDKs wrap them: the arguments of the function that was recorded."""

import json
from typing import Any

import pytest

from yarus.db.importers.said import parsed
from yarus.db.importers.traces.values import answer_in, question_in, reference_in

ASKED, ANSWERED = "Как продлить билет?", "В окне номер три."
BOT = "<bot.Bot object at 0x7f3a5c1d2e50>"
PROMPT = f"Ответь по тексту: Билет продлевают в окне номер три. Вопрос: {ASKED}"


@pytest.mark.parametrize(
    "wrapped",
    [
        {"args": [ASKED], "kwargs": {}},
        {"args": [], "kwargs": {"question": ASKED}},
        {"args": [BOT, ASKED], "kwargs": {"k": 3}},
        {"args": ["<Bot>", "<class 'bot.Bot'>", ASKED, 3], "kwargs": {}},
        {"args": [BOT], "kwargs": {"style": "очень кратко", "query": ASKED}},
        {"args": [ASKED], "kwargs": {"style": "очень кратко"}},
        {"args": ["user-17", ASKED], "kwargs": {}},
        {"args": [["Первый текст.", "Второй текст."], ASKED], "kwargs": {}},
        {"args": [{"user": 7}, {"question": ASKED}], "kwargs": {}},
        {"args": [[{"role": "user", "content": ASKED}], "gpt-4o"], "kwargs": {}},
        {"args": [], "kwargs": {"messages": [{"role": "user", "content": ASKED}]}},
        {"args": [], "kwargs": {"request": {"body": {"q": ASKED}}}},
        {"args": [], "kwargs": {"prompt": PROMPT, "user_input": ASKED}},
        {"input_args": [ASKED], "input_kwargs": {}},
        {"input_args": [], "input_kwargs": {"message": ASKED, "k": 3}},
        {"question": ASKED, "k": 3},
        {"self": BOT, "wording": ASKED, "k": 3},
        {"query": "", "text": None, "input": {"question": ASKED}},
        {"inputs": {"question": ASKED}},
        {"args": {"question": ASKED}},
        {"args": {"self": BOT, "wording": ASKED}, "rets": ANSWERED},
        {"input": {"input": {"query": ASKED}}},
        json.dumps({"args": [ASKED]}),
        [ASKED],
        json.dumps(ASKED),
    ],
)
@pytest.mark.parametrize("form", [lambda value: value, json.dumps, lambda value: json.dumps(json.dumps(value)), repr])
def test_question_in_unwraps_arguments(wrapped: Any, form: Any) -> None:
    given = form(wrapped) if form is not repr or not isinstance(wrapped, str) else wrapped
    assert question_in(given)[0] == ASKED


@pytest.mark.parametrize(
    "wrapped",
    [
        '{"args": ["Как продлить',  # cut off
        "{'kwargs': {'question': ",
        {"args": [BOT], "kwargs": {}},
        {"args": [], "kwargs": {"k": 3, "model": "gpt-4o"}},
        {"args": [["Первый текст.", "Второй текст."]], "kwargs": {}},
        BOT,
        " ",
        {},
        [],
        7,
        None,
    ],
)
def test_question_in_takes_no_wrapper_for_a_question(wrapped: Any) -> None:
    assert question_in(wrapped) == (None, [])


def test_question_in_keeps_history_of_arguments() -> None:
    talk = [{"role": "user", "content": "Здравствуйте"}, {"role": "assistant", "content": "Спрашивайте."}]
    for wrapped in (
        {"args": [], "kwargs": {"question": ASKED, "history": talk}},
        {"args": [[*talk, {"role": "user", "content": ASKED}]], "kwargs": {}},
        {"question": ASKED, "chat_history": talk},
    ):
        assert question_in(wrapped) == (ASKED, talk)


def test_question_in_reads_arguments_written_by_python() -> None:
    assert question_in(f"{{'args': ({BOT}, {ASKED!r}), 'kwargs': {{'t': nan}}}}")[0] == ASKED


@pytest.mark.parametrize(
    "wrapped",
    [
        json.dumps(ANSWERED),
        json.dumps(json.dumps(ANSWERED)),
        {"output": ANSWERED},
        {"answer": ANSWERED, "reference": "Другое."},
        {"output": {"answer": ANSWERED, "sources": ["a"]}},
        {"outputs": {"result": ANSWERED}},
        json.dumps({"answer": ANSWERED, "k": 3}),
        {"messages": [{"role": "user", "content": ASKED}, {"role": "assistant", "content": ANSWERED}]},
        {"generations": [[{"text": ANSWERED, "message": {"kwargs": {"type": "ai", "content": ANSWERED}}}]]},
        {"choices": [{"message": {"role": "assistant", "content": ANSWERED}}]},
        {"rets": ANSWERED, "args": {"question": ASKED}},
        [ANSWERED],
    ],
)
def test_answer_in_unwraps_outputs(wrapped: Any) -> None:
    assert answer_in(wrapped) == ANSWERED


def test_answer_in_takes_numbers_but_no_objects() -> None:
    assert (answer_in(42), answer_in(BOT), answer_in({"k": 3}), answer_in(True)) == ("42", None, None, None)


def test_reference_in_takes_the_first_that_is_named() -> None:
    assert reference_in(None, {"x": 1}, {"reference": ANSWERED}) == ANSWERED
    assert reference_in('{"expected_output": {"answer": "В окне номер три."}}') == ANSWERED
    assert reference_in({"ground_truth": [ANSWERED, "Другое."], "reference": "ещё"}) == ANSWERED
    assert reference_in({"ground_truth": None, "expected_output": json.dumps(ANSWERED)}) == ANSWERED
    assert reference_in({"reference": ""}, [], 7) is None


def test_parsed_reads_what_numpy_writes() -> None:
    assert parsed("[{'a': nan, 'b': 'nan'}\n {'b': array(['x', 'y'], dtype=object)}]") == [
        {"a": None, "b": "nan"},
        {"b": ["x", "y"]},
    ]
    assert parsed("[" * 5_000) == "[" * 5_000
    assert parsed("[" * 65 + "]" * 65) == "[" * 65 + "]" * 65
    assert parsed("{'a': 0x" + "f" * 5_000 + "}").startswith("{")

"""Test questions and answers as tracing SDKs wrap them: as arguments of the recorded function."""

import json
from typing import Any

import pytest

from yarus.db.importers.literals import parse_if_literal
from yarus.db.importers.traces.extraction import extract_answer, extract_question, extract_reference

QUESTION, ANSWER = "Как продлить билет?", "В окне номер три."
BOT = "<bot.Bot object at 0x7f3a5c1d2e50>"
PROMPT = f"Ответь по тексту: Билет продлевают в окне номер три. Вопрос: {QUESTION}"


@pytest.mark.parametrize(
    "wrapped",
    [
        {"args": [QUESTION], "kwargs": {}},
        {"args": [], "kwargs": {"question": QUESTION}},
        {"args": [BOT, QUESTION], "kwargs": {"k": 3}},
        {"args": ["<Bot>", "<class 'bot.Bot'>", QUESTION, 3], "kwargs": {}},
        {"args": [BOT], "kwargs": {"style": "очень кратко", "query": QUESTION}},
        {"args": [QUESTION], "kwargs": {"style": "очень кратко"}},
        {"args": ["user-17", QUESTION], "kwargs": {}},
        {"args": [["Первый текст.", "Второй текст."], QUESTION], "kwargs": {}},
        {"args": [{"user": 7}, {"question": QUESTION}], "kwargs": {}},
        {"args": [[{"role": "user", "content": QUESTION}], "gpt-4o"], "kwargs": {}},
        {"args": [], "kwargs": {"messages": [{"role": "user", "content": QUESTION}]}},
        {"args": [], "kwargs": {"request": {"body": {"q": QUESTION}}}},
        {"args": [], "kwargs": {"prompt": PROMPT, "user_input": QUESTION}},
        {"input_args": [QUESTION], "input_kwargs": {}},
        {"input_args": [], "input_kwargs": {"message": QUESTION, "k": 3}},
        {"question": QUESTION, "k": 3},
        {"self": BOT, "wording": QUESTION, "k": 3},
        {"query": "", "text": None, "input": {"question": QUESTION}},
        {"inputs": {"question": QUESTION}},
        {"args": {"question": QUESTION}},
        {"args": {"self": BOT, "wording": QUESTION}, "rets": ANSWER},
        {"input": {"input": {"query": QUESTION}}},
        json.dumps({"args": [QUESTION]}),
        [QUESTION],
        json.dumps(QUESTION),
    ],
)
@pytest.mark.parametrize("form", [lambda value: value, json.dumps, lambda value: json.dumps(json.dumps(value)), repr])
def test_extract_question_unwraps_arguments(wrapped: Any, form: Any) -> None:
    recorded = form(wrapped) if form is not repr or not isinstance(wrapped, str) else wrapped
    assert extract_question(recorded)[0] == QUESTION


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
def test_extract_question_ignores_wrappers(wrapped: Any) -> None:
    assert extract_question(wrapped) == (None, [])


def test_extract_question_keeps_history_of_arguments() -> None:
    conversation = [{"role": "user", "content": "Здравствуйте"}, {"role": "assistant", "content": "Спрашивайте."}]
    for wrapped in (
        {"args": [], "kwargs": {"question": QUESTION, "history": conversation}},
        {"args": [[*conversation, {"role": "user", "content": QUESTION}]], "kwargs": {}},
        {"question": QUESTION, "chat_history": conversation},
    ):
        assert extract_question(wrapped) == (QUESTION, conversation)


def test_extract_question_reads_arguments_printed_by_python() -> None:
    assert extract_question(f"{{'args': ({BOT}, {QUESTION!r}), 'kwargs': {{'t': nan}}}}")[0] == QUESTION


@pytest.mark.parametrize(
    "wrapped",
    [
        json.dumps(ANSWER),
        json.dumps(json.dumps(ANSWER)),
        {"output": ANSWER},
        {"answer": ANSWER, "reference": "Другое."},
        {"output": {"answer": ANSWER, "sources": ["a"]}},
        {"outputs": {"result": ANSWER}},
        json.dumps({"answer": ANSWER, "k": 3}),
        {"messages": [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": ANSWER}]},
        {"generations": [[{"text": ANSWER, "message": {"kwargs": {"type": "ai", "content": ANSWER}}}]]},
        {"choices": [{"message": {"role": "assistant", "content": ANSWER}}]},
        {"rets": ANSWER, "args": {"question": QUESTION}},
        [ANSWER],
    ],
)
def test_extract_answer_unwraps_outputs(wrapped: Any) -> None:
    assert extract_answer(wrapped) == ANSWER


def test_extract_answer_accepts_numbers_but_not_objects() -> None:
    assert (extract_answer(42), extract_answer(BOT), extract_answer({"k": 3}), extract_answer(True)) == (
        "42",
        None,
        None,
        None,
    )


def test_extract_reference_returns_first_reference() -> None:
    assert extract_reference(None, {"x": 1}, {"reference": ANSWER}) == ANSWER
    assert extract_reference('{"expected_output": {"answer": "В окне номер три."}}') == ANSWER
    assert extract_reference({"ground_truth": [ANSWER, "Другое."], "reference": "ещё"}) == ANSWER
    assert extract_reference({"ground_truth": None, "expected_output": json.dumps(ANSWER)}) == ANSWER
    assert extract_reference({"reference": ""}, [], 7) is None


def test_parse_if_literal_reads_numpy_output() -> None:
    assert parse_if_literal("[{'a': nan, 'b': 'nan'}\n {'b': array(['x', 'y'], dtype=object)}]") == [
        {"a": None, "b": "nan"},
        {"b": ["x", "y"]},
    ]
    assert parse_if_literal("[" * 5_000) == "[" * 5_000
    assert parse_if_literal("[" * 65 + "]" * 65) == "[" * 65 + "]" * 65
    assert parse_if_literal("{'a': 0x" + "f" * 5_000 + "}").startswith("{")

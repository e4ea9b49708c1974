"""Parsing of replies: valid scores, and above all texts without a score."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.tasks.models.calls import Reply
from yarus.tasks.models.verdicts import MissingVerdict, get_value, parse_grade, parse_score, parse_yes_no

GOOD_REPLY = '{"reason": "совпадает", "score": 0.5}'


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (GOOD_REPLY, 0.5),
        ('{"score": 1}', 1.0),
        ('{"score": 0, "reason": null}', 0.0),
        ('{"score": 1e-1, "confidence": 9}', 0.1),
        (f"\n  {GOOD_REPLY}  \n", 0.5),
        (f"```json\n{GOOD_REPLY}\n```", 0.5),
        (f"```\n{GOOD_REPLY}\n```", 0.5),
        (f"```JSON {GOOD_REPLY} ```", 0.5),
        (f"<think>Может быть 0.9? {{}}</think>\n{GOOD_REPLY}", 0.5),
        (f"<thinking>\n```json\n{{}}\n```</thinking>```json\n{GOOD_REPLY}\n```", 0.5),
        (f"[THINK]хм[/THINK]{GOOD_REPLY}", 0.5),
        (f"Рассуждаю без открывающего тега…</think>{GOOD_REPLY}", 0.5),
        ('{"reason": "в ответе стоит </think>", "score": 0.25}', 0.25),
    ],
)
def test_parse_score_reads_valid_replies(text, value):
    score = parse_score(text)
    assert (score.status, score.value) == ("ok", value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("null", "not an object"),
        ("0.8", "not an object"),
        ("[0.8]", "not an object"),
        (f"[{GOOD_REPLY}]", "not an object"),
        ('"0.8"', "not an object"),
        ('{"score": 9}', "outside 0..1"),
        ('{"score": -0.1}', "outside 0..1"),
        ('{"score": 1e999}', "outside 0..1"),
        ('{"score": NaN}', "not a JSON number"),
        ('{"score": Infinity}', "not a JSON number"),
        ('{"score": "0.8"}', "not a number"),
        ('{"score": true}', "not a number"),
        ('{"score": null}', "not a number"),
        ('{"score": [0.8]}', "not a number"),
        ('{"rating": 0.8}', "no key 'score'"),
        ('{"Score": 0.8}', "no key 'score'"),
        ('{"score": 0, "score": 1}', "twice"),
        ("{}", "no key 'score'"),
        ('{"reason": "обрыв", "sco', "not one JSON object"),
        ("{'score': 0.8}", "not one JSON object"),
        (f"{GOOD_REPLY} {GOOD_REPLY}", "not one JSON object"),
        (f"Вот оценка: {GOOD_REPLY}", "not one JSON object"),
        (f"{GOOD_REPLY}\nНадеюсь, это поможет!", "not one JSON object"),
        ("Оценка: 0.8", "not one JSON object"),
        ("**Score:** 0.8 / 1", "not one JSON object"),
        ("Ответ 1 из 1, всё верно.", "not one JSON object"),
        ("К сожалению, я не могу оценить этот ответ.", "not one JSON object"),
        ("I'm sorry, I can't help with that.", "not one JSON object"),
        (f"<think>никогда не кончу {GOOD_REPLY}", "empty"),
        (f"<think>0.9</think><think>{GOOD_REPLY}</think>", "not one JSON object"),
        ("[" * 100_000, "not one JSON object"),
        ('{"score": ' + "9" * 10_000 + "}", "not one JSON object"),
    ],
)
def test_parse_score_rejects_other_texts(text, problem):
    score = parse_score(text)
    assert (score.status, get_value(score)) == ("parse_error", None)
    assert problem in score.reason


@given(st.text())
def test_parse_score_rejects_texts_without_object(text):
    assert isinstance(parse_score(text.replace("{", "")), MissingVerdict)


@given(st.floats(0, 1), st.text())
def test_parse_score_round_trips_json(value, reason):
    score = parse_score(json.dumps({"reason": reason, "score": value}, ensure_ascii=False))
    assert (score.value, score.reason) == (value, reason)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Yes", True),
        ("no", False),
        ("Да", True),
        ("НЕТ.", False),
        ("Да, ответ подтверждён контекстом.", True),
        ("Нет,потому что выдумано", False),
        ("**Да**", True),
        ('"No"', False),
        ("- Yes\n- да", True),
        ("Yes—shown", True),
        ("<think>Нет? Нет.</think>Да", True),
    ],
)
def test_parse_yes_no_reads_the_first_word(text, value):
    answer = parse_yes_no(text)
    assert (answer.status, answer.value) == ("ok", value)


@pytest.mark.parametrize(
    "text",
    ["", "  ", "…", "Не знаю", "Данных нет", "Yesterday", "None", "No-one", "Yes/No", "Да|Нет", "1", "Ответ: да",
     "I think yes", "<think>да", '{"answer": "yes"}', "Ja", "是"],
)  # fmt: skip
def test_parse_yes_no_rejects_other_first_words(text):
    answer = parse_yes_no(text)
    assert (answer.status, get_value(answer)) == ("parse_error", None)


def test_parse_yes_no_keeps_combining_marks_in_reason():
    answer = parse_yes_no("Да, свой".replace("й", "и\u0306"))
    assert (answer.value, answer.reason) == (True, "свой")


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("ответ", "ответ"),
        ("<think>a</think> ответ", "ответ"),
        ("мысли</think>\n\nответ", "ответ"),
        ("<think>нет конца", ""),
        ("теги <b>остаются</b>", "теги <b>остаются</b>"),
    ],
)
def test_thinking_is_removed(text, after):
    assert Reply("ok", raw=text).text == after


@pytest.mark.parametrize(("score", "value"), [("0", 0), ("3", 3), ("2.0", 2)])
def test_parse_grade_reads_valid_grades(score, value):
    assert get_value(parse_grade(f'{{"reason": "", "score": {score}}}')) == value


@pytest.mark.parametrize("score", ["4", "-1", "1.5", '"maybe"', "true", "1e999", "9" * 400, "null"])
def test_parse_grade_rejects_other_numbers(score):
    assert parse_grade(f'{{"reason": "", "score": {score}}}').status == "parse_error"

"""Reading replies: what has a score, and above all what has none."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.tasks.models.calls import Reply
from yarus.tasks.models.verdicts import NoVerdict, read_grade, read_score, read_yes_no, value_of

GOOD = '{"reason": "совпадает", "score": 0.5}'


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (GOOD, 0.5),
        ('{"score": 1}', 1.0),
        ('{"score": 0, "reason": null}', 0.0),
        ('{"score": 1e-1, "confidence": 9}', 0.1),
        (f"\n  {GOOD}  \n", 0.5),
        (f"```json\n{GOOD}\n```", 0.5),
        (f"```\n{GOOD}\n```", 0.5),
        (f"```JSON {GOOD} ```", 0.5),
        (f"<think>Может быть 0.9? {{}}</think>\n{GOOD}", 0.5),
        (f"<thinking>\n```json\n{{}}\n```</thinking>```json\n{GOOD}\n```", 0.5),
        (f"[THINK]хм[/THINK]{GOOD}", 0.5),
        (f"Рассуждаю без открывающего тега…</think>{GOOD}", 0.5),
        ('{"reason": "в ответе стоит </think>", "score": 0.25}', 0.25),
    ],
)
def test_score_is_read(text, value):
    score = read_score(text)
    assert (score.status, score.value) == ("ok", value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("null", "not an object"),
        ("0.8", "not an object"),
        ("[0.8]", "not an object"),
        (f"[{GOOD}]", "not an object"),
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
        (f"{GOOD} {GOOD}", "not one JSON object"),
        (f"Вот оценка: {GOOD}", "not one JSON object"),
        (f"{GOOD}\nНадеюсь, это поможет!", "not one JSON object"),
        ("Оценка: 0.8", "not one JSON object"),
        ("**Score:** 0.8 / 1", "not one JSON object"),
        ("Ответ 1 из 1, всё верно.", "not one JSON object"),
        ("К сожалению, я не могу оценить этот ответ.", "not one JSON object"),
        ("I'm sorry, I can't help with that.", "not one JSON object"),
        (f"<think>никогда не кончу {GOOD}", "empty"),
        (f"<think>0.9</think><think>{GOOD}</think>", "not one JSON object"),
        ("[" * 100_000, "not one JSON object"),
        ('{"score": ' + "9" * 10_000 + "}", "not one JSON object"),
    ],
)
def test_anything_else_is_a_parse_error(text, problem):
    score = read_score(text)
    assert (score.status, value_of(score)) == ("parse_error", None)
    assert problem in score.reason


@given(st.text())
def test_no_text_without_an_object_scores(text):
    assert isinstance(read_score(text.replace("{", "")), NoVerdict)


@given(st.floats(0, 1), st.text())
def test_every_verdict_survives_its_own_json(value, reason):
    score = read_score(json.dumps({"reason": reason, "score": value}, ensure_ascii=False))
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
def test_first_word_decides(text, value):
    answer = read_yes_no(text)
    assert (answer.status, answer.value) == ("ok", value)


@pytest.mark.parametrize(
    "text",
    ["", "  ", "…", "Не знаю", "Данных нет", "Yesterday", "None", "No-one", "Yes/No", "Да|Нет", "1", "Ответ: да",
     "I think yes", "<think>да", '{"answer": "yes"}', "Ja", "是"],
)  # fmt: skip
def test_any_other_first_word_is_invalid_and_never_a_no(text):
    answer = read_yes_no(text)
    assert (answer.status, value_of(answer)) == ("parse_error", None)


def test_combining_marks_do_not_cut_the_reason():
    answer = read_yes_no("Да, свой".replace("й", "и\u0306"))
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
def test_thinking_is_taken_off(text, after):
    assert Reply("ok", raw=text).text == after


@pytest.mark.parametrize(("score", "value"), [("0", 0), ("3", 3), ("2.0", 2)])
def test_grade_is_read(score, value):
    assert value_of(read_grade(f'{{"reason": "", "score": {score}}}')) == value


@pytest.mark.parametrize("score", ["4", "-1", "1.5", '"maybe"', "true", "1e999", "9" * 400, "null"])
def test_no_other_number_is_a_grade(score):
    assert read_grade(f'{{"reason": "", "score": {score}}}').status == "parse_error"

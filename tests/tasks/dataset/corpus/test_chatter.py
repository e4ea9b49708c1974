"""What no page could answer is recognised, by kind, in Russian and English; real questions are not taken for it."""

import json
from pathlib import Path

import pytest

from tests.support.logs.bot_logs import JUNK, SAMPLE
from yarus.tasks.dataset.corpus.chatter import KINDS, chatter
from yarus.tasks.dataset.corpus.languages import Spoken, content, is_foreign, spoken

FALSE_ALARMS = 0.01
NO_QUESTIONS = {
    "привет": "small_talk",
    "ты тупой": "small_talk",
    "расскажи анекдот": "small_talk",
    "ты бот или человек": "small_talk",
    "спасибо!": "small_talk",
    "скучно": "small_talk",
    "ты лучший бот)))": "small_talk",
    "с новым годом 🎄": "small_talk",
    "?": "empty",
    "тест": "noise",
    "I am foreign student, how to make registration?": "other_language",
}
"""What the sample's own log has of it."""


def sample(name: str, column: str) -> list[str]:
    return [json.loads(line)[column] for line in (SAMPLE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def paragraphs(xquad: Path) -> tuple[list[str], list[str]]:
    """The texts and the questions."""
    articles = json.loads(xquad.read_text(encoding="utf-8"))["data"]
    parts = [part for article in articles for part in article["paragraphs"]]
    return [part["context"] for part in parts], [one["question"] for part in parts for one in part["qas"]]


@pytest.fixture(scope="module")
def russian() -> Spoken:
    return spoken(sample("chunk", "text"))


@pytest.fixture(scope="module")
def english(xquad_en: Path) -> Spoken:
    return spoken(paragraphs(xquad_en)[0])


def test_each_kind_is_recognised(russian: Spoken) -> None:
    assert set(JUNK) == set(KINDS)
    wrong = [(kind, text) for kind in KINDS for text in JUNK[kind] if chatter(text, russian) != kind]
    assert wrong == []


def test_each_kind_is_recognised_where_the_corpus_is_english(english: Spoken) -> None:
    for kind in set(KINDS) - {"other_language"}:
        assert [text for text in JUNK[kind] if chatter(text, english) != kind] == [], kind
    assert chatter("Где взять справку с места учёбы?", english) == "other_language"
    assert chatter("Where do I get my student card?", english) is None


def test_the_samples_questions_are_questions(russian: Spoken) -> None:
    found = {text: kind for text in sample("question_answer", "question") if (kind := chatter(text, russian))}
    assert found == NO_QUESTIONS


def test_real_questions_are_taken_for_something_else_in_one_of_a_hundred(xquad_ru: Path, xquad_en: Path) -> None:
    for path in (xquad_ru, xquad_en):
        texts, questions = paragraphs(path)
        of = spoken(texts)
        alarms = [text for text in questions if chatter(text, of)]
        assert len(alarms) <= FALSE_ALARMS * len(questions), alarms


def test_other_languages_are_mostly_recognised(xquad_ru: Path, xquad_en: Path) -> None:
    for own, other in ((xquad_ru, xquad_en), (xquad_en, xquad_ru)):
        of, questions = spoken(paragraphs(own)[0]), paragraphs(other)[1]
        assert sum(is_foreign(text, of) for text in questions) >= 0.9 * len(questions)


def test_a_corpus_of_two_languages_answers_both(xquad_ru: Path, xquad_en: Path) -> None:
    (russian, asked), (english, too) = paragraphs(xquad_ru), paragraphs(xquad_en)
    of = spoken([*russian, *english])
    assert not [text for text in (*asked, *too) if is_foreign(text, of)]


@pytest.mark.parametrize(
    "text",
    [
        "wi-fi",
        "LMS",
        "eduroam",
        "профком",
        "Пароль?",
        "rfr gjlrk.xbnmcz r dfqafq",
        "gthtclfxf rjulf",
        "ЛК",
        "как войти в lk.univer.ru",
        "не открывается https://lk.univer.ru/login что делать",
        "тест по истории где",
        "привет, где взять справку",
        "спасибо, а стипендия когда",
        "день открытых дверей",
        "что такое криптография",
        "где оплатить кредит на обучение",
        "скидка до какого числа",
        "а на заочку",
        "кто ректор",
        "ты не знаешь где деканат?",
        "2+2 сколько пар в субботу",
        "ВКР",
        "подработка от 3000 руб в день есть?",
        "Office 365",
    ],
)
def test_a_word_of_content_makes_a_question(russian: Spoken, text: str) -> None:
    assert chatter(text, russian) is None


def test_what_a_text_is_about_has_no_addresses_and_no_words_that_only_ask() -> None:
    assert content("Здравствуйте! Подскажите, где взять пропуск? https://wiki.example/a?b=c me@mail.ru") == [
        "взять",
        "пропуск",
    ]

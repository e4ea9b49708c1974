"""Non-questions are recognised by kind in Russian and English; real questions are not misclassified."""

import json
from pathlib import Path

import pytest

from tests.support.logs.bot_logs import JUNK, SAMPLE_FOLDER
from yarus.tasks.dataset.corpus.chatter import KINDS, non_question_kind
from yarus.tasks.dataset.corpus.languages import CorpusLanguages, content_words, detect_corpus_languages, is_foreign

MAX_FALSE_ALARM_RATE = 0.01
NON_QUESTIONS = {
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
"""Non-questions in the sample's log."""


def load_sample_column(name: str, column: str) -> list[str]:
    return [
        json.loads(line)[column] for line in (SAMPLE_FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def load_paragraphs(xquad: Path) -> tuple[list[str], list[str]]:
    """Return the texts and the questions."""
    articles = json.loads(xquad.read_text(encoding="utf-8"))["data"]
    parts = [part for article in articles for part in article["paragraphs"]]
    return [part["context"] for part in parts], [entry["question"] for part in parts for entry in part["qas"]]


@pytest.fixture(scope="module")
def russian() -> CorpusLanguages:
    return detect_corpus_languages(load_sample_column("chunk", "text"))


@pytest.fixture(scope="module")
def english(xquad_en: Path) -> CorpusLanguages:
    return detect_corpus_languages(load_paragraphs(xquad_en)[0])


def test_non_question_kind_recognises_each_kind(russian: CorpusLanguages) -> None:
    assert set(JUNK) == set(KINDS)
    misclassified = [(kind, text) for kind in KINDS for text in JUNK[kind] if non_question_kind(text, russian) != kind]
    assert misclassified == []


def test_non_question_kind_works_for_english_corpus(english: CorpusLanguages) -> None:
    for kind in set(KINDS) - {"other_language"}:
        assert [text for text in JUNK[kind] if non_question_kind(text, english) != kind] == [], kind
    assert non_question_kind("Где взять справку с места учёбы?", english) == "other_language"
    assert non_question_kind("Where do I get my student card?", english) is None


def test_non_question_kind_accepts_sample_questions(russian: CorpusLanguages) -> None:
    kinds = {
        text: kind
        for text in load_sample_column("question_answer", "question")
        if (kind := non_question_kind(text, russian))
    }
    assert kinds == NON_QUESTIONS


def test_non_question_kind_has_few_false_alarms(xquad_ru: Path, xquad_en: Path) -> None:
    for path in (xquad_ru, xquad_en):
        texts, questions = load_paragraphs(path)
        corpus_languages = detect_corpus_languages(texts)
        false_alarms = [text for text in questions if non_question_kind(text, corpus_languages)]
        assert len(false_alarms) <= MAX_FALSE_ALARM_RATE * len(questions), false_alarms


def test_is_foreign_recognises_most_foreign_questions(xquad_ru: Path, xquad_en: Path) -> None:
    for own_path, other_path in ((xquad_ru, xquad_en), (xquad_en, xquad_ru)):
        languages, questions = detect_corpus_languages(load_paragraphs(own_path)[0]), load_paragraphs(other_path)[1]
        assert sum(is_foreign(text, languages) for text in questions) >= 0.9 * len(questions)


def test_is_foreign_accepts_both_corpus_languages(xquad_ru: Path, xquad_en: Path) -> None:
    (russian, russian_questions), (english, english_questions) = load_paragraphs(xquad_ru), load_paragraphs(xquad_en)
    corpus_languages = detect_corpus_languages([*russian, *english])
    assert not [text for text in (*russian_questions, *english_questions) if is_foreign(text, corpus_languages)]


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
def test_non_question_kind_accepts_texts_with_content_words(russian: CorpusLanguages, text: str) -> None:
    assert non_question_kind(text, russian) is None


def test_content_words_exclude_addresses_and_question_words() -> None:
    assert content_words("Здравствуйте! Подскажите, где взять пропуск? https://wiki.example/a?b=c me@mail.ru") == [
        "взять",
        "пропуск",
    ]

"""Facts as people write them: equal facts, different facts, and no facts."""

import numpy as np
import pytest

from tests.support.examples import for_all
from yarus.metrics.facts import fact_precision, fact_recall, facts, unsupported
from yarus.metrics.facts.spelling import normalize_spelling

SAME = [
    ("двенадцатого января", "12.01"), ("January 12th", "12.01"), ("2026-01-12", "12 января, весь 2026 год"),
    ("12 января", "2026-01-12"), ("12 Jan. 2026", "12.01.2026"), ("12/01/2026", "12 января 2026 г."),
    ("01/12/2026", "January 12, 2026"), ("the 12th of January", "12 января"), ("в январе", "12 января"),
    ("12-го января", "двенадцатое января две тысячи двадцать шестого года"), ("12 янв.", "12 января"),
    ("12 января", "с 12 по 20 января"), ("13 января", "12, 13 и 15 января"), ("January 12", "January 12–20"),
    ("January 20", "January 12–20"), ("20.01", "12.01-20.01"), ("2026", "в 2025/26 учебном году"),
    ("1500", "полторы тысячи"), ("1 500", "1500"), ("1\u00a0500 руб.", "полторы тысячи рублей"),
    ("1,5 тыс. рублей", "1500 ₽"), ("1,500", "1500"), ("1.500", "1500"), ("5 тысяч 300 рублей", "5300 руб"),
    ("100,50 руб.", "100 рублей 50 копеек"), ("$1.2 million", "1,200,000 dollars"),
    ("100 рублей", "от 100 до 200 рублей"), ("€5", "5 евро"), ("100 руб.", "Цена, руб.: 100"),
    ("15 %", "пятнадцать процентов"), ("5 %", "5–10 %"), ("15 percent", "15%"), ("2½", "два с половиной"),
    ("½", "половина"), ("0,4", "ноль целых четыре десятых"), ("5.4", "five point four"),
    ("2.5 million", "два с половиной миллиона"), ("14:30", "половина третьего"), ("полтретьего", "2:30"),
    ("14.30", "14:30"), ("14 ч 30 мин", "14:30"), ("2:30 pm", "14:30"), ("2 часа дня", "14:00"),
    ("девять утра", "9:00"), ("2:45", "без четверти три"), ("02:45", "quarter to three"), ("half past two", "14:30"),
    ("2:15", "четверть третьего"), ("24:00", "0:00"), ("полдень", "12:00"), ("9:00", "с 9 до 18"),
    ("в 14 часов", "14:00"), ("18:00", "9.00-18.00"), ("полтора часа", "90 минут"), ("полчаса", "30 минут"),
    ("2 недели", "14 дней"), ("1 км", "1000 м"), ("год и шесть месяцев", "6 месяцев"), ("по средам", "среда, 14:00"),
    ("в понедельник", "пн-пт"), ("Monday", "Mon–Fri"), ("on Fridays", "пятница"),
    ("8 927 123-45-67", "+7 (927) 123-45-67"), ("267-43-70", "+7 (846) 267-43-70"),
    ("89271234567", "8 (927) 123-45-67"), ("Info@SSAU.ru", "info@ssau.ru."),
    ("https://www.ssau.ru/abit/", "ssau.ru/abit"), ("см. ssau.ru", "https://ssau.ru"), ("каб. 215", "кабинет №215"),
    ("ауд. А-215", "аудитория А215"), ("215", "комната 215"), ("room 215", "ауд. 215"),
    ("приказ № 123-ФЗ", "№123-ФЗ"), ("F-16", "F16"), ("XIX век", "девятнадцатый век"), ("V семестр", "пятый семестр"),
    ("15 **января**", "15 января"), ("каб. **215**", "215"), ("<b>15</b>&nbsp;января", "15.01"),
    ("14 дней", "14 календарных дней"), ("2 часа", "2 академических часа"), ("10–19", "10:00-19:00"),
    ("9:00–18:00", "Приём 9-18"), ("14:00–16:30", "с 14 до 16:30"), ("к девяти", "до 9:00"),
    ("14 ч. 30 мин.", "14:30"), ("19ч30", "19:30"), ("2 pm", "1-2 pm"), ("1–2 pm", "13:00-14:00"),
    ("1500–2000 ₽", "1 500-2 000 рублей"), ("7 000–12 500 руб.", "7–12,5 тыс. руб."),
    ("12 руб. 50 коп.", "12,50 руб."), ("каб. 215-а", "кабинет 215а"), ("комн. 402-Б", "комната 402-б"),
    ("2025-2026", "2025/2026"), ("2026 год", "2025/26"), ("$1.5m", "1.5 million dollars"), ("группа А1", "group A1"),
    ("55-66-77", "телефон 556677"), ("18,5 м2", "18,5 м²"), ("@univ_help", "https://t.me/univ_help"), ("3х4", "3×4"),
    ("60/100", "60 баллов из 100"), ("корпуса 60 дней", "60 дней"), ("19th century", "XIХ век"), ("twenty-first", "21"),
    ("nineteen eighty-four", "1984"), ("nineteen oh five", "1905"), ("1990-е", "1990s"),
    ("триста сорока пяти", "345"), ("пятью", "5"), ("третьему", "3"), ("2O26", "2026"), ("12 янвaря", "12.01"),
    ("５", "5"), ("трёх", "три"), ("10⁶", "миллион"), ("1,5·10^3", "1500"), ("2e5", "200 000"),
    ("минус пять градусов", "-5 °C"), ("две трети", "2/3"),
    ("в январе 2026 года", "12 января; план на 2026 год"),
    ("$0.50", "0,50 доллара"),
    ("9.00 р.", "девять рублей"),
    ("№ 12-34", "№12-34"), ("3 дня", "в течение трёх дней"), ("22 дня", "двадцати двух дней"),
    ("2-3 дня", "два-три дня"), ("в 3 дня", "в 15:00"), ("в три дня", "в течение трёх дней"),
    ("до трёх дня", "до 15:00"), ("с 2 до 3 дня", "с 14:00 до 15:00"),
]  # fmt: skip
OTHER = [
    ("13 января", "12 января"), ("12 февраля", "12 января"), ("12.01.2027", "12.01.2026"),
    ("12.01.2026", "12 января"), ("15 января", "с 12 по 20 января"), ("5 февраля", "5 января"),
    ("14:30", "половина четвёртого"), ("14:45", "с 14 до 15"), ("1500", "1600"), ("1500 рублей", "1500 долларов"),
    ("15 %", "25 %"), ("3 дня", "3 недели"), ("-5 °C", "5 °C"), ("в среду", "в четверг"), ("каб. 216", "каб. 215"),
    ("за 3 дня", "15:00"),
    ("8 927 123-45-68", "8 927 123-45-67"), ("a@b.ru", "a@b.com"), ("XX век", "XIX век"),
    ("в V семестре", "в VI семестре"), ("5 часов", "18000"), ("ауд. В-305", "ауд. Б-305"), ("215 рублей", "каб. 215"),
    ("каб. 3000", "3000 руб."), ("@univ_help", "@univ_2026"), ("ГСП-2", "ГСП-1"), ("F-17", "F-16"),
    ("№ 124-ФЗ", "№ 123-ФЗ"), ("31.02", "28.02"), ("полторы тысячи", "1,5"), ("the second", "the third"),
    ("Sunday", "Mon–Fri"), ("10^5", "10^6"), ("5", "1. Подать. 2. Ждать.\n5. Уйти."), ("ssau.ru/abit", "ssau.ru"),
    ("один", "один из них"),
    ("№ 45/1", "№ 451"),
    ("№ 12-34", "№ 123-4"),
    ("24/7", "7 дней"),
]  # fmt: skip
NONE = [
    "", "Да, можно.", "You may go.", "They march on.", "окружающая среда", "в языковой среде", "одна из них",
    "one of them", "**1.** Подайте.", "(1) Подайте.\n1.Ждите.\n1.1 Идите.\n## 2. Сроки", "| 1 | да |", "Так [2, 3].",
    "Так [doc 3].", "Шаги: 1. Идите; 2. Ждите.", "с одной стороны", "the one who knows", "no one", "тысячи людей",
    "dozens of people", "у неё семья, он любит семью", "т.е. и т.п.", "1. Зайдите.\n2. Нажмите.",
    "Как сказано [1], [2].", "The sun sat on him.", "\x00\ud800 ​",
]  # fmt: skip
KINDS = {
    "двенадцатого января 2026 года": "date", "14:30": "time", "по вторникам": "weekday",
    "полторы тысячи рублей": "money", "5 %": "percent", "+7 927 123-45-67": "phone", "a@b.ru": "email",
    "ssau.ru/abit": "url", "каб. 215а": "room", "№ 45/1": "code", "сорок": "number",
    "$0.50": "money",
    "9.00 р.": "money",
    "9.00": "time", "09.03.01": "date",
    "31.02": "date",
}  # fmt: skip


@for_all("stated, context", SAME)
def test_equal_facts_in_different_forms(stated: str, context: str) -> None:
    assert unsupported([stated], [context]) == [[]]


@for_all("stated, context", OTHER)
def test_different_facts_are_unsupported(stated: str, context: str) -> None:
    (facts_without_support,) = unsupported([stated], [context])
    assert facts_without_support and fact_precision([stated], [context]) == [0]


@for_all("text", NONE)
def test_facts_empty_without_facts(text: str) -> None:
    assert facts(text) == []
    assert unsupported([text], ["12 января"]) == [None]


@for_all("text", KINDS)
def test_facts_kinds(text: str) -> None:
    assert [fact.kind for fact in facts(text)] == [KINDS[text]]


def test_facts_positions_in_original_text() -> None:
    text = "Е\u0308лка \u00ad25\u00ad декабря, ауд.\u00a0215."
    assert [fact.text for fact in facts(text)] == ["25\u00ad декабря", "215"]
    assert all(text[fact.start : fact.end] == fact.text for fact in facts(text))


def test_fact_shares_and_undefined() -> None:
    context = "Приём 12 января, каб. 215, 1500 рублей."
    answers = ["12 января, каб. 216", "Да.", None, "12 января", "12 января, 12.01 и 13.01"]
    contexts = [context, context, context, None, context]
    np.testing.assert_array_equal(fact_precision(answers, contexts), [0.5, np.nan, np.nan, np.nan, 0.5])
    np.testing.assert_array_equal(fact_recall(["каб. 215"], [context]), [1 / 3])
    np.testing.assert_array_equal(fact_recall([None, "да"], [context, "да"]), [np.nan, np.nan])
    assert fact_recall(["Не знаю."], [context]) == [0]
    assert unsupported(["12 января"], [""]) == [facts("12 января")]


@for_all(
    "text, expected",
    [
        ("Пять тысяч, двадцать мест", ["Пять тысяч", "двадцать"]),
        ("Триста, двадцать", ["Триста", "двадцать"]),
        ("Три миллиона, две трети", ["Три миллиона", "две трети"]),
        ("one hundred, twenty people", ["one hundred", "twenty"]),
        ("one hundred and twenty people", ["one hundred and twenty"]),
        ("two thousand, three hundred", ["two thousand, three hundred"]),
    ],
)
def test_facts_separate_numbers_of_list(text: str, expected: list[str]) -> None:
    assert [fact.text for fact in facts(text)] == expected


def test_fact_precision_needs_every_mention() -> None:
    for answer in ("Всего 10. Приём к 10.", "Приём к 10. Всего 10."):
        (unsupported_facts,) = unsupported([answer], ["в 22:00"])
        assert unsupported_facts and fact_precision([answer], ["в 22:00"]) == [0]


def test_normalize_spelling_keeps_words_without_look_alikes() -> None:
    assert normalize_spelling("iphoneик")[0] == "iphoneик" and normalize_spelling("янвaря")[0] == "января"


def test_unsupported_refuses_unequal_lengths() -> None:
    with pytest.raises(ValueError, match="2 texts but 1 to hold them against"):
        unsupported(["1", "2"], ["1"])

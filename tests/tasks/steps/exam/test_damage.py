"""Damage to answers in Russian and English changes the meaning, and is reproducible."""

import re
from random import Random

import pytest

from yarus.tasks.steps.exam import damage


def parts(text: str) -> set[str]:
    """Return the numbers and words of a text."""
    return {*damage.NUMBER.findall(text), *re.findall(r"[^\W\d]+", text.casefold())}


@pytest.mark.parametrize(
    ("answer", "language"),
    [
        ("Набор идёт с 11 по 18 августа.", "ru"),
        ("187.", "ru"),
        ("В среду", "ru"),
        ("Занятия начнутся в сентябре", "ru"),
        ("Пять рабочих дней", "ru"),
        ("The game was played on Sunday", "en"),
        ("at 14:30", "en"),
        ("Three of them", "en"),
    ],
)
def test_change_number_gives_unknown_value(answer: str, language: str) -> None:
    for seed in range(20):
        changed = damage.change_number(answer, f"Известно: {answer} 12 15.", language, Random(seed))
        assert changed is not None and changed != answer
        new = parts(changed) - parts(answer)
        assert new and not new & parts(f"{answer} 12 15")
        assert changed == damage.change_number(answer, f"Известно: {answer} 12 15.", language, Random(seed))


def test_change_number_is_none_without_a_number() -> None:
    assert damage.change_number("В деканате.", "В деканате.", "ru", Random(0)) is None


@pytest.mark.parametrize(
    ("answer", "language", "denied"),
    [
        ("Да, можно.", "ru", "Нет, можно."),
        ("Нельзя входить", "ru", "Можно входить"),
        ("Не больше 5 МБ.", "ru", "Больше 5 МБ."),
        ("Документы принимают до 20 августа.", "ru", "Документы не принимают до 20 августа."),
        ("187", "ru", "Не 187"),
        ("Yes, it is.", "en", "No, it is."),
        ("They can't enter", "en", "They can enter"),
        ("The office is open", "en", "The office is not open"),
        ("Denver Broncos", "en", "Not Denver Broncos"),
    ],
)
def test_negate_adds_or_removes_negation(answer: str, language: str, denied: str) -> None:
    assert damage.negate(answer, language) == denied


def test_exchange_name_uses_unknown_name_of_same_kind() -> None:
    context = "Справку выдаёт Мария Петрова в корпусе «Сосна», а не Олег Иванов."
    own = damage.find_names(context)
    assert own == ["Мария Петрова", "«Сосна»", "Олег Иванов"]
    other_names = ["Анна Орлова", "Мария Петрова", "Берлин", "«Кедр»"]
    changed = damage.exchange_name("Мария Петрова, каб. 5", own, other_names, context, Random(0))
    assert changed == "Анна Орлова, каб. 5"
    assert damage.exchange_name("В корпусе «Сосна»", own, other_names, context, Random(0)) == "В корпусе «Кедр»"
    assert damage.exchange_name("Мария Петрова", own, own, context, Random(0)) is None


def test_find_names_skips_months() -> None:
    assert damage.find_names("Приём идёт, как и везде, в Августе.") == []


def test_leave_out_half_and_first_sentence_shorten() -> None:
    assert damage.leave_out_half("Берите паспорт. Ещё нужны две фотографии.", "что взять") == "Берите паспорт."
    assert damage.leave_out_half("27 или 28 августа, с 9 до 19 часов.", "когда") == "27 или 28 августа"
    assert damage.leave_out_half("187", "какой балл") is None
    assert damage.first_sentence("Берите паспорт. Ещё нужны две фотографии.") == "Берите паспорт."
    assert damage.first_sentence("Только паспорт") is None

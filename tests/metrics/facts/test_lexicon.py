"""Every form of a number, month, weekday and measure, against a Russian dictionary and a speller of numbers."""

from collections.abc import Iterator

import pymorphy3
import pytest
from num2words import num2words

from tests.support.examples import for_all
from yarus.metrics.facts import facts, unsupported
from yarus.metrics.facts.lexicon import LEXICON

NUMBERS = [
    *range(2, 100),
    100,
    101,
    112,
    145,
    200,
    345,
    567,
    680,
    799,
    890,
    911,
    999,
    1000,
    1984,
    2026,
    12_345,
    700_012,
    5_000_000,
]
NOUNS = """
январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь понедельник вторник четверг пятница
суббота воскресенье минута час неделя месяц рубль копейка доллар процент метр километр тысяча миллион миллиард век
"""
ADJECTIVES = """
первый второй третий четвёртый пятый шестой седьмой восьмой девятый десятый одиннадцатый двенадцатый двадцатый
тридцатый сороковой пятидесятый шестидесятый семидесятый восьмидесятый девяностый сотый двухсотый девятисотый тысячный
"""
OUT_OF_USE = {"пятницею", "минутою", "неделею", "копейкою", "тысячею", "третьею", "веки"}
COLLOQUIAL = ("тыщ", "первейш", "наипервейш")


@for_all("number", NUMBERS)
def test_cardinals_in_all_grammatical_cases(number: int) -> None:
    for case in "nigdap":
        words = num2words(number, lang="ru", case=case)
        assert unsupported([f"о {words}"], [str(number)]) == [None if words == "семью" else []], words
    assert unsupported([num2words(number)], [str(number)]) == [[]]


@for_all("number", NUMBERS)
def test_ordinals_in_all_grammatical_cases(number: int) -> None:
    for case in "nigdap":
        for gender in "mfn":
            words = num2words(number, lang="ru", to="ordinal", case=case, gender=gender)
            if number < 2000:  # «двенадцатитысячный» is one word
                assert unsupported([words], [str(number)]) == [[]], words
                assert len(facts(words)) == 1, words
    assert unsupported([num2words(number, to="ordinal")], [str(number)]) == [[]]
    assert unsupported([num2words(number, to="ordinal_num")], [str(number)]) == [[]]


@for_all("year", [1801, 1812, 1900, 1945, 1999, 2000, 2005, 2026])
def test_years_in_words(year: int) -> None:
    assert unsupported([num2words(year, to="year")], [f"{year} год"]) == [[]]
    words = num2words(year, lang="ru", to="ordinal", case="p")
    assert unsupported([f"в {words} году"], [str(year)]) == [[]]


@for_all("number", [0.5, 5.4, 12.25, 3.007, 100.01])
def test_decimals_in_words(number: float) -> None:
    for language in ("ru", "en"):
        assert unsupported([num2words(number, lang=language)], [str(number)]) == [[]]


@for_all("word", (NOUNS + ADJECTIVES).split())
def test_lexicon_has_every_form(analyzer: pymorphy3.MorphAnalyzer, word: str) -> None:
    forms = {form.replace("ё", "е") for form in _forms(analyzer, word)} - OUT_OF_USE
    assert {form for form in forms if form not in LEXICON and not form.startswith(COLLOQUIAL)} == set()


@pytest.fixture(scope="module")
def analyzer() -> pymorphy3.MorphAnalyzer:
    return pymorphy3.MorphAnalyzer()


def _forms(analyzer: pymorphy3.MorphAnalyzer, word: str) -> Iterator[str]:
    parses = [
        parse
        for parse in analyzer.parse(word)
        if parse.normal_form.replace("ё", "е") == word.replace("ё", "е") and parse.tag.POS in ("NOUN", "ADJF", "NUMR")
    ]
    yield from (form.word for form in parses[0].lexeme)

"""Twins: what says the same is one, whatever its id; what only looks alike is not."""

import json
import random
from pathlib import Path

import pytest

from yarus.db.source_rows import Corpus
from yarus.tasks.dataset.duplicates import twins_of

SESSION = (
    "Зимняя экзаменационная сессия начинается двенадцатого января и длится три недели; расписание экзаменов и "
    "консультаций публикуется на сайте института не позднее чем за месяц до её начала, а изменения в нём согласуются "
    "с учебным отделом и сообщаются старостам групп."
)
HOSTEL = (
    "Студенты первого курса заселяются в общежитие по спискам деканата, которые вывешивают в конце августа; с собой "
    "нужны паспорт, медицинская справка и три фотографии, а договор подписывают в кабинете 12."
)


def corpus(*chunks: tuple[str, str | None, str]) -> Corpus:
    """Of (id, page, text)."""
    ids, urls, texts = ([chunk[part] for chunk in chunks] for part in range(3))
    return Corpus(ids, urls, texts, None)  # type: ignore[arg-type]


def test_the_same_text_is_a_twin_whatever_its_case_punctuation_and_address() -> None:
    shouted = SESSION.upper().replace("Ё", "Е").replace(";", " —")
    found = twins_of(corpus(("b", "p:1", SESSION), ("a", "p:2", shouted), ("c", "p:3", HOSTEL)), "chunk")
    assert found == {"b": "b", "a": "b"}


def test_a_misprint_is_still_the_same() -> None:
    misprint = SESSION.replace("расписание", "распсание")
    assert twins_of(corpus(("1", None, SESSION), ("2", None, misprint), ("3", None, HOSTEL)), "chunk").keys() == {
        "1",
        "2",
    }


@pytest.mark.parametrize(
    "other",
    [
        SESSION.replace("Зимняя", "Летняя"),
        HOSTEL.replace("кабинете 12", "кабинете 21"),
        HOSTEL.replace("нужны паспорт", "не нужны паспорт"),
        "The winter examination session begins on the twelfth of January and lasts three weeks.",  # a translation
        HOSTEL[: len(HOSTEL) // 2],
        f"{SESSION} Это не касается заочников.",
        f"Отменено: {SESSION}",
        "",
    ],
)
def test_what_says_something_else_is_no_twin(other: str) -> None:
    assert twins_of(corpus(("1", "p:1", SESSION), ("2", "p:2", HOSTEL), ("3", "p:3", other)), "chunk") == {}


def test_chunks_without_words_are_nobodys_twins() -> None:
    assert twins_of(corpus(("1", "p:1", ""), ("2", "p:2", "—"), ("3", "p:3", "…")), "chunk") == {}


def test_a_page_is_a_twin_where_all_that_it_says_stands_on_one_other() -> None:
    whole = [("1", "p:1", SESSION), ("2", "p:1", HOSTEL)]
    assert twins_of(corpus(*whole, ("3", "p:2", HOSTEL), ("4", "p:2", SESSION)), "page") == {"p:1": "p:1", "p:2": "p:1"}
    assert twins_of(corpus(("0", "p:0", HOSTEL), *whole), "page") == {"p:0": "p:0", "p:1": "p:0"}  # a part of it
    more = ("4", "p:2", "Столовая открыта с девяти до шести, кроме воскресенья и праздников.")
    assert twins_of(corpus(*whole, ("3", "p:2", HOSTEL), more), "page") == {}  # it says something of its own


def test_what_stands_on_many_pages_joins_none_of_them() -> None:
    first, second = (
        ("1", "p:1", SESSION),
        ("2", "p:2", "Библиотека работает ежедневно, читальный зал закрыт в субботу."),
    )
    shared = [(f"{number}", f"p:{page}", HOSTEL) for number, page in ((3, 1), (4, 2), (5, 3))]
    assert twins_of(corpus(first, second, *shared), "page") == {}


def test_every_doubled_paragraph_of_xquad_is_found_and_nothing_else(xquad_ru: Path) -> None:
    articles = json.loads(xquad_ru.read_text(encoding="utf-8"))["data"]
    texts = [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]
    doubled = random.Random(0).sample(range(len(texts)), 48)
    chunks = [(f"{number:03d}", "p:1", text) for number, text in enumerate(texts)]
    chunks += [(f"0-{number:03d}", "p:2", texts[number]) for number in doubled]
    found = twins_of(corpus(*sorted(chunks)), "chunk")
    assert found == {name: f"0-{number:03d}" for number in doubled for name in (f"0-{number:03d}", f"{number:03d}")}


def test_crowds_of_texts_that_share_a_line_or_are_one() -> None:
    """Thousands of texts that share a line are told apart; thousands that are one are not compared in pairs."""
    chance = random.Random(0)
    words = [f"слово{number}" for number in range(3_000)]
    texts = [f"{HOSTEL[:60]} {' '.join(chance.sample(words, 40))}" for _ in range(3_000)] + [SESSION] * 3_000
    found = twins_of(corpus(*((str(number), None, text) for number, text in enumerate(texts))), "chunk")
    assert len(found) == 3_000 and set(found.values()) == {"3000"}

"""Duplicates have the same text under different ids; similar texts are not duplicates."""

import json
import random
from pathlib import Path

import pytest

from yarus.db.source_rows import Corpus
from yarus.tasks.dataset.duplicates import duplicate_representatives

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
    """Return a corpus of (id, page, text)."""
    ids, urls, texts = ([chunk[part] for chunk in chunks] for part in range(3))
    return Corpus(ids, urls, texts, None)  # type: ignore[arg-type]


def test_duplicates_ignore_case_punctuation_and_url() -> None:
    shouted = SESSION.upper().replace("Ё", "Е").replace(";", " —")
    duplicates = duplicate_representatives(
        corpus(("b", "p:1", SESSION), ("a", "p:2", shouted), ("c", "p:3", HOSTEL)), "chunk"
    )
    assert duplicates == {"b": "b", "a": "b"}


def test_duplicates_match_despite_misprints() -> None:
    misprint = SESSION.replace("расписание", "распсание")
    assert duplicate_representatives(
        corpus(("1", None, SESSION), ("2", None, misprint), ("3", None, HOSTEL)), "chunk"
    ).keys() == {"1", "2"}


@pytest.mark.parametrize(
    "text",
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
def test_duplicates_exclude_different_texts(text: str) -> None:
    assert (
        duplicate_representatives(corpus(("1", "p:1", SESSION), ("2", "p:2", HOSTEL), ("3", "p:3", text)), "chunk")
        == {}
    )


def test_duplicates_exclude_chunks_without_words() -> None:
    assert duplicate_representatives(corpus(("1", "p:1", ""), ("2", "p:2", "—"), ("3", "p:3", "…")), "chunk") == {}


def test_duplicates_include_pages_contained_in_another() -> None:
    chunks = [("1", "p:1", SESSION), ("2", "p:1", HOSTEL)]
    assert duplicate_representatives(corpus(*chunks, ("3", "p:2", HOSTEL), ("4", "p:2", SESSION)), "page") == {
        "p:1": "p:1",
        "p:2": "p:1",
    }
    # Page 0 is contained in page 1.
    assert duplicate_representatives(corpus(("0", "p:0", HOSTEL), *chunks), "page") == {"p:0": "p:0", "p:1": "p:0"}
    unique_chunk = ("4", "p:2", "Столовая открыта с девяти до шести, кроме воскресенья и праздников.")
    # Page 2 has a unique chunk.
    assert duplicate_representatives(corpus(*chunks, ("3", "p:2", HOSTEL), unique_chunk), "page") == {}


def test_duplicates_exclude_pages_with_common_boilerplate() -> None:
    first, second = (
        ("1", "p:1", SESSION),
        ("2", "p:2", "Библиотека работает ежедневно, читальный зал закрыт в субботу."),
    )
    shared = [(f"{number}", f"p:{page}", HOSTEL) for number, page in ((3, 1), (4, 2), (5, 3))]
    assert duplicate_representatives(corpus(first, second, *shared), "page") == {}


def test_duplicates_are_exactly_the_doubled_xquad_paragraphs(xquad_ru: Path) -> None:
    articles = json.loads(xquad_ru.read_text(encoding="utf-8"))["data"]
    texts = [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]
    doubled = random.Random(0).sample(range(len(texts)), 48)
    chunks = [(f"{i:03d}", "p:1", text) for i, text in enumerate(texts)]
    chunks += [(f"0-{i:03d}", "p:2", texts[i]) for i in doubled]
    duplicates = duplicate_representatives(corpus(*sorted(chunks)), "chunk")
    assert duplicates == {name: f"0-{i:03d}" for i in doubled for name in (f"0-{i:03d}", f"{i:03d}")}


def test_duplicates_scale_to_thousands_of_similar_texts() -> None:
    """Thousands of texts with one common line stay separate; thousands of equal texts are not compared in pairs."""
    generator = random.Random(0)
    words = [f"слово{i}" for i in range(3_000)]
    texts = [f"{HOSTEL[:60]} {' '.join(generator.sample(words, 40))}" for _ in range(3_000)] + [SESSION] * 3_000
    duplicates = duplicate_representatives(corpus(*((str(i), None, text) for i, text in enumerate(texts))), "chunk")
    assert len(duplicates) == 3_000 and set(duplicates.values()) == {"3000"}

"""How much of what is planted is found, by kind, and what else is taken for it; `pytest -s` prints the shares."""

import time
from collections import defaultdict
from itertools import chain

import pytest

from tests.support.personal_data.planted import Planted, planted
from yarus.db.importers import sample
from yarus.tasks.cases.privacy.masking import find, mask, pseudonym

LEAST = {"phone": 0.98, "email": 0.98, "id": 0.98, "handle": 0.98, "address": 0.98, "name": 0.88}
SAME = (
    ("phone", "+7 927 123-45-67", "８９２７１２３４５６７", "8 9 2 7 1 2 3 4 5 6 7", "927.123.45.67",
     "8\u200b927\u200b1234567"),
    ("email", "ivan@mail.ru", "ivan(at)mail.ru", "ivan собака mail.ru", "IVAN@mail.ru", "ivan＠mail.ru",
        "ivan [at] mail [dot] ru"),
    ("id", "3604 123456", "36 04 123456", "36 04 № 123456", "3604 номер 123456"),
)  # fmt: skip
PUBLIC = (
    "ИНН 6316000632, КПП 631601001, БИК 043601607, ОКПО 02068410",
    "р/с 40503810954404000020 в отделении Самара",
    "улица Льва Толстого, 23, ауд. 215", "имени С.П. Королёва", "Московское шоссе, 34, корпус 5",
    "приказ № 1234567 от 12.09.2025", "ISBN 9785170800001", "версия 3.11.7 и 2.0.36", "звонить с 10.00-18.00",
    "в 10:30 и 12:45",
    "200 000 руб. до 12.10.2025", "wiki.university.example/pages/viewpage.action?pageId=12345678", "192.168.10.11",
    "https://docs.example/12345678/89", "Справка из Самарского университета", "для Российской Федерации",
    "баллы 85, 90, 78, 64",
    "с 2019 по 2023, затем 2024-2026", "посмотри at mail.ru", "п. 12.3.4 положения 45/6-22",
)  # fmt: skip
REPEATED = (
    "8 ", "7 ", "9 ", "1", "12 ", "+7(((((", "Иванов ", "Иван ", "И.", "И. ", "Иванович ", "a.", "@", "@@@@", " ",
    "\n", "паспорт ",
    "паспорт", "студенч", "тел", "тел. ", "ivan at ", "a@a.", "a собака ", "ул. ", "ул. кв ", "01.01.", "https://",
    "a.a/", "t.me/",
    "телега ", "[номер ", "№ ", "ab12 ", "2200 ", "меня зовут ", "у ", "я ", "Ива-", "\u200b", "e\u0301", "\u0301",
    "１", "ﷺ", "—", "_", "-",
)  # fmt: skip


@pytest.fixture(scope="module")
def texts() -> list[Planted]:
    return planted(300, seed=1)


def test_recall_by_kind(texts: list[Planted]) -> None:
    whole: dict[str, list[bool]] = defaultdict(list)
    for one in texts:
        covered = set(chain.from_iterable(range(found.start, found.end) for found in find(one.text)))
        whole[one.kind].append(all(n in covered for n in range(one.start, one.end) if one.text[n].isalnum()))
    shares = {kind: sum(found) / len(found) for kind, found in whole.items()}
    print("".join(f"\n{kind:8} {share:5.0%}" for kind, share in shares.items()))
    assert {kind: share for kind, share in shares.items() if share < LEAST[kind]} == {}


def test_masked_twice_is_masked_once(texts: list[Planted]) -> None:
    """A pseudonym's own digits are nobody's number: what is masked for an export is not masked again for a model."""
    for one in texts:
        masked = mask(one.text, b"key")
        assert mask(masked, b"key") == masked, one.text
    digits = "[телефон 123456] [номер 482913] [имя 111111]"
    assert mask(digits, b"key") == digits


@pytest.mark.parametrize("kind, one, others", [(kind, one, others) for kind, one, *others in SAME])
def test_the_same_written_otherwise_has_the_same_pseudonym(kind, one, others) -> None:  # type: ignore[no-untyped-def]
    assert {pseudonym(kind, other, b"key") for other in others} == {pseudonym(kind, one, b"key")}
    for text in (one, *others):
        about = f"паспорт {text}" if kind == "id" else text
        assert pseudonym(kind, one, b"key") in mask(about, b"key"), text


@pytest.mark.parametrize("text", PUBLIC)
def test_what_a_page_publishes_is_left(text: str) -> None:
    assert find(text) == []


def test_the_sample_has_no_false_alarms() -> None:
    """All that is found in its questions, answers and pages are the addresses and the login that it invents."""
    rows = sample.read()
    every = [
        row.values.get(name) or "" for row in (*rows.questions, *rows.chunks) for name in ("question", "answer", "text")
    ]
    found = [one for text in every for one in find(text)]
    wrong = [one.text for one in found if not (one.kind == "email" or one.text.startswith("st123456"))]
    assert len(every) > 800 and len(wrong) <= 1, wrong


def test_places_are_those_of_the_given_text() -> None:
    text = "ﬁﷺ e\u0301 \u200b８９２７\u200b１２３４５６７\ufeff и Ива\u0301нов\u00a0Иван"
    phone, name = find(text)
    assert (phone.kind, phone.text.strip("\ufeff")) == ("phone", "８９２７\u200b１２３４５６７")
    assert (name.kind, name.text) == ("name", "Ива\u0301нов\u00a0Иван")
    assert all(text[one.start : one.end] == one.text for one in (phone, name))


def test_letters_that_look_alike_hide_no_name() -> None:
    latin_a_and_o = "Ив\u0061н\u006fв Ив\u0061н"
    assert [one.text for one in find(f"это {latin_a_and_o}, здравствуйте")] == [latin_a_and_o]


@pytest.mark.parametrize("piece", REPEATED)
def test_what_repeats_costs_no_more_than_its_length(piece: str) -> None:
    """Eight times the text, far less than the 64 times the time that a quadratic search would take."""

    def seconds(length: int) -> float:
        text = (piece * length)[:length]
        times = []
        for _ in range(2):
            start = time.process_time()
            find(text)
            times.append(time.process_time() - start)
        return max(min(times), 1e-3)

    assert seconds(64_000) < 32 * seconds(8_000)

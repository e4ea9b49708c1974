"""Recall of planted personal data by kind, and false positives; `pytest -s` prints the recall."""

import time
from collections import defaultdict
from itertools import chain

import pytest

from tests.support.personal_data.planted import PlantedText, make_planted_texts
from yarus.db.importers import sample
from yarus.tasks.cases.privacy.masking import detect_pii, make_pseudonym, mask

MIN_RECALL = {"phone": 0.98, "email": 0.98, "id": 0.98, "handle": 0.98, "address": 0.98, "name": 0.88}
SPELLINGS = (
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
def planted_texts() -> list[PlantedText]:
    return make_planted_texts(300, seed=1)


def test_find_recall_by_kind(planted_texts: list[PlantedText]) -> None:
    by_kind: dict[str, list[bool]] = defaultdict(list)
    for item in planted_texts:
        covered = set(chain.from_iterable(range(detected.start, detected.end) for detected in detect_pii(item.text)))
        by_kind[item.kind].append(all(n in covered for n in range(item.start, item.end) if item.text[n].isalnum()))
    shares = {kind: sum(detected) / len(detected) for kind, detected in by_kind.items()}
    print("".join(f"\n{kind:8} {share:5.0%}" for kind, share in shares.items()))
    assert {kind: share for kind, share in shares.items() if share < MIN_RECALL[kind]} == {}


def test_mask_twice_equals_mask_once(planted_texts: list[PlantedText]) -> None:
    """A pseudonym's digits are not personal data: text masked for an export stays the same for a model."""
    for planted in planted_texts:
        masked = mask(planted.text, b"key")
        assert mask(masked, b"key") == masked, planted.text
    digits = "[телефон 123456] [номер 482913] [имя 111111]"
    assert mask(digits, b"key") == digits


@pytest.mark.parametrize("kind, spelling, others", [(kind, spelling, others) for kind, spelling, *others in SPELLINGS])
def test_spellings_share_one_pseudonym(kind, spelling, others) -> None:  # type: ignore[no-untyped-def]
    assert {make_pseudonym(kind, other, b"key") for other in others} == {make_pseudonym(kind, spelling, b"key")}
    for text in (spelling, *others):
        with_context = f"паспорт {text}" if kind == "id" else text
        assert make_pseudonym(kind, spelling, b"key") in mask(with_context, b"key"), text


@pytest.mark.parametrize("text", PUBLIC)
def test_find_ignores_published_numbers(text: str) -> None:
    assert detect_pii(text) == []


def test_find_has_no_false_positives_in_the_sample() -> None:
    """The only findings are the addresses and the login that the sample invents."""
    rows = sample.read_sample()
    sample_texts = [
        row.values.get(name) or "" for row in (*rows.questions, *rows.chunks) for name in ("question", "answer", "text")
    ]
    findings = [item for text in sample_texts for item in detect_pii(text)]
    false_positives = [item.text for item in findings if not (item.kind == "email" or item.text.startswith("st123456"))]
    assert len(sample_texts) > 800 and len(false_positives) <= 1, false_positives


def test_find_returns_spans_of_the_original_text() -> None:
    text = "ﬁﷺ e\u0301 \u200b８９２７\u200b１２３４５６７\ufeff и Ива\u0301нов\u00a0Иван"
    phone, name = detect_pii(text)
    assert (phone.kind, phone.text.strip("\ufeff")) == ("phone", "８９２７\u200b１２３４５６７")
    assert (name.kind, name.text) == ("name", "Ива\u0301нов\u00a0Иван")
    assert all(text[finding.start : finding.end] == finding.text for finding in (phone, name))


def test_find_detects_names_with_lookalike_letters() -> None:
    latin_a_and_o = "Ив\u0061н\u006fв Ив\u0061н"
    assert [finding.text for finding in detect_pii(f"это {latin_a_and_o}, здравствуйте")] == [latin_a_and_o]


@pytest.mark.parametrize("piece", REPEATED)
def test_find_takes_linear_time_on_repetitions(piece: str) -> None:
    """Eight times the text may take 32 times the time; a quadratic search would take 64 times."""

    def measure_seconds(length: int) -> float:
        text = (piece * length)[:length]
        times = []
        for _ in range(2):
            start = time.process_time()
            detect_pii(text)
            times.append(time.process_time() - start)
        return max(min(times), 1e-3)

    assert measure_seconds(64_000) < 32 * measure_seconds(8_000)

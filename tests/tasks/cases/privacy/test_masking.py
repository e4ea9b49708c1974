"""Personal data: what is found and what is not, pseudonyms, and models that are given nothing else."""

import stat
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.evaluations import roles, texts, use
from tests.support.llm_server import FakeLLMServer, scores
from yarus.tasks.cases.privacy.masking import find, key_at, mask, own_key
from yarus.tasks.config.settings import settings
from yarus.tasks.models.calls import Call
from yarus.tasks.models.chat import chat
from yarus.tasks.models.prompts import prompts

FOUND = {
    "Позвоните +7 (927) 123-45-67": ("phone", "+7 (927) 123-45-67"),
    "мой номер 89271234567": ("phone", "89271234567"),
    "+7 927 123 45 67 это я": ("phone", "+7 927 123 45 67"),
    "call +44 20 7946 0958 please": ("phone", "+44 20 7946 0958"),
    "телефон деканата 267-43-70": ("phone", "267-43-70"),
    "мой 8‑912‑345‑67‑89 вот": ("phone", "8‑912‑345‑67‑89"),
    "или +7 912–345—67‒89": ("phone", "+7 912–345—67‒89"),
    "или 912‐345‐67‐89": ("phone", "912‐345‐67‐89"),
    "9123456789—это я": ("phone", "9123456789"),
    "деканат 267–43–70": ("phone", "267–43–70"),
    "тел. 267–4370": ("phone", "267–4370"),
    "это 8 912 34 56 789": ("phone", "8 912 34 56 789"),
    "+7(912)34-56-789": ("phone", "+7(912)34-56-789"),
    "https://t.me/x,ivan@mail.ru": ("email", "ivan@mail.ru"),
    "www.univer.example/?to=ivan@mail.ru&id=12345678": ("email", "ivan@mail.ru"),
    "пишите на ivan.petrov@univer.example.": ("email", "ivan.petrov@univer.example"),
    "студенческий билет № 123456": ("id", "123456"),
    "зачётка 2021-04567": ("id", "2021-04567"),
    "не могу войти под st123456": ("id", "st123456"),
    "паспорт 3604 123456": ("id", "3604 123456"),
    "СНИЛС 123-456-789 01": ("id", "123-456-789 01"),
    "СНИЛС 123‑456‑789 01": ("id", "123‑456‑789 01"),
    "ИНН 123456789012": ("id", "123456789012"),
    "мой инн: 1234567890": ("id", "1234567890"),
    "student id 20213456": ("id", "20213456"),
    "Иванова Мария Петровна не ставит зачёт": ("name", "Иванова Мария Петровна"),
    "иванов иван иванович пишет": ("name", "иванов иван иванович"),
    "сдал Петрову И. И. вчера": ("name", "Петрову И. И."),
    "меня зовут Аксинья": ("name", "Аксинья"),
    "my name is John Smith": ("name", "John Smith"),
    "Кузнецов Олег не пришёл": ("name", "Кузнецов Олег"),
}
NOT_FOUND = (
    "когда сессия", "", "приказ от 12.09.2025", "с 01.09.2025 по 30.06.2026", "стипендия 15000 рублей", "звоните 112",
    "в 2025/2026 учебном году", "основной корпус", "https://wiki.example/pages/viewpage.action?pageId=12345678",
    "1500000 руб. в год", "ауд. 215-3", "Иван-чай в столовой",
    "с 7.09.2025 - 10.12.2025", "8 — 10 человек", "2020–2021 и 2022–2023", "от 8 900 до 12 000 рублей",
    "В Самару на практику", "корпус 3, этаж 2",
)  # fmt: skip


@pytest.mark.parametrize("text", FOUND)
def test_what_is_found(text: str) -> None:
    assert [(found.kind, found.text) for found in find(text)] == [FOUND[text]]


@pytest.mark.parametrize("text", NOT_FOUND)
def test_what_is_none(text: str) -> None:
    assert find(text) == []


def test_pseudonyms_are_stable_and_secret() -> None:
    text = "Иванов Иван Иванович, +7 927 123-45-67 или 8(927)1234567, a@b.ru"
    one = mask(text, b"key")
    assert one == mask(text, b"key") != mask(text, b"other key")
    first, second = (part.split("]")[0] for part in one.split("[телефон ")[1:])
    assert first == second  # the same phone, however it is written
    assert "927" not in one and "@" not in one and "Иванов" not in one
    assert mask("call +7 927 123-45-67", b"key", "en") == f"call [phone {first}]"
    assert mask(one, b"key") == one  # nothing in a pseudonym is taken for personal data


@given(st.text())
def test_what_is_found_is_in_the_text(text: str) -> None:
    found = find(text)
    assert all(text[one.start : one.end] == one.text for one in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
    mask(text, b"key")


def test_the_key_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    place = tmp_path / "new" / "pseudonyms.key"
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: key_at.__wrapped__(place), range(16)))
    assert len(keys) == 1 and len(keys.pop()) == 32
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert list(place.parent.iterdir()) == [place]


async def test_models_get_pseudonyms_if_asked(
    at_home: Path, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"question": "я Иванов Иван Иванович, где?", "answer": "Пишите на a@b.ru.", "case_id": 7, "relevant": None}
    for wanted in ("false", "true"):
        use(monkeypatch, roles(llm_server.url, "judge") | {"YARUS_MASK_CALLS": wanted})
        llm_server.script = lambda number, request: scores(1.0)
        configuration = settings()
        call = Call(prompts(configuration)["answer_relevance"], given)
        async with chat("judge", configuration) as judge:
            assert (await judge.ask(call)).status == "ok"
    plain, masked = (texts(request) for request in llm_server.requests)
    assert plain["question"] == given["question"]
    assert masked["question"] == mask(str(given["question"]), own_key()) != given["question"]
    assert "a@b.ru" not in masked["answer"]

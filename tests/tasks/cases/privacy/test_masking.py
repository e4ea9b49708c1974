"""Personal data: detected and ignored texts, pseudonyms, and masked model input."""

import stat
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.evaluations import make_role_variables, set_variables, texts
from tests.support.llm_server import FakeLLMServer, make_score_completion
from yarus.tasks.cases.privacy.masking import detect_pii, load_key, load_own_key, mask
from yarus.tasks.config.settings import get_settings
from yarus.tasks.models.calls import Call
from yarus.tasks.models.chat import open_chat
from yarus.tasks.models.prompts import read_prompts

DETECTED = {
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
IGNORED = (
    "когда сессия", "", "приказ от 12.09.2025", "с 01.09.2025 по 30.06.2026", "стипендия 15000 рублей", "звоните 112",
    "в 2025/2026 учебном году", "основной корпус", "https://wiki.example/pages/viewpage.action?pageId=12345678",
    "1500000 руб. в год", "ауд. 215-3", "Иван-чай в столовой",
    "с 7.09.2025 - 10.12.2025", "8 — 10 человек", "2020–2021 и 2022–2023", "от 8 900 до 12 000 рублей",
    "В Самару на практику", "корпус 3, этаж 2",
)  # fmt: skip


@pytest.mark.parametrize("text", DETECTED)
def test_find_detects_personal_data(text: str) -> None:
    assert [(finding.kind, finding.text) for finding in detect_pii(text)] == [DETECTED[text]]


@pytest.mark.parametrize("text", IGNORED)
def test_find_ignores_other_numbers_and_names(text: str) -> None:
    assert detect_pii(text) == []


def test_mask_is_stable_and_keyed() -> None:
    text = "Иванов Иван Иванович, +7 927 123-45-67 или 8(927)1234567, a@b.ru"
    masked = mask(text, b"key")
    assert masked == mask(text, b"key") != mask(text, b"other key")
    first, second = (part.split("]")[0] for part in masked.split("[телефон ")[1:])
    assert first == second  # the same phone in two spellings
    assert "927" not in masked and "@" not in masked and "Иванов" not in masked
    assert mask("call +7 927 123-45-67", b"key", "en") == f"call [phone {first}]"
    assert mask(masked, b"key") == masked  # a pseudonym contains no personal data


@given(st.text())
def test_find_returns_ordered_spans_of_the_text(text: str) -> None:
    findings = detect_pii(text)
    assert all(text[finding.start : finding.end] == finding.text for finding in findings)
    assert all(finding.end <= next_finding.start for finding, next_finding in pairwise(findings))
    mask(text, b"key")


def test_load_key_creates_one_private_key(tmp_path: Path) -> None:
    path = tmp_path / "new" / "pseudonyms.key"
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: load_key.__wrapped__(path), range(16)))
    assert len(keys) == 1 and len(keys.pop()) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


async def test_models_get_pseudonyms_if_configured(
    at_home: Path, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {"question": "я Иванов Иван Иванович, где?", "answer": "Пишите на a@b.ru.", "case_id": 7, "relevant": None}
    for setting in ("false", "true"):
        set_variables(monkeypatch, make_role_variables(llm_server.url, "judge") | {"YARUS_MASK_MODEL_INPUT": setting})
        llm_server.script = lambda number, request: make_score_completion(1.0)
        configuration = get_settings()
        call = Call(read_prompts(configuration)["answer_relevance"], values)
        async with open_chat("judge", configuration) as judge:
            assert (await judge.ask(call)).status == "ok"
    unmasked, masked = (texts(request) for request in llm_server.requests)
    assert unmasked["question"] == values["question"]
    assert masked["question"] == mask(str(values["question"]), load_own_key()) != values["question"]
    assert "a@b.ru" not in masked["answer"]

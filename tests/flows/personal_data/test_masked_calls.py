"""YARUS_MASK_CALLS against a model server that keeps all that it is sent: no name, number or address is in it."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluations import evaluate, load, passages, question, roles, rows_of, steady, use
from tests.support.llm_server import FakeLLMServer, says, scores
from yarus.tasks.cases.privacy.masking import find
from yarus.tasks.config.settings import settings
from yarus.tasks.dataset.synthesis.generator import Synthesis
from yarus.tasks.dataset.synthesis.synthesize import gather, write
from yarus.tasks.models.calls import Call
from yarus.tasks.models.chat import chat
from yarus.tasks.models.prompts import FOLDER, prompts

SECRETS = (
    "кузнецов",
    "олег",
    "123-45-67",
    "267-43-70",
    "петров",
    "ivan.p",
    "3604 123456",
    "4111 1",
    "1111 1",  # with the space: four digits alone stand by chance in a pseudonym, a port, a name of a model
    "гаврилин",
    "гусь",
    "2674370",
)
ASKED = "Что велит правило {}? Спрашивает Олег Кузнецов, 8 (927) 123-45-67, ivan.p@mail.ru."
ANSWER = (
    "Правило {} велит сдать книгу. Звоните: Петров И. И., тел. 267-43-70. Паспорт 3604 123456 при себе. "
    "Или проф. Гусь примет."
)
REFERENCE = "Сдать книгу {} до мая, карта 4111 1111 1111 1111, спросить Гаврилина Олега. Или проф. Гусь примет."


@pytest.fixture
def server(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    """Judge, generator and gate on sockets; what they are sent is masked."""
    with FakeLLMServer(script=steady) as llm_server:
        use(monkeypatch, roles(llm_server.url, "judge", "generator", "gate") | {"YARUS_MASK_CALLS": "true"})
        yield llm_server


def source(folder: Path, name: str) -> str:
    """Six questions with somebody's data in every text, and in the pages."""
    chunks = [chunk | {"text": f"{chunk['text']} {REFERENCE.format(n)}"} for n, chunk in enumerate(passages(10))]
    asked = [
        question(n, question=ASKED.format(n), answer=ANSWER.format(n), ground_truth_answer=REFERENCE.format(n))
        for n in range(6)
    ]
    return load(folder, name, asked, chunks)


def leaks(llm_server: FakeLLMServer) -> list[str]:
    """The secrets in all that was sent, headers included."""
    sent = "\n".join(
        [*llm_server.headers, *(json.dumps(request, ensure_ascii=False) for request in llm_server.requests)]
    )
    return [secret for secret in SECRETS if secret in sent.casefold()]


@pytest.mark.parametrize(
    "tier, more",
    [
        ("tier2", {}),
        ("judge", {"probes": True, "repeats": 2}),
        ("tier3", {"perturbation": "lower"}),
        ("tier3", {"claims": True}),
        ("tier3", {"citations": True}),
    ],
)
def test_no_tier_sends_what_is_somebodys(
    server: FakeLLMServer, tmp_path: Path, tier: str, more: dict[str, Any]
) -> None:
    summary = evaluate(tier, source=source(tmp_path, f"masked_{tier}"), **more)
    assert len(server.requests) >= 6 and leaks(server) == []
    assert any("[телефон " in str(request) for request in server.requests)
    assert all("Кузнецов" in str(row) for row in rows_of(summary))  # our own table keeps what was asked


def test_synthesis_sends_no_persons_data(server: FakeLLMServer, tmp_path: Path) -> None:
    parameters = Synthesis.model_validate({"source": source(tmp_path, "masked_made"), "into": "masked_new", "n": 3})

    async def steps() -> None:
        await write.fn(parameters, await gather.fn(parameters))

    server.script = lambda number, request: says('{"question": "Что велит правило?", "answer": "Сдать книгу до мая."}')
    asyncio.run(steps())
    assert len(server.requests) >= 3 and leaks(server) == []


async def test_wording_and_own_replies_are_masked_too(
    server: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "answer_relevance.txt"
    own.write_text("Пример: Олег Кузнецов, 267-43-70.\n$question\n$answer\nОценка в JSON.", encoding="utf-8")
    monkeypatch.setenv("YARUS_JUDGE__PROMPT", str(own))
    server.script = lambda number, request: says("Олег Кузнецов, 8 927 123-45-67") if number == 1 else scores(1.0)
    call = Call(prompts(settings())["answer_relevance"], {"question": "Кто?", "answer": "Олег."})
    async with chat("judge", settings()) as judge:
        reply = await judge.ask(call)
        await judge.ask(Call(call.prompt, call.texts, unread=reply.text))
    assert len(server.requests) == 2 and "олег кузнецов" not in str(server.requests).casefold()
    assert "267-43-70" not in str(server.requests) and "123-45-67" not in str(server.requests)
    assert "Олег.\n" in str(server.requests[0]["messages"][0]["content"])  # the variables are still there


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*/*.txt")), ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_our_own_wording_holds_nothing_to_mask(file: Path) -> None:
    assert find(file.read_text(encoding="utf-8")) == []

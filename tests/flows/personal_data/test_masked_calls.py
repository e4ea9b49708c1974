"""Check YARUS_MASK_MODEL_INPUT with a model server that records everything: no name, number or address reaches it."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluations import (
    answer_steadily,
    evaluate,
    load,
    make_passages,
    make_role_variables,
    question,
    read_rows,
    set_variables,
)
from tests.support.llm_server import FakeLLMServer, make_completion, make_score_completion
from yarus.tasks.cases.privacy.masking import detect_pii
from yarus.tasks.config.settings import get_settings
from yarus.tasks.dataset.synthesis.generator import SynthesisParameters
from yarus.tasks.dataset.synthesis.synthesize import gather, write
from yarus.tasks.models.calls import Call
from yarus.tasks.models.chat import open_chat
from yarus.tasks.models.prompts import PROMPTS_FOLDER, read_prompts

SECRETS = (
    "кузнецов",
    "олег",
    "123-45-67",
    "267-43-70",
    "петров",
    "ivan.p",
    "3604 123456",
    "4111 1",
    "1111 1",  # with the space: four digits alone occur by chance in a pseudonym, a port or a model name
    "гаврилин",
    "гусь",
    "2674370",
)
QUESTION = "Что велит правило {}? Спрашивает Олег Кузнецов, 8 (927) 123-45-67, ivan.p@mail.ru."
ANSWER = (
    "Правило {} велит сдать книгу. Звоните: Петров И. И., тел. 267-43-70. Паспорт 3604 123456 при себе. "
    "Или проф. Гусь примет."
)
REFERENCE = "Сдать книгу {} до мая, карта 4111 1111 1111 1111, спросить Гаврилина Олега. Или проф. Гусь примет."


@pytest.fixture
def server(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    """Serve judge, generator and gate; calls to them are masked."""
    with FakeLLMServer(script=answer_steadily) as models:
        set_variables(
            monkeypatch,
            make_role_variables(models.url, "judge", "generator", "gate") | {"YARUS_MASK_MODEL_INPUT": "true"},
        )
        yield models


def source(folder: Path, name: str) -> str:
    """Load six questions with personal data in every text, and in the pages."""
    chunks = [chunk | {"text": f"{chunk['text']} {REFERENCE.format(n)}"} for n, chunk in enumerate(make_passages(10))]
    questions = [
        question(n, question=QUESTION.format(n), answer=ANSWER.format(n), ground_truth_answer=REFERENCE.format(n))
        for n in range(6)
    ]
    return load(folder, name, questions, chunks)


def find_leaks(llm_server: FakeLLMServer) -> list[str]:
    """Return the secrets in everything that was sent, including headers."""
    sent = "\n".join(
        [*llm_server.headers, *(json.dumps(request, ensure_ascii=False) for request in llm_server.requests)]
    )
    return [secret for secret in SECRETS if secret in sent.casefold()]


@pytest.mark.parametrize(
    "tier, more",
    [
        ("tier2", {}),
        ("judge", {"bias_probes": True, "repeats": 2}),
        ("tier3", {"perturbation": "lower"}),
        ("tier3", {"claims": True}),
        ("tier3", {"citations": True}),
    ],
)
def test_tiers_send_no_personal_data(server: FakeLLMServer, tmp_path: Path, tier: str, more: dict[str, Any]) -> None:
    summary = evaluate(tier, source=source(tmp_path, f"masked_{tier}"), **more)
    assert len(server.requests) >= 6 and find_leaks(server) == []
    assert any("[телефон " in str(request) for request in server.requests)
    assert all("Кузнецов" in str(row) for row in read_rows(summary))  # the stored table keeps the original question


def test_synthesis_sends_no_personal_data(server: FakeLLMServer, tmp_path: Path) -> None:
    parameters = SynthesisParameters.model_validate(
        {"source": source(tmp_path, "masked_made"), "into": "masked_new", "n": 3}
    )

    async def steps() -> None:
        await write.fn(parameters, await gather.fn(parameters))

    server.script = lambda number, request: make_completion(
        '{"question": "Что велит правило?", "answer": "Сдать книгу до мая."}'
    )
    asyncio.run(steps())
    assert len(server.requests) >= 3 and find_leaks(server) == []


async def test_prompts_and_own_replies_are_masked(
    server: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt_file = tmp_path / "answer_relevance.txt"
    prompt_file.write_text("Пример: Олег Кузнецов, 267-43-70.\n$question\n$answer\nОценка в JSON.", encoding="utf-8")
    monkeypatch.setenv("YARUS_JUDGE__PROMPT", str(prompt_file))
    server.script = lambda number, request: (
        make_completion("Олег Кузнецов, 8 927 123-45-67") if number == 1 else make_score_completion(1.0)
    )
    call = Call(read_prompts(get_settings())["answer_relevance"], {"question": "Кто?", "answer": "Олег."})
    async with open_chat("judge", get_settings()) as judge:
        reply = await judge.ask(call)
        await judge.ask(Call(call.prompt, call.texts, unread=reply.text))
    assert len(server.requests) == 2 and "олег кузнецов" not in str(server.requests).casefold()
    assert "267-43-70" not in str(server.requests) and "123-45-67" not in str(server.requests)
    assert "Олег.\n" in str(server.requests[0]["messages"][0]["content"])  # the variables are still there


@pytest.mark.parametrize(
    "file", sorted(PROMPTS_FOLDER.glob("*/*.txt")), ids=lambda file: f"{file.parent.name}/{file.stem}"
)
def test_own_prompts_contain_nothing_to_mask(file: Path) -> None:
    assert detect_pii(file.read_text(encoding="utf-8")) == []

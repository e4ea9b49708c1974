"""Servers that nobody has described: wordings, codes, statuses and bodies are shuffled, and the laws hold all the same.

What concerns one prompt costs one case; what concerns every prompt stops before a sixth case is burnt; what concerns a
parameter costs nothing.
"""

import asyncio
import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tests.support.llm_clients import PROMPTS, QUICK, settings
from tests.support.llm_server import JSON, FakeLLMServer, http, scores
from yarus.db.errors import ModelUnavailable
from yarus.tasks.models.calls import Call
from yarus.tasks.models.chat import chat
from yarus.tasks.models.verdicts import Score, ask_for_score

MARKER = "marker-4117"
SEEDS = [pytest.param(seed, marks=pytest.mark.slow("breadth: more seeds") if seed >= 10 else ()) for seed in range(60)]

# Parts of sentences that were not taken from any server.
OF_PROMPT = (
    "The conversation holds {n} tokens while this model reads {m}.",
    "Your text has been withheld by our guardrail layer (class {n}).",
    "Nicht erlaubter Inhalt, Kategorie {n}.",
    "Запрос отклонён: тема {n} не обсуждается.",
    "Document #{n} cannot be processed by policy engine v{m}.",
    "The submitted messages exceed {m} units.",
    "error {n}",
)
OF_PARAMETER = (
    "{name} is not something this deployment understands.",
    "Field `{name}` must be removed.",
    "'{name}' is unsupported here; see the manual, chapter {n}.",
    "extra field not permitted: {name}",
    "Parameter {name} cannot be set for reasoning models.",
    "{name}: value is not accepted",
)
OF_ALL = (
    "Tenant {n} has been put to sleep.",
    "Subscription lapsed on day {n}.",
    "Your organisation may not use this region.",
    "Лицензия {n} больше не действует.",
    "Access policy {n} denies this operation.",
)


def shaped(chance: Random, text: str) -> bytes:
    """Build a body as some server writes it."""
    plain: Any = {"message": text, "code": chance.choice([None, 400, "E17", "bad"]), "type": chance.choice([None, "x"])}
    return chance.choice(
        [
            lambda: json.dumps({"error": plain}),
            lambda: json.dumps([{"error": plain}]),
            lambda: json.dumps({"error": text}),
            lambda: json.dumps({"detail": text}),
            lambda: json.dumps({"detail": [{"msg": text, "loc": ["body"]}]}),
            lambda: json.dumps({"object": "error", **plain}),
            lambda: json.dumps({"error": {"message": f"upstream said: {json.dumps({'error': {'message': text}})}"}}),
            lambda: json.dumps({"error": {"message": "Provider error", "metadata": {"raw": text}}}),
            lambda: text,
        ]
    )().encode()


def filled(chance: Random, text: str, **more: object) -> str:
    return text.format(n=chance.randrange(2, 10**5), m=chance.randrange(2, 10**5), **more)


async def judged(
    server: FakeLLMServer, script: Callable[[int, dict[str, Any]], bytes], *, n: int = 24, bad: int | None = None
) -> list[Score]:
    server.script = script

    def call(number: int) -> Call:
        texts = {"question": f"Вопрос {number}?", "context": "Контекст.", "answer": "Ответ."}
        texts["answer"] += f" {MARKER}" if number == bad else ""
        return Call(PROMPTS["faithfulness"], texts)

    async with asyncio.timeout(60), chat("judge", settings(server.url, concurrency=4), retries=QUICK) as judge:
        return await asyncio.gather(*(ask_for_score(judge, call(number)) for number in range(n)))


def is_marked(request: dict[str, Any]) -> bool:
    return MARKER in json.dumps(request["messages"])


@pytest.mark.parametrize("seed", SEEDS)
async def test_refusal_of_one_prompt_costs_one_case(llm_server: FakeLLMServer, seed: int) -> None:
    chance = Random(seed)
    text, status, bad = chance.choice(OF_PROMPT), chance.choice([400, 403, 413, 422]), chance.choice([0, 7, 23])
    refusal = http(status, shaped(chance, filled(chance, text)), JSON)
    found = await judged(llm_server, lambda _, request: refusal if is_marked(request) else scores(0.5), bad=bad)
    assert [one.status for one in found] == ["judge_error" if number == bad else "ok" for number in range(24)]


@pytest.mark.parametrize("seed", SEEDS)
async def test_refusal_of_a_parameter_costs_no_case(llm_server: FakeLLMServer, seed: int) -> None:
    chance = Random(seed)
    names = chance.sample(["temperature", "max_tokens", "response_format"], chance.randint(1, 3))
    text, status = chance.choice(OF_PARAMETER), chance.choice([400, 403, 422])

    def script(number: int, request: dict[str, Any]) -> bytes:
        refused = [name for name in names if name in request]
        said = filled(Random(seed), text, name=refused[0]) if refused else ""
        return http(status, shaped(Random(seed), said), JSON) if refused else scores(0.5)

    found = await judged(llm_server, script)
    assert {one.status for one in found} == {"ok"}
    assert sum(any(name in request for name in names) for request in llm_server.requests) <= 8  # then it is known


@pytest.mark.parametrize("seed", SEEDS)
async def test_refusal_of_all_prompts_stops_before_a_sixth_case(llm_server: FakeLLMServer, seed: int) -> None:
    chance = Random(seed)
    text, status, after = chance.choice(OF_ALL), chance.choice([400, 403, 404, 422]), chance.choice([0, 1, 9])
    refusal = http(status, shaped(chance, filled(chance, text)), JSON)
    with pytest.raises(ModelUnavailable) as raised:
        await judged(llm_server, lambda number, _: refusal if number > after else scores(0.5))
    assert text.split("{")[0].split(".")[0] in str(raised.value)
    refused = llm_server.requests[after:]
    assert len({json.dumps(request["messages"]) for request in refused}) <= 5 + 4  # and those in flight

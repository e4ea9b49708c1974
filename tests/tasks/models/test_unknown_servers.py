"""Unknown servers: shuffled wordings, codes, statuses and bodies, handled by the same rules.

A refusal of one prompt costs one case. A refusal of every prompt stops before a sixth case fails. A refusal of a
parameter costs no case.
"""

import asyncio
import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tests.support.llm_clients import PROMPTS, QUICK_RETRIES, make_chat_settings
from tests.support.llm_server import JSON_HEADER, FakeLLMServer, make_response, make_score_completion
from yarus.db.errors import ModelUnavailable
from yarus.tasks.models.calls import Call
from yarus.tasks.models.chat import open_chat
from yarus.tasks.models.verdicts import Score, ask_for_score

MARKER = "marker-4117"
SEEDS = [pytest.param(seed, marks=pytest.mark.slow("breadth: more seeds") if seed >= 10 else ()) for seed in range(60)]

# Sentences that no real server uses.
PROMPT_REFUSALS = (
    "The conversation holds {n} tokens while this model reads {m}.",
    "Your text has been withheld by our guardrail layer (class {n}).",
    "Nicht erlaubter Inhalt, Kategorie {n}.",
    "Запрос отклонён: тема {n} не обсуждается.",
    "Document #{n} cannot be processed by policy engine v{m}.",
    "The submitted messages exceed {m} units.",
    "error {n}",
)
PARAMETER_REFUSALS = (
    "{name} is not something this deployment understands.",
    "Field `{name}` must be removed.",
    "'{name}' is unsupported here; see the manual, chapter {n}.",
    "extra field not permitted: {name}",
    "Parameter {name} cannot be set for reasoning models.",
    "{name}: value is not accepted",
)
GENERAL_REFUSALS = (
    "Tenant {n} has been put to sleep.",
    "Subscription lapsed on day {n}.",
    "Your organisation may not use this region.",
    "Лицензия {n} больше не действует.",
    "Access policy {n} denies this operation.",
)


def build_body(random: Random, text: str) -> bytes:
    """Build a body in the form of some server."""
    error: Any = {"message": text, "code": random.choice([None, 400, "E17", "bad"]), "type": random.choice([None, "x"])}
    return random.choice(
        [
            lambda: json.dumps({"error": error}),
            lambda: json.dumps([{"error": error}]),
            lambda: json.dumps({"error": text}),
            lambda: json.dumps({"detail": text}),
            lambda: json.dumps({"detail": [{"msg": text, "loc": ["body"]}]}),
            lambda: json.dumps({"object": "error", **error}),
            lambda: json.dumps({"error": {"message": f"upstream said: {json.dumps({'error': {'message': text}})}"}}),
            lambda: json.dumps({"error": {"message": "Provider error", "metadata": {"raw": text}}}),
            lambda: text,
        ]
    )().encode()


def fill_sentence(random: Random, text: str, **fields: object) -> str:
    return text.format(n=random.randrange(2, 10**5), m=random.randrange(2, 10**5), **fields)


async def ask_judge(
    server: FakeLLMServer, script: Callable[[int, dict[str, Any]], bytes], *, n: int = 24, bad: int | None = None
) -> list[Score]:
    server.script = script

    def call(number: int) -> Call:
        texts = {"question": f"Вопрос {number}?", "context": "Контекст.", "answer": "Ответ."}
        texts["answer"] += f" {MARKER}" if number == bad else ""
        return Call(PROMPTS["faithfulness"], texts)

    async with (
        asyncio.timeout(60),
        open_chat("judge", make_chat_settings(server.url, concurrency=4), retries=QUICK_RETRIES) as judge,
    ):
        return await asyncio.gather(*(ask_for_score(judge, call(number)) for number in range(n)))


def is_marked(request: dict[str, Any]) -> bool:
    return MARKER in json.dumps(request["messages"])


@pytest.mark.parametrize("seed", SEEDS)
async def test_refusal_of_one_prompt_costs_one_case(llm_server: FakeLLMServer, seed: int) -> None:
    random = Random(seed)
    text, status, bad = random.choice(PROMPT_REFUSALS), random.choice([400, 403, 413, 422]), random.choice([0, 7, 23])
    refusal = make_response(status, build_body(random, fill_sentence(random, text)), JSON_HEADER)
    results = await ask_judge(
        llm_server, lambda _, request: refusal if is_marked(request) else make_score_completion(0.5), bad=bad
    )
    assert [score.status for score in results] == ["judge_error" if number == bad else "ok" for number in range(24)]


@pytest.mark.parametrize("seed", SEEDS)
async def test_refusal_of_a_parameter_costs_no_case(llm_server: FakeLLMServer, seed: int) -> None:
    random = Random(seed)
    names = random.sample(["temperature", "max_tokens", "response_format"], random.randint(1, 3))
    text, status = random.choice(PARAMETER_REFUSALS), random.choice([400, 403, 422])

    def script(number: int, request: dict[str, Any]) -> bytes:
        refused = [name for name in names if name in request]
        message = fill_sentence(Random(seed), text, name=refused[0]) if refused else ""
        return (
            make_response(status, build_body(Random(seed), message), JSON_HEADER)
            if refused
            else make_score_completion(0.5)
        )

    results = await ask_judge(llm_server, script)
    assert {score.status for score in results} == {"ok"}
    # Then the profile is known.
    assert sum(any(name in request for name in names) for request in llm_server.requests) <= 8


@pytest.mark.parametrize("seed", SEEDS)
async def test_refusal_of_all_prompts_stops_before_a_sixth_case(llm_server: FakeLLMServer, seed: int) -> None:
    random = Random(seed)
    text, status, after = random.choice(GENERAL_REFUSALS), random.choice([400, 403, 404, 422]), random.choice([0, 1, 9])
    refusal = make_response(status, build_body(random, fill_sentence(random, text)), JSON_HEADER)
    with pytest.raises(ModelUnavailable) as raised:
        await ask_judge(llm_server, lambda number, _: refusal if number > after else make_score_completion(0.5))
    assert text.split("{")[0].split(".")[0] in str(raised.value)
    refused = llm_server.requests[after:]
    assert len({json.dumps(request["messages"]) for request in refused}) <= 5 + 4  # and calls in flight

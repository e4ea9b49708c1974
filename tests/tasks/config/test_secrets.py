"""What we send as a secret does not come back with an answer, whatever form a service repeats it in."""

import asyncio
import base64
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pytest
from sqlalchemy import Engine, text

from tests.support.evaluations import roles, use
from tests.support.llm_clients import system_at
from tests.support.llm_server import JSON, FakeLLMServer, http, says
from yarus.tasks.config.secrets import echoes, forms_of, redact
from yarus.tasks.config.settings import RetrieverService, settings
from yarus.tasks.models.calls import Call
from yarus.tasks.models.chat import chat
from yarus.tasks.models.prompts import prompts
from yarus.tasks.systems.retrievers.external import Outside, from_service
from yarus.tasks.systems.sut import Answered

TOKEN, PASSWORD = 'tok/en+"4711"', "s3sam open"
BASIC = base64.b64encode(f"yarus:{PASSWORD}".encode()).decode()
HEADERS = {"Authorization": f"Basic {BASIC}", "X-Token": TOKEN, "Cookie": "session=abc123; lang=ru", "X-Space": "wiki"}
FORMS = (
    TOKEN,
    json.dumps(TOKEN)[1:-1],
    quote(TOKEN, safe=""),
    quote(TOKEN, safe="").lower(),
    base64.b64encode(TOKEN.encode()).decode(),
    base64.urlsafe_b64encode(TOKEN.encode()).decode().rstrip("="),
    f"Basic {BASIC}",
    BASIC,
    PASSWORD,
    f"yarus:{PASSWORD}",
    "abc123",
)


def replied(llm_server: FakeLLMServer, reply: Any) -> None:
    body = json.dumps(reply).replace("T-O-K-E-N", "".join(f"\\u{ord(sign):04x}" for sign in TOKEN))
    llm_server.script = lambda number, request: http(200, body, "content-type: application/json")


def answer(llm_server: FakeLLMServer, reply: Mapping[str, Any]) -> Answered:
    replied(llm_server, reply)
    asked = system_at(llm_server.url, headers=HEADERS)
    [found] = asyncio.run(asked.answers(["Где столовая?"]))
    return found


@pytest.mark.parametrize("form", [*FORMS, "T-O-K-E-N"])
def test_a_system_that_repeats_its_headers_is_not_believed_to_mean_them(llm_server: FakeLLMServer, form: str) -> None:
    found = answer(
        llm_server, {"answer": f"<{form}>", "urls": [f"https://c/?t={form}"], "contexts": [form], "path": form}
    )
    assert (found.text, found.urls, found.contexts, found.path) == ("<***>", ["https://c/?t=***"], ["***"], "***")


def test_words_and_numbers_of_other_headers_stay(llm_server: FakeLLMServer) -> None:
    page = "https://wiki.example/pages?lang=ru&pageId=4711"
    found = answer(llm_server, {"answer": "The wiki says: ru, basic.", "urls": [page]})
    assert (found.text, found.urls) == ("The wiki says: ru, basic.", [page])
    kept = {"Accept": "application/json", "X-Tenant": "help-desk", "X-Api-Version": "2026-01", "X-Host": "c.example"}
    assert echoes(kept) == ()
    assert echoes({"X-Some": "hunter2", "X-Access-Key": "letters", "Api-Key": "4711"}) == ("hunter2", "letters", "4711")
    assert redact("the password passw0rds; pass", ["pass"]) == "the password passw0rds; ***"


def test_a_retriever_that_repeats_its_headers(llm_server: FakeLLMServer) -> None:
    ask = from_service(llm_server.url, RetrieverService.model_validate({"headers": HEADERS}))
    replied(llm_server, {"results": [{"id": "1"}, {"id": f"doc {TOKEN}"}]})
    [ranking] = Outside(ask, concurrency=1).retrieve(["?"], None, 2, timed=0)
    assert ranking.ids == ["1", "doc ***"]
    replied(llm_server, {"results": [{"id": "T-O-K-E-N", "distance": 2}, {"id": "b", "distance": 1}], "more": TOKEN})
    [ranking] = Outside(ask, concurrency=1).retrieve(["?"], None, 2, timed=0)
    assert ranking.error and TOKEN not in ranking.error


async def test_a_model_that_repeats_its_key_is_stored_without_it(
    at_home: object, engine: Engine, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = 'sk-"planted"-4711'
    use(monkeypatch, roles(llm_server.url, "judge", API_KEY=key))
    plain = says(f"reason: {key}, {quote(key)}", model=f"model {key}", finish=f"stop {key}").split(b"\r\n\r\n")[1]
    escaped = plain.replace(b"sk-", b"s\\u006b-")
    llm_server.script = lambda number, request: http(200, escaped if number > 1 else plain, JSON)
    configuration = settings()
    given = {"question": "Что это?", "answer": "Ключ.", "context": "", "reference": ""}
    async with chat("judge", configuration, engine) as judge:
        for repeat in range(2):
            reply = await judge.ask(Call(prompts(configuration)["answer_relevance"], given, repeat=repeat))
            assert (reply.status, reply.raw) == ("ok", "reason: ***, ***")
            assert (reply.served_model, reply.finish_reason) == ("model ***", "stop ***")
    with engine.connect() as connection:
        stored = connection.execute(text("SELECT row(c)::text FROM yarus.call c WHERE reply LIKE 'reason: %'")).all()
    assert len(stored) == 2 and "planted" not in str(stored)


async def test_a_key_is_out_of_an_error_before_the_error_is_cut(
    at_home: object, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-planted-4711-and-long"
    use(monkeypatch, roles(llm_server.url, "judge", API_KEY=key))
    llm_server.script = lambda number, request: http(413, json.dumps({"error": "x" * 280 + " " + key}))
    configuration = settings()
    given = {"question": "Что это?", "answer": "Ключ.", "context": "", "reference": ""}
    async with chat("judge", configuration) as judge:
        reply = await judge.ask(Call(prompts(configuration)["answer_relevance"], given))
    assert "***" in reply.reason and "sk-" not in reply.reason


def test_a_short_key_that_only_fills_the_place_is_a_word_of_a_reply() -> None:
    from yarus.tasks.models.protocol import storable

    assert storable("there is none; EMPTY\0", "EMPTY") == "there is none; EMPTY\ufffd"


def test_a_large_reply_is_gone_through_once_a_form() -> None:
    """Each form is looked for by one search of the text: their number is what a large reply costs."""
    assert len(forms_of(tuple(HEADERS.values()))) < 60
    assert redact("я" * 1_000_000 + TOKEN, HEADERS.values()).endswith("я***")
    assert redact("", ["", " ", "Basic", "Basic !"]) == ""

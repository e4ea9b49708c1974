"""Redaction of secrets in replies, in every form in which a service may repeat them."""

import asyncio
import base64
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pytest
from sqlalchemy import Engine, text

from tests.support.evaluations import make_role_variables, set_variables
from tests.support.llm_clients import open_system
from tests.support.llm_server import JSON_HEADER, FakeLLMServer, make_completion, make_response
from yarus.tasks.config.secrets import redact, secret_forms, secret_header_values
from yarus.tasks.config.settings import RetrieverService, get_settings
from yarus.tasks.models.calls import Call
from yarus.tasks.models.chat import open_chat
from yarus.tasks.models.prompts import read_prompts
from yarus.tasks.systems.retrievers.external import ExternalRetriever, open_ranking_service
from yarus.tasks.systems.sut import SystemAnswer

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


def set_reply(llm_server: FakeLLMServer, reply: Any) -> None:
    body = json.dumps(reply).replace("T-O-K-E-N", "".join(f"\\u{ord(character):04x}" for character in TOKEN))
    llm_server.script = lambda number, request: make_response(200, body, "content-type: application/json")


def ask_system(llm_server: FakeLLMServer, reply: Mapping[str, Any]) -> SystemAnswer:
    set_reply(llm_server, reply)
    system = open_system(llm_server.url, headers=HEADERS)
    [answer] = asyncio.run(system.answers(["Где столовая?"]))
    return answer


@pytest.mark.parametrize("form", [*FORMS, "T-O-K-E-N"])
def test_answer_of_a_system_is_redacted(llm_server: FakeLLMServer, form: str) -> None:
    answer = ask_system(
        llm_server, {"answer": f"<{form}>", "urls": [f"https://c/?t={form}"], "contexts": [form], "path": form}
    )
    assert (answer.text, answer.urls, answer.contexts, answer.path) == ("<***>", ["https://c/?t=***"], ["***"], "***")


def test_words_and_numbers_of_headers_are_not_redacted(llm_server: FakeLLMServer) -> None:
    page = "https://wiki.example/pages?lang=ru&pageId=4711"
    answer = ask_system(llm_server, {"answer": "The wiki says: ru, basic.", "urls": [page]})
    assert (answer.text, answer.urls) == ("The wiki says: ru, basic.", [page])
    headers = {"Accept": "application/json", "X-Tenant": "help-desk", "X-Api-Version": "2026-01", "X-Host": "c.example"}
    assert secret_header_values(headers) == ()
    assert secret_header_values({"X-Some": "hunter2", "X-Access-Key": "letters", "Api-Key": "4711"}) == (
        "hunter2",
        "letters",
        "4711",
    )
    assert redact("the password passw0rds; pass", ["pass"]) == "the password passw0rds; ***"


def test_ids_of_a_retriever_are_redacted(llm_server: FakeLLMServer) -> None:
    ask = open_ranking_service(llm_server.url, RetrieverService.model_validate({"headers": HEADERS}))
    set_reply(llm_server, {"results": [{"id": "1"}, {"id": f"doc {TOKEN}"}]})
    [ranking] = ExternalRetriever(ask, concurrency=1).retrieve(["?"], None, 2, timed=0)
    assert ranking.ids == ["1", "doc ***"]
    set_reply(llm_server, {"results": [{"id": "T-O-K-E-N", "distance": 2}, {"id": "b", "distance": 1}], "more": TOKEN})
    [ranking] = ExternalRetriever(ask, concurrency=1).retrieve(["?"], None, 2, timed=0)
    assert ranking.error and TOKEN not in ranking.error


async def test_stored_replies_of_a_model_are_redacted(
    at_home: object, engine: Engine, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = 'sk-"planted"-4711'
    set_variables(monkeypatch, make_role_variables(llm_server.url, "judge", API_KEY=key))
    unescaped = make_completion(f"reason: {key}, {quote(key)}", model=f"model {key}", finish=f"stop {key}").split(
        b"\r\n\r\n"
    )[1]
    escaped = unescaped.replace(b"sk-", b"s\\u006b-")
    llm_server.script = lambda number, request: make_response(200, escaped if number > 1 else unescaped, JSON_HEADER)
    configuration = get_settings()
    values = {"question": "Что это?", "answer": "Ключ.", "context": "", "reference": ""}
    async with open_chat("judge", configuration, engine) as judge:
        for repeat in range(2):
            reply = await judge.ask(Call(read_prompts(configuration)["answer_relevance"], values, repeat=repeat))
            assert (reply.status, reply.raw) == ("ok", "reason: ***, ***")
            assert (reply.served_model, reply.finish_reason) == ("model ***", "stop ***")
    with engine.connect() as connection:
        stored = connection.execute(text("SELECT row(c)::text FROM yarus.call c WHERE reply LIKE 'reason: %'")).all()
    assert len(stored) == 2 and "planted" not in str(stored)


async def test_error_is_redacted_before_it_is_cut(
    at_home: object, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-planted-4711-and-long"
    set_variables(monkeypatch, make_role_variables(llm_server.url, "judge", API_KEY=key))
    llm_server.script = lambda number, request: make_response(413, json.dumps({"error": "x" * 280 + " " + key}))
    configuration = get_settings()
    values = {"question": "Что это?", "answer": "Ключ.", "context": "", "reference": ""}
    async with open_chat("judge", configuration) as judge:
        reply = await judge.ask(Call(read_prompts(configuration)["answer_relevance"], values))
    assert "***" in reply.reason and "sk-" not in reply.reason


def test_placeholder_key_is_not_redacted() -> None:
    from yarus.tasks.models.protocol import make_storable

    assert make_storable("there is none; EMPTY\0", "EMPTY") == "there is none; EMPTY\ufffd"


def test_redact_searches_a_large_reply_once_per_form() -> None:
    """Redaction searches the text once per form, so the number of forms decides the cost."""
    assert len(secret_forms(tuple(HEADERS.values()))) < 60
    assert redact("я" * 1_000_000 + TOKEN, HEADERS.values()).endswith("я***")
    assert redact("", ["", " ", "Basic", "Basic !"]) == ""

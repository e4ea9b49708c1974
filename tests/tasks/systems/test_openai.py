"""Systems under test that speak OpenAI's protocol: their requests and their replies."""

import asyncio
import json
from typing import Any

import pytest

from tests.support.bots import USER_CODES
from tests.support.llm_clients import open_system
from tests.support.llm_server import (
    DONE_EVENT,
    JSON_HEADER,
    Action,
    FakeLLMServer,
    make_completion,
    make_delta_event,
    make_response,
    make_stream,
)
from yarus.db.errors import InputError
from yarus.tasks.config.settings import Settings, SystemService, get_settings
from yarus.tasks.systems.service import open_http_system, open_openai_system
from yarus.tasks.systems.sut import SystemAnswer, create_system

HISTORY = ({"role": "user", "content": "Где столовая?"}, {"role": "assistant", "content": "В корпусе 7."})


def ask_system(llm_server: FakeLLMServer, *, path: str = "", **service: Any) -> SystemAnswer:
    [answer] = asyncio.run(
        open_system(f"openai:{llm_server.url}{path}", **({"model": "bot"} | service)).answers(["А библиотека?"])
    )
    return answer


def test_request_asks_for_a_stream_with_usage(llm_server: FakeLLMServer) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}}
    parts = (
        make_delta_event("Там "),
        make_delta_event("же.", usage=None),
        make_delta_event(finish="stop"),
        make_delta_event(**usage),
        DONE_EVENT,
    )
    llm_server.script = lambda number, request: make_stream(*parts)
    answer = ask_system(llm_server, headers={"authorization": "Bearer sk-0123456789"})
    assert (answer.text, answer.tokens_in, answer.tokens_out) == ("Там же.", 12, 3)
    assert answer.first_token_ms is not None
    assert llm_server.requests == [
        {
            "model": "bot",
            "messages": [{"role": "user", "content": "А библиотека?"}],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ]
    assert "POST /" in llm_server.headers[0] and "/v1/chat/completions HTTP" in llm_server.headers[0]
    assert "Bearer sk-0123456789" in llm_server.headers[0]


def test_request_has_the_history(llm_server: FakeLLMServer) -> None:
    llm_server.script = lambda number, request: make_completion("Там же.")
    configuration = Settings(_env_file=None, sut_service=SystemService(model="bot"))
    ask = open_openai_system(f"openai:{llm_server.url}", configuration)
    assert ask.takes_history
    assert ask("А библиотека?", HISTORY)["answer"] == "Там же."
    assert llm_server.requests[0]["messages"] == [*HISTORY, {"role": "user", "content": "А библиотека?"}]


def test_custom_request_has_the_history_at_its_placeholder(llm_server: FakeLLMServer) -> None:
    llm_server.script = lambda number, request: make_response(200, '{"answer": "Там же."}', JSON_HEADER)
    service = SystemService(request='{"q": "$question", "before": "$history"}')
    ask = open_http_system(llm_server.url, Settings(_env_file=None, sut_service=service))
    assert ask.takes_history
    assert ask("А библиотека?", HISTORY)["answer"] == "Там же."
    assert llm_server.requests == [{"q": "А библиотека?", "before": list(HISTORY)}]
    assert not open_http_system(llm_server.url, Settings(_env_file=None)).takes_history


@pytest.mark.parametrize("path", ["", "/", "/chat/completions", "/chat/completions/"])
def test_all_forms_of_an_address_are_accepted(llm_server: FakeLLMServer, path: str) -> None:
    llm_server.script = lambda number, request: make_completion("Там же.")
    assert ask_system(llm_server, path=path).text == "Там же."
    assert "/v1/chat/completions HTTP" in llm_server.headers[0]


def test_refused_stream_fields_are_left_out_once_for_all(llm_server: FakeLLMServer) -> None:
    def script(number: int, request: dict[str, Any]) -> bytes:
        for name in ("stream_options", "stream"):
            if name in request:
                return make_response(
                    400, json.dumps({"error": {"message": f"Unrecognized request argument: {name}"}}), JSON_HEADER
                )
        return make_completion("Там же.", tokens=(7, 2))

    llm_server.script = script
    bot = open_system(f"openai:{llm_server.url}", model="bot", concurrency=1)
    answers = asyncio.run(bot.answers(["?"] * 5))
    assert [answer.text for answer in answers] == ["Там же."] * 5
    assert (answers[0].first_token_ms, answers[0].tokens_in, answers[0].tokens_out) == (None, 7, 2)
    assert [("stream" in request, "stream_options" in request) for request in llm_server.requests] == [
        (True, True),
        (True, False),
        *[(False, False)] * 5,
    ]


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "no stream for this key"), (400, "the context is too long"), (502, "upstream is gone"), (404, "no stream")],
)
def test_other_refusals_are_errors(llm_server: FakeLLMServer, status: int, words: str) -> None:
    llm_server.script = lambda number, request: make_response(status, words)
    assert f"the service answered {status}: {words}" in str(ask_system(llm_server).error)
    assert len(llm_server.requests) == 1


def test_custom_request_is_sent_unchanged(llm_server: FakeLLMServer) -> None:
    llm_server.script = lambda number, request: make_completion("Там же.")
    custom_request = {"model": "other", "messages": "$messages", "temperature": 0}
    assert ask_system(llm_server, model=None, request=json.dumps(custom_request)).text == "Там же."
    assert llm_server.requests == [custom_request | {"messages": [{"role": "user", "content": "А библиотека?"}]}]


URLS = ["https://w/1", "https://w/2"]
CITATIONS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str] | None, list[str] | None]] = {
    "nothing": ({}, {}, None, None),
    "addresses": ({"citations": URLS}, {}, URLS, None),
    "none found": ({"citations": []}, {}, [], []),
    "texts": ({"context": ["Раз", "Два"]}, {}, None, ["Раз", "Два"]),
    "a text": ({}, {"context": "Раз"}, None, ["Раз"]),
    "both": ({"sources": [{"url": url, "content": "Раз"} for url in URLS]}, {}, URLS, ["Раз", "Раз"]),
    "in the message": ({}, {"citations": [{"url": URLS[0], "text": "Раз"}]}, URLS[:1], ["Раз"]),
    "in its context": ({}, {"context": {"citations": [{"url": URLS[0], "content": "Раз"}]}}, URLS[:1], ["Раз"]),
    "annotations": (
        {},
        {"annotations": [{"type": "url_citation", "url_citation": {"url": url, "title": "x"}} for url in URLS]},
        URLS,
        None,
    ),
    "addresses, and where they were found": (
        {"citations": URLS, "search_results": [{"url": "https://w/9", "title": "x", "content": "Раз"}]},
        {},
        URLS,
        ["Раз"],
    ),
    "as a service of our own would": ({"urls": URLS, "contexts": ["Раз"]}, {}, URLS, ["Раз"]),
}


@pytest.mark.parametrize("name", CITATIONS)
@pytest.mark.parametrize("streams", [False, True])
def test_citations_are_found_where_servers_put_them(llm_server: FakeLLMServer, name: str, streams: bool) -> None:
    fields, message_fields, urls, contexts = CITATIONS[name]
    choice = {"index": 0, "finish_reason": "stop"}
    completion = {"choices": [choice | {"message": {"role": "assistant", "content": "Да."} | message_fields}]} | fields
    last_event = {"choices": [choice | {"delta": message_fields}]} | fields
    parts = (make_delta_event("Да"), make_delta_event("."), f"data: {json.dumps(last_event)}\n\n".encode(), DONE_EVENT)
    deed = make_stream(*parts) if streams else make_response(200, json.dumps(completion), JSON_HEADER)
    llm_server.script = lambda number, request: deed
    answer = ask_system(llm_server)
    assert (answer.text, answer.urls, answer.contexts) == ("Да.", urls, contexts)


def test_custom_paths_have_priority(llm_server: FakeLLMServer) -> None:
    reply = {"choices": [{"message": {"content": "Да.", "tool": {"pages": URLS}}}], "citations": ["https://w/9"]}
    llm_server.script = lambda number, request: make_response(200, json.dumps(reply), JSON_HEADER)
    assert ask_system(llm_server, urls="choices[0].message.tool.pages").urls == URLS


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": None}, ""),
        ({"content": None, "refusal": "Не могу."}, "Не могу."),
        ({"content": [{"type": "text", "text": "Да"}, {"type": "image"}]}, "Да"),
    ],
)
def test_message_text_is_read(llm_server: FakeLLMServer, message: dict[str, Any], text: str) -> None:
    reply = {"choices": [{"message": message}], "usage": {"prompt_tokens": -1, "completion_tokens": "many"}}
    llm_server.script = lambda number, request: make_response(200, json.dumps(reply), JSON_HEADER)
    answer = ask_system(llm_server)
    assert (answer.text, answer.tokens_in, answer.tokens_out) == (text, None, None)


@pytest.mark.parametrize("reply", [{"choices": []}, {"error": {"message": "x"}}, {"choices": [{"message": "x"}]}, [1]])
def test_invalid_completion_is_an_error(llm_server: FakeLLMServer, reply: Any) -> None:
    llm_server.script = lambda number, request: make_response(200, json.dumps(reply), JSON_HEADER)
    assert "'answer' is None" in str(ask_system(llm_server).error)


@pytest.mark.parametrize(
    ("name", "service", "words"),
    [
        ("openai:http://h/v1", {}, "YARUS_SUT_SERVICE__MODEL: set it"),
        ("openai:h/v1", {"model": "m"}, "expected an address like https://host/v1, given: 'h/v1'"),
        ("openai:", {"model": "m"}, "expected an address"),
        ("openai:http://u:s3cret@h/v1", {"model": "m"}, "YARUS_SUT_SERVICE__HEADERS"),
        ("openai:http://h/v1?api_key=s3cret", {"model": "m"}, "YARUS_SUT_SERVICE__HEADERS"),
        ("openai:http://h/v1", {"model": "m", "delta": "a["}, "YARUS_SUT_SERVICE"),
        ("openai", {"model": "m"}, "expected 'local', an http(s) URL, openai:URL or module:function"),
    ],
)
def test_unusable_settings_are_rejected(name: str, service: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as error:
        open_system(name, **service)
    assert words in str(error.value)
    assert "s3cret" not in str(error.value)


def test_settings_reject_a_secret_in_the_address(at_home: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_SUT", "openai:https://u:s3cret@h/v1")
    with pytest.raises(InputError, match="YARUS_SUT_SERVICE__HEADERS") as error:
        get_settings()
    assert "s3cret" not in str(error.value)


def test_general_settings_have_priority(llm_server: FakeLLMServer) -> None:
    llm_server.script = lambda number, request: Action(after_s=2)
    service = SystemService(model="bot", concurrency=1, timeout_s=30)
    configuration = Settings(_env_file=None, sut_service=service, sut_concurrency=4, sut_timeout_s=0.4)
    answers = asyncio.run(create_system(f"openai:{llm_server.url}", configuration, USER_CODES).answers(["?"] * 4))
    assert all("no reply within 0.4 s" in str(answer.error) for answer in answers)
    assert llm_server.most_in_flight == 4

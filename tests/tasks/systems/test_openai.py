"""Systems under test that speak OpenAI's protocol: what they are asked, and what is read of their replies."""

import asyncio
import json
from typing import Any

import pytest

from tests.support.bots import CODES
from tests.support.llm_clients import system_at
from tests.support.llm_server import DONE, JSON, Do, FakeLLMServer, delta, http, says, streamed
from yarus.db.errors import InputError
from yarus.tasks.config.settings import Settings, SystemService, settings
from yarus.tasks.systems.service import over_http, over_openai
from yarus.tasks.systems.sut import Answered, system

BEFORE = ({"role": "user", "content": "Где столовая?"}, {"role": "assistant", "content": "В корпусе 7."})


def asked(llm_server: FakeLLMServer, *, path: str = "", **service: Any) -> Answered:
    [found] = asyncio.run(
        system_at(f"openai:{llm_server.url}{path}", **({"model": "bot"} | service)).answers(["А библиотека?"])
    )
    return found


def test_it_is_asked_for_a_stream_and_counts_its_tokens(llm_server: FakeLLMServer) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}}
    parts = (delta("Там "), delta("же.", usage=None), delta(finish="stop"), delta(**usage), DONE)
    llm_server.script = lambda number, request: streamed(*parts)
    found = asked(llm_server, headers={"authorization": "Bearer sk-0123456789"})
    assert (found.text, found.tokens_in, found.tokens_out) == ("Там же.", 12, 3)
    assert found.first_token_ms is not None
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


def test_it_is_told_what_was_said_before(llm_server: FakeLLMServer) -> None:
    llm_server.script = lambda number, request: says("Там же.")
    configuration = Settings(_env_file=None, sut_service=SystemService(model="bot"))
    ask = over_openai(f"openai:{llm_server.url}", configuration)
    assert ask.takes_history
    assert ask("А библиотека?", BEFORE)["answer"] == "Там же."
    assert llm_server.requests[0]["messages"] == [*BEFORE, {"role": "user", "content": "А библиотека?"}]


def test_a_service_of_another_form_is_told_it_where_its_request_says(llm_server: FakeLLMServer) -> None:
    llm_server.script = lambda number, request: http(200, '{"answer": "Там же."}', JSON)
    service = SystemService(request='{"q": "$question", "before": "$history"}')
    ask = over_http(llm_server.url, Settings(_env_file=None, sut_service=service))
    assert ask.takes_history
    assert ask("А библиотека?", BEFORE)["answer"] == "Там же."
    assert llm_server.requests == [{"q": "А библиотека?", "before": list(BEFORE)}]
    assert not over_http(llm_server.url, Settings(_env_file=None)).takes_history


@pytest.mark.parametrize("path", ["", "/", "/chat/completions", "/chat/completions/"])
def test_addresses_are_taken_as_those_of_roles(llm_server: FakeLLMServer, path: str) -> None:
    llm_server.script = lambda number, request: says("Там же.")
    assert asked(llm_server, path=path).text == "Там же."
    assert "/v1/chat/completions HTTP" in llm_server.headers[0]


def test_a_server_that_cannot_stream_is_asked_without_and_only_once_found_out(llm_server: FakeLLMServer) -> None:
    def script(number: int, request: dict[str, Any]) -> bytes:
        for name in ("stream_options", "stream"):
            if name in request:
                return http(400, json.dumps({"error": {"message": f"Unrecognized request argument: {name}"}}), JSON)
        return says("Там же.", tokens=(7, 2))

    llm_server.script = script
    bot = system_at(f"openai:{llm_server.url}", model="bot", concurrency=1)
    found = asyncio.run(bot.answers(["?"] * 5))
    assert [one.text for one in found] == ["Там же."] * 5
    assert (found[0].first_token_ms, found[0].tokens_in, found[0].tokens_out) == (None, 7, 2)
    assert [("stream" in one, "stream_options" in one) for one in llm_server.requests] == [
        (True, True),
        (True, False),
        *[(False, False)] * 5,
    ]


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "no stream for this key"), (400, "the context is too long"), (502, "upstream is gone"), (404, "no stream")],
)
def test_other_refusals_are_errors(llm_server: FakeLLMServer, status: int, words: str) -> None:
    llm_server.script = lambda number, request: http(status, words)
    assert f"the service answered {status}: {words}" in str(asked(llm_server).error)
    assert len(llm_server.requests) == 1


def test_a_request_of_the_users_own_is_sent_as_it_is(llm_server: FakeLLMServer) -> None:
    llm_server.script = lambda number, request: says("Там же.")
    own = {"model": "other", "messages": "$messages", "temperature": 0}
    assert asked(llm_server, model=None, request=json.dumps(own)).text == "Там же."
    assert llm_server.requests == [own | {"messages": [{"role": "user", "content": "А библиотека?"}]}]


URLS = ["https://w/1", "https://w/2"]
CITED: dict[str, tuple[dict[str, Any], dict[str, Any], list[str] | None, list[str] | None]] = {
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


@pytest.mark.parametrize("name", CITED)
@pytest.mark.parametrize("streams", [False, True])
def test_what_it_used_is_found_where_such_servers_tell_it(llm_server: FakeLLMServer, name: str, streams: bool) -> None:
    beside, within, urls, contexts = CITED[name]
    choice = {"index": 0, "finish_reason": "stop"}
    whole = {"choices": [choice | {"message": {"role": "assistant", "content": "Да."} | within}]} | beside
    last = {"choices": [choice | {"delta": within}]} | beside
    parts = (delta("Да"), delta("."), f"data: {json.dumps(last)}\n\n".encode(), DONE)
    deed = streamed(*parts) if streams else http(200, json.dumps(whole), JSON)
    llm_server.script = lambda number, request: deed
    found = asked(llm_server)
    assert (found.text, found.urls, found.contexts) == ("Да.", urls, contexts)


def test_paths_of_the_users_own_come_first(llm_server: FakeLLMServer) -> None:
    reply = {"choices": [{"message": {"content": "Да.", "tool": {"pages": URLS}}}], "citations": ["https://w/9"]}
    llm_server.script = lambda number, request: http(200, json.dumps(reply), JSON)
    assert asked(llm_server, urls="choices[0].message.tool.pages").urls == URLS


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": None}, ""),
        ({"content": None, "refusal": "Не могу."}, "Не могу."),
        ({"content": [{"type": "text", "text": "Да"}, {"type": "image"}]}, "Да"),
    ],
)
def test_what_a_message_says(llm_server: FakeLLMServer, message: dict[str, Any], text: str) -> None:
    reply = {"choices": [{"message": message}], "usage": {"prompt_tokens": -1, "completion_tokens": "many"}}
    llm_server.script = lambda number, request: http(200, json.dumps(reply), JSON)
    found = asked(llm_server)
    assert (found.text, found.tokens_in, found.tokens_out) == (text, None, None)


@pytest.mark.parametrize("reply", [{"choices": []}, {"error": {"message": "x"}}, {"choices": [{"message": "x"}]}, [1]])
def test_what_is_no_completion_is_an_error(llm_server: FakeLLMServer, reply: Any) -> None:
    llm_server.script = lambda number, request: http(200, json.dumps(reply), JSON)
    assert "'answer' is None" in str(asked(llm_server).error)


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
def test_settings_that_cannot_work_are_named(name: str, service: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as error:
        system_at(name, **service)
    assert words in str(error.value)
    assert "s3cret" not in str(error.value)


def test_a_secret_in_the_address_is_refused_by_the_settings(at_home: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_SUT", "openai:https://u:s3cret@h/v1")
    with pytest.raises(InputError, match="YARUS_SUT_SERVICE__HEADERS") as error:
        settings()
    assert "s3cret" not in str(error.value)


def test_what_is_set_for_systems_of_any_kind_comes_first(llm_server: FakeLLMServer) -> None:
    llm_server.script = lambda number, request: Do(after_s=2)
    service = SystemService(model="bot", concurrency=1, timeout_s=30)
    configuration = Settings(_env_file=None, sut_service=service, sut_concurrency=4, sut_timeout_s=0.4)
    found = asyncio.run(system(f"openai:{llm_server.url}", configuration, CODES).answers(["?"] * 4))
    assert all("no reply within 0.4 s" in str(one.error) for one in found)
    assert llm_server.most_in_flight == 4

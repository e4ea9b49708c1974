"""Systems that stream, on real sockets: what is read of them, when it came, and what is never taken for an answer."""

import asyncio
import json
import zlib
from typing import Any

import pytest

from tests.support.llm_clients import system_at
from tests.support.llm_server import DONE, EVENTS, JSON, Do, FakeLLMServer, delta, http, streamed
from tests.support.odd_servers import BLOCK, dripping, endless, stranger
from yarus.tasks.models.transport import LARGEST_BYTES
from yarus.tasks.systems.sut import Answered

TEXT = "content-type: text/plain; charset=utf-8"
STREAM = b"HTTP/1.1 200 OK\r\n" + EVENTS.encode() + b"\r\ntransfer-encoding: chunked\r\n\r\n"
OPEN = b"HTTP/1.1 200 OK\r\n" + EVENTS.encode() + b"\r\nconnection: close\r\n\r\n"


def asked(url: str, **service: Any) -> Answered:
    [found] = asyncio.run(system_at(url, **({"timeout_s": 10} | service)).answers(["Где столовая?"]))
    return found


def said(llm_server: FakeLLMServer, deed: Do | bytes, **service: Any) -> Answered:
    llm_server.script = lambda number, request: deed
    return asked(llm_server.url, **service)


def event(**parts: Any) -> bytes:
    return f"data: {json.dumps(parts, ensure_ascii=False)}\n\n".encode()


def test_the_first_and_the_last_token_are_timed_from_the_request(llm_server: FakeLLMServer) -> None:
    parts = (delta(""), delta("В корпусе"), b": keep-alive\n\n", delta(" 7."), delta(finish="stop"), DONE)
    found = said(llm_server, streamed(*parts, pause_s=0.4))
    assert (found.text, found.error) == ("В корпусе 7.", None)
    assert found.first_token_ms is not None and found.latency_ms is not None
    assert found.first_token_ms >= 400  # not with the first event, which has no text
    assert found.latency_ms - found.first_token_ms >= 800 - 100  # two pauses, less what a busy client may be late
    assert found.latency_ms < 400 * 5  # not with the end of the body


@pytest.mark.parametrize("size", [1, 2, 7, 61])
def test_nothing_depends_on_how_the_bytes_are_packed(llm_server: FakeLLMServer, size: int) -> None:
    """Characters, lines and events are cut anywhere; at the other end, all are in one packet."""
    body = b"".join((b"\xef\xbb\xbf: hello\r\n\r\n", delta("Сдать "), delta("🙂ё"), delta(finish="stop"), DONE))
    packets = [body[start : start + size] for start in range(0, len(body), size)]
    assert said(llm_server, streamed(*packets)).text == "Сдать 🙂ё"
    assert said(llm_server, streamed(body)).text == "Сдать 🙂ё"


FORMS: dict[str, tuple[bytes, dict[str, Any], str]] = {
    "tokens": (event(token="Да") + event(token="!"), {}, "Да!"),
    "tokens, then all of it": (event(token="Да") + event(token="!") + event(answer="Да!", urls=[]), {}, "Да!"),
    "answers in parts": (event(answer="Да") + event(answer=", "), {}, "Да, "),
    "an answer at once": (event(status="searching") + event(answer="Да!"), {}, "Да!"),
    "answers that grow": (event(answer="Да") + event(answer="Да, к") + event(answer="Да, конечно"), {}, "Да, конечно"),
    "lines of text": (b"data: \xd0\x94\xd0\xb0\n\ndata:  12\n\ndata: true\n\n" + DONE, {}, "Да 12true"),
    "texts in JSON": (b'event: data\ndata: "1\\n"\n\nevent: data\ndata: "2"\n\nevent: end\n\n', {}, "1\n2"),
    "an end that has a word": (b"data: ok\n\nevent: done\ndata: bye\n\n", {}, "ok"),
    "pings and sources beside text": (b"data: ok\n\nevent: ping\ndata: 1\n\nevent: sources\ndata: x\n\n", {}, "ok"),
    "parts that only look as if they grew": (delta("1") + delta("11") + delta("111", finish="stop"), {}, "111111"),
    "a path": (event(data={"t": "Да"}) + event(data={"t": "!"}), {"delta": "data.t"}, "Да!"),
    "a condition": (
        event(type="sources", data=["x"]) + event(type="token", data="Да"),
        {"delta": "type=='token' && data", "urls": "type=='sources' && data"},
        "Да",
    ),
    "one completion in an event": (
        event(choices=[{"message": {"content": "Да"}, "finish_reason": "stop"}]),
        {},
        "Да",
    ),
    "content in parts": (
        event(choices=[{"delta": {"content": [{"type": "text", "text": "Да"}]}, "finish_reason": "stop"}]),
        {},
        "Да",
    ),
    "silence": (delta(finish="stop") + DONE, {}, ""),
    "a line of [DONE] in the text": (delta("data: [DONE]\n") + delta("Да") + DONE, {}, "data: [DONE]\nДа"),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_streams(llm_server: FakeLLMServer, name: str) -> None:
    body, service, text = FORMS[name]
    found = said(llm_server, streamed(body), **service)
    assert (found.text, found.error) == (text, None)


def test_what_it_used_is_taken_from_whatever_event_has_it(llm_server: FakeLLMServer) -> None:
    first = event(urls=["https://w/1"], contexts=["Раз"], urls_later=None)
    last = event(urls=["https://w/1", "https://w/2"], contexts=[], path="cache", latency_ms=12, done=True)
    found = said(llm_server, streamed(first, event(token="Да"), event(token="."), last))
    assert (found.text, found.urls, found.contexts) == ("Да.", ["https://w/1", "https://w/2"], ["Раз"])
    assert (found.path, found.latency_ms) == ("cache", 12)


def test_a_hidden_answer_needs_no_text(llm_server: FakeLLMServer) -> None:
    found = said(llm_server, streamed(event(path="hidden"), DONE))
    assert (found.text, found.path, found.first_token_ms) == ("", "hidden", None)


def test_an_answer_that_comes_whole_has_no_first_token(llm_server: FakeLLMServer) -> None:
    found = said(llm_server, http(200, '{"answer": "Да."}', JSON))
    assert (found.text, found.first_token_ms) == ("Да.", None)
    assert found.latency_ms is not None


def test_plain_chunks_are_an_answer(llm_server: FakeLLMServer) -> None:
    word = "ёж".encode()
    found = said(llm_server, streamed(word[:1], word[1:], b"!", kind=TEXT, pause_s=0.4))
    assert (found.text, found.urls) == ("ёж!", None)
    assert found.first_token_ms is not None and found.latency_ms is not None
    assert found.latency_ms - found.first_token_ms >= 800 - 100
    assert said(llm_server, streamed(kind=TEXT)).text == ""
    assert said(llm_server, streamed(b'{"answer": "', b'ok"}', kind=TEXT)).text == "ok"
    assert said(llm_server, streamed(event(token="Да"), DONE, kind=TEXT)).text == "Да"
    assert "no JSON" in str(said(llm_server, http(200, "Технические работы", TEXT)).error)
    assert "no JSON" in str(said(llm_server, streamed(b'{"answer": "', kind=TEXT)).error)
    assert "utf-8" in str(said(llm_server, streamed(b"\xff", kind=TEXT)).error)


BROKEN: dict[str, tuple[Do, tuple[str, ...]]] = {
    "no end": (streamed(delta("В кор"), delta("пусе")), ("ended in the middle", "9 characters: 'В корпусе'")),
    "a chunk that is cut": (
        streamed(delta("В кор"), delta("пусе"), whole=False, then="close"),
        ("9 characters: 'В корпусе'",),
    ),
    "a reset": (streamed(delta("В кор"), delta(" "), whole=False, then="reset"), ("'В кор",)),
    "tokens, and a connection that is gone": (
        streamed(event(token="В кор"), whole=False, then="close"),
        ("5 characters: 'В кор'",),
    ),
    "text, and a connection that is gone": (
        streamed(b"a plain", b" text", kind=TEXT, whole=False, then="close"),
        ("12 characters: 'a plain text'",),
    ),
    "no length, and nothing that says that it is over": (
        Do(OPEN + event(token="Да"), then="close"),
        ("ended in the middle", "2 characters: 'Да'"),
    ),
    "an event that is cut": (streamed(delta("Да"), delta("!")[:-2]), ("ended in the middle", "2 characters: 'Да'")),
    "a token that is cut": (streamed(event(token="Да"), event(token="!")[:-1]), ("ended within an event",)),
    "an error in the stream": (
        streamed(delta("Да"), event(error={"message": "overloaded"}), DONE),
        ("the stream says that it failed", "overloaded", "2 characters: 'Да'"),
    ),
    "an event of that name": (streamed(b"event: error\ndata: boom\n\n", DONE), ("failed: boom",)),
    "a failure by another name": (streamed(event(token="Да"), b"event: response.failed\ndata: {}\n\n"), ("it failed",)),
    "a failure by its type": (streamed(event(token="Да"), event(type="error", message="boom"), DONE), ("boom",)),
    "a finish that is an error": (
        streamed(delta("Да"), event(choices=[{"delta": {}, "finish_reason": "error"}]), DONE),
        ("it failed",),
    ),
    "the end of something else": (
        Do(OPEN + b"event: retrieval.done\ndata: {}\n\n" + event(token="Не"), then="close"),
        ("ended in the middle", "'Не'"),
    ),
    "the end of a tool, and none of OpenAI's": (
        streamed(delta("Да"), b"event: on_tool_end\ndata: {}\n\n"),
        ("ended in the middle",),
    ),
    "half an object": (streamed(event(token="Да"), b'data: {"token": "\n\n', DONE), ("an event is no JSON",)),
    "no UTF-8": (streamed(event(token="Да"), b"data: \xff\n\n", DONE), ("utf-8",)),
    "nothing": (streamed(DONE), ("no event has a part of the answer", "YARUS_SUT_SERVICE__DELTA")),
    "an unknown form": (streamed(event(chunk="Да"), DONE), ("set YARUS_SUT_SERVICE__DELTA",)),
    "a token that is no text": (
        streamed(event(token={"text": "Да"}), DONE),
        ("{'text': 'Да'}, not a text: set YARUS_SUT_SERVICE__DELTA",),
    ),
    "content that is no text": (streamed(event(choices=[{"delta": {"content": 7}}]), DONE), ("7, not a text",)),
    "nested too deeply": (streamed(event(token="a"), b"data: " + b'{"a":' * 100_000 + b"\n\n", DONE), ("no JSON",)),
    "another status": (Do(http(500, event(token="Да"), EVENTS)), ("answered 500",)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_not_whole_is_no_answer(llm_server: FakeLLMServer, name: str) -> None:
    deed, words = BROKEN[name]
    found = said(llm_server, deed)
    assert (found.text, found.latency_ms, found.first_token_ms) == (None, None, None)
    for word in words:
        assert word in str(found.error)


def test_a_stream_that_says_its_end_is_whole_without_a_length(llm_server: FakeLLMServer) -> None:
    for end in (DONE, b"event: message_end\ndata: {}\n\n"):
        assert said(llm_server, Do(OPEN + event(token="Да") + end, then="close")).text == "Да"
    assert said(llm_server, Do(OPEN + delta("Да", finish="stop"), then="close")).text == "Да"


@pytest.mark.parametrize("timeout_s", [10, 0.3])
def test_a_body_that_goes_on_after_the_end_of_its_stream_is_not_waited_for(timeout_s: float) -> None:
    body = delta("Да") + DONE
    after = b"4\r\n: x\n\r\n"
    with stranger(endless(STREAM + b"%x\r\n%b\r\n" % (len(body), body), after)) as server:
        assert asked(server.url, timeout_s=timeout_s).text == "Да"


def test_connections_of_streams_are_used_again(llm_server: FakeLLMServer) -> None:
    llm_server.script = lambda number, request: streamed(delta("Да"), DONE, pause_s=0.01)
    before = llm_server.connected
    asyncio.run(system_at(llm_server.url, concurrency=2).answers(["?"] * 10))
    assert llm_server.connected - before <= 2


def chunk(part: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(part), part)


LONG = chunk(b": " + b"x" * 65_533 + b"\n")
FLOODS = {
    "events without end": endless(STREAM, chunk(delta("слово ") * 500)),
    "comments without end": endless(STREAM, LONG),
    "an event without end": endless(STREAM + chunk(b"data: "), chunk(BLOCK)),
    "text without end": endless(STREAM.replace(b"event-stream", b"plain"), chunk(b"word " * 10_000)),
    "100 MB of JSON": lambda: iter(
        [b"HTTP/1.1 200 OK\r\n" + JSON.encode() + b"\r\ncontent-length: 100000000\r\n\r\n", *[BLOCK] * 1_526]
    ),
    "100 MB of gzip": lambda: iter(
        [http(200, zlib.compress(b"data: x\n\n" * 11_000_000, 1, wbits=31), EVENTS, "content-encoding: gzip")]
    ),
}


@pytest.mark.parametrize("name", FLOODS)
def test_no_stream_is_larger_than_a_reply_may_be(name: str) -> None:
    with stranger(FLOODS[name]) as server:
        found = asked(server.url, timeout_s=60)
        assert "larger than 16,777,216 bytes" in str(found.error)
        assert server.sent < 4 * LARGEST_BYTES


DRIPS = {
    "tokens": (chunk(delta("а")) * 100, "characters: 'а"),
    "comments": (chunk(b": ping\n\n") * 100, "no reply within 3 s"),
    "bytes": (chunk(b"data: " + b"x" * 10_000), "no reply within 3 s"),
}


@pytest.mark.slow("wait: a limit of time runs out")
@pytest.mark.parametrize("name", DRIPS)
def test_a_stream_that_drips_is_out_of_time(name: str) -> None:
    content, words = DRIPS[name]
    parts = [STREAM + content[:200], *[content[200:][n : n + 1] for n in range(len(content) - 200)]]
    with stranger(lambda: (dripped for part in parts for dripped in dripping(part, 0.001)())) as server:
        found = asked(server.url, timeout_s=3)
    assert "no reply within 3 s" in str(found.error)
    assert words in str(found.error)


def test_headers_that_come_back_in_parts_are_redacted(llm_server: FakeLLMServer) -> None:
    token = "tok-3n-0123456789"
    halves = [delta(part) for part in (token[:6], token[6:])]
    found = said(llm_server, streamed(*halves, DONE), headers={"authorization": f"Bearer {token}"})
    assert found.text == "***"
    found = said(llm_server, streamed(*halves), headers={"authorization": f"Bearer {token}"})
    assert token not in str(found.error)
    assert "***" in str(found.error)

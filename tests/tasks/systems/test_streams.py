"""Systems that stream, on real sockets: the answer, its times, and streams that are not answers."""

import asyncio
import json
import zlib
from typing import Any

import pytest

from tests.support.llm_clients import open_system
from tests.support.llm_server import (
    DONE_EVENT,
    EVENT_STREAM_HEADER,
    JSON_HEADER,
    Action,
    FakeLLMServer,
    make_delta_event,
    make_response,
    make_stream,
)
from tests.support.odd_servers import BLOCK, make_endless_feed, make_slow_feed, open_odd_server
from yarus.tasks.models.transport import MAX_REPLY_BYTES
from yarus.tasks.systems.sut import SystemAnswer

TEXT = "content-type: text/plain; charset=utf-8"
STREAM = b"HTTP/1.1 200 OK\r\n" + EVENT_STREAM_HEADER.encode() + b"\r\ntransfer-encoding: chunked\r\n\r\n"
UNFRAMED = b"HTTP/1.1 200 OK\r\n" + EVENT_STREAM_HEADER.encode() + b"\r\nconnection: close\r\n\r\n"


def ask_system(url: str, **service: Any) -> SystemAnswer:
    [answer] = asyncio.run(open_system(url, **({"timeout_s": 10} | service)).answers(["Где столовая?"]))
    return answer


def read_reply(llm_server: FakeLLMServer, deed: Action | bytes, **service: Any) -> SystemAnswer:
    llm_server.script = lambda number, request: deed
    return ask_system(llm_server.url, **service)


def encode(**parts: Any) -> bytes:
    return f"data: {json.dumps(parts, ensure_ascii=False)}\n\n".encode()


def test_first_and_last_token_are_timed_from_the_request(llm_server: FakeLLMServer) -> None:
    parts = (
        make_delta_event(""),
        make_delta_event("В корпусе"),
        b": keep-alive\n\n",
        make_delta_event(" 7."),
        make_delta_event(finish="stop"),
        DONE_EVENT,
    )
    answer = read_reply(llm_server, make_stream(*parts, pause_s=0.4))
    assert (answer.text, answer.error) == ("В корпусе 7.", None)
    assert answer.first_token_ms is not None and answer.latency_ms is not None
    assert answer.first_token_ms >= 400  # not with the first event, which has no text
    assert answer.latency_ms - answer.first_token_ms >= 800 - 100  # two pauses, less the delay of a busy client
    assert answer.latency_ms < 400 * 5  # not with the end of the body


@pytest.mark.parametrize("size", [1, 2, 7, 61])
def test_packets_do_not_change_the_answer(llm_server: FakeLLMServer, size: int) -> None:
    """Packets end within characters, lines and events; in the last case one packet has all."""
    body = b"".join(
        (
            b"\xef\xbb\xbf: hello\r\n\r\n",
            make_delta_event("Сдать "),
            make_delta_event("🙂ё"),
            make_delta_event(finish="stop"),
            DONE_EVENT,
        )
    )
    packets = [body[start : start + size] for start in range(0, len(body), size)]
    assert read_reply(llm_server, make_stream(*packets)).text == "Сдать 🙂ё"
    assert read_reply(llm_server, make_stream(body)).text == "Сдать 🙂ё"


FORMS: dict[str, tuple[bytes, dict[str, Any], str]] = {
    "tokens": (encode(token="Да") + encode(token="!"), {}, "Да!"),
    "tokens, then all of it": (encode(token="Да") + encode(token="!") + encode(answer="Да!", urls=[]), {}, "Да!"),
    "answers in parts": (encode(answer="Да") + encode(answer=", "), {}, "Да, "),
    "an answer at once": (encode(status="searching") + encode(answer="Да!"), {}, "Да!"),
    "answers that grow": (
        encode(answer="Да") + encode(answer="Да, к") + encode(answer="Да, конечно"),
        {},
        "Да, конечно",
    ),
    "lines of text": (b"data: \xd0\x94\xd0\xb0\n\ndata:  12\n\ndata: true\n\n" + DONE_EVENT, {}, "Да 12true"),
    "texts in JSON": (b'event: data\ndata: "1\\n"\n\nevent: data\ndata: "2"\n\nevent: end\n\n', {}, "1\n2"),
    "an end that has a word": (b"data: ok\n\nevent: done\ndata: bye\n\n", {}, "ok"),
    "pings and sources beside text": (b"data: ok\n\nevent: ping\ndata: 1\n\nevent: sources\ndata: x\n\n", {}, "ok"),
    "parts that only look as if they grew": (
        make_delta_event("1") + make_delta_event("11") + make_delta_event("111", finish="stop"),
        {},
        "111111",
    ),
    "a path": (encode(data={"t": "Да"}) + encode(data={"t": "!"}), {"delta": "data.t"}, "Да!"),
    "a condition": (
        encode(type="sources", data=["x"]) + encode(type="token", data="Да"),
        {"delta": "type=='token' && data", "urls": "type=='sources' && data"},
        "Да",
    ),
    "one completion in an event": (encode(choices=[{"message": {"content": "Да"}, "finish_reason": "stop"}]), {}, "Да"),
    "content in parts": (
        encode(choices=[{"delta": {"content": [{"type": "text", "text": "Да"}]}, "finish_reason": "stop"}]),
        {},
        "Да",
    ),
    "silence": (make_delta_event(finish="stop") + DONE_EVENT, {}, ""),
    "a line of [DONE] in the text": (
        make_delta_event("data: [DONE]\n") + make_delta_event("Да") + DONE_EVENT,
        {},
        "data: [DONE]\nДа",
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_streams_are_read(llm_server: FakeLLMServer, name: str) -> None:
    body, service, text = FORMS[name]
    answer = read_reply(llm_server, make_stream(body), **service)
    assert (answer.text, answer.error) == (text, None)


def test_parts_are_taken_from_any_event(llm_server: FakeLLMServer) -> None:
    first = encode(urls=["https://w/1"], contexts=["Раз"], urls_later=None)
    last = encode(urls=["https://w/1", "https://w/2"], contexts=[], path="cache", latency_ms=12, done=True)
    answer = read_reply(llm_server, make_stream(first, encode(token="Да"), encode(token="."), last))
    assert (answer.text, answer.urls, answer.contexts) == ("Да.", ["https://w/1", "https://w/2"], ["Раз"])
    assert (answer.path, answer.latency_ms) == ("cache", 12)


def test_hidden_answer_needs_no_text(llm_server: FakeLLMServer) -> None:
    answer = read_reply(llm_server, make_stream(encode(path="hidden"), DONE_EVENT))
    assert (answer.text, answer.path, answer.first_token_ms) == ("", "hidden", None)


def test_unstreamed_answer_has_no_first_token(llm_server: FakeLLMServer) -> None:
    answer = read_reply(llm_server, make_response(200, '{"answer": "Да."}', JSON_HEADER))
    assert (answer.text, answer.first_token_ms) == ("Да.", None)
    assert answer.latency_ms is not None


def test_chunked_plain_text_is_an_answer(llm_server: FakeLLMServer) -> None:
    word = "ёж".encode()
    answer = read_reply(llm_server, make_stream(word[:1], word[1:], b"!", kind=TEXT, pause_s=0.4))
    assert (answer.text, answer.urls) == ("ёж!", None)
    assert answer.first_token_ms is not None and answer.latency_ms is not None
    assert answer.latency_ms - answer.first_token_ms >= 800 - 100
    assert read_reply(llm_server, make_stream(kind=TEXT)).text == ""
    assert read_reply(llm_server, make_stream(b'{"answer": "', b'ok"}', kind=TEXT)).text == "ok"
    assert read_reply(llm_server, make_stream(encode(token="Да"), DONE_EVENT, kind=TEXT)).text == "Да"
    assert "no JSON" in str(read_reply(llm_server, make_response(200, "Технические работы", TEXT)).error)
    assert "no JSON" in str(read_reply(llm_server, make_stream(b'{"answer": "', kind=TEXT)).error)
    assert "utf-8" in str(read_reply(llm_server, make_stream(b"\xff", kind=TEXT)).error)


BROKEN: dict[str, tuple[Action, tuple[str, ...]]] = {
    "no end": (
        make_stream(make_delta_event("В кор"), make_delta_event("пусе")),
        ("ended in the middle", "9 characters: 'В корпусе'"),
    ),
    "a chunk that is cut": (
        make_stream(make_delta_event("В кор"), make_delta_event("пусе"), whole=False, then="close"),
        ("9 characters: 'В корпусе'",),
    ),
    "a reset": (make_stream(make_delta_event("В кор"), make_delta_event(" "), whole=False, then="reset"), ("'В кор",)),
    "tokens, and a connection that is gone": (
        make_stream(encode(token="В кор"), whole=False, then="close"),
        ("5 characters: 'В кор'",),
    ),
    "text, and a connection that is gone": (
        make_stream(b"a plain", b" text", kind=TEXT, whole=False, then="close"),
        ("12 characters: 'a plain text'",),
    ),
    "no length, and nothing that says that it is over": (
        Action(UNFRAMED + encode(token="Да"), then="close"),
        ("ended in the middle", "2 characters: 'Да'"),
    ),
    "an event that is cut": (
        make_stream(make_delta_event("Да"), make_delta_event("!")[:-2]),
        ("ended in the middle", "2 characters: 'Да'"),
    ),
    "a token that is cut": (make_stream(encode(token="Да"), encode(token="!")[:-1]), ("ended within an event",)),
    "an error in the stream": (
        make_stream(make_delta_event("Да"), encode(error={"message": "overloaded"}), DONE_EVENT),
        ("the stream says that it failed", "overloaded", "2 characters: 'Да'"),
    ),
    "an event of that name": (make_stream(b"event: error\ndata: boom\n\n", DONE_EVENT), ("failed: boom",)),
    "a failure by another name": (
        make_stream(encode(token="Да"), b"event: response.failed\ndata: {}\n\n"),
        ("it failed",),
    ),
    "a failure by its type": (
        make_stream(encode(token="Да"), encode(type="error", message="boom"), DONE_EVENT),
        ("boom",),
    ),
    "a finish that is an error": (
        make_stream(make_delta_event("Да"), encode(choices=[{"delta": {}, "finish_reason": "error"}]), DONE_EVENT),
        ("it failed",),
    ),
    "the end of something else": (
        Action(UNFRAMED + b"event: retrieval.done\ndata: {}\n\n" + encode(token="Не"), then="close"),
        ("ended in the middle", "'Не'"),
    ),
    "the end of a tool, and none of OpenAI's": (
        make_stream(make_delta_event("Да"), b"event: on_tool_end\ndata: {}\n\n"),
        ("ended in the middle",),
    ),
    "half an object": (make_stream(encode(token="Да"), b'data: {"token": "\n\n', DONE_EVENT), ("an event is no JSON",)),
    "no UTF-8": (make_stream(encode(token="Да"), b"data: \xff\n\n", DONE_EVENT), ("utf-8",)),
    "nothing": (make_stream(DONE_EVENT), ("no event has a part of the answer", "YARUS_SUT_SERVICE__DELTA")),
    "an unknown form": (make_stream(encode(chunk="Да"), DONE_EVENT), ("set YARUS_SUT_SERVICE__DELTA",)),
    "a token that is no text": (
        make_stream(encode(token={"text": "Да"}), DONE_EVENT),
        ("{'text': 'Да'}, not a text: set YARUS_SUT_SERVICE__DELTA",),
    ),
    "content that is no text": (
        make_stream(encode(choices=[{"delta": {"content": 7}}]), DONE_EVENT),
        ("7, not a text",),
    ),
    "nested too deeply": (
        make_stream(encode(token="a"), b"data: " + b'{"a":' * 100_000 + b"\n\n", DONE_EVENT),
        ("no JSON",),
    ),
    "another status": (Action(make_response(500, encode(token="Да"), EVENT_STREAM_HEADER)), ("answered 500",)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_incomplete_stream_is_an_error(llm_server: FakeLLMServer, name: str) -> None:
    deed, words = BROKEN[name]
    answer = read_reply(llm_server, deed)
    assert (answer.text, answer.latency_ms, answer.first_token_ms) == (None, None, None)
    for word in words:
        assert word in str(answer.error)


def test_stream_with_end_event_needs_no_length(llm_server: FakeLLMServer) -> None:
    for end in (DONE_EVENT, b"event: message_end\ndata: {}\n\n"):
        assert read_reply(llm_server, Action(UNFRAMED + encode(token="Да") + end, then="close")).text == "Да"
    assert read_reply(llm_server, Action(UNFRAMED + make_delta_event("Да", finish="stop"), then="close")).text == "Да"


@pytest.mark.parametrize("timeout_s", [10, 0.3])
def test_body_after_the_end_of_the_stream_is_ignored(timeout_s: float) -> None:
    body = make_delta_event("Да") + DONE_EVENT
    comment = b"4\r\n: x\n\r\n"
    with open_odd_server(make_endless_feed(STREAM + b"%x\r\n%b\r\n" % (len(body), body), comment)) as server:
        assert ask_system(server.url, timeout_s=timeout_s).text == "Да"


def test_connections_of_streams_are_reused(llm_server: FakeLLMServer) -> None:
    llm_server.script = lambda number, request: make_stream(make_delta_event("Да"), DONE_EVENT, pause_s=0.01)
    before = llm_server.connected
    asyncio.run(open_system(llm_server.url, concurrency=2).answers(["?"] * 10))
    assert llm_server.connected - before <= 2


def chunk(part: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(part), part)


LONG = chunk(b": " + b"x" * 65_533 + b"\n")
FLOODS = {
    "events without end": make_endless_feed(STREAM, chunk(make_delta_event("слово ") * 500)),
    "comments without end": make_endless_feed(STREAM, LONG),
    "an event without end": make_endless_feed(STREAM + chunk(b"data: "), chunk(BLOCK)),
    "text without end": make_endless_feed(STREAM.replace(b"event-stream", b"plain"), chunk(b"word " * 10_000)),
    "100 MB of JSON": lambda: iter(
        [b"HTTP/1.1 200 OK\r\n" + JSON_HEADER.encode() + b"\r\ncontent-length: 100000000\r\n\r\n", *[BLOCK] * 1_526]
    ),
    "100 MB of gzip": lambda: iter(
        [
            make_response(
                200,
                zlib.compress(b"data: x\n\n" * 11_000_000, 1, wbits=31),
                EVENT_STREAM_HEADER,
                "content-encoding: gzip",
            )
        ]
    ),
}


@pytest.mark.parametrize("name", FLOODS)
def test_size_of_streams_is_limited(name: str) -> None:
    with open_odd_server(FLOODS[name]) as server:
        answer = ask_system(server.url, timeout_s=60)
        assert "larger than 16,777,216 bytes" in str(answer.error)
        assert server.sent < 4 * MAX_REPLY_BYTES


DRIPS = {
    "tokens": (chunk(make_delta_event("а")) * 100, "characters: 'а"),
    "comments": (chunk(b": ping\n\n") * 100, "no reply within 3 s"),
    "bytes": (chunk(b"data: " + b"x" * 10_000), "no reply within 3 s"),
}


@pytest.mark.slow("wait: a limit of time runs out")
@pytest.mark.parametrize("name", DRIPS)
def test_slow_stream_times_out(name: str) -> None:
    content, words = DRIPS[name]
    parts = [STREAM + content[:200], *[content[200:][n : n + 1] for n in range(len(content) - 200)]]
    with open_odd_server(lambda: (byte for part in parts for byte in make_slow_feed(part, 0.001)())) as server:
        answer = ask_system(server.url, timeout_s=3)
    assert "no reply within 3 s" in str(answer.error)
    assert words in str(answer.error)


def test_secret_in_several_parts_is_redacted(llm_server: FakeLLMServer) -> None:
    token = "tok-3n-0123456789"
    halves = [make_delta_event(part) for part in (token[:6], token[6:])]
    answer = read_reply(llm_server, make_stream(*halves, DONE_EVENT), headers={"authorization": f"Bearer {token}"})
    assert answer.text == "***"
    answer = read_reply(llm_server, make_stream(*halves), headers={"authorization": f"Bearer {token}"})
    assert token not in str(answer.error)
    assert "***" in str(answer.error)

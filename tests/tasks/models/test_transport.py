"""Exchanges with servers that send too much, too slowly or nonsense: every client of Yarus, on real sockets."""

import asyncio
import gc
import json
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.llm_clients import ask_for_verdict, open_system
from tests.support.llm_server import JSON_HEADER, FakeLLMServer, make_response
from tests.support.llm_server import make_completion as chat_says
from tests.support.odd_servers import (
    CHUNKED_HEAD,
    OK_HEAD,
    OVERSIZED_FEEDS,
    make_json_feed,
    make_slow_feed,
    open_odd_server,
    whole,
)
from tests.support.processes import get_peak_kb
from yarus.db.errors import InputError, ModelUnavailable
from yarus.tasks.config.settings import RetrieverService
from yarus.tasks.models.server_errors import parse_retry_after_s
from yarus.tasks.models.transport import MAX_REPLY_BYTES, MAX_TEXT_CHARACTERS
from yarus.tasks.systems.retrievers.external import ExternalRetriever, open_ranking_service

ROOT = Path(__file__).parents[3]


def retrieve_error(url: str, timeout_s: float) -> str | None:
    service = RetrieverService(timeout_s=timeout_s)
    return (
        ExternalRetriever(open_ranking_service(url, service), concurrency=1).retrieve(["?"], None, 3, timed=0)[0].error
    )


def answer_error(url: str, timeout_s: float) -> str | None:
    return asyncio.run(open_system(url, timeout_s=timeout_s).answers(["?"]))[0].error


def judge_error(url: str, timeout_s: float) -> str | None:
    try:
        score = asyncio.run(ask_for_verdict(url, timeout_s=timeout_s))
    except ModelUnavailable as error:
        return str(error)
    return None if score.status == "ok" else f"{score.status}: {score.reason}"


CLIENTS: dict[str, Callable[[str, float], str | None]] = {
    "chat": judge_error,
    "retriever": retrieve_error,
    "system": answer_error,
}
LIMIT_REASONS = (
    "larger than 16,777,216 bytes",
    "only gzip was asked for",
    "8190 bytes",
    "Too many headers",
    "more after its end",
)


def print_flood_results(client: str) -> None:
    """Print the error and the received bytes of each flood; a separate process measures its memory."""
    results = {}
    for name, feed in OVERSIZED_FEEDS.items():
        with open_odd_server(feed) as server:
            reason = CLIENTS[client](server.url, 60)
            results[name] = (reason, server.sent / max(1, len(server.heads)))
    print(json.dumps((results, get_peak_kb())))


@pytest.mark.slow("process: its memory is measured")
@pytest.mark.parametrize("client", CLIENTS)
def test_reply_size_is_limited_in_any_encoding(client: str) -> None:
    script = f"from tests.tasks.models.test_transport import print_flood_results; print_flood_results({client!r})"
    process = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert process.returncode == 0, process.stderr
    results, peak_memory_kb = json.loads(process.stdout)
    for name, (reason, sent) in results.items():
        assert any(limit_reason in reason for limit_reason in LIMIT_REASONS), (name, reason)
        assert sent < 4 * MAX_REPLY_BYTES, name  # per exchange; includes bytes in socket buffers
    assert peak_memory_kb < 700_000  # with all imports; without the limit one bomb took 2.1 GB


SLOW_RESPONSES = {
    "headers": OK_HEAD + b"content-length: 2\r\n\r\n{}",
    "a body": OK_HEAD + b"content-length: 100\r\n\r\n" + b" " * 100,
    "chunks": CHUNKED_HEAD + b"1\r\n \r\n" * 30,
}


SLOW_MARK = pytest.mark.slow("wait: a limit of time runs out")


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    "what", [pytest.param(what, marks=() if what == "a body" else SLOW_MARK) for what in SLOW_RESPONSES]
)
def test_timeout_covers_the_whole_exchange(client: str, what: str) -> None:
    with open_odd_server(make_slow_feed(SLOW_RESPONSES[what])) as server:
        assert "no reply within 0.5 s" in str(CLIENTS[client](server.url, 0.5))
        assert server.sent / len(server.heads) < len(SLOW_RESPONSES[what])  # closed before the end of the response


@pytest.mark.parametrize("client", CLIENTS)
def test_redirect_is_not_followed(client: str, llm_server: FakeLLMServer) -> None:
    """It would send the question and secret headers to an address that is not set."""
    with open_odd_server(make_json_feed({"answer": "Да.", "results": []})) as other_server:
        llm_server.script = lambda number, request: make_response(307, "", f"location: {other_server.url}")
        assert "307" in str(CLIENTS[client](llm_server.url, 5))
        assert other_server.heads == []


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("bypassed", [False, True])
def test_environment_proxy_is_used_without_showing_its_password(
    client: str, bypassed: bool, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm_server.script = lambda number, request: make_response(404, "nobody here")
    with open_odd_server(lambda: iter([b"HTTP/1.1 502 Bad\r\ncontent-length: 0\r\n\r\n"])) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://user:pr0xy-s3cret@127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NO_PROXY", f"127.0.0.1:{llm_server.port}" if bypassed else "elsewhere")
        reason = str(CLIENTS[client](llm_server.url, 5))
    assert ("404" if bypassed else "502") in reason
    assert "s3cret" not in reason
    assert (len(proxy.heads) == 0) is bypassed
    assert all(
        head.startswith("POST http://127.0.0.1") and "Proxy-Authorization: Basic" in head for head in proxy.heads
    )


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("proxy", ["http://user:{}@127.0.0.1:1", "socks5://user:{}@127.0.0.1:1", "{}"])
def test_unusable_proxy_is_an_error_without_its_password(
    client: str, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy.format("pr0xy-s3cret"))
    try:
        reason = str(CLIENTS[client]("http://127.0.0.1:9/v1", 5))
    except InputError as error:
        reason = str(error)
    assert "s3cret" not in reason
    assert ("Cannot connect" if proxy.startswith("http:") else "correct HTTP_PROXY") in reason


NONSENSE = {
    "nested too deeply": (b"[" * 100_000, "no JSON"),
    "objects nested too deeply": (b'{"a":' * 100_000, "no JSON"),
    "a number of 5,000 digits": (b'{"answer": ' + b"1" * 5_000 + b"}", "no JSON"),
    "half a reply": (b'{"answer": "', "no JSON"),
    "no UTF-8": (b'{"answer": "\xff\xfe"}', "no JSON"),
    "NaN": (b'{"answer": NaN}', "'answer' is nan, not a text"),
    "infinite": (b'{"answer": "", "latency_ms": 1e999}', "'latency_ms' is inf"),
    "a number beyond all floats": (b'{"answer": "", "latency_ms": 1' + b"0" * 400 + b"}", "a day"),
    "a million contexts": (json.dumps({"answer": "", "contexts": ["12345"] * 10**6}).encode(), "5,000,000 characters"),
    "a long reply": (json.dumps({"answer": "а" * 2_800_000}).encode(), "larger than 16,777,216 bytes"),
    "an answer that is too long": (
        json.dumps({"answer": "а" * (MAX_TEXT_CHARACTERS + 1)}, ensure_ascii=False).encode(),
        "4,000,001 characters; at most 4,000,000",
    ),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_of_a_system_is_an_error_with_reason(name: str, llm_server: FakeLLMServer) -> None:
    content, reason = NONSENSE[name]
    gc.collect()  # closes clients of earlier tests, which a deep recursion could not close
    llm_server.script = lambda number, request: make_response(200, content, JSON_HEADER)
    assert reason in str(answer_error(llm_server.url, 30))


@pytest.mark.parametrize("charset", ["zlib", "bz2", "utf-7", "no-such", "utf-16", "idna"])
def test_charset_of_the_header_is_ignored(charset: str, llm_server: FakeLLMServer) -> None:
    kind = f"content-type: application/json; charset={charset}"
    llm_server.script = lambda number, request: make_response(200, '{"answer": "Да.", "results": []}', kind)
    assert answer_error(llm_server.url, 5) is None
    assert retrieve_error(llm_server.url, 5) is None
    llm_server.script = lambda number, request: make_response(500, "внутри", kind)
    assert "500: внутри" in str(answer_error(llm_server.url, 5))
    assert "500: внутри" in str(judge_error(llm_server.url, 5))


def test_too_long_judge_reply_is_an_error(llm_server: FakeLLMServer) -> None:
    llm_server.script = lambda number, request: chat_says("9" * (MAX_TEXT_CHARACTERS + 1))
    assert (
        judge_error(llm_server.url, 30)
        == "judge_error: HTTP 200 with a text of 4,000,001 characters; at most 4,000,000 are taken"
    )
    assert len(llm_server.requests) == 1  # not bought again


@pytest.mark.parametrize("says_gzip", [True, False])
def test_gzip_reply_needs_its_header(says_gzip: bool) -> None:
    packer = zlib.compressobj(wbits=31)
    content = packer.compress(json.dumps({"answer": "Да."}).encode()) + packer.flush()
    headers = [b"Content-Encoding: GZIP"] if says_gzip else []
    with open_odd_server(lambda: iter([whole(content, *headers)])) as server:
        assert (answer_error(server.url, 5) is None) is says_gzip
        assert "accept-encoding: gzip\r\n" in server.heads[0].lower()


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("Mon, 01 Jan 99999999999 00:00:00 GMT", None), ("1e999", float("inf")), ("9" * 5_000, float("inf")), ("-1", 0.0)],
)
def test_retry_after_accepts_odd_headers(header: str, seconds: float | None) -> None:
    assert parse_retry_after_s(header) == seconds

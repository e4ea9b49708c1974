"""Exchanges with servers that send too much, too slowly or nonsense: every client of ours, on real sockets."""

import asyncio
import gc
import json
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.llm_clients import system_at, verdict
from tests.support.llm_server import JSON, FakeLLMServer, http
from tests.support.llm_server import says as chat_says
from tests.support.odd_servers import CHUNKED, FLOODS, OK, dripping, says, stranger, whole
from tests.support.processes import peak_kb
from yarus.db.errors import InputError, ModelUnavailable
from yarus.tasks.config.settings import RetrieverService
from yarus.tasks.models.server_errors import parse_retry_after_s
from yarus.tasks.models.transport import LARGEST_BYTES, LONGEST_TEXT
from yarus.tasks.systems.retrievers.external import Outside, from_service

ROOT = Path(__file__).parents[3]


def retrieved(url: str, timeout_s: float) -> str | None:
    service = RetrieverService(timeout_s=timeout_s)
    return Outside(from_service(url, service), concurrency=1).retrieve(["?"], None, 3, timed=0)[0].error


def answered(url: str, timeout_s: float) -> str | None:
    return asyncio.run(system_at(url, timeout_s=timeout_s).answers(["?"]))[0].error


def judged(url: str, timeout_s: float) -> str | None:
    try:
        found = asyncio.run(verdict(url, timeout_s=timeout_s))
    except ModelUnavailable as error:
        return str(error)
    return None if found.status == "ok" else f"{found.status}: {found.reason}"


CLIENTS: dict[str, Callable[[str, float], str | None]] = {
    "chat": judged,
    "retriever": retrieved,
    "system": answered,
}
ENDS = (
    "larger than 16,777,216 bytes",
    "only gzip was asked for",
    "8190 bytes",
    "Too many headers",
    "more after its end",
)


def floods(client: str) -> None:
    """What each flood came to, and how far it got; in a process of its own, for its memory."""
    found = {}
    for name, feed in FLOODS.items():
        with stranger(feed) as server:
            reason = CLIENTS[client](server.url, 60)
            found[name] = (reason, server.sent / max(1, len(server.heads)))
    print(json.dumps((found, peak_kb())))


@pytest.mark.slow("process: its memory is measured")
@pytest.mark.parametrize("client", CLIENTS)
def test_no_reply_is_larger_than_the_limit_however_it_is_packed(client: str) -> None:
    script = f"from tests.tasks.models.test_transport import floods; floods({client!r})"
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert ran.returncode == 0, ran.stderr
    found, most_kb = json.loads(ran.stdout)
    for name, (reason, sent) in found.items():
        assert any(end in reason for end in ENDS), (name, reason)
        assert sent < 4 * LARGEST_BYTES, name  # an exchange; what lies in the sockets was sent too
    assert most_kb < 700_000  # with all that is imported; one bomb alone took 2.1 GB


SLOW = {
    "headers": OK + b"content-length: 2\r\n\r\n{}",
    "a body": OK + b"content-length: 100\r\n\r\n" + b" " * 100,
    "chunks": CHUNKED + b"1\r\n \r\n" * 30,
}


WAIT = pytest.mark.slow("wait: a limit of time runs out")


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("what", [pytest.param(what, marks=() if what == "a body" else WAIT) for what in SLOW])
def test_the_limit_of_time_is_of_the_whole_exchange(client: str, what: str) -> None:
    with stranger(dripping(SLOW[what])) as server:
        assert "no reply within 0.5 s" in str(CLIENTS[client](server.url, 0.5))
        assert server.sent / len(server.heads) < len(SLOW[what])  # hung up before it was told all


@pytest.mark.parametrize("client", CLIENTS)
def test_a_redirect_is_not_followed(client: str, llm_server: FakeLLMServer) -> None:
    """It would take the question, and headers that are secret, to an address that nobody has set."""
    with stranger(says({"answer": "Да.", "results": []})) as elsewhere:
        llm_server.script = lambda number, request: http(307, "", f"location: {elsewhere.url}")
        assert "307" in str(CLIENTS[client](llm_server.url, 5))
        assert elsewhere.heads == []


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("bypassed", [False, True])
def test_a_proxy_of_the_environment_is_used_and_its_password_is_not_told(
    client: str, bypassed: bool, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm_server.script = lambda number, request: http(404, "nobody here")
    with stranger(lambda: iter([b"HTTP/1.1 502 Bad\r\ncontent-length: 0\r\n\r\n"])) as proxy:
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
def test_a_proxy_that_is_dead_or_none_at_all_is_an_error_without_its_password(
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
        json.dumps({"answer": "а" * (LONGEST_TEXT + 1)}, ensure_ascii=False).encode(),
        "4,000,001 characters; at most 4,000,000",
    ),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_of_a_system_is_its_error_with_a_reason(name: str, llm_server: FakeLLMServer) -> None:
    content, reason = NONSENSE[name]
    gc.collect()  # closes clients that earlier tests left: at the bottom of a recursion nothing can be closed
    llm_server.script = lambda number, request: http(200, content, JSON)
    assert reason in str(answered(llm_server.url, 30))


@pytest.mark.parametrize("charset", ["zlib", "bz2", "utf-7", "no-such", "utf-16", "idna"])
def test_a_charset_that_a_server_names_decides_nothing(charset: str, llm_server: FakeLLMServer) -> None:
    kind = f"content-type: application/json; charset={charset}"
    llm_server.script = lambda number, request: http(200, '{"answer": "Да.", "results": []}', kind)
    assert answered(llm_server.url, 5) is None
    assert retrieved(llm_server.url, 5) is None
    llm_server.script = lambda number, request: http(500, "внутри", kind)
    assert "500: внутри" in str(answered(llm_server.url, 5))
    assert "500: внутри" in str(judged(llm_server.url, 5))


def test_a_reply_of_a_judge_that_is_too_long_is_no_verdict(llm_server: FakeLLMServer) -> None:
    llm_server.script = lambda number, request: chat_says("9" * (LONGEST_TEXT + 1))
    assert (
        judged(llm_server.url, 30)
        == "judge_error: HTTP 200 with a text of 4,000,001 characters; at most 4,000,000 are taken"
    )
    assert len(llm_server.requests) == 1  # not paid for once more


@pytest.mark.parametrize("says_gzip", [True, False])
def test_a_reply_in_gzip_is_read(says_gzip: bool) -> None:
    packer = zlib.compressobj(wbits=31)
    content = packer.compress(json.dumps({"answer": "Да."}).encode()) + packer.flush()
    headers = [b"Content-Encoding: GZIP"] if says_gzip else []
    with stranger(lambda: iter([whole(content, *headers)])) as server:
        assert (answered(server.url, 5) is None) is says_gzip
        assert "accept-encoding: gzip\r\n" in server.heads[0].lower()


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("Mon, 01 Jan 99999999999 00:00:00 GMT", None), ("1e999", float("inf")), ("9" * 5_000, float("inf")), ("-1", 0.0)],
)
def test_a_pause_that_cannot_be(header: str, seconds: float | None) -> None:
    assert parse_retry_after_s(header) == seconds

"""Faults of an embedding server, on real sockets: no invented vector, no lost text, no hang."""

import base64
import json
import math
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.embedding.replies import (
    KEY,
    encode_base64,
    list_embedded_texts,
    make_question_embedder,
    make_reply,
    make_settings,
    make_vector,
)
from tests.support.llm_clients import QUICK_RETRIES
from tests.support.llm_server import JSON_HEADER, Action, FakeLLMServer, make_response
from yarus.db.errors import ModelUnavailable
from yarus.tasks.models.embedding import client
from yarus.tasks.models.embedding.embedders import get_embedder_pair
from yarus.tasks.models.transport import run_in_background

BAD = "bad"
Script = Callable[[int, dict[str, Any]], Action | bytes]


def script_for_texts(texts: list[str], deed: Callable[[dict[str, Any]], Action | bytes]) -> Script:
    """Return a script that replies by `deed` to a request with one of the texts, and embeds otherwise."""
    return lambda number, request: deed(request) if set(texts) & set(request["input"]) else make_reply(request)


def replace_embedding(value: object, *, form: str = "base64") -> Callable[[dict[str, Any]], bytes]:
    """Return a reply function that replaces the vector of the bad text."""

    def reply(request: dict[str, Any]) -> bytes:
        def replace_value(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
            pairs = zip(data, request["input"], strict=True)
            return [item | ({"embedding": value} if text == BAD else {}) for item, text in pairs]

        return make_reply(request | {"encoding_format": form}, replace_value)

    return reply


def collect_outcome(model: Any, texts: list[str]) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Return the vectors by text, and why other texts have none."""
    vectors: dict[str, list[float]] = {}
    failures: dict[str, str] = {}
    for result in (result for batch in model.parts(texts) for result in batch):
        for row, position in enumerate(result.positions):
            if row in result.failures:
                failures[texts[position]] = result.failures[row]
            else:
                vectors[texts[position]] = result.vectors[row].tolist()
    assert vectors.keys() | failures.keys() == set(texts)
    return vectors, failures


NUMBERS = make_vector(BAD)
LARGE = make_response(200, b" " * 100_000_000, JSON_HEADER)
HALF = struct.pack("<f", 1.0)[:3]
REPLIES = {
    # reply to a batch with the bad text, and a part of the reason
    "NaN in base64": (replace_embedding(encode_base64([math.nan, *NUMBERS[1:]])), "not finite"),
    "NaN in JSON": (replace_embedding([math.nan, *NUMBERS[1:]], form="float"), "not finite"),
    "infinite": (replace_embedding([math.inf, *NUMBERS[1:]], form="float"), "not finite"),
    "null among the numbers": (replace_embedding([None, *NUMBERS[1:]], form="float"), "not finite"),
    "zeros": (replace_embedding(encode_base64([0.0] * 8)), "all zeros"),
    "another dimension": (replace_embedding(encode_base64(NUMBERS[:4])), "dimensions"),
    "no numbers": (replace_embedding([]), "dimensions"),
    "words": (replace_embedding(["a"] * 8, form="float"), "expected a list of numbers"),
    "a matrix": (replace_embedding([NUMBERS, NUMBERS], form="float"), ""),
    "null": (replace_embedding(None), "NoneType"),
    "no base64": (replace_embedding("§§§"), "cannot be read"),
    "half a number": (replace_embedding(base64.b64encode(HALF).decode()), "cannot be read"),
    "fewer vectors": (lambda request: make_reply(request, lambda data: data[:-1]), "vectors for 1 texts"),
    "more vectors": (lambda request: make_reply(request, lambda data: [*data, data[0]]), "2 vectors for 1 texts"),
    "a doubled index": (
        lambda request: make_reply(request, lambda data: [item | {"index": 1} for item in data]),
        "indices are not 0 to 0",
    ),
    "an index of words": (
        lambda request: make_reply(request, lambda data: [item | {"index": "first"} for item in data]),
        "indices",
    ),
    "no data": (lambda request: make_response(200, "{}", JSON_HEADER), "without embeddings"),
    "data of the wrong type": (
        lambda request: make_response(200, '{"data": "none"}', JSON_HEADER),
        "without embeddings",
    ),
    "an error with 200": (
        lambda request: make_response(200, '{"error": {"message": "upstream"}}', JSON_HEADER),
        "upstream",
    ),
    "HTML": (lambda request: make_response(200, "<html>login</html>"), "login"),
    "nothing": (lambda request: make_response(200, b""), "an empty body"),
    "cut off": (lambda request: Action(make_reply(request)[:-40], then="close"), ""),
    "100 MB": (lambda request: LARGE, "larger than 16,777,216 bytes"),
    "400": (lambda request: make_response(400, '{"error": {"message": "strange text"}}'), "HTTP 400: strange text"),
    "413": (lambda request: make_response(413, '{"error": "must have less than 512 tokens"}'), "less than 512 tokens"),
    "422": (lambda request: make_response(422, "{}"), "HTTP 422"),
    "500": (
        lambda request: make_response(500, '{"error": {"message": "input is too large"}}'),
        "HTTP 500: input is too large",
    ),
    "too slow": (lambda request: Action(make_reply(request), after_s=30), "no reply within 0.4 s"),
}


EXPENSIVE = {
    "too slow": pytest.mark.slow("wait: a limit of time runs out"),
    "100 MB": pytest.mark.slow("breadth: a hundred megabytes"),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=EXPENSIVE.get(name, ())) for name in REPLIES])
def test_failing_text_does_not_affect_others(server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    deed, reason = REPLIES[name]
    server.script = script_for_texts([BAD], deed)
    # Of these few texts every fourth fails.
    retries = replace(QUICK_RETRIES, attempts=2, unreached_s=20, outage_s=20, wrong_s=20)
    monkeypatch.setattr(client, "RETRIES", retries)
    good_texts = [f"text {number}" for number in range(7)]
    model = make_question_embedder(server, batch=4, timeout_s=0.4 if name == "too slow" else 60)
    vectors, failures = collect_outcome(model, [*good_texts[:2], BAD, *good_texts[2:]])
    assert list(failures) == [BAD]
    assert reason in failures[BAD]
    assert model.client.dimensions == 8
    np.testing.assert_allclose([np.linalg.norm(row) for row in vectors.values()], 1, atol=1e-6)
    with pytest.raises(ModelUnavailable, match=r"no vector for 1 of 2 texts, .* of 3 characters that begins 'bad'"):
        model.encode(["text 1", BAD])


REFUSALS = {
    "401": (make_response(401, f'{{"error": {{"message": "Incorrect API key: {KEY}"}}}}'), "YARUS_EMBEDDER_API_KEY"),
    "402": (make_response(402, "pay"), "no money left"),
    "403": (make_response(403, "{}"), "Allow the model for this key"),
    "404": (make_response(404, '{"error": "model not found"}'), "usually ends with /v1"),
    "400 to anything": (
        make_response(400, '{"error": {"message": "no such model"}}'),
        "no such model. Check the address",
    ),
    "a redirect": (make_response(308, "", "location: http://127.0.0.1:9/v1/embeddings"), "set it to the final one"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusal_of_every_text_raises_at_once(server: FakeLLMServer, name: str) -> None:
    refusal, words = REFUSALS[name]
    server.script = lambda number, request: refusal
    with pytest.raises(ModelUnavailable) as error:
        make_question_embedder(server).encode([str(number) for number in range(500)])
    assert words in str(error.value)
    assert f"{server.url}#asked" in str(error.value)
    assert KEY not in str(error.value)
    assert len(server.requests) <= 3  # a refusal may concern the form


def test_revoked_key_raises_after_received_results(server: FakeLLMServer) -> None:
    server.script = lambda number, request: make_reply(request) if number < 4 else make_response(401)
    model, positions = make_question_embedder(server, batch=1, concurrency=1), []
    with pytest.raises(ModelUnavailable, match="API_KEY"):
        for batch in model.parts(list("abcdef")):
            positions += [position for result in batch for position in result.positions]
    assert positions == [0, 1]


def test_batch_size_is_learned_from_refusals(server: FakeLLMServer) -> None:
    too_many = make_response(413, '{"error": "batch size 16 > maximum allowed batch size 5"}')
    server.script = lambda number, request: too_many if len(request["input"]) > 5 else make_reply(request)
    model = make_question_embedder(server, batch=16, concurrency=1)
    texts = [str(number) for number in range(64)]
    vectors, failures = collect_outcome(model, texts)
    assert (len(vectors), failures) == (64, {})
    sizes = [len(request["input"]) for request in server.requests]
    assert sizes[:3] == [1, 16, 16]  # one batch waits while the other is refused
    assert (sizes.count(8), set(sizes[9:])) == (4, {4})


@pytest.mark.slow("wait: a server asks for it")
def test_retry_after_is_obeyed_and_concurrency_falls(server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "RETRIES", replace(QUICK_RETRIES, busy_s=10))
    arrived: list[float] = []

    def script(number: int, request: dict[str, Any]) -> bytes:
        arrived.append(time.monotonic())
        return make_response(429, "", "retry-after: 1") if number == 2 else make_reply(request)

    server.script = script
    model = make_question_embedder(server, batch=1, concurrency=1)
    assert collect_outcome(model, ["a", "b"])[1] == {}
    assert arrived[2] - arrived[1] >= 0.95

    server.script = lambda number, request: (
        make_response(429) if server.in_flight > 2 else Action(make_reply(request), after_s=0.01)
    )
    model = make_question_embedder(server, batch=1, concurrency=8)
    assert collect_outcome(model, [str(number) for number in range(100)])[1] == {}
    assert model.client._concurrency.limit < 8


def test_passing_faults_are_retried(server: FakeLLMServer) -> None:
    faults = {
        2: make_response(500),
        3: make_response(503),
        5: Action(then="close"),
        7: make_response(200, "{"),
        8: make_response(502),
    }
    server.script = lambda number, request: faults.get(number) or make_reply(request)
    vectors, failures = collect_outcome(make_question_embedder(server, batch=3), [str(number) for number in range(30)])
    assert (len(vectors), failures) == (30, {})


def test_unreachable_server_fails_all_texts_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "RETRIES", QUICK_RETRIES)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    model = get_embedder_pair(url, make_settings(url))[0]
    with pytest.raises(ModelUnavailable, match=r"no vector for 2 of 2 texts.*ConnectError.*--resume"):
        model.encode(["a", ""])
    started = time.monotonic()
    _, failures = collect_outcome(model, [str(number) for number in range(1_000)])
    assert len(failures) == 1_000
    assert time.monotonic() - started < 30


@pytest.mark.slow("wait: a server is away")
def test_server_can_fail_and_recover(server: FakeLLMServer) -> None:
    server.script = lambda number, request: make_reply(request) if number < 4 else make_response(503, "going down")
    model = make_question_embedder(server, batch=2, concurrency=1)
    vectors, failures = collect_outcome(model, [str(number) for number in range(40)])
    assert (len(vectors), len(failures)) == (4, 36)
    assert all("going down" in reason for reason in failures.values())
    time.sleep(0.1)
    server.script = lambda number, request: make_reply(request)
    assert collect_outcome(model, [str(number) for number in range(40)])[1] == {}


def test_closing_parts_stops_requests(server: FakeLLMServer) -> None:
    server.script = lambda number, request: Action(make_reply(request), after_s=0.02)
    parts = make_question_embedder(server, batch=1, concurrency=2).parts([str(number) for number in range(500)])
    next(parts)
    parts.close()
    time.sleep(0.2)
    n_asked = len(list_embedded_texts(server))
    time.sleep(0.2)
    assert len(list_embedded_texts(server)) == n_asked < 100


def test_changed_dimension_is_a_failure(server: FakeLLMServer) -> None:
    """If two models answer at one address, vectors of the second one are failures."""
    server.script = lambda number, request: make_reply(request, dimensions=4 if "b" in request["input"] else 8)
    vectors, failures = collect_outcome(make_question_embedder(server, batch=1), ["a", "b", "c"])
    assert vectors.keys() == {"a", "c"}
    assert "vectors of 4 dimensions, where it gave 8 before" in failures["b"]


def test_zero_vector_of_probe_raises(server: FakeLLMServer) -> None:
    server.script = lambda number, request: make_reply(
        request, lambda data: [item | {"embedding": encode_base64([0.0] * 8)} for item in data]
    )
    with pytest.raises(ModelUnavailable, match=r"for the text '\?': its vector is all zeros"):
        make_question_embedder(server).encode(["a"])
    assert json.dumps(server.requests).count("input") <= 2


def test_cancelled_probe_frees_the_breaker(server: FakeLLMServer) -> None:
    """After faults in a row one request at a time probes the server; here it is cancelled."""
    hanging = Action(make_response(503), after_s=30)
    server.script = lambda n, request: make_reply(request) if n == 1 else make_response(503) if n < 7 else hanging
    model = make_question_embedder(server, batch=1, concurrency=2)
    request_future = run_in_background(model.client.embed(["a", "b", "c"], {}, lambda part: None))
    deadline = time.monotonic() + 10
    while len(server.requests) < 7 and time.monotonic() < deadline:
        time.sleep(0.01)
    request_future.cancel()
    server.script = lambda number, request: make_reply(request)
    assert model.encode(["d"]).shape == (1, 8)

"""Every fault of an embedding server, on real sockets: no invented vector, no text lost for another's, no hang."""

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

from tests.support.embedding.replies import KEY, asked, coded, configured, embeddings, of_questions, vector
from tests.support.llm_clients import QUICK
from tests.support.llm_server import JSON, Do, FakeLLMServer, http
from yarus.db.errors import ModelUnavailable
from yarus.tasks.models.embedding import client
from yarus.tasks.models.embedding.embedders import embedders
from yarus.tasks.models.transport import in_background

BAD = "bad"
Script = Callable[[int, dict[str, Any]], Do | bytes]


def only(texts: list[str], deed: Callable[[dict[str, Any]], Do | bytes]) -> Script:
    """Does that where one of the texts is asked for, and embeds the others."""
    return lambda number, request: deed(request) if set(texts) & set(request["input"]) else embeddings(request)


def with_embedding(value: object, *, form: str = "base64") -> Callable[[dict[str, Any]], bytes]:
    """Answers with that instead of the vector of the bad text."""

    def deed(request: dict[str, Any]) -> bytes:
        def change(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
            pairs = zip(data, request["input"], strict=True)
            return [one | ({"embedding": value} if text == BAD else {}) for one, text in pairs]

        return embeddings(request | {"encoding_format": form}, change)

    return deed


def outcome(model: Any, texts: list[str]) -> tuple[dict[str, list[float]], dict[str, str]]:
    """The vectors by text, and why others have none."""
    found: dict[str, list[float]] = {}
    wrong: dict[str, str] = {}
    for part in (part for some in model.parts(texts) for part in some):
        for row, position in enumerate(part.positions):
            if row in part.wrong:
                wrong[texts[position]] = part.wrong[row]
            else:
                found[texts[position]] = part.vectors[row].tolist()
    assert found.keys() | wrong.keys() == set(texts)
    return found, wrong


NUMBERS = vector(BAD)
LARGE = http(200, b" " * 100_000_000, JSON)
HALF = struct.pack("<f", 1.0)[:3]
REPLIES = {
    # what is answered for a batch with the bad text, and part of the reason
    "NaN in base64": (with_embedding(coded([math.nan, *NUMBERS[1:]])), "not finite"),
    "NaN in JSON": (with_embedding([math.nan, *NUMBERS[1:]], form="float"), "not finite"),
    "infinite": (with_embedding([math.inf, *NUMBERS[1:]], form="float"), "not finite"),
    "null among the numbers": (with_embedding([None, *NUMBERS[1:]], form="float"), "not finite"),
    "zeros": (with_embedding(coded([0.0] * 8)), "all zeros"),
    "another dimension": (with_embedding(coded(NUMBERS[:4])), "dimensions"),
    "no numbers": (with_embedding([]), "dimensions"),
    "words": (with_embedding(["a"] * 8, form="float"), "expected a list of numbers"),
    "a matrix": (with_embedding([NUMBERS, NUMBERS], form="float"), ""),
    "null": (with_embedding(None), "NoneType"),
    "no base64": (with_embedding("§§§"), "cannot be read"),
    "half a number": (with_embedding(base64.b64encode(HALF).decode()), "cannot be read"),
    "fewer vectors": (lambda request: embeddings(request, lambda data: data[:-1]), "vectors for 1 texts"),
    "more vectors": (lambda request: embeddings(request, lambda data: [*data, data[0]]), "2 vectors for 1 texts"),
    "a doubled index": (
        lambda request: embeddings(request, lambda data: [one | {"index": 1} for one in data]),
        "indices are not 0 to 0",
    ),
    "an index of words": (
        lambda request: embeddings(request, lambda data: [one | {"index": "first"} for one in data]),
        "indices",
    ),
    "no data": (lambda request: http(200, "{}", JSON), "without embeddings"),
    "data of the wrong type": (lambda request: http(200, '{"data": "none"}', JSON), "without embeddings"),
    "an error with 200": (lambda request: http(200, '{"error": {"message": "upstream"}}', JSON), "upstream"),
    "HTML": (lambda request: http(200, "<html>login</html>"), "login"),
    "nothing": (lambda request: http(200, b""), "an empty body"),
    "cut off": (lambda request: Do(embeddings(request)[:-40], then="close"), ""),
    "100 MB": (lambda request: LARGE, "larger than 16,777,216 bytes"),
    "400": (lambda request: http(400, '{"error": {"message": "strange text"}}'), "HTTP 400: strange text"),
    "413": (lambda request: http(413, '{"error": "must have less than 512 tokens"}'), "less than 512 tokens"),
    "422": (lambda request: http(422, "{}"), "HTTP 422"),
    "500": (lambda request: http(500, '{"error": {"message": "input is too large"}}'), "HTTP 500: input is too large"),
    "too slow": (lambda request: Do(embeddings(request), after_s=30), "no reply within 0.4 s"),
}


EXPENSIVE = {
    "too slow": pytest.mark.slow("wait: a limit of time runs out"),
    "100 MB": pytest.mark.slow("breadth: a hundred megabytes"),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=EXPENSIVE.get(name, ())) for name in REPLIES])
def test_a_text_that_fails_takes_no_other_with_it(
    server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    deed, why = REPLIES[name]
    server.script = only([BAD], deed)
    patient = replace(QUICK, attempts=2, unreached_s=20, outage_s=20, wrong_s=20)  # in so few texts every fourth fails
    monkeypatch.setattr(client, "RETRIES", patient)
    fine = [f"text {number}" for number in range(7)]
    model = of_questions(server, batch=4, timeout_s=0.4 if name == "too slow" else 60)
    found, wrong = outcome(model, [*fine[:2], BAD, *fine[2:]])
    assert list(wrong) == [BAD]
    assert why in wrong[BAD]
    assert model.client.dimensions == 8
    np.testing.assert_allclose([np.linalg.norm(row) for row in found.values()], 1, atol=1e-6)
    with pytest.raises(ModelUnavailable, match=r"no vector for 1 of 2 texts, .* of 3 characters that begins 'bad'"):
        model.encode(["text 1", BAD])


REFUSALS = {
    "401": (http(401, f'{{"error": {{"message": "Incorrect API key: {KEY}"}}}}'), "YARUS_EMBEDDER_API_KEY"),
    "402": (http(402, "pay"), "no money left"),
    "403": (http(403, "{}"), "Allow the model for this key"),
    "404": (http(404, '{"error": "model not found"}'), "usually ends with /v1"),
    "400 to anything": (http(400, '{"error": {"message": "no such model"}}'), "no such model. Check the address"),
    "a redirect": (http(308, "", "location: http://127.0.0.1:9/v1/embeddings"), "set it to the final one"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_every_text_would_meet_ends_it_at_once(server: FakeLLMServer, name: str) -> None:
    refusal, words = REFUSALS[name]
    server.script = lambda number, request: refusal
    with pytest.raises(ModelUnavailable) as error:
        of_questions(server).encode([str(number) for number in range(500)])
    assert words in str(error.value)
    assert f"{server.url}#asked" in str(error.value)
    assert KEY not in str(error.value)
    assert len(server.requests) <= 3  # a refusal may concern the form


def test_a_key_that_is_taken_back_on_the_way_ends_it_and_leaves_what_came(server: FakeLLMServer) -> None:
    server.script = lambda number, request: embeddings(request) if number < 4 else http(401)
    model, found = of_questions(server, batch=1, concurrency=1), []
    with pytest.raises(ModelUnavailable, match="API_KEY"):
        for some in model.parts(list("abcdef")):
            found += [position for part in some for position in part.positions]
    assert found == [0, 1]


def test_a_limit_of_texts_is_learned(server: FakeLLMServer) -> None:
    too_many = http(413, '{"error": "batch size 16 > maximum allowed batch size 5"}')
    server.script = lambda number, request: too_many if len(request["input"]) > 5 else embeddings(request)
    model = of_questions(server, batch=16, concurrency=1)
    texts = [str(number) for number in range(64)]
    found, wrong = outcome(model, texts)
    assert (len(found), wrong) == (64, {})
    sizes = [len(request["input"]) for request in server.requests]
    assert sizes[:3] == [1, 16, 16]  # one waits for its turn while the other is refused
    assert (sizes.count(8), set(sizes[9:])) == (4, {4})


@pytest.mark.slow("wait: a server asks for it")
def test_retry_after_is_kept_and_concurrency_falls(server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "RETRIES", replace(QUICK, busy_s=10))
    arrived: list[float] = []

    def script(number: int, request: dict[str, Any]) -> bytes:
        arrived.append(time.monotonic())
        return http(429, "", "retry-after: 1") if number == 2 else embeddings(request)

    server.script = script
    model = of_questions(server, batch=1, concurrency=1)
    assert outcome(model, ["a", "b"])[1] == {}
    assert arrived[2] - arrived[1] >= 0.95

    server.script = lambda number, request: http(429) if server.in_flight > 2 else Do(embeddings(request), after_s=0.01)
    model = of_questions(server, batch=1, concurrency=8)
    assert outcome(model, [str(number) for number in range(100)])[1] == {}
    assert model.client._concurrency.limit < 8


def test_faults_that_pass_are_waited_out(server: FakeLLMServer) -> None:
    faults = {2: http(500), 3: http(503), 5: Do(then="close"), 7: http(200, "{"), 8: http(502)}
    server.script = lambda number, request: faults.get(number) or embeddings(request)
    found, wrong = outcome(of_questions(server, batch=3), [str(number) for number in range(30)])
    assert (len(found), wrong) == (30, {})


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "RETRIES", QUICK)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    model = embedders(url, configured(url))[0]
    with pytest.raises(ModelUnavailable, match=r"no vector for 2 of 2 texts.*ConnectError.*--resume"):
        model.encode(["a", ""])
    started = time.monotonic()
    _, wrong = outcome(model, [str(number) for number in range(1_000)])
    assert len(wrong) == 1_000
    assert time.monotonic() - started < 30


@pytest.mark.slow("wait: a server is away")
def test_a_server_that_dies_on_the_way_and_comes_back(server: FakeLLMServer) -> None:
    server.script = lambda number, request: embeddings(request) if number < 4 else http(503, "going down")
    model = of_questions(server, batch=2, concurrency=1)
    found, wrong = outcome(model, [str(number) for number in range(40)])
    assert (len(found), len(wrong)) == (4, 36)
    assert all("going down" in why for why in wrong.values())
    time.sleep(0.1)
    server.script = lambda number, request: embeddings(request)
    assert outcome(model, [str(number) for number in range(40)])[1] == {}


def test_who_takes_no_more_has_nothing_asked_for_any_longer(server: FakeLLMServer) -> None:
    server.script = lambda number, request: Do(embeddings(request), after_s=0.02)
    parts = of_questions(server, batch=1, concurrency=2).parts([str(number) for number in range(500)])
    next(parts)
    parts.close()
    time.sleep(0.2)
    asked_by_then = len(asked(server))
    time.sleep(0.2)
    assert len(asked(server)) == asked_by_then < 100


def test_a_model_that_changes_its_dimension(server: FakeLLMServer) -> None:
    """Two models behind one address: what the second says is no vector of the first."""
    server.script = lambda number, request: embeddings(request, dimensions=4 if "b" in request["input"] else 8)
    found, wrong = outcome(of_questions(server, batch=1), ["a", "b", "c"])
    assert found.keys() == {"a", "c"}
    assert "vectors of 4 dimensions, where it gave 8 before" in wrong["b"]


def test_a_first_vector_that_is_none(server: FakeLLMServer) -> None:
    server.script = lambda number, request: embeddings(
        request, lambda data: [one | {"embedding": coded([0.0] * 8)} for one in data]
    )
    with pytest.raises(ModelUnavailable, match=r"for the text '\?': its vector is all zeros"):
        of_questions(server).encode(["a"])
    assert json.dumps(server.requests).count("input") <= 2


def test_a_probe_that_is_given_up_leaves_the_way_free(server: FakeLLMServer) -> None:
    """After faults in a row one request at a time looks whether the server is back; here it is cancelled."""
    hanging = Do(http(503), after_s=30)
    server.script = lambda number, request: embeddings(request) if number == 1 else http(503) if number < 7 else hanging
    model = of_questions(server, batch=1, concurrency=2)
    asking = in_background(model.client.embed(["a", "b", "c"], {}, lambda part: None))
    deadline = time.monotonic() + 10
    while len(server.requests) < 7 and time.monotonic() < deadline:
        time.sleep(0.01)
    asking.cancel()
    server.script = lambda number, request: embeddings(request)
    assert model.encode(["d"]).shape == (1, 8)

"""A retriever that is a service over HTTP: what is sent, what counts of the reply, and whatever goes wrong."""

import asyncio
import json
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.llm_clients import system_at
from tests.support.llm_server import Do, FakeLLMServer, http
from yarus.db.errors import InputError
from yarus.tasks.config.settings import RetrieverService
from yarus.tasks.systems.retrievers.external import Outside, from_service
from yarus.tasks.systems.retrievers.protocol import Ranking


def asked(llm_server: FakeLLMServer, k: int = 3, **service: Any) -> Ranking:
    retriever = Outside(from_service(llm_server.url, RetrieverService(**service)), concurrency=2)
    [ranking] = retriever.retrieve(["Где столовая?"], None, k, timed=0)
    return ranking


def replies(reply: Any) -> Callable[[int, dict[str, Any]], bytes]:
    return lambda number, request: http(200, json.dumps(reply), "content-type: application/json")


def test_a_service_gets_the_question_and_its_order_and_distances_count(llm_server: FakeLLMServer) -> None:
    llm_server.script = replies({"results": [{"id": 7, "distance": 0.1}, {"id": "b", "distance": 0.2}]})
    ranking = asked(llm_server)
    assert (ranking.ids, ranking.distances, ranking.error) == (["7", "b"], [0.1, 0.2], None)
    assert ranking.latency_ms is not None
    assert llm_server.requests == [{"question": "Где столовая?", "k": 3}]


def test_what_is_sent_and_where_the_answer_stands_can_be_mapped(llm_server: FakeLLMServer) -> None:
    llm_server.script = replies(
        {"data": {"hits": [{"doc": {"uri": "a"}, "score": 9}, {"doc": {"uri": "b"}, "score": 4}]}}
    )
    ranking = asked(
        llm_server,
        request='{"query": {"text": "$question", "lang": "ru"}, "size": ["$k"]}',
        ids="data.hits[].doc.uri",
        distances="none",
        headers={"authorization": "Bearer s3cret"},
    )
    assert (ranking.ids, ranking.distances) == (["a", "b"], [0, 1])  # a score is no distance: the order counts
    assert llm_server.requests == [{"query": {"text": "Где столовая?", "lang": "ru"}, "size": [3]}]
    assert "Bearer s3cret" in llm_server.headers[0]


FAULTS = {
    "500": (http(500, "out of memory"), "the service answered 500: out of memory"),
    "404": (http(404), "the service answered 404"),
    "HTML": (http(200, "<html>Sign in</html>"), "the reply is no JSON: <html>Sign in"),
    "empty": (http(200), "the reply is no JSON"),
    "another shape": (http(200, '{"hits": [{"id": 1}]}'), r"'results\[\].id' finds no list in the reply: {\"hits\""),
    "a list": (http(200, "[1, 2]"), "finds no list in the reply"),
    "twice": (http(200, '{"results": [{"id": "a"}, {"id": "b"}, {"id": "a"}]}'), "id 'a' was returned twice"),
    "unsorted": (
        http(200, '{"results": [{"id": "a", "distance": 0.9}, {"id": "b", "distance": 0.8}]}'),
        "distances do not ascend: 0.9 at rank 1, then 0.8",
    ),
    "no number": (http(200, '{"results": [{"id": "a", "distance": "near"}]}'), "expected pairs of id and distance"),
    "cut off": (Do(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{", then="close"), "RemoteProtocolError"),
    "reset": (Do(then="reset"), "(ReadError|RemoteProtocolError)"),
    "slow": (Do(http(200, "{}"), after_s=60), "ReadTimeout"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_a_service_does_is_that_questions_error(llm_server: FakeLLMServer, fault: str) -> None:
    deed, message = FAULTS[fault]
    llm_server.script = lambda number, request: deed
    ranking = asked(llm_server, timeout_s=0.2 if fault == "slow" else 60)
    assert (ranking.ids, ranking.distances, ranking.latency_ms) == ([], [], None)
    assert re.search(message, str(ranking.error)), ranking.error


@pytest.mark.parametrize(
    "reply",
    [
        http(401, f"{'.' * 190}unknown: Bearer topsecret9"),  # where a cut would leave half of it
        http(200, "<p>topsecret9"),
        http(200, '{"headers": "Bearer topsecret9"}'),
        http(200, '{"results": [{"id": 1, "distance": "topsecret9"}]}'),
        http(200, '{"results": [{"id": "topsecret9"}, {"id": "topsecret9"}]}'),
    ],
)
def test_a_secret_that_a_service_repeats_is_not_stored(llm_server: FakeLLMServer, reply: bytes) -> None:
    llm_server.script = lambda number, request: reply
    service = RetrieverService.model_validate({"headers": {"Authorization": "Bearer topsecret9\n"}})
    [ranking] = Outside(from_service(llm_server.url, service), concurrency=1).retrieve(["?"], None, 3, timed=0)
    assert "Bearer topsecret9" in llm_server.headers[0]
    assert "***" in str(ranking.error)
    assert "topsec" not in str(ranking.error)
    [answered] = asyncio.run(system_at(llm_server.url, headers=service.headers).answers(["?"]))
    assert answered.error
    assert "topsec" not in answered.error


@pytest.mark.parametrize(
    "open_service",
    [
        lambda url, headers: from_service(url, RetrieverService.model_validate({"headers": headers})),
        lambda url, headers: system_at(url, headers=headers),
        lambda url, headers: system_at(f"openai:{url}", headers=headers, model="m"),
    ],
)
def test_a_service_that_cannot_be_asked_is_refused_at_once(open_service: Any) -> None:
    for url, headers in (
        ("http://h/", {"A": "s3cret\0"}),
        ("http://h/?key=s3cret", {}),
        ("http://b:s3cret@h", {}),
        ("http://s3cret@h", {}),
    ):
        with pytest.raises(InputError, match="_SERVICE__HEADERS") as refused:
            open_service(url, headers)
        assert "s3cret" not in str(refused.value)


def test_a_dead_service_is_an_error_and_an_empty_answer_is_not(llm_server: FakeLLMServer) -> None:
    llm_server.script = replies({"results": []})
    assert asked(llm_server).error is None
    llm_server.stop()
    assert "ConnectError" in str(asked(llm_server).error)
    llm_server.start()


def test_one_failure_leaves_the_other_questions_alone_and_in_order(llm_server: FakeLLMServer) -> None:
    def script(number: int, request: dict[str, Any]) -> bytes:
        if request["question"] == "3":
            return http(503)
        return http(200, json.dumps({"results": [{"id": request["question"]}]}))

    llm_server.script = script
    retriever = Outside(from_service(llm_server.url, RetrieverService()), concurrency=4)
    found = retriever.retrieve([str(number) for number in range(20)], None, 5, timed=0)
    assert [ranking.ids for ranking in found] == [[str(n)] if n != 3 else [] for n in range(20)]
    assert [n for n, ranking in enumerate(found) if ranking.error] == [3]


def test_no_more_questions_at_once_than_are_allowed(llm_server: FakeLLMServer) -> None:
    llm_server.script = lambda number, request: Do(http(200, '{"results": []}'), after_s=0.02)
    retriever = Outside(from_service(llm_server.url, RetrieverService()), concurrency=3)
    batches = [
        threading.Thread(target=retriever.retrieve, args=(["?"] * 10, None, 5), kwargs={"timed": 0}) for _ in range(2)
    ]
    for batch in batches:
        batch.start()
    for batch in batches:
        batch.join()
    assert (len(llm_server.requests), llm_server.most_in_flight) == (20, 3)


@pytest.mark.parametrize(
    ("setting", "value"), [("request", "{question}"), ("ids", "results[.id"), ("distances", ""), ("ids", "a |")]
)
def test_a_mapping_that_cannot_be_read_is_refused_before_anything_is_asked(setting: str, value: str) -> None:
    with pytest.raises(InputError, match="YARUS_RETRIEVER_SERVICE"):
        from_service("http://127.0.0.1:1", RetrieverService(**{setting: value}))

"""An HTTP service as retriever: its requests, its replies, and every failure."""

import asyncio
import json
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.llm_clients import open_system
from tests.support.llm_server import Action, FakeLLMServer, make_response
from yarus.db.errors import InputError
from yarus.tasks.config.settings import RetrieverService
from yarus.tasks.systems.retrievers.external import ExternalRetriever, open_ranking_service
from yarus.tasks.systems.retrievers.protocol import Ranking


def ask_service(llm_server: FakeLLMServer, k: int = 3, **service: Any) -> Ranking:
    retriever = ExternalRetriever(open_ranking_service(llm_server.url, RetrieverService(**service)), concurrency=2)
    [ranking] = retriever.retrieve(["Где столовая?"], None, k, timed=0)
    return ranking


def script_reply(reply: Any) -> Callable[[int, dict[str, Any]], bytes]:
    return lambda number, request: make_response(200, json.dumps(reply), "content-type: application/json")


def test_service_gets_question_and_returns_ranking(llm_server: FakeLLMServer) -> None:
    llm_server.script = script_reply({"results": [{"id": 7, "distance": 0.1}, {"id": "b", "distance": 0.2}]})
    ranking = ask_service(llm_server)
    assert (ranking.ids, ranking.distances, ranking.error) == (["7", "b"], [0.1, 0.2], None)
    assert ranking.latency_ms is not None
    assert llm_server.requests == [{"question": "Где столовая?", "k": 3}]


def test_request_and_paths_can_be_set(llm_server: FakeLLMServer) -> None:
    llm_server.script = script_reply(
        {"data": {"hits": [{"doc": {"uri": "a"}, "score": 9}, {"doc": {"uri": "b"}, "score": 4}]}}
    )
    ranking = ask_service(
        llm_server,
        request='{"query": {"text": "$question", "lang": "ru"}, "size": ["$k"]}',
        ids="data.hits[].doc.uri",
        distances="none",
        headers={"authorization": "Bearer s3cret"},
    )
    assert (ranking.ids, ranking.distances) == (["a", "b"], [0, 1])  # a score is not a distance: the order counts
    assert llm_server.requests == [{"query": {"text": "Где столовая?", "lang": "ru"}, "size": [3]}]
    assert "Bearer s3cret" in llm_server.headers[0]


FAULTS = {
    "500": (make_response(500, "out of memory"), "the service answered 500: out of memory"),
    "404": (make_response(404), "the service answered 404"),
    "HTML": (make_response(200, "<html>Sign in</html>"), "the reply is no JSON: <html>Sign in"),
    "empty": (make_response(200), "the reply is no JSON"),
    "another shape": (
        make_response(200, '{"hits": [{"id": 1}]}'),
        r"'results\[\].id' finds no list in the reply: {\"hits\"",
    ),
    "a list": (make_response(200, "[1, 2]"), "finds no list in the reply"),
    "twice": (make_response(200, '{"results": [{"id": "a"}, {"id": "b"}, {"id": "a"}]}'), "id 'a' was returned twice"),
    "unsorted": (
        make_response(200, '{"results": [{"id": "a", "distance": 0.9}, {"id": "b", "distance": 0.8}]}'),
        "distances do not ascend: 0.9 at rank 1, then 0.8",
    ),
    "no number": (
        make_response(200, '{"results": [{"id": "a", "distance": "near"}]}'),
        "expected pairs of id and distance",
    ),
    "cut off": (Action(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{", then="close"), "RemoteProtocolError"),
    "reset": (Action(then="reset"), "(ReadError|RemoteProtocolError)"),
    "slow": (Action(make_response(200, "{}"), after_s=60), "ReadTimeout"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_service_failure_is_the_error_of_its_question(llm_server: FakeLLMServer, fault: str) -> None:
    deed, message = FAULTS[fault]
    llm_server.script = lambda number, request: deed
    ranking = ask_service(llm_server, timeout_s=0.2 if fault == "slow" else 60)
    assert (ranking.ids, ranking.distances, ranking.latency_ms) == ([], [], None)
    assert re.search(message, str(ranking.error)), ranking.error


@pytest.mark.parametrize(
    "reply",
    [
        make_response(401, f"{'.' * 190}unknown: Bearer topsecret9"),  # a cut at 200 characters would leave half of it
        make_response(200, "<p>topsecret9"),
        make_response(200, '{"headers": "Bearer topsecret9"}'),
        make_response(200, '{"results": [{"id": 1, "distance": "topsecret9"}]}'),
        make_response(200, '{"results": [{"id": "topsecret9"}, {"id": "topsecret9"}]}'),
    ],
)
def test_repeated_secret_is_redacted(llm_server: FakeLLMServer, reply: bytes) -> None:
    llm_server.script = lambda number, request: reply
    service = RetrieverService.model_validate({"headers": {"Authorization": "Bearer topsecret9\n"}})
    [ranking] = ExternalRetriever(open_ranking_service(llm_server.url, service), concurrency=1).retrieve(
        ["?"], None, 3, timed=0
    )
    assert "Bearer topsecret9" in llm_server.headers[0]
    assert "***" in str(ranking.error)
    assert "topsec" not in str(ranking.error)
    [answer] = asyncio.run(open_system(llm_server.url, headers=service.headers).answers(["?"]))
    assert answer.error
    assert "topsec" not in answer.error


@pytest.mark.parametrize(
    "open_service",
    [
        lambda url, headers: open_ranking_service(url, RetrieverService.model_validate({"headers": headers})),
        lambda url, headers: open_system(url, headers=headers),
        lambda url, headers: open_system(f"openai:{url}", headers=headers, model="m"),
    ],
)
def test_unusable_service_is_rejected(open_service: Any) -> None:
    for url, headers in (
        ("http://h/", {"A": "s3cret\0"}),
        ("http://h/?key=s3cret", {}),
        ("http://b:s3cret@h", {}),
        ("http://s3cret@h", {}),
    ):
        with pytest.raises(InputError, match="_SERVICE__HEADERS") as raised:
            open_service(url, headers)
        assert "s3cret" not in str(raised.value)


def test_stopped_service_is_an_error_and_empty_ranking_is_not(llm_server: FakeLLMServer) -> None:
    llm_server.script = script_reply({"results": []})
    assert ask_service(llm_server).error is None
    llm_server.stop()
    assert "ConnectError" in str(ask_service(llm_server).error)
    llm_server.start()


def test_failure_does_not_affect_other_questions(llm_server: FakeLLMServer) -> None:
    def script(number: int, request: dict[str, Any]) -> bytes:
        if request["question"] == "3":
            return make_response(503)
        return make_response(200, json.dumps({"results": [{"id": request["question"]}]}))

    llm_server.script = script
    retriever = ExternalRetriever(open_ranking_service(llm_server.url, RetrieverService()), concurrency=4)
    rankings = retriever.retrieve([str(number) for number in range(20)], None, 5, timed=0)
    assert [ranking.ids for ranking in rankings] == [[str(n)] if n != 3 else [] for n in range(20)]
    assert [n for n, ranking in enumerate(rankings) if ranking.error] == [3]


def test_concurrency_limit_is_kept(llm_server: FakeLLMServer) -> None:
    llm_server.script = lambda number, request: Action(make_response(200, '{"results": []}'), after_s=0.02)
    retriever = ExternalRetriever(open_ranking_service(llm_server.url, RetrieverService()), concurrency=3)
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
def test_unusable_mapping_is_rejected(setting: str, value: str) -> None:
    with pytest.raises(InputError, match="YARUS_RETRIEVER_SERVICE"):
        open_ranking_service("http://127.0.0.1:1", RetrieverService(**{setting: value}))

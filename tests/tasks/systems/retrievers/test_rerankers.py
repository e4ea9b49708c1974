"""Re-rankers: their order, their depth, and failures of single questions."""

import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.bots import USER_CODES
from tests.support.llm_server import Action, FakeLLMServer, make_response
from yarus.db.errors import InputError
from yarus.tasks.systems.retrievers.protocol import Ranking
from yarus.tasks.systems.retrievers.reranking import (
    FUNCTION,
    SERVICE,
    Reranker,
    Scorer,
    get_reranker_kind,
    is_external_scorer,
    open_reranker,
    validate_scores,
)

TEXTS = {f"c{number}": f"text {number}" for number in range(8)}
RANKING = Ranking([f"c{number}" for number in range(6)], [number / 10 for number in range(6)], latency_ms=5.0)


def make_reranker(score: Callable[[str, Sequence[str]], Any], depth: int = 50) -> Reranker:
    return Reranker(Scorer(score, "a test", concurrency=2), TEXTS, depth)


def rerank_one(score: Callable[[str, Sequence[str]], Any], ranking: Ranking = RANKING, depth: int = 50) -> Ranking:
    [reranked] = make_reranker(score, depth).rerank(["?"], [ranking])
    return reranked


def score_by_number(question: str, texts: Sequence[str]) -> list[float]:
    """Return higher scores for higher numbers."""
    return [float(text.split()[1]) for text in texts]


def test_best_score_comes_first_and_distances_ascend() -> None:
    ranking = rerank_one(score_by_number)
    assert ranking.ids == ["c5", "c4", "c3", "c2", "c1", "c0"]
    assert ranking.distances == [-5, -4, -3, -2, -1, 0]
    assert math.copysign(1, ranking.distances[-1]) == 1, "no minus zero"
    assert ranking.latency_ms is not None and ranking.latency_ms > 5


def test_rerank_orders_only_the_first_chunks() -> None:
    ranking = rerank_one(score_by_number, depth=3)
    assert ranking.ids == ["c2", "c1", "c0", "c3", "c4", "c5"]
    assert ranking.distances == [-2, -1, 0, 0, 0, 0]


def test_equal_scores_keep_the_order_of_the_retriever() -> None:
    ranking = Ranking(["c3", "c1", "c2", "c0"], [0.1, 0.1, 0.2, 0.3])
    assert rerank_one(lambda question, texts: [1, 2, 2, 1], ranking).ids == ["c1", "c2", "c3", "c0"]


def test_rerank_keeps_errors_and_missing_latencies() -> None:
    scored: list[str] = []

    def score(question: str, texts: Sequence[str]) -> list[float]:
        scored.append(question)
        return [1.0] * len(texts)

    rankings = [Ranking(["c1"], [0.0]), Ranking([], [], error="down"), Ranking([], [])]
    reranked = make_reranker(score).rerank(["a", "b", "c"], rankings)
    assert [ranking.latency_ms for ranking in reranked] == [None] * 3
    assert (reranked[1].error, reranked[2].error, reranked[2].ids) == ("down", None, [])
    assert scored == ["a"], "there is nothing to order in an empty ranking"


def exit_with_message(question: str, texts: Sequence[str]) -> list[float]:
    sys.exit("enough")


@pytest.mark.parametrize(
    ("score", "error"),
    [
        (lambda question, texts: [1.0], "expected a score for each of 6 texts, not 1"),
        (lambda question, texts: [1.0] * 7, "expected a score for each of 6 texts, not more"),
        (lambda question, texts: [], "expected a score for each of 6 texts, not 0"),
        (lambda question, texts: [1, 2, math.nan, 4, 5, 6], "the score of text 2 is nan, not a finite number"),
        (lambda question, texts: [1, 2, 3, 4, 5, -math.inf], "the score of text 5 is -inf"),
        (lambda question, texts: None, "expected a list of 6 scores, not None"),
        (lambda question, texts: ["good"] * 6, "expected a list of 6 scores"),
        (lambda question, texts: [[1.0]] * 6, "expected a list of 6 scores"),
        (lambda question, texts: 1 / 0, "ZeroDivisionError"),
        (exit_with_message, "SystemExit: enough"),
    ],
)
def test_invalid_scores_are_the_error_of_the_question(score: Any, error: str) -> None:
    ranking = rerank_one(score)
    assert (ranking.ids, ranking.distances, ranking.latency_ms) == ([], [], None), "never the order of the retriever"
    assert ranking.error and ranking.error.startswith("the re-ranker: ") and error in ranking.error


def test_endless_scores_are_not_read_to_the_end() -> None:
    with pytest.raises(ValueError, match="not more"):
        validate_scores(iter(lambda: 1.0, None), 3)


def test_chunk_without_text_is_an_error() -> None:
    ranking = rerank_one(score_by_number, Ranking(["c1", "elsewhere"], [0, 1]))
    assert "no chunk 'elsewhere'" in str(ranking.error)


MODULE = """
def rerank(question, texts):
    assert question == "?" and all(isinstance(text, str) for text in texts)
    return (len(text) for text in texts)
number = 5
"""


@pytest.fixture
def module(at_home: Path) -> Iterator[str]:
    (at_home / "their_reranker.py").write_text(MODULE, encoding="utf-8")
    yield "their_reranker"
    USER_CODES.close()


def test_function_scores_texts(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_RERANKER_MODEL", "big")
    function_reranker = open_reranker(f"{module}:rerank", {"c1": "short", "c2": "a longer one"}, 50, USER_CODES)
    [ranking] = function_reranker.rerank(["?"], [Ranking(["c1", "c2"], [0, 1])])
    assert (ranking.ids, function_reranker.identity) == (["c2", "c1"], "their_reranker:rerank|model:big")


def test_unusable_function_is_rejected(module: str) -> None:
    for name, message in (
        (f"{module}:gone", "gone"),
        (f"{module}:number", "is no function"),
        ("nowhere:rerank", "nowher"),
    ):
        with pytest.raises(InputError, match=message) as raised:
            open_reranker(name, {}, 50, USER_CODES)
        assert "YARUS_RERANKER" in str(raised.value)


def test_reranker_kind_follows_the_name(at_home: Path) -> None:
    assert get_reranker_kind("https://reranker.example/rerank") == "http://…"
    assert get_reranker_kind("package.module:function") == "module:function"
    with pytest.raises(InputError, match="nothing is downloaded"):
        get_reranker_kind("nobody/has-this-model")
    with pytest.raises(InputError, match="YARUS_RERANKER_SERVICE__HEADERS"):
        get_reranker_kind("https://me:s3cret@reranker.example/rerank")


# A service ---------------------------------------------------------------------------------------------------------

SCORES = [0.1, 0.9, 0.5]
COHERE = [
    {"index": 1, "relevance_score": 0.9},
    {"index": 2, "relevance_score": 0.5},
    {"index": 0, "relevance_score": 0},
]
FORMS = {
    "Cohere, Jina, vLLM, Infinity": {"results": COHERE},
    "Text Embeddings Inference": [{"index": 1, "score": 0.9}, {"index": 2, "score": 0.5}, {"index": 0, "score": 0.1}],
    "Voyage": {"object": "list", "data": COHERE},
    "in the order of the texts": {"results": sorted(COHERE, key=lambda row: row["index"])},
}


def ask_service(server: FakeLLMServer, reply: Any, n_texts: int = 3) -> Ranking:
    server.script = lambda _, __: reply if isinstance(reply, bytes | Action) else make_response(200, json.dumps(reply))
    ids = [f"c{number}" for number in range(n_texts)]
    [ranking] = open_reranker(server.url, TEXTS, 50, USER_CODES).rerank(
        ["Где столовая?"], [Ranking(ids, [0.0] * n_texts, 1.0)]
    )
    return ranking


@pytest.mark.parametrize("form", FORMS)
def test_usual_reply_forms_are_read(at_home: Path, llm_server: FakeLLMServer, form: str) -> None:
    ranking = ask_service(llm_server, FORMS[form])
    assert (ranking.ids, ranking.error) == (["c1", "c2", "c0"], None)
    assert llm_server.requests == [{"query": "Где столовая?", "documents": ["text 0", "text 1", "text 2"]}]


def test_service_gets_model_and_custom_request(
    at_home: Path, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YARUS_RERANKER_MODEL", "bge")
    ask_service(llm_server, FORMS["Text Embeddings Inference"])
    assert llm_server.requests[0]["model"] == "bge"
    for name, text in {
        "REQUEST": '{"query": "$question", "texts": "$texts", "raw_scores": true}',
        "INDICES": "none",
        "SCORES": "scored",
        "HEADERS": '{"authorization": "Bearer s3cret"}',
    }.items():
        monkeypatch.setenv(f"YARUS_RERANKER_SERVICE__{name}", text)
    assert ask_service(llm_server, {"scored": SCORES}).ids == ["c1", "c2", "c0"]
    assert llm_server.requests[1] == {
        "query": "Где столовая?",
        "texts": ["text 0", "text 1", "text 2"],
        "raw_scores": True,
    }
    assert "Bearer s3cret" in llm_server.headers[1]
    assert "s3cret" not in str(ask_service(llm_server, make_response(401, "no: Bearer s3cret")).error)


FAULTS = {
    "500": (make_response(500, "out of memory"), "the service answered 500: out of memory"),
    "no JSON": (make_response(200, "<html>"), "the reply is no JSON"),
    "another shape": ({"hits": []}, "finds no list in the reply"),
    "nothing": ({"results": []}, "finds no list in the reply"),
    "the best only": ({"results": [{"index": 1, "score": 0.9}]}, "expected a score for each of 3 texts, not 1"),
    "twice": ([{"index": 1, "score": 1}, {"index": 1, "score": 2}, {"index": 0, "score": 3}], "scored twice"),
    "out of range": ([{"index": index, "score": 1} for index in (1, 2, 3)], "index 3 is no place from 0 to 2"),
    "no number": ([{"index": str(index), "score": 1} for index in range(3)], "index '0' is no place"),
    "without places": ([{"score": 1}] * 3, "finds no"),
    "a score is missing": ([{"index": 0, "score": 1}, {"index": 1}, {"index": 2, "score": 1}], "no place for each"),
    "no score": ([{"index": index, "score": "high"} for index in range(3)], "expected a list of 3 scores"),
    "NaN": (
        make_response(200, '[{"index":0,"score":NaN},{"index":1,"score":1},{"index":2,"score":1}]'),
        "text 0 is nan",
    ),
    "cut off": (Action(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{", then="close"), "RemoteProtocolError"),
    "slow": (Action(make_response(200, "[]"), after_s=60), "ReadTimeout"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_service_failure_is_the_error_of_its_question(
    at_home: Path, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    deed, message = FAULTS[fault]
    monkeypatch.setenv("YARUS_RERANKER_SERVICE__TIMEOUT_S", "0.2" if fault == "slow" else "60")
    ranking = ask_service(llm_server, deed)
    assert (ranking.ids, ranking.latency_ms) == ([], None)
    assert re.search(re.escape(message), str(ranking.error)), ranking.error


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("REQUEST", "{query", "YARUS_RERANKER_SERVICE__REQUEST"),
        ("SCORES", "results[", "YARUS_RERANKER_SERVICE"),
        ("HEADERS", '{"a b": "c"}', "YARUS_RERANKER_SERVICE__HEADERS"),
    ],
)
def test_unusable_settings_are_rejected(
    at_home: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, message: str
) -> None:
    monkeypatch.setenv(f"YARUS_RERANKER_SERVICE__{name}", text)
    with pytest.raises(InputError, match=message):
        open_reranker("http://127.0.0.1:9/rerank", {}, 50, USER_CODES)


@pytest.mark.parametrize("name", ["my_search:rerank", "my.search:helper.rerank", "http://h/rerank", "HTTPS://h/rerank"])
def test_is_outside_follows_the_name(name: str) -> None:
    assert is_external_scorer(name)
    assert get_reranker_kind(name) == (SERVICE if "//" in name else FUNCTION)

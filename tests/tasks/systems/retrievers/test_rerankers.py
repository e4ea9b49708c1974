"""Re-rankers: which order they give, how deep, and whatever goes wrong with one question."""

import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.bots import CODES
from tests.support.llm_server import Do, FakeLLMServer, http
from yarus.db.errors import InputError
from yarus.tasks.systems.retrievers.protocol import Ranking
from yarus.tasks.systems.retrievers.reranking import (
    FUNCTION,
    SERVICE,
    Reranker,
    Scorer,
    checked,
    is_outside,
    open_reranker,
    reranker_kind,
)

TEXTS = {f"c{number}": f"text {number}" for number in range(8)}
ASKED = Ranking([f"c{number}" for number in range(6)], [number / 10 for number in range(6)], latency_ms=5.0)


def reranker(score: Callable[[str, Sequence[str]], Any], depth: int = 50) -> Reranker:
    return Reranker(Scorer(score, "a test", concurrency=2), TEXTS, depth)


def ordered(score: Callable[[str, Sequence[str]], Any], ranking: Ranking = ASKED, depth: int = 50) -> Ranking:
    [found] = reranker(score, depth).rerank(["?"], [ranking])
    return found


def by_number(question: str, texts: Sequence[str]) -> list[float]:
    """The later the number, the better."""
    return [float(text.split()[1]) for text in texts]


def test_the_best_score_comes_first_and_distances_ascend() -> None:
    found = ordered(by_number)
    assert found.ids == ["c5", "c4", "c3", "c2", "c1", "c0"]
    assert found.distances == [-5, -4, -3, -2, -1, 0]
    assert math.copysign(1, found.distances[-1]) == 1, "no minus zero"
    assert found.latency_ms is not None and found.latency_ms > 5


def test_only_the_first_are_ordered_and_the_others_stay_behind_them() -> None:
    found = ordered(by_number, depth=3)
    assert found.ids == ["c2", "c1", "c0", "c3", "c4", "c5"]
    assert found.distances == [-2, -1, 0, 0, 0, 0]


def test_equal_scores_leave_the_retrievers_order() -> None:
    ranking = Ranking(["c3", "c1", "c2", "c0"], [0.1, 0.1, 0.2, 0.3])
    assert ordered(lambda question, texts: [1, 2, 2, 1], ranking).ids == ["c1", "c2", "c3", "c0"]


def test_what_was_not_timed_alone_has_no_latency_and_an_error_stays_one() -> None:
    asked: list[str] = []

    def score(question: str, texts: Sequence[str]) -> list[float]:
        asked.append(question)
        return [1.0] * len(texts)

    rankings = [Ranking(["c1"], [0.0]), Ranking([], [], error="down"), Ranking([], [])]
    found = reranker(score).rerank(["a", "b", "c"], rankings)
    assert [ranking.latency_ms for ranking in found] == [None] * 3
    assert (found[1].error, found[2].error, found[2].ids) == ("down", None, [])
    assert asked == ["a"], "there is nothing to order in an empty ranking"


def _exit(question: str, texts: Sequence[str]) -> list[float]:
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
        (_exit, "SystemExit: enough"),
    ],
)
def test_whatever_goes_wrong_is_that_questions_error_and_no_ranking(score: Any, error: str) -> None:
    found = ordered(score)
    assert (found.ids, found.distances, found.latency_ms) == ([], [], None), "never the order of the retriever"
    assert found.error and found.error.startswith("the re-ranker: ") and error in found.error


def test_an_endless_list_of_scores_is_not_read_to_its_end() -> None:
    with pytest.raises(ValueError, match="not more"):
        checked(iter(lambda: 1.0, None), 3)


def test_a_chunk_without_a_text_is_an_error() -> None:
    found = ordered(by_number, Ranking(["c1", "elsewhere"], [0, 1]))
    assert "no chunk 'elsewhere'" in str(found.error)


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
    CODES.close()


def test_a_function_scores(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_RERANKER_MODEL", "big")
    opened = open_reranker(f"{module}:rerank", {"c1": "short", "c2": "a longer one"}, 50, CODES)
    [found] = opened.rerank(["?"], [Ranking(["c1", "c2"], [0, 1])])
    assert (found.ids, opened.identity) == (["c2", "c1"], "their_reranker:rerank|model:big")


def test_what_is_no_function(module: str) -> None:
    for name, said in (
        (f"{module}:gone", "gone"),
        (f"{module}:number", "is no function"),
        ("nowhere:rerank", "nowher"),
    ):
        with pytest.raises(InputError, match=said) as refused:
            open_reranker(name, {}, 50, CODES)
        assert "YARUS_RERANKER" in str(refused.value)


def test_names_tell_what_they_are(at_home: Path) -> None:
    assert reranker_kind("https://reranker.example/rerank") == "http://…"
    assert reranker_kind("package.module:function") == "module:function"
    with pytest.raises(InputError, match="nothing is downloaded"):
        reranker_kind("nobody/has-this-model")
    with pytest.raises(InputError, match="YARUS_RERANKER_SERVICE__HEADERS"):
        reranker_kind("https://me:s3cret@reranker.example/rerank")


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


def asked(server: FakeLLMServer, reply: Any, texts: int = 3) -> Ranking:
    server.script = lambda number, request: reply if isinstance(reply, bytes | Do) else http(200, json.dumps(reply))
    ids = [f"c{number}" for number in range(texts)]
    [found] = open_reranker(server.url, TEXTS, 50, CODES).rerank(["Где столовая?"], [Ranking(ids, [0.0] * texts, 1.0)])
    return found


@pytest.mark.parametrize("form", FORMS)
def test_the_usual_replies_are_understood(at_home: Path, llm_server: FakeLLMServer, form: str) -> None:
    found = asked(llm_server, FORMS[form])
    assert (found.ids, found.error) == (["c1", "c2", "c0"], None)
    assert llm_server.requests == [{"query": "Где столовая?", "documents": ["text 0", "text 1", "text 2"]}]


def test_a_service_is_told_its_model_and_can_be_asked_otherwise(
    at_home: Path, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YARUS_RERANKER_MODEL", "bge")
    asked(llm_server, FORMS["Text Embeddings Inference"])
    assert llm_server.requests[0]["model"] == "bge"
    for name, text in {
        "REQUEST": '{"query": "$question", "texts": "$texts", "raw_scores": true}',
        "INDICES": "none",
        "SCORES": "scored",
        "HEADERS": '{"authorization": "Bearer s3cret"}',
    }.items():
        monkeypatch.setenv(f"YARUS_RERANKER_SERVICE__{name}", text)
    assert asked(llm_server, {"scored": SCORES}).ids == ["c1", "c2", "c0"]
    assert llm_server.requests[1] == {
        "query": "Где столовая?",
        "texts": ["text 0", "text 1", "text 2"],
        "raw_scores": True,
    }
    assert "Bearer s3cret" in llm_server.headers[1]
    assert "s3cret" not in str(asked(llm_server, http(401, "no: Bearer s3cret")).error)


FAULTS = {
    "500": (http(500, "out of memory"), "the service answered 500: out of memory"),
    "no JSON": (http(200, "<html>"), "the reply is no JSON"),
    "another shape": ({"hits": []}, "finds no list in the reply"),
    "nothing": ({"results": []}, "finds no list in the reply"),
    "the best only": ({"results": [{"index": 1, "score": 0.9}]}, "expected a score for each of 3 texts, not 1"),
    "twice": ([{"index": 1, "score": 1}, {"index": 1, "score": 2}, {"index": 0, "score": 3}], "scored twice"),
    "out of range": ([{"index": place, "score": 1} for place in (1, 2, 3)], "index 3 is no place from 0 to 2"),
    "no number": ([{"index": str(place), "score": 1} for place in range(3)], "index '0' is no place"),
    "without places": ([{"score": 1}] * 3, "finds no"),
    "a score is missing": ([{"index": 0, "score": 1}, {"index": 1}, {"index": 2, "score": 1}], "no place for each"),
    "no score": ([{"index": place, "score": "high"} for place in range(3)], "expected a list of 3 scores"),
    "NaN": (http(200, '[{"index":0,"score":NaN},{"index":1,"score":1},{"index":2,"score":1}]'), "text 0 is nan"),
    "cut off": (Do(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{", then="close"), "RemoteProtocolError"),
    "slow": (Do(http(200, "[]"), after_s=60), "ReadTimeout"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_a_service_does_wrong_is_that_questions_error(
    at_home: Path, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    deed, said = FAULTS[fault]
    monkeypatch.setenv("YARUS_RERANKER_SERVICE__TIMEOUT_S", "0.2" if fault == "slow" else "60")
    found = asked(llm_server, deed)
    assert (found.ids, found.latency_ms) == ([], None)
    assert re.search(re.escape(said), str(found.error)), found.error


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("REQUEST", "{query", "YARUS_RERANKER_SERVICE__REQUEST"),
        ("SCORES", "results[", "YARUS_RERANKER_SERVICE"),
        ("HEADERS", '{"a b": "c"}', "YARUS_RERANKER_SERVICE__HEADERS"),
    ],
)
def test_settings_that_cannot_work_are_refused_at_once(
    at_home: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, said: str
) -> None:
    monkeypatch.setenv(f"YARUS_RERANKER_SERVICE__{name}", text)
    with pytest.raises(InputError, match=said):
        open_reranker("http://127.0.0.1:9/rerank", {}, 50, CODES)


@pytest.mark.parametrize("name", ["my_search:rerank", "my.search:helper.rerank", "http://h/rerank", "HTTPS://h/rerank"])
def test_what_is_not_ours_is_known_by_its_name(name: str) -> None:
    assert is_outside(name)
    assert reranker_kind(name) == (SERVICE if "//" in name else FUNCTION)

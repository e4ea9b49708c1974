"""Every retriever at its work: on XQuAD-ru, over a table with an index, over HTTP, and as somebody else's code."""

import asyncio
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pgvector.psycopg import register_vector
from sqlalchemy import Engine, create_engine, event, text

from db.errors import InputError
from db.vectors import index_vectors
from tasks.load import read_cases
from tasks.models.embedders import embedder
from tasks.retrieve import rank
from tasks.retrievers import retriever_kind
from tasks.retrievers.dense import Dense, unit_vectors
from tasks.retrievers.hybrid import fuse
from tasks.retrievers.outside import Outside, checked, from_callable, from_service
from tasks.retrievers.protocol import Ranking
from tasks.settings import RetrieverService, SystemService
from tasks.systems import system
from tests.runs import opened
from tests.tasks.conftest import Chaos, Do, http

Rankings = dict[str, list[Ranking]]
FIRST = 100  # questions; a ranking of each by each retriever


@pytest.fixture(scope="module")
def rankings(home: Path, engine: Engine, xquad_source: str) -> tuple[Rankings, list[list[str]]]:
    """Every question of XQuAD-ru by each retriever of ours, and the paragraph that is right."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YARUS_HOME", str(home))
        found: Rankings = {}
        for name in ("dense", "fulltext", "hybrid", "pgvector"):
            run = opened(source=xquad_source, retriever=name)
            cases = read_cases(run)
            found[name] = rank(run, cases["question"].to_pylist(), 10, unit="chunk", timed=3)
        return found, cases["relevant"].to_pylist()


def hit_rate(rankings: list[Ranking], relevant: list[list[str]]) -> float:
    return float(np.mean([bool(set(found.ids) & set(of)) for found, of in zip(rankings, relevant, strict=True)]))


def test_pgvector_without_an_index_is_dense_in_every_ranking(rankings: Any) -> None:
    dense, pgvector = rankings[0]["dense"], rankings[0]["pgvector"]
    assert len(dense) == 1190
    assert [ranking.ids for ranking in pgvector] == [ranking.ids for ranking in dense]
    ours, theirs = ([ranking.distances for ranking in of] for of in (dense, pgvector))
    np.testing.assert_allclose(theirs, ours, atol=1e-6)


def test_hybrid_is_no_worse_than_the_better_of_its_parts(rankings: Any) -> None:
    found, relevant = rankings
    rates = {name: hit_rate(of, relevant) for name, of in found.items()}
    assert rates["hybrid"] >= max(rates["dense"], rates["fulltext"]) >= 0.95


def test_only_some_questions_are_timed_where_a_batch_is_faster(rankings: Any) -> None:
    timed = {name: sum(ranking.latency_ms is not None for ranking in of) for name, of in rankings[0].items()}
    assert timed == {"dense": 3, "pgvector": 3, "hybrid": 3, "fulltext": 1190}


# --- pgvector over an index ---


@pytest.fixture(scope="module")
def sentences(xquad_ru: Path) -> list[str]:
    articles = json.loads(xquad_ru.read_text(encoding="utf-8"))["data"]
    paragraphs = [paragraph["context"] for article in articles[:24] for paragraph in article["paragraphs"]]
    return [sentence for paragraph in paragraphs for sentence in paragraph.split(". ") if len(sentence) > 20]


@pytest.fixture(scope="module")
def indexed(production: Callable[..., str], sentences: list[str]) -> str:
    """A production database with a poor HNSW index, so that it can be told from exact search."""
    url = production(
        "hnsw",
        "ALTER DATABASE hnsw SET hnsw.ef_search = 10",
        "ALTER DATABASE hnsw SET enable_seqscan = off",
        "DELETE FROM chunk",
    )
    engine = create_engine(url)
    event.listen(engine, "connect", lambda connection, _: register_vector(connection))
    rows = [
        {"id": number, "url": f"https://c.example/{number // 4}", "text": sentence, "vector": vector}
        for number, (sentence, vector) in enumerate(zip(sentences, embedder("lexical").encode(sentences), strict=True))
    ]
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO chunk VALUES (:id, :url, :text, :vector)"), rows)
        connection.execute(text("ALTER TABLE chunk ALTER embedding TYPE vector(2000)"))
        connection.execute(
            text(
                "CREATE INDEX hnsw ON chunk USING hnsw (embedding vector_cosine_ops) WITH (m = 2, ef_construction = 4)"
            )
        )
        questions = [{"id": 100 + number, "q": row["text"][:40]} for number, row in enumerate(rows[::9])]
        connection.execute(text("INSERT INTO question_answer (id, question) VALUES (:id, :q)"), questions)
    engine.dispose()
    return url


def test_with_an_index_its_recall_is_reported(at_home: Path, indexed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_SOURCE_URL", indexed)
    by_index = opened(source="production", retriever="pgvector", unit="chunk")
    exact = opened(source="production", retriever="dense", unit="chunk")
    questions = read_cases(by_index)["question"].to_pylist()[:FIRST]
    found, nearest = (
        rank(by_index, questions, 10, unit="chunk", timed=0),
        rank(exact, questions, 10, unit="chunk", timed=0),
    )
    shares = [len(set(a.ids) & set(b.ids)) / 10 for a, b in zip(found, nearest, strict=True)]
    assert 0.1 < by_index.resolved["index_recall"] < 0.999
    assert by_index.resolved["index_recall"] == pytest.approx(np.mean(shares), abs=0.02)  # ties apart
    assert {note["note"] for note in by_index.resolved["notes"]} == {"index recall"}
    assert "index_recall" not in exact.resolved


def test_an_index_is_searched_as_deep_as_the_ranking(
    at_home: Path, indexed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YARUS_SOURCE_URL", indexed)
    run = opened(source="production", retriever="pgvector", unit="chunk")
    [ranking] = rank(run, ["Где столовая?"], 50, unit="chunk", timed=0)  # five times what ef_search gives
    assert len(set(ranking.ids)) == 50
    assert ranking.distances == sorted(ranking.distances)


# --- vectors without a direction ---


@pytest.mark.parametrize("name", ["dense", "pgvector"])
def test_a_question_that_the_embedder_sees_nothing_in_finds_nothing(
    at_home: Path, xquad_source: str, name: str
) -> None:
    run = opened(source=xquad_source, retriever=name)
    empty, found = rank(run, [" ", "Где столовая?"], 10, unit="chunk", timed=1)
    assert (empty.ids, empty.distances, empty.error, len(found.ids)) == ([], [], None, 10)


def test_chunks_without_a_direction_cannot_be_found() -> None:
    vectors = unit_vectors(np.array([[0, 0], [3, 4], [np.nan, np.nan], [-1, 0]], dtype=np.float32))
    queries = np.array([[1, 0]], dtype=np.float32)
    dense = Dense(["zero", "near", "missing", "far"], vectors, embedder("lexical"))
    [ranking] = dense.retrieve(["?"], queries, 4, timed=0)
    assert (ranking.ids, ranking.distances) == (["near", "far"], pytest.approx([0.4, 2.0]))
    nothing = Dense(["zero"], vectors[:1], embedder("lexical"))
    assert nothing.retrieve(["?", "!"], np.repeat(queries, 2, axis=0), 4, timed=1) == [Ranking([], [])] * 2


def test_vectors_are_stored_once_and_those_without_direction_left_out(engine: Engine) -> None:
    vectors = unit_vectors(np.array([[3, 4], [0, 0]], dtype=np.float32))
    for _ in range(2):
        index_vectors(engine, "a corpus", ["a", "b"], vectors)
    with engine.connect() as connection:
        rows = connection.execute(
            text("SELECT chunk_id, vector::text FROM yarus.chunk_vector WHERE corpus = 'a corpus'")
        )
        assert rows.all() == [("a", "[0.6,0.8]")]


# --- fusion ---


def test_fusion_is_the_sum_of_reciprocal_ranks() -> None:
    # b: 1/62 + 1/61, a: 1/61 + 1/63; c and d only 1/63 and 1/62
    fused = fuse([Ranking(["a", "b", "c"], [0, 1, 2], 1.0), Ranking(["b", "d", "a"], [0, 1, 2], 2.0)], 3)
    assert fused.ids == ["b", "a", "d"]
    assert fused.distances == pytest.approx([-(1 / 62 + 1 / 61), -(1 / 61 + 1 / 63), -1 / 62])
    assert fused.latency_ms == 3.0
    assert fuse([Ranking(["b"], [0]), Ranking(["a"], [0], 2.0)], 2) == Ranking(["a", "b"], [-1 / 61, -1 / 61])  # by id


def test_fusion_with_a_part_that_failed_has_failed() -> None:
    assert fuse([Ranking(["a"], [0.0]), Ranking([], [], error="down")], 3) == Ranking([], [], error="down")


# --- a service over HTTP ---


def asked(chaos: Chaos, k: int = 3, **service: Any) -> Ranking:
    retriever = Outside(from_service(chaos.url, RetrieverService(**service)), concurrency=2)
    [ranking] = retriever.retrieve(["Где столовая?"], None, k, timed=0)
    return ranking


def replies(reply: Any) -> Callable[[int, dict[str, Any]], bytes]:
    return lambda number, request: http(200, json.dumps(reply), "content-type: application/json")


def test_a_service_gets_the_question_and_its_order_and_distances_count(chaos: Chaos) -> None:
    chaos.script = replies({"results": [{"id": 7, "distance": 0.1}, {"id": "b", "distance": 0.2}]})
    ranking = asked(chaos)
    assert (ranking.ids, ranking.distances, ranking.error) == (["7", "b"], [0.1, 0.2], None)
    assert ranking.latency_ms is not None
    assert chaos.requests == [{"question": "Где столовая?", "k": 3}]


def test_what_is_sent_and_where_the_answer_stands_can_be_mapped(chaos: Chaos) -> None:
    chaos.script = replies({"data": {"hits": [{"doc": {"uri": "a"}, "score": 9}, {"doc": {"uri": "b"}, "score": 4}]}})
    ranking = asked(
        chaos,
        request='{"query": {"text": "$question", "lang": "ru"}, "size": ["$k"]}',
        ids="data.hits[].doc.uri",
        distances="none",
        headers={"authorization": "Bearer s3cret"},
    )
    assert (ranking.ids, ranking.distances) == (["a", "b"], [0, 1])  # a score is no distance: the order counts
    assert chaos.requests == [{"query": {"text": "Где столовая?", "lang": "ru"}, "size": [3]}]
    assert "Bearer s3cret" in chaos.headers[0]


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
    "slow": (Do(http(200, "{}"), after_s=1.0), "ReadTimeout"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_a_service_does_is_that_questions_error(chaos: Chaos, fault: str) -> None:
    deed, message = FAULTS[fault]
    chaos.script = lambda number, request: deed
    ranking = asked(chaos, timeout_s=0.2)
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
def test_a_secret_that_a_service_repeats_is_not_stored(chaos: Chaos, reply: bytes) -> None:
    chaos.script = lambda number, request: reply
    service = RetrieverService.model_validate({"headers": {"Authorization": "Bearer topsecret9\n"}})
    [ranking] = Outside(from_service(chaos.url, service), concurrency=1).retrieve(["?"], None, 3, timed=0)
    assert "Bearer topsecret9" in chaos.headers[0]
    assert "***" in str(ranking.error)
    assert "topsec" not in str(ranking.error)
    [answered] = asyncio.run(system(chaos.url, SystemService(headers=service.headers)).answers(["?"]))
    assert answered.error
    assert "topsec" not in answered.error


@pytest.mark.parametrize("open_service", [from_service, system])
def test_a_service_that_cannot_be_asked_is_refused_at_once(open_service: Any) -> None:
    kind = RetrieverService if open_service is from_service else SystemService
    for url, headers in (
        ("http://h/", {"A": "s3cret\0"}),
        ("http://h/?key=s3cret", {}),
        ("http://b:s3cret@h", {}),
        ("http://s3cret@h", {}),
    ):
        with pytest.raises(InputError, match="_SERVICE__HEADERS") as refused:
            open_service(url, kind.model_validate({"headers": headers}))
        assert "s3cret" not in str(refused.value)


def test_a_dead_service_is_an_error_and_an_empty_answer_is_not(chaos: Chaos) -> None:
    chaos.script = replies({"results": []})
    assert asked(chaos).error is None
    chaos.stop()
    assert "ConnectError" in str(asked(chaos).error)
    chaos.start()


def test_one_failure_leaves_the_other_questions_alone_and_in_order(chaos: Chaos) -> None:
    def script(number: int, request: dict[str, Any]) -> bytes:
        if request["question"] == "3":
            return http(503)
        return http(200, json.dumps({"results": [{"id": request["question"]}]}))

    chaos.script = script
    retriever = Outside(from_service(chaos.url, RetrieverService()), concurrency=4)
    found = retriever.retrieve([str(number) for number in range(20)], None, 5, timed=0)
    assert [ranking.ids for ranking in found] == [[str(n)] if n != 3 else [] for n in range(20)]
    assert [n for n, ranking in enumerate(found) if ranking.error] == [3]


def test_no_more_questions_at_once_than_are_allowed(chaos: Chaos) -> None:
    chaos.script = lambda number, request: Do(http(200, '{"results": []}'), after_s=0.02)
    retriever = Outside(from_service(chaos.url, RetrieverService()), concurrency=3)
    batches = [
        threading.Thread(target=retriever.retrieve, args=(["?"] * 10, None, 5), kwargs={"timed": 0}) for _ in range(2)
    ]
    for batch in batches:
        batch.start()
    for batch in batches:
        batch.join()
    assert (len(chaos.requests), chaos.most_in_flight) == (20, 3)


@pytest.mark.parametrize(
    ("setting", "value"), [("request", "{question}"), ("ids", "results[.id"), ("distances", ""), ("ids", "a |")]
)
def test_a_mapping_that_cannot_be_read_is_refused_before_anything_is_asked(setting: str, value: str) -> None:
    with pytest.raises(InputError, match="YARUS_RETRIEVER_SERVICE"):
        from_service("http://127.0.0.1:1", RetrieverService(**{setting: value}))


# --- a callable ---

MODULE = """
import {name}_helper  # beside it, in the current folder

def good(question, k):
    return [({name}_helper.PREFIX + str(number), number / 10) for number in range(k + 5)]

def raises(question, k):
    raise RuntimeError("index\\n  corrupt at postgresql://bot:s3cret@db/x")

def twice(question, k): return [("a", 0.1), ("b", 0.2), ("a", 0.3)]
def unsorted(question, k): return [("a", 0.2), ("b", 0.1)]
def nan(question, k): return [("a", float("nan"))]
def few(question, k): return [("a", 0.2)]
def nothing(question, k): return []
def none(question, k): return None
def bare(question, k): return ["first", "second"]
def generator(question, k): yield from [("a", 0), ("b", 0)]
def wrong_arguments(question): return []
number = 5
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module in the current folder that needs another one there."""
    name = f"theirs_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(MODULE.format(name=name), encoding="utf-8")
    (tmp_path / f"{name}_helper.py").write_text("PREFIX = 'chunk '", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    yield name
    sys.path[:] = before


@pytest.mark.parametrize(
    ("function", "ids", "error"),
    [
        ("good", ["chunk 0", "chunk 1", "chunk 2"], None),
        ("few", ["a"], None),
        ("nothing", [], None),
        ("generator", ["a", "b"], None),
        ("raises", [], "RuntimeError: index corrupt at postgresql://bot:***@db/x"),
        ("twice", [], "ValueError: id 'a' was returned twice"),
        ("unsorted", [], "ValueError: distances do not ascend: 0.2 at rank 1, then 0.1; return the nearest first"),
        ("nan", [], "ValueError: distances do not ascend: -inf at rank 0, then nan; return the nearest first"),
        ("none", [], "ValueError: expected pairs of id and distance, nearest first, not None"),
        ("bare", [], "ValueError: expected pairs of id and distance, nearest first, not ['first', 'second']"),
    ],
)
def test_a_callable(module: str, function: str, ids: list[str], error: str | None) -> None:
    retriever = Outside(from_callable(f"{module}:{function}"), concurrency=1)
    first, second = retriever.retrieve(["?", "!"], None, 3, timed=0)
    assert (first.ids, first.error) == (second.ids, second.error) == (ids, error)
    assert (first.latency_ms is None) == (error is not None)


def test_a_callable_of_other_arguments_fails_case_by_case(module: str) -> None:
    [ranking] = Outside(from_callable(f"{module}:wrong_arguments"), concurrency=1).retrieve(["?"], None, 3, timed=0)
    assert "TypeError" in str(ranking.error)


def test_a_callable_is_never_called_twice_at_once() -> None:
    inside, most = [0], [0]

    def ask(question: str, k: int) -> list[tuple[object, float]]:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.002)
        inside[0] -= 1
        return []

    retriever = Outside(ask, concurrency=1)
    batches = [
        threading.Thread(target=retriever.retrieve, args=(["?"] * 10, None, 5), kwargs={"timed": 0}) for _ in range(3)
    ]
    for batch in batches:
        batch.start()
    for batch in batches:
        batch.join()
    assert most == [1]


@pytest.mark.parametrize(
    ("suffix", "message"),
    [(":absent", "absent"), (":number", "is no function but int"), ("_absent:f", "No module named")],
)
def test_a_callable_that_is_not_there_is_refused(module: str, suffix: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_callable(module + suffix)


def test_a_module_that_does_not_parse_is_refused(module: str) -> None:
    Path(f"{module}_broken.py").write_text("def f(:", encoding="utf-8")
    with pytest.raises(InputError, match="invalid syntax"):
        from_callable(f"{module}_broken:f")


def test_equal_distances_and_more_than_k_are_a_ranking() -> None:
    assert checked([(1, 0.5), ("b", 0.5), ("b", 0.1)], 2) == (["1", "b"], [0.5, 0.5])


# --- names ---


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dens", "did you mean 'dense'"),
        ("Dense", "no retriever 'Dense'; did you mean 'dense'"),
        ("ftp://host/x", "no retriever"),
        ("module:", "no retriever"),
        ("https://bot:s3cret@host/search", r"https://bot:\*\*\*@host.*YARUS_RETRIEVER_SERVICE__HEADERS"),
    ],
)
def test_a_retriever_that_is_none(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        retriever_kind(name)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("name", ["dense", "pgvector", "fulltext", "hybrid", "http://h:1/a@b", "https://h", "a.b:c"])
def test_a_retriever_by_name(name: str) -> None:
    assert retriever_kind(name).uses_vectors == (name in {"dense", "pgvector", "hybrid"})

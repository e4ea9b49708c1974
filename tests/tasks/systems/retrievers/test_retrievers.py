"""Our own retrievers at their work: on XQuAD-ru, over a table with an index, fused, and by name."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pgvector.psycopg import register_vector
from sqlalchemy import Engine, create_engine, event, text

from tests.support.steps import opened
from yarus.db.errors import InputError
from yarus.db.stores.vectors import index_vectors
from yarus.tasks.evaluation.work_folder import read_cases
from yarus.tasks.models.embedding.embedders import embedder
from yarus.tasks.models.embedding.parts import Vectors
from yarus.tasks.steps.search import rank
from yarus.tasks.systems.retrievers.dense import Dense, unit_vectors
from yarus.tasks.systems.retrievers.hybrid import fuse
from yarus.tasks.systems.retrievers.protocol import Ranking
from yarus.tasks.systems.retrievers.registry import retriever_kind

Rankings = dict[str, list[Ranking]]
FIRST = 100  # questions; a ranking of each by each retriever


WHOLE = pytest.mark.slow("breadth: each question of XQuAD by each retriever")


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


@WHOLE
def test_pgvector_without_an_index_is_dense_in_every_ranking(rankings: Any) -> None:
    dense, pgvector = rankings[0]["dense"], rankings[0]["pgvector"]
    assert len(dense) == 1190
    assert [ranking.ids for ranking in pgvector] == [ranking.ids for ranking in dense]
    ours, theirs = ([ranking.distances for ranking in of] for of in (dense, pgvector))
    np.testing.assert_allclose(theirs, ours, atol=1e-6)


@WHOLE
def test_hybrid_is_no_worse_than_the_better_of_its_parts(rankings: Any) -> None:
    found, relevant = rankings
    rates = {name: hit_rate(of, relevant) for name, of in found.items()}
    assert rates["hybrid"] >= max(rates["dense"], rates["fulltext"]) >= 0.95


@WHOLE
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
def with_index(production: Callable[..., str]) -> Callable[..., str]:
    """Makes a production database of sentences and their vectors, with an HNSW index over them."""

    def make(name: str, sentences: list[str], vectors: Vectors, options: str, *settings: str) -> str:
        url = production(name, *(f"ALTER DATABASE {name} SET {setting}" for setting in settings), "DELETE FROM chunk")
        engine = create_engine(url)
        event.listen(engine, "connect", lambda connection, _: register_vector(connection))
        rows = [
            {"id": number, "url": f"https://c.example/{number // 4}", "text": sentence, "vector": vector}
            for number, (sentence, vector) in enumerate(zip(sentences, vectors, strict=True))
        ]
        with engine.begin() as connection:
            connection.execute(text("INSERT INTO chunk VALUES (:id, :url, :text, :vector)"), rows)
            connection.execute(text("ALTER TABLE chunk ALTER embedding TYPE vector(2000)"))
            connection.execute(text(f"CREATE INDEX ON chunk USING hnsw (embedding vector_cosine_ops) {options}"))
            questions = [{"id": 100 + number, "q": row["text"][:40]} for number, row in enumerate(rows[::9])]
            connection.execute(text("INSERT INTO question_answer (id, question) VALUES (:id, :q)"), questions)
        engine.dispose()
        return url

    return make


@pytest.fixture(scope="module")
def indexed(with_index: Callable[..., str], sentences: list[str]) -> str:
    """A poor index, so that it can be told from exact search."""
    vectors = embedder("lexical").encode(sentences)
    settings = "hnsw.ef_search = 10", "enable_seqscan = off"
    return with_index("hnsw", sentences, vectors, "WITH (m = 2, ef_construction = 4)", *settings)


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
    assert 0.1 < by_index.config.index_recall < 0.999
    assert by_index.config.index_recall == pytest.approx(np.mean(shares), abs=0.02)  # ties apart
    assert {note["note"] for note in by_index.config.notes} == {"index recall", "pages only"}
    assert exact.config.index_recall is None


def test_an_index_is_searched_as_deep_as_the_ranking(
    at_home: Path, indexed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YARUS_SOURCE_URL", indexed)
    run = opened(source="production", retriever="pgvector", unit="chunk")
    [ranking] = rank(run, ["Где столовая?"], 50, unit="chunk", timed=0)  # five times what ef_search gives
    assert len(set(ranking.ids)) == 50


def test_what_the_index_takes_for_nearer_by_its_rounding_is_not_ranked_higher(
    at_home: Path, with_index: Callable[..., str], sentences: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = np.random.default_rng(0).uniform(0.1, 10, (400, 1)).astype(np.float32)
    twenty_times = [sentence for sentence in sentences[:20] for _ in range(20)]
    vectors = embedder("lexical").encode(twenty_times) * lengths  # as near as each other, but for rounding
    url = with_index("rounded", twenty_times, vectors, "", "enable_seqscan = off")
    monkeypatch.setenv("YARUS_SOURCE_URL", url)
    run = opened(source="production", retriever="pgvector", unit="chunk")
    for ranking in rank(run, sentences[:20], 200, unit="chunk", timed=0):
        assert len(set(ranking.ids)) == 200
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

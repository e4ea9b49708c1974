"""Retrievers of Yarus: on XQuAD-ru, over a table with an index, fused, and by name."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pgvector.psycopg import register_vector
from sqlalchemy import Engine, create_engine, event, text

from tests.support.steps import open_run
from yarus.db.errors import InputError
from yarus.db.stores.vectors import index_vectors
from yarus.tasks.evaluation.work_folder import read_cases
from yarus.tasks.models.embedding.embedders import get_embedder
from yarus.tasks.models.embedding.partial_results import Vectors
from yarus.tasks.steps.search import rank_results
from yarus.tasks.systems.retrievers.dense import DenseRetriever, normalise_vectors
from yarus.tasks.systems.retrievers.hybrid import fuse_rankings
from yarus.tasks.systems.retrievers.protocol import Ranking
from yarus.tasks.systems.retrievers.registry import get_retriever_kind

Rankings = dict[str, list[Ranking]]
N_QUESTIONS = 100  # questions with a ranking by each retriever


ALL_QUESTIONS = pytest.mark.slow("breadth: each question of XQuAD by each retriever")


@pytest.fixture(scope="module")
def rankings(home: Path, engine: Engine, xquad_source: str) -> tuple[Rankings, list[list[str]]]:
    """Rank every question of XQuAD-ru by each retriever, and return the rankings with the relevant paragraphs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YARUS_HOME", str(home))
        rankings_by_retriever: Rankings = {}
        for name in ("dense", "fulltext", "hybrid", "pgvector"):
            run = open_run(source=xquad_source, retriever=name)
            cases = read_cases(run)
            rankings_by_retriever[name] = rank_results(run, cases["question"].to_pylist(), 10, unit="chunk", timed=3)
        return rankings_by_retriever, cases["relevant"].to_pylist()


def hit_rate(rankings: list[Ranking], relevant: list[list[str]]) -> float:
    return float(np.mean([bool(set(ranking.ids) & set(ids)) for ranking, ids in zip(rankings, relevant, strict=True)]))


@ALL_QUESTIONS
def test_pgvector_without_index_equals_dense(rankings: Any) -> None:
    dense, pgvector = rankings[0]["dense"], rankings[0]["pgvector"]
    assert len(dense) == 1190
    assert [ranking.ids for ranking in pgvector] == [ranking.ids for ranking in dense]
    dense_distances, pgvector_distances = ([ranking.distances for ranking in results] for results in (dense, pgvector))
    np.testing.assert_allclose(pgvector_distances, dense_distances, atol=1e-6)


@ALL_QUESTIONS
def test_hybrid_is_at_least_as_good_as_its_parts(rankings: Any) -> None:
    rankings_by_retriever, relevant = rankings
    rates = {name: hit_rate(results, relevant) for name, results in rankings_by_retriever.items()}
    assert rates["hybrid"] >= max(rates["dense"], rates["fulltext"]) >= 0.95


@ALL_QUESTIONS
def test_batch_retrievers_time_only_some_questions(rankings: Any) -> None:
    timed = {name: sum(ranking.latency_ms is not None for ranking in results) for name, results in rankings[0].items()}
    assert timed == {"dense": 3, "pgvector": 3, "hybrid": 3, "fulltext": 1190}


# --- pgvector over an index ---


@pytest.fixture(scope="module")
def sentences(xquad_ru: Path) -> list[str]:
    articles = json.loads(xquad_ru.read_text(encoding="utf-8"))["data"]
    paragraphs = [paragraph["context"] for article in articles[:24] for paragraph in article["paragraphs"]]
    return [sentence for paragraph in paragraphs for sentence in paragraph.split(". ") if len(sentence) > 20]


@pytest.fixture(scope="module")
def make_indexed_database(production: Callable[..., str]) -> Callable[..., str]:
    """Return a function that makes a production database of sentences with an HNSW index over their vectors."""

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
def indexed(make_indexed_database: Callable[..., str], sentences: list[str]) -> str:
    """Make a database with a poor index, which differs from exact search."""
    vectors = get_embedder("lexical").encode(sentences)
    settings = "hnsw.ef_search = 10", "enable_seqscan = off"
    return make_indexed_database("hnsw", sentences, vectors, "WITH (m = 2, ef_construction = 4)", *settings)


def test_index_recall_is_reported(at_home: Path, indexed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_SOURCE_URL", indexed)
    indexed_run = open_run(source="production", retriever="pgvector", unit="chunk")
    exact_run = open_run(source="production", retriever="dense", unit="chunk")
    questions = read_cases(indexed_run)["question"].to_pylist()[:N_QUESTIONS]
    index_rankings, exact_rankings = (
        rank_results(indexed_run, questions, 10, unit="chunk", timed=0),
        rank_results(exact_run, questions, 10, unit="chunk", timed=0),
    )
    shares = [
        len(set(left.ids) & set(right.ids)) / 10 for left, right in zip(index_rankings, exact_rankings, strict=True)
    ]
    assert 0.1 < indexed_run.config.index_recall < 0.999
    assert indexed_run.config.index_recall == pytest.approx(np.mean(shares), abs=0.02)  # except for ties
    assert {note["note"] for note in indexed_run.config.notes} == {"index recall", "pages only"}
    assert exact_run.config.index_recall is None


def test_index_is_searched_as_deep_as_the_ranking(at_home: Path, indexed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_SOURCE_URL", indexed)
    run = open_run(source="production", retriever="pgvector", unit="chunk")
    [ranking] = rank_results(run, ["Где столовая?"], 50, unit="chunk", timed=0)  # five times as many as ef_search
    assert len(set(ranking.ids)) == 50


def test_rounding_of_the_index_does_not_change_the_order(
    at_home: Path, make_indexed_database: Callable[..., str], sentences: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = np.random.default_rng(0).uniform(0.1, 10, (400, 1)).astype(np.float32)
    twenty_times = [sentence for sentence in sentences[:20] for _ in range(20)]
    vectors = get_embedder("lexical").encode(twenty_times) * lengths  # equally near except for rounding
    url = make_indexed_database("rounded", twenty_times, vectors, "", "enable_seqscan = off")
    monkeypatch.setenv("YARUS_SOURCE_URL", url)
    run = open_run(source="production", retriever="pgvector", unit="chunk")
    for ranking in rank_results(run, sentences[:20], 200, unit="chunk", timed=0):
        assert len(set(ranking.ids)) == 200
        assert ranking.distances == sorted(ranking.distances)


# --- vectors without a direction ---


@pytest.mark.parametrize("name", ["dense", "pgvector"])
def test_question_with_zero_vector_finds_nothing(at_home: Path, xquad_source: str, name: str) -> None:
    run = open_run(source=xquad_source, retriever=name)
    empty_ranking, ranking = rank_results(run, [" ", "Где столовая?"], 10, unit="chunk", timed=1)
    assert (empty_ranking.ids, empty_ranking.distances, empty_ranking.error, len(ranking.ids)) == ([], [], None, 10)


def test_chunks_with_zero_vectors_are_not_found() -> None:
    vectors = normalise_vectors(np.array([[0, 0], [3, 4], [np.nan, np.nan], [-1, 0]], dtype=np.float32))
    queries = np.array([[1, 0]], dtype=np.float32)
    dense = DenseRetriever(["zero", "near", "missing", "far"], vectors, get_embedder("lexical"))
    [ranking] = dense.retrieve(["?"], queries, 4, timed=0)
    assert (ranking.ids, ranking.distances) == (["near", "far"], pytest.approx([0.4, 2.0]))
    empty_retriever = DenseRetriever(["zero"], vectors[:1], get_embedder("lexical"))
    assert empty_retriever.retrieve(["?", "!"], np.repeat(queries, 2, axis=0), 4, timed=1) == [Ranking([], [])] * 2


def test_index_vectors_skips_zero_vectors_and_repeats(engine: Engine) -> None:
    vectors = normalise_vectors(np.array([[3, 4], [0, 0]], dtype=np.float32))
    for _ in range(2):
        index_vectors(engine, "a corpus", ["a", "b"], vectors)
    with engine.connect() as connection:
        rows = connection.execute(
            text("SELECT chunk_id, vector::text FROM yarus.chunk_vector WHERE corpus = 'a corpus'")
        )
        assert rows.all() == [("a", "[0.6,0.8]")]


# --- fusion ---


def test_fuse_rankings_sums_reciprocal_ranks() -> None:
    # b: 1/62 + 1/61, a: 1/61 + 1/63; c and d only 1/63 and 1/62
    fused = fuse_rankings([Ranking(["a", "b", "c"], [0, 1, 2], 1.0), Ranking(["b", "d", "a"], [0, 1, 2], 2.0)], 3)
    assert fused.ids == ["b", "a", "d"]
    assert fused.distances == pytest.approx([-(1 / 62 + 1 / 61), -(1 / 61 + 1 / 63), -1 / 62])
    assert fused.latency_ms == 3.0
    # by id
    assert fuse_rankings([Ranking(["b"], [0]), Ranking(["a"], [0], 2.0)], 2) == Ranking(["a", "b"], [-1 / 61, -1 / 61])


def test_fuse_rankings_fails_if_a_part_failed() -> None:
    assert fuse_rankings([Ranking(["a"], [0.0]), Ranking([], [], error="down")], 3) == Ranking([], [], error="down")


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
def test_retriever_kind_rejects_unknown_names(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        get_retriever_kind(name)
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("name", ["dense", "pgvector", "fulltext", "hybrid", "http://h:1/a@b", "https://h", "a.b:c"])
def test_retriever_kind_follows_the_name(name: str) -> None:
    assert get_retriever_kind(name).uses_vectors == (name in {"dense", "pgvector", "hybrid"})

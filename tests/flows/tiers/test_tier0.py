"""Check tier 0 as a flow: equal to scikit-learn on the texts of its file, NULL with a reason if unmeasurable."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pgvector.psycopg import register_vector
from scipy.spatial.distance import pdist
from sklearn.decomposition import PCA
from sklearn.metrics import silhouette_samples
from sklearn.neighbors import NearestNeighbors
from sqlalchemy import Engine, text

from tests.support.command_line import CommandLine, CommandResult
from tests.support.evaluations import get_value
from tests.support.steps import evaluate_tier0
from yarus.db.loading.load_rows import ImportedRows, IncomingRow, load_rows
from yarus.tasks.models.embedding.embedders import get_embedder

Document = dict[str, Any]
BLANK = "\x1c"  # a control character: a text for PostgreSQL, white space for the embedder
CLUSTERING = ("total_texts", "total_pairs", "n_clusters", "avg_intra_cluster_sim", "avg_inter_cluster_dist")
GEOMETRY = ("avg_nn_distance", "density_score", "avg_spread", "effective_dimensionality", "avg_pairwise_distance")


def store_chunks(engine: Engine, name: str, *chunks: tuple[str, str | None], ask: str = "?") -> str:
    """Store a source of chunks (text, page), with the question that every source needs."""
    columns = ("id", "text", "confluence_url")
    rows = [dict(zip(columns, (str(n), *chunk), strict=True)) for n, chunk in enumerate(chunks)]
    questions = [IncomingRow("q", {"id": "1", "question": ask})]
    chunk_rows = [IncomingRow(row["id"], row) for row in rows]
    load_rows(engine, name, ImportedRows(chunks=chunk_rows, questions=questions), language="ru", origin="a test")
    return name


def embed_texts(texts: list[str]) -> np.ndarray:
    return get_embedder("lexical").encode(texts).astype(np.float64)  # scikit-learn computes in the input's precision


@pytest.fixture(scope="module")
def without_pages(yarus: CommandLine, engine: Engine) -> CommandResult:
    """Evaluate texts without pages, from the command line."""
    store_chunks(engine, "no_pages", *((f"Текст номер {n} о стипендии", None) for n in range(9)))
    return yarus("run", "tier0", "--source", "no_pages", "--json", ok=False)


@pytest.fixture(scope="module")
def on_chunks(night: dict[str, Document]) -> Document:
    """Return the evaluation of the sample's chunks."""
    return night["tier0"]


def test_values_match_scikit_learn(on_chunks: Document) -> None:
    cases = pq.ParquetFile(on_chunks["parquet"]).read()
    vectors = embed_texts(cases["text"].to_pylist())
    clusters = np.array(cases["cluster"].to_pylist())
    names = np.unique(clusters)
    centroids = np.array([vectors[clusters == name].mean(axis=0) for name in names])
    similarities = [
        np.mean([vectors[a] @ vectors[b] for a, b in combinations(np.flatnonzero(clusters == name), 2)])
        for name in names
        if (clusters == name).sum() > 1
    ]
    silhouettes = silhouette_samples(vectors, clusters, metric="cosine")
    neighbours = (
        NearestNeighbors(n_neighbors=6, metric="cosine").fit(vectors).kneighbors(vectors)[0][:, 1:].mean(axis=1)
    )
    expected = {
        "total_texts": len(vectors),
        "total_pairs": sum(n * (n - 1) / 2 for n in np.unique(clusters, return_counts=True)[1]),
        "n_clusters": len(names),
        "avg_intra_cluster_sim": np.mean(similarities),
        "avg_inter_cluster_dist": pdist(centroids).mean(),
        "silhouette_score": silhouettes.mean(),
        "avg_nn_distance": neighbours.mean(),
        "density_score": 1 / neighbours.mean(),
        "avg_spread": np.linalg.norm(vectors - vectors.mean(axis=0), axis=1).mean(),
        "effective_dimensionality": PCA(n_components=0.95, svd_solver="full").fit(vectors).n_components_,
        "avg_pairwise_distance": pdist(vectors, "cosine").mean(),
    }
    assert {name: get_value(on_chunks, name) for name in expected} == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(cases["silhouette_score"].to_numpy(), silhouettes, atol=1e-6)
    np.testing.assert_allclose(cases["nn_distance"].to_numpy(), neighbours, atol=1e-6)
    assert (on_chunks["state"], on_chunks["metrics"].keys()) == ("completed", expected.keys())


def test_intervals_contain_values(on_chunks: Document) -> None:
    for name in (
        "avg_intra_cluster_sim",
        "avg_inter_cluster_dist",
        "silhouette_score",
        "avg_nn_distance",
        "avg_spread",
    ):
        metric = on_chunks["metrics"][name]
        assert metric["ci_low"] < metric["value"] < metric["ci_high"], name


def test_questions_are_clustered_by_logged_page(at_home: Path) -> None:
    document = evaluate_tier0(source="sample", texts="questions", distance="euclidean")
    cases = pq.ParquetFile(document["parquet"]).read()
    vectors = embed_texts(cases["text"].to_pylist())
    has_cluster = np.array([cluster is not None for cluster in cases["cluster"].to_pylist()])
    clusters = [cluster for cluster in cases["cluster"].to_pylist() if cluster is not None]
    assert get_value(document, "silhouette_score") == pytest.approx(
        silhouette_samples(vectors[has_cluster], clusters, metric="euclidean").mean(), abs=1e-6
    )
    [note] = document["notes"]
    assert (note["note"], document["statuses"]) == (
        "topic from the log", {"ok": has_cluster.sum(), "unlabelled": (~has_cluster).sum()},
    )  # fmt: skip
    assert document["metrics"]["avg_nn_distance"]["n_scored"] == len(cases)  # geometry needs no labels


def test_unlabelled_texts_keep_geometry(without_pages: CommandResult) -> None:
    document = without_pages.json
    assert (without_pages.code, document["state"], document["coverage"]) == (1, "invalid", None)
    for metric in (*CLUSTERING, "silhouette_score"):
        assert (get_value(document, metric), document["metrics"][metric]["n_scored"]) == (None, 0), metric
        assert document["metrics"][metric]["reason"] == "no passage names its page"
    assert all(get_value(document, metric) is not None for metric in GEOMETRY)
    assert document["notes"] == [{"note": "chunks without clusters", "n": 9}]
    assert document["error"] == "no case could be measured: the passage names no page"


def test_pages_with_one_passage_are_reported(at_home: Path, engine: Engine) -> None:
    """Report no silhouette, because 0, the convention for single texts, would say that pages are mixed."""
    name = store_chunks(engine, "one_passage_each", *((f"Текст номер {n} о стипендии", f"p{n}") for n in range(9)))
    document = evaluate_tier0(source=name)
    for metric in ("avg_intra_cluster_sim", "silhouette_score"):
        assert document["metrics"][metric] == document["metrics"][metric] | {
            "value": None, "reason": "every page has one passage"
        }  # fmt: skip
    assert (get_value(document, "n_clusters"), get_value(document, "total_pairs")) == (9, 0)
    assert all(get_value(document, metric) is not None for metric in (*GEOMETRY, "avg_inter_cluster_dist"))
    assert document["notes"] == [{"note": "chunks alone in clusters", "n": 9}]
    assert document["state"] == "completed"


def test_texts_without_vector_are_left_out(at_home: Path, engine: Engine) -> None:
    texts = ["Стипендия назначается приказом", "Стипендию назначает ректор", "Общежитие рядом", "Общежитие далеко"]
    name = store_chunks(
        engine, "some_zero", *((passage, f"p{n // 2}") for n, passage in enumerate([*texts, BLANK, BLANK * 2]))
    )
    document = evaluate_tier0(source=name)
    vectors = embed_texts(texts)
    assert document["statuses"] == {"ok": 4, "not_applicable": 2}
    assert get_value(document, "total_texts") == 4
    assert get_value(document, "silhouette_score") == pytest.approx(
        silhouette_samples(vectors, [0, 0, 1, 1], metric="cosine").mean(), abs=1e-6
    )
    nothing = store_chunks(engine, "all_zero", (BLANK, "p1"), (BLANK * 2, "p2"))
    document = evaluate_tier0(source=nothing)
    assert (document["state"], document["statuses"]) == ("invalid", {"not_applicable": 2})
    assert {metric["value"] for metric in document["metrics"].values()} == {None}
    assert all(metric["reason"] for metric in document["metrics"].values())


def test_single_text_has_no_distances(at_home: Path, engine: Engine) -> None:
    document = evaluate_tier0(source=store_chunks(engine, "one_text", ("Стипендия", "p1")))
    measured = {name: metric["value"] for name, metric in document["metrics"].items() if metric["value"] is not None}
    assert measured == {"total_texts": 1, "total_pairs": 0, "n_clusters": 1, "avg_spread": 0}
    assert document["state"] == "completed"


def test_sample_keeps_texts_and_stored_vectors_together(at_home: Path, engine: Engine) -> None:
    texts = [f"Страница {n % 8} говорит о предмете {n % 8} в части {n}" for n in range(40)]
    name = store_chunks(engine, "with_vectors", *((passage, f"p{n % 8}") for n, passage in enumerate(texts)))
    with engine.begin() as connection:
        register_vector(connection.connection.driver_connection)
        for number, vector in enumerate(get_embedder("lexical").encode(texts)):
            statement = text("UPDATE source_with_vectors.chunk SET embedding = :vector WHERE id = :id")
            connection.execute(statement, {"vector": vector, "id": str(number)})
    document = evaluate_tier0(source=name, limit=16, vectors="stored")
    assert (document["system"]["vectors"], document["n_cases"], get_value(document, "n_clusters")) == ("stored", 16, 8)
    cases = pq.ParquetFile(document["parquet"]).read()
    vectors = embed_texts(cases["text"].to_pylist())
    silhouettes = silhouette_samples(vectors, cases["cluster"].to_pylist(), metric="cosine")
    np.testing.assert_allclose(cases["silhouette_score"].to_numpy(), silhouettes, atol=1e-6)

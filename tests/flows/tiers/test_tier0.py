"""Tier 0 as a flow: equal to scikit-learn on the texts in its own file, and NULL with a reason where nothing is."""

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

from tests.support.command_line import CommandLine, Ran
from tests.support.steps import tier0
from yarus.db.loading.fill import Row, Rows, fill
from yarus.tasks.models.embedding.embedders import embedder

Document = dict[str, Any]
NOTHING = "\x1c"  # a control character: a text for PostgreSQL, white space for the embedder
CLUSTERING = ("total_texts", "total_pairs", "n_clusters", "avg_intra_cluster_sim", "avg_inter_cluster_dist")
GEOMETRY = ("avg_nn_distance", "density_score", "avg_spread", "effective_dimensionality", "avg_pairwise_distance")


def source(engine: Engine, name: str, *chunks: tuple[str, str | None], ask: str = "?") -> str:
    """A source of chunks (text, page), with a question, without which there is no source."""
    columns = ("id", "text", "confluence_url")
    rows = [dict(zip(columns, (str(n), *chunk), strict=True)) for n, chunk in enumerate(chunks)]
    questions = [Row("q", {"id": "1", "question": ask})]
    chunk_rows = [Row(row["id"], row) for row in rows]
    fill(engine, name, Rows(chunks=chunk_rows, questions=questions), language="ru", origin="a test")
    return name


def vectors_of(texts: list[str]) -> np.ndarray:
    return embedder("lexical").encode(texts).astype(np.float64)  # scikit-learn computes in what it is given


def value(document: Document, name: str) -> float | None:
    found: float | None = document["metrics"][name]["value"]
    return found


@pytest.fixture(scope="module")
def without_pages(yarus: CommandLine, engine: Engine) -> Ran:
    """Texts of which none has a page, from the command line."""
    source(engine, "no_pages", *((f"Текст номер {n} о стипендии", None) for n in range(9)))
    return yarus("run", "tier0", "--source", "no_pages", "--json", ok=False)


@pytest.fixture(scope="module")
def on_chunks(night: dict[str, Document]) -> Document:
    """The sample's chunks."""
    return night["tier0"]


def test_every_value_is_scikit_learns(on_chunks: Document) -> None:
    cases = pq.ParquetFile(on_chunks["parquet"]).read()
    vectors = vectors_of(cases["text"].to_pylist())
    clusters = np.array(cases["cluster"].to_pylist())
    names = np.unique(clusters)
    centroids = np.array([vectors[clusters == name].mean(axis=0) for name in names])
    inside = [
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
        "avg_intra_cluster_sim": np.mean(inside),
        "avg_inter_cluster_dist": pdist(centroids).mean(),
        "silhouette_score": silhouettes.mean(),
        "avg_nn_distance": neighbours.mean(),
        "density_score": 1 / neighbours.mean(),
        "avg_spread": np.linalg.norm(vectors - vectors.mean(axis=0), axis=1).mean(),
        "effective_dimensionality": PCA(n_components=0.95, svd_solver="full").fit(vectors).n_components_,
        "avg_pairwise_distance": pdist(vectors, "cosine").mean(),
    }
    assert {name: value(on_chunks, name) for name in expected} == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(cases["silhouette_score"].to_numpy(), silhouettes, atol=1e-6)
    np.testing.assert_allclose(cases["nn_distance"].to_numpy(), neighbours, atol=1e-6)
    assert (on_chunks["state"], on_chunks["metrics"].keys()) == ("completed", expected.keys())


def test_intervals_hold_their_values(on_chunks: Document) -> None:
    for name in (
        "avg_intra_cluster_sim",
        "avg_inter_cluster_dist",
        "silhouette_score",
        "avg_nn_distance",
        "avg_spread",
    ):
        metric = on_chunks["metrics"][name]
        assert metric["ci_low"] < metric["value"] < metric["ci_high"], name


def test_questions_by_topic_and_by_page_where_nobody_named_one(at_home: Path) -> None:
    document = tier0(source="sample", texts="questions", distance="euclidean")
    cases = pq.ParquetFile(document["parquet"]).read()
    vectors = vectors_of(cases["text"].to_pylist())
    there = np.array([cluster is not None for cluster in cases["cluster"].to_pylist()])
    clusters = [cluster for cluster in cases["cluster"].to_pylist() if cluster is not None]
    assert value(document, "silhouette_score") == pytest.approx(
        silhouette_samples(vectors[there], clusters, metric="euclidean").mean(), abs=1e-6
    )
    [note] = document["notes"]
    assert (note["note"], document["statuses"]) == (
        "topic from the log", {"ok": there.sum(), "unlabelled": (~there).sum()},
    )  # fmt: skip
    assert document["metrics"]["avg_nn_distance"]["n_scored"] == len(cases)  # geometry needs no labels


def test_without_labels_the_geometry_is_left_and_the_exit_code_is_1(without_pages: Ran) -> None:
    document = without_pages.json
    assert (without_pages.code, document["state"], document["coverage"]) == (1, "invalid", None)
    for metric in (*CLUSTERING, "silhouette_score"):
        assert (value(document, metric), document["metrics"][metric]["n_scored"]) == (None, 0), metric
        assert document["metrics"][metric]["reason"] == "no passage names its page"
    assert all(value(document, metric) is not None for metric in GEOMETRY)
    assert document["notes"] == [{"note": "chunks without clusters", "n": 9}]
    assert document["error"] == "no case could be measured: the passage names no page"


def test_pages_of_one_passage_are_named_as_the_cause(at_home: Path, engine: Engine) -> None:
    """A silhouette of 0, which a cluster of one has by convention, would say that the pages are mixed."""
    name = source(engine, "one_passage_each", *((f"Текст номер {n} о стипендии", f"p{n}") for n in range(9)))
    document = tier0(source=name)
    for metric in ("avg_intra_cluster_sim", "silhouette_score"):
        assert document["metrics"][metric] == document["metrics"][metric] | {
            "value": None, "reason": "every page has one passage"
        }  # fmt: skip
    assert (value(document, "n_clusters"), value(document, "total_pairs")) == (9, 0)
    assert all(value(document, metric) is not None for metric in (*GEOMETRY, "avg_inter_cluster_dist"))
    assert document["notes"] == [{"note": "chunks alone in clusters", "n": 9}]
    assert document["state"] == "completed"


def test_texts_without_a_direction_are_left_out_and_counted(at_home: Path, engine: Engine) -> None:
    texts = ["Стипендия назначается приказом", "Стипендию назначает ректор", "Общежитие рядом", "Общежитие далеко"]
    name = source(
        engine, "some_zero", *((passage, f"p{n // 2}") for n, passage in enumerate([*texts, NOTHING, NOTHING * 2]))
    )
    document = tier0(source=name)
    vectors = vectors_of(texts)
    assert document["statuses"] == {"ok": 4, "not_applicable": 2}
    assert value(document, "total_texts") == 4
    assert value(document, "silhouette_score") == pytest.approx(
        silhouette_samples(vectors, [0, 0, 1, 1], metric="cosine").mean(), abs=1e-6
    )
    nothing = source(engine, "all_zero", (NOTHING, "p1"), (NOTHING * 2, "p2"))
    document = tier0(source=nothing)
    assert (document["state"], document["statuses"]) == ("invalid", {"not_applicable": 2})
    assert {metric["value"] for metric in document["metrics"].values()} == {None}
    assert all(metric["reason"] for metric in document["metrics"].values())


def test_a_single_text_has_no_distances(at_home: Path, engine: Engine) -> None:
    document = tier0(source=source(engine, "one_text", ("Стипендия", "p1")))
    measured = {name: metric["value"] for name, metric in document["metrics"].items() if metric["value"] is not None}
    assert measured == {"total_texts": 1, "total_pairs": 0, "n_clusters": 1, "avg_spread": 0}
    assert document["state"] == "completed"


def test_a_sample_of_stored_vectors_keeps_texts_and_vectors_together(at_home: Path, engine: Engine) -> None:
    texts = [f"Страница {n % 8} говорит о предмете {n % 8} в части {n}" for n in range(40)]
    name = source(engine, "with_vectors", *((passage, f"p{n % 8}") for n, passage in enumerate(texts)))
    with engine.begin() as connection:
        register_vector(connection.connection.driver_connection)
        for number, vector in enumerate(embedder("lexical").encode(texts)):
            statement = text("UPDATE source_with_vectors.chunk SET embedding = :vector WHERE id = :id")
            connection.execute(statement, {"vector": vector, "id": str(number)})
    document = tier0(source=name, limit=16, vectors="stored")
    assert (document["system"]["vectors"], document["n_cases"], value(document, "n_clusters")) == ("stored", 16, 8)
    cases = pq.ParquetFile(document["parquet"]).read()
    vectors = vectors_of(cases["text"].to_pylist())
    silhouettes = silhouette_samples(vectors, cases["cluster"].to_pylist(), metric="cosine")
    np.testing.assert_allclose(cases["silhouette_score"].to_numpy(), silhouettes, atol=1e-6)

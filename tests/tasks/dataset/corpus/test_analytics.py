"""Corpus analytics: a planted content gap, usage, few and no topics, the profile, and the map."""

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.support.evaluations import evaluate, load, make_passages, question, read_rows
from yarus.db.errors import InputError
from yarus.tasks.dataset.corpus.analytics import analyse_corpus
from yarus.tasks.dataset.corpus.profile import (
    count_abbreviations,
    length_quantiles,
    monthly_growth,
    script_shares,
    seasonality,
)
from yarus.tasks.dataset.corpus.projection import normalize_rows, reduce_dimensions
from yarus.tasks.dataset.corpus.topics import cluster_questions, topic_words
from yarus.tasks.models.embedding.embedders import get_embedder

Document = dict[str, Any]
SAMPLE = Path(__file__).parents[4] / "db" / "sample"
GAP = "Wi-Fi"


def load_sample_lines(name: str) -> list[Document]:
    return [json.loads(line) for line in (SAMPLE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def gap(home: Path, engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, set[str]]:
    """Load a copy of the sample without the pages about Wi-Fi; return its name and the questions about Wi-Fi."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YARUS_HOME", str(home))
        labels = {label["question_id"]: label for label in load_sample_lines("annotation")}
        labels_of_gap = {question_id: label for question_id, label in labels.items() if label["cluster"] == GAP}
        pages = {url for label in labels_of_gap.values() for url in label.get("relevant_urls") or ()}
        assert pages
        for label in labels.values():
            del label["question_id"]
        log = [row | labels.get(row["id"], {}) for row in load_sample_lines("question_answer")]
        other_chunks = [row for row in load_sample_lines("chunk") if row["confluence_url"] not in pages]
        assert len(other_chunks) < len(load_sample_lines("chunk"))
        folder = tmp_path_factory.mktemp("gap")
        return load(folder, "gap", log, other_chunks), {row["question"] for row in log if row["id"] in labels_of_gap}


@pytest.mark.slow("breadth: an evaluation and its corpus")
def test_topic_with_removed_pages_is_first_content_gap(
    gap: tuple[str, set[str]], engine: Engine, at_home: Path
) -> None:
    name, gap_questions = gap
    document = analyse_corpus(engine, name)
    first, second = document["content_gaps"][:2]
    assert first["n_missing"] > first["n"] / 2
    assert first["expected_gain"] > second["expected_gain"]
    assert set(first["unserved_examples"]) & gap_questions
    assert any("вайф" in word or "wifi" in word or "вай" in word for word in first["label"].split(", ")), first["label"]
    assert first["missing_pages"][0]["n"] >= 5
    sample_document = analyse_corpus(engine, "sample")
    assert first["label"] not in {topic["label"] for topic in sample_document["content_gaps"][:1]}


def test_retrieval_is_unknown_without_evaluations(gap: tuple[str, set[str]], engine: Engine, at_home: Path) -> None:
    document = analyse_corpus(engine, gap[0])
    assert document["utilisation"]["chunks"]["share"] is None
    assert "yarus run tier1 --source gap" in document["utilisation"]["reason"]
    assert {topic["hit_rate"] for topic in document["topics"]} == {None}


def test_usage_counts_questions(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    chunks = [*make_passages(30), {"id": "extra", "confluence_url": None, "text": "zzz yyy xxx"}]
    name = load(tmp_path, "used_corpus", [question(i) for i in range(3)], chunks)
    summary = evaluate("tier1", source=name)
    usage = analyse_corpus(engine, name)["utilisation"]
    rankings = [row["retrieved"] for row in read_rows(summary)]
    counts = Counter(chunk for ranking in rankings for chunk in ranking)
    assert usage["chunks"]["retrieved"] == len(counts)
    assert usage["chunks"]["share"] == pytest.approx(len(counts) / 31)
    assert usage["chunks"]["n_never_retrieved"] == 31 - len(counts)
    assert usage["pages"]["total"] == 30
    assert "extra" in {item["id"] for item in usage["chunks"]["never_retrieved"]} or 31 - len(counts) > 20
    evaluate("tier1", source=name)
    assert analyse_corpus(engine, name)["utilisation"]["chunks"] == usage["chunks"], (
        "the same question again is no other one"
    )


def test_usage_counts_chunks_of_corpus_without_pages(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    chunks = [{"id": f"c{i}", "confluence_url": None, "text": f"Пункт {i}: справка в кабинете {i}."} for i in range(12)]
    questions = [question(i, relevant_chunk_ids=[f"c{i}"], relevant_urls=None) for i in range(3)]
    name = load(tmp_path, "pageless_corpus", questions, chunks)
    evaluate("tier1", source=name)
    usage = analyse_corpus(engine, name)["utilisation"]
    assert usage["chunks"]["retrieved"]
    assert (usage["pages"]["total"], usage["pages"]["share"], usage["pages"]["never_retrieved"]) == (0, None, [])


@pytest.mark.parametrize("n", [5, 25])
def test_equal_questions_are_one_topic(engine: Engine, at_home: Path, tmp_path: Path, n: int) -> None:
    equal_questions = [question(i, question="Где взять справку?") for i in range(n)]
    document = analyse_corpus(engine, load(tmp_path, f"equal_{n}", equal_questions, make_passages(10)[:1]))
    assert [topic["n"] for topic in document["topics"]] == [n]
    assert document["topics"][0]["label"].startswith("справку") or "взять" in document["topics"][0]["label"]
    assert len(document["map"]["x"]) == n + 1


def test_single_or_empty_questions_have_no_topic(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    single = analyse_corpus(
        engine, load(tmp_path, "alone", [question(0, question="Где взять справку?")], make_passages(1))
    )
    assert (single["topics"], single["n_unclustered"], single["cohesion_threshold"]) == ([], 1, None)
    no_labels = {"relevant_chunk_ids": None, "relevant_urls": None}
    name = load(tmp_path, "no_words", [question(i, question="?!"[i:], **no_labels) for i in range(2)], make_passages(1))
    document = analyse_corpus(engine, name)
    assert (document["topics"], document["n_unclustered"]) == ([], 0)
    assert document["non_questions"] == [{"kind": "empty", "n": 2, "examples": ["?!", "!"]}]
    synthetic_source = load(tmp_path, "only_synthetic", [question(0, origin="synthetic")], make_passages(1))
    with pytest.raises(InputError, match="no questions of users"):
        analyse_corpus(engine, synthetic_source)


def test_cluster_orders_separated_clusters_by_size() -> None:
    generator = np.random.default_rng(0)
    centres = np.eye(8)[:3]
    truth = np.repeat([0, 1, 2], [60, 40, 20])
    points = normalize_rows(centres[truth] + 0.05 * generator.normal(size=(120, 8)))
    assert cluster_questions(points, seed=0).tolist() == truth.tolist()
    assert cluster_questions(np.vstack([points, np.zeros((1, 8))]), seed=0)[-1] == -1
    assert cluster_questions(np.zeros((0, 8)), seed=0).tolist() == []
    assert cluster_questions(np.zeros((2, 8)), seed=0).tolist() == [-1, -1]


def test_label_words_are_distinctive() -> None:
    questions = [
        "как получить стипендию",
        "когда придёт стипендия",
        "стипендия когда",
        "где взять пропуск",
        "потерял пропуск",
    ]
    words = topic_words(questions, np.array([0, 0, 0, 1, 1]))
    assert words[0][0] == "стипендия", "the commonest form of the word"
    assert words[1][0] == "пропуск"


def test_components_equal_scikit_learn(engine: Engine, at_home: Path) -> None:
    texts = [f"{word} {number}" for word in ("общежитие", "стипендия", "пропуск", "расписание") for number in range(15)]
    model = get_embedder("lexical")
    questions, chunks, variance = reduce_dimensions(texts[:40], texts[40:], model, engine, seed=0)
    vectors = model.encode(texts).astype(np.float64)
    rms = np.sqrt((vectors**2).mean(axis=0))
    scaled = normalize_rows(vectors * np.where(rms > 1e-9, 1 / np.where(rms > 1e-9, rms, 1), 0))
    from sklearn.decomposition import PCA

    reference = PCA(2, svd_solver="full").fit(scaled)
    coordinates = np.concatenate([questions, chunks])[:, :2]
    assert np.abs(coordinates) == pytest.approx(np.abs(reference.transform(scaled)), abs=1e-4)
    assert variance[:2] == pytest.approx(reference.explained_variance_ratio_, abs=1e-4)


def test_profile_statistics() -> None:
    assert length_quantiles([1, 2, 3]) == {"min": 1, "p5": 1.1, "median": 2, "p95": 2.9, "max": 3}
    assert length_quantiles([]) is None
    assert script_shares(["да", "yes", "да, yes", "?"]) == dict.fromkeys(
        ("cyrillic", "latin", "mixed", "neither"), 0.25
    )
    assert script_shares([])["cyrillic"] == 0
    abbreviations = count_abbreviations(["что такое ПГАС", "ПГАС и LMS", "ГДЕ МОЙ ПРОПУСК", "я"], ["LMS — это система"])
    assert abbreviations == [
        {"abbreviation": "ПГАС", "questions": 2, "chunks": 0},
        {"abbreviation": "LMS", "questions": 1, "chunks": 1},
    ]
    times = [
        datetime(2025, month, 1, tzinfo=UTC) for month, n in ((1, 5), (2, 1), (3, 2), (4, 4), (5, 1)) for _ in range(n)
    ]
    assert monthly_growth(times)["monthly_growth"] == pytest.approx(1.0), (
        "1, 2, 4: the ends of the log are seldom whole months"
    )
    assert [month["n"] for month in monthly_growth(times)["months"]] == [5, 1, 2, 4, 1]
    assert monthly_growth(times[:6])["monthly_growth"] is None
    assert monthly_growth([]) == {"months": [], "monthly_growth": None}
    assert seasonality(times)["by_month"]["4"] == 4
    assert seasonality([])["reason"]

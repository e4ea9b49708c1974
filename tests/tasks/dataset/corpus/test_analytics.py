"""Corpus analytics: a planted gap, what is used, topics of few and of none, the profile, the map."""

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.support.evaluations import evaluate, load, passages, question, rows_of
from yarus.db.errors import InputError
from yarus.tasks.dataset.corpus.analytics import corpus
from yarus.tasks.dataset.corpus.profile import abbreviations, growth, quantiles, scripts, seasons
from yarus.tasks.dataset.corpus.projection import reduced, unit
from yarus.tasks.dataset.corpus.topics import cluster, label_words
from yarus.tasks.models.embedding.embedders import embedder

Document = dict[str, Any]
SAMPLE = Path(__file__).parents[4] / "db" / "sample"
GAP = "Wi-Fi"


def lines(name: str) -> list[Document]:
    return [json.loads(line) for line in (SAMPLE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def gap(home: Path, engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, set[str]]:
    """A copy of the sample without the pages about Wi-Fi; its name, and the questions about Wi-Fi."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YARUS_HOME", str(home))
        labels = {label["question_id"]: label for label in lines("annotation")}
        about = {number: label for number, label in labels.items() if label["cluster"] == GAP}
        pages = {url for label in about.values() for url in label.get("relevant_urls") or ()}
        assert pages
        for label in labels.values():
            del label["question_id"]
        log = [row | labels.get(row["id"], {}) for row in lines("question_answer")]
        kept = [row for row in lines("chunk") if row["confluence_url"] not in pages]
        assert len(kept) < len(lines("chunk"))
        folder = tmp_path_factory.mktemp("gap")
        return load(folder, "gap", log, kept), {row["question"] for row in log if row["id"] in about}


@pytest.mark.slow("breadth: an evaluation and its corpus")
def test_a_topic_whose_pages_were_removed_is_the_first_to_write_about(
    gap: tuple[str, set[str]], engine: Engine, at_home: Path
) -> None:
    name, about = gap
    found = corpus(engine, name)
    first, second = found["next"][:2]
    assert first["n_missing"] > first["n"] / 2
    assert first["gain"] > second["gain"]
    assert set(first["examples_unserved"]) & about
    assert any("вайф" in word or "wifi" in word or "вай" in word for word in first["label"].split(", ")), first["label"]
    assert first["missing_pages"][0]["n"] >= 5
    whole = corpus(engine, "sample")
    assert first["label"] not in {topic["label"] for topic in whole["next"][:1]}


def test_without_evaluations_nothing_is_said_of_what_is_found(
    gap: tuple[str, set[str]], engine: Engine, at_home: Path
) -> None:
    found = corpus(engine, gap[0])
    assert found["utilisation"]["chunks"]["share"] is None
    assert "yarus run tier1 --source gap" in found["utilisation"]["reason"]
    assert {topic["hit_rate"] for topic in found["topics"]} == {None}


def test_what_is_used_is_counted_by_question(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    chunks = [*passages(30), {"id": "extra", "confluence_url": None, "text": "zzz yyy xxx"}]
    name = load(tmp_path, "used_corpus", [question(i) for i in range(3)], chunks)
    summary = evaluate("tier1", source=name)
    used = corpus(engine, name)["utilisation"]
    rankings = [row["retrieved"] for row in rows_of(summary)]
    counts = Counter(chunk for ranking in rankings for chunk in ranking)
    assert used["chunks"]["retrieved"] == len(counts)
    assert used["chunks"]["share"] == pytest.approx(len(counts) / 31)
    assert used["chunks"]["n_dead"] == 31 - len(counts)
    assert used["pages"]["total"] == 30
    assert "extra" in {item["id"] for item in used["chunks"]["dead"]} or 31 - len(counts) > 20
    evaluate("tier1", source=name)
    assert corpus(engine, name)["utilisation"]["chunks"] == used["chunks"], "the same question again is no other one"


def test_corpus_without_pages_is_counted_by_chunk(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    chunks = [{"id": f"c{i}", "confluence_url": None, "text": f"Пункт {i}: справка в кабинете {i}."} for i in range(12)]
    questions = [question(i, relevant_chunk_ids=[f"c{i}"], relevant_urls=None) for i in range(3)]
    name = load(tmp_path, "pageless_corpus", questions, chunks)
    evaluate("tier1", source=name)
    used = corpus(engine, name)["utilisation"]
    assert used["chunks"]["retrieved"]
    assert (used["pages"]["total"], used["pages"]["share"], used["pages"]["dead"]) == (0, None, [])


@pytest.mark.parametrize("n", [5, 25])
def test_few_questions_and_equal_ones_are_one_topic(engine: Engine, at_home: Path, tmp_path: Path, n: int) -> None:
    equal = [question(i, question="Где взять справку?") for i in range(n)]
    found = corpus(engine, load(tmp_path, f"equal_{n}", equal, passages(10)[:1]))
    assert [topic["n"] for topic in found["topics"]] == [n]
    assert found["topics"][0]["label"].startswith("справку") or "взять" in found["topics"][0]["label"]
    assert len(found["map"]["x"]) == n + 1


def test_no_topic(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    alone = corpus(engine, load(tmp_path, "alone", [question(0, question="Где взять справку?")], passages(1)))
    assert (alone["topics"], alone["without_topic"], alone["cohesion_by_chance"]) == ([], 1, None)
    bare = {"relevant_chunk_ids": None, "relevant_urls": None}
    name = load(tmp_path, "no_words", [question(i, question="?!"[i:], **bare) for i in range(2)], passages(1))
    found = corpus(engine, name)
    assert (found["topics"], found["without_topic"]) == ([], 0)
    assert found["chatter"] == [{"kind": "empty", "n": 2, "examples": ["?!", "!"]}]
    only = load(tmp_path, "only_synthetic", [question(0, origin="synthetic")], passages(1))
    with pytest.raises(InputError, match="no questions of users"):
        corpus(engine, only)


def test_clusters_that_lie_apart_are_found_and_ordered_by_size() -> None:
    rng = np.random.default_rng(0)
    centres = np.eye(8)[:3]
    truth = np.repeat([0, 1, 2], [60, 40, 20])
    points = unit(centres[truth] + 0.05 * rng.normal(size=(120, 8)))
    assert cluster(points, seed=0).tolist() == truth.tolist()
    assert cluster(np.vstack([points, np.zeros((1, 8))]), seed=0)[-1] == -1
    assert cluster(np.zeros((0, 8)), seed=0).tolist() == []
    assert cluster(np.zeros((2, 8)), seed=0).tolist() == [-1, -1]


def test_labels_are_the_words_that_set_a_topic_apart() -> None:
    questions = [
        "как получить стипендию",
        "когда придёт стипендия",
        "стипендия когда",
        "где взять пропуск",
        "потерял пропуск",
    ]
    found = label_words(questions, np.array([0, 0, 0, 1, 1]))
    assert found[0][0] == "стипендия", "the commonest form of the word"
    assert found[1][0] == "пропуск"


def test_components_are_scikit_learns(engine: Engine, at_home: Path) -> None:
    texts = [f"{word} {number}" for word in ("общежитие", "стипендия", "пропуск", "расписание") for number in range(15)]
    model = embedder("lexical")
    questions, chunks, variance = reduced(texts[:40], texts[40:], model, engine, seed=0)
    vectors = model.encode(texts).astype(np.float64)
    rms = np.sqrt((vectors**2).mean(axis=0))
    scaled = unit(vectors * np.where(rms > 1e-9, 1 / np.where(rms > 1e-9, rms, 1), 0))
    from sklearn.decomposition import PCA

    theirs = PCA(2, svd_solver="full").fit(scaled)
    ours = np.concatenate([questions, chunks])[:, :2]
    assert np.abs(ours) == pytest.approx(np.abs(theirs.transform(scaled)), abs=1e-4)
    assert variance[:2] == pytest.approx(theirs.explained_variance_ratio_, abs=1e-4)


def test_the_profile() -> None:
    assert quantiles([1, 2, 3]) == {"min": 1, "p5": 1.1, "median": 2, "p95": 2.9, "max": 3}
    assert quantiles([]) is None
    assert scripts(["да", "yes", "да, yes", "?"]) == dict.fromkeys(("cyrillic", "latin", "mixed", "neither"), 0.25)
    assert scripts([])["cyrillic"] == 0
    found = abbreviations(["что такое ПГАС", "ПГАС и LMS", "ГДЕ МОЙ ПРОПУСК", "я"], ["LMS — это система"])
    assert found == [
        {"abbreviation": "ПГАС", "questions": 2, "chunks": 0},
        {"abbreviation": "LMS", "questions": 1, "chunks": 1},
    ]
    times = [
        datetime(2025, month, 1, tzinfo=UTC) for month, n in ((1, 5), (2, 1), (3, 2), (4, 4), (5, 1)) for _ in range(n)
    ]
    assert growth(times)["monthly"] == pytest.approx(1.0), "1, 2, 4: the ends of the log are seldom whole months"
    assert [month["n"] for month in growth(times)["months"]] == [5, 1, 2, 4, 1]
    assert growth(times[:6])["monthly"] is None
    assert growth([]) == {"months": [], "monthly": None}
    assert seasons(times)["by_month"]["4"] == 4
    assert seasons([])["reason"]

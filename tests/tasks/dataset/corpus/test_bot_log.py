"""Analysis of a realistic bot log: content gaps, non-questions and topic names."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import load
from tests.support.logs.bot_logs import JUNK, BotLog, make_bot_log
from yarus.db import analyses
from yarus.tasks.dataset.corpus.analytics import analyse_corpus
from yarus.tasks.dataset.corpus.profile import content_gap_reasons
from yarus.tasks.report import corpus_page

pytestmark = pytest.mark.slow("simulation: a log of thousands of questions")

Document = dict[str, Any]


@pytest.fixture(scope="module")
def log(xquad_ru: Path) -> BotLog:
    return make_bot_log(xquad_ru)


@pytest.fixture(scope="module")
def document(
    log: BotLog, engine: Engine, at_home_for_module: Path, tmp_path_factory: pytest.TempPathFactory
) -> Document:
    folder = tmp_path_factory.mktemp("bot")
    name = load(folder, "bot_log", log.questions, log.chunks)
    return dict(analyse_corpus(engine, name))


@pytest.fixture(scope="module")
def topic_of(document: Document) -> dict[str, int]:
    """Return question -> topic; non-questions are not on the map."""
    corpus_map = document["map"]
    points = zip(corpus_map["kind"], corpus_map["id"], corpus_map["topic"], strict=True)
    return {name: topic for kind, name, topic in points if kind == "question"}


def test_non_questions_are_counted_by_kind(document: Document, log: BotLog, topic_of: dict[str, int]) -> None:
    planted = Counter(subject for subject in log.truth.values() if subject in JUNK)
    counts = {row["kind"]: row["n"] for row in document["non_questions"]}
    for kind, n in planted.items():
        assert 0.95 * n <= counts[kind], kind
    real_questions = [name for name, subject in log.truth.items() if subject not in JUNK]
    misclassified = [name for name in real_questions if name not in topic_of]
    n_from_sample = 3 * 10  # non-questions of the sample: greetings, thanks, a test, one in English; three times each
    assert len(misclassified) <= n_from_sample + 0.01 * len(real_questions)
    n_counted = sum(row["n"] for row in document["non_questions"]) + sum(topic["n"] for topic in document["topics"])
    assert n_counted + document["n_unclustered"] == document["profile"]["n_questions"] == len(log.questions)


def test_non_questions_are_not_content_gaps(document: Document) -> None:
    junk = {text for texts in JUNK.values() for text in texts}
    for topic in (*document["content_gaps"], *document["topics"]):
        assert not {topic["representative"], *topic["unserved_examples"]} & junk
        assert not {"https", "http", "com", "test", "тест", "настроение"} & set(topic["label"].split(", "))
        assert not [page for page in topic["missing_pages"] if "99000" in page["page"]]


def test_topic_of_removed_pages_is_first_and_named(document: Document) -> None:
    first = document["content_gaps"][0]
    assert "амазон" in first["label"], first
    assert "мазон" in first["representative"] and first["n_missing"] > 0.8 * first["n"]
    assert first["missing_pages"][0]["page"].endswith("pageId=0")


def test_single_questions_are_mostly_unclustered(document: Document, log: BotLog, topic_of: dict[str, int]) -> None:
    """Single questions form no topic and are mostly unclustered; frequent questions are mostly clustered."""
    subjects_by_topic: dict[int, Counter[str]] = {}
    for name, topic in topic_of.items():
        subjects_by_topic.setdefault(topic, Counter())[log.truth[name]] += 1
    for topic, subjects in subjects_by_topic.items():
        assert topic < 0 or subjects["bag"] <= subjects.total() / 3, (document["topics"][topic]["label"], subjects)
    n_unclustered_single, n_single = subjects_by_topic[-1]["bag"], Counter(log.truth.values())["bag"]
    assert n_unclustered_single >= n_single / 2
    n_clustered = sum(subjects.total() - subjects["bag"] for topic, subjects in subjects_by_topic.items() if topic >= 0)
    assert n_clustered >= 0.7 * (len(topic_of) - n_single)
    assert document["n_unclustered_without_page"] >= n_unclustered_single / 2


def test_topics_have_cohesion_above_chance(document: Document) -> None:
    assert 0.1 < document["cohesion_threshold"] < 0.7
    for topic in document["topics"]:
        assert document["cohesion_threshold"] <= topic["cohesion"] <= 1 + 1e-9
        assert topic["representative"] == topic["examples"][0]
        assert 0 < topic["n_distinct"] <= topic["n"]


def test_content_gaps_have_consistent_gains(document: Document) -> None:
    assert document["content_gaps"]
    for topic in document["content_gaps"]:
        assert topic["expected_gain"] == topic["n_missing"] + topic["n_unanswered"] / 2
        assert 0 < topic["expected_gain"] <= topic["n_missing"] + topic["n_unanswered"] <= topic["n"]
        assert topic["n_downvoted"] <= topic["n"] and topic["unserved_examples"]
    gains = [topic["expected_gain"] for topic in document["content_gaps"]]
    assert gains == sorted(gains, reverse=True)


def test_report_shows_analysis_in_both_languages(document: Document, engine: Engine) -> None:
    with analyses.open_analysis(engine, "corpus", "bot_log", {}) as corpus_id:
        analyses.save_analysis(engine, corpus_id, document, "completed")
    view = corpus_page.corpus_view(engine, "bot_log")
    assert view is not None
    for language in ("ru", "en"):
        reasons = [topic["rests"][language] for topic in view["content_gaps"]]
        assert reasons == [
            "; ".join(content_gap_reasons(topic, language))
            for topic in document["content_gaps"][: corpus_page.MAX_GAPS]
        ]
        assert str(document["n_unclustered"]) in view["outside"][language]
        assert document["unserved_examples"][0] in view["outside"][language]  # the examples are shown
    assert [row["n"] for row in view["apart"]] == [row["n"] for row in document["non_questions"]]
    old_document = {name: part for name, part in document.items() if name != "non_questions"}
    with analyses.open_analysis(engine, "corpus", "bot_log", {}) as corpus_id:
        analyses.save_analysis(engine, corpus_id, old_document, "completed")
    old_view = corpus_page.corpus_view(engine, "bot_log")
    assert old_view is not None and (old_view["content_gaps"], old_view["topics"], old_view["apart"]) == ([], [], [])


def test_content_gap_reasons_omit_zero_counts() -> None:
    topic = {"n": 12, "n_distinct": 9, "n_missing": 0, "n_unanswered": 5, "n_downvoted": 0, "expected_gain": 2.5}
    assert content_gap_reasons(topic, "ru") == [
        "вопросов 12, разных 9",
        "плохой ответ, страница неизвестна у 5",
        "ожидаемая польза 2.5 = 5 × 0.5",
    ]
    assert (
        content_gap_reasons(topic | {"n_missing": 3, "expected_gain": 5.5}, "en")[-1]
        == "expected gain 5.5 = 3 × 1 + 5 × 0.5"
    )

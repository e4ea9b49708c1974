"""A log as bots have it: what is advised of it, what is counted apart, what is named and what is not."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import load
from tests.support.logs.bot_logs import JUNK, BotLog, bot_log
from yarus.db import analyses
from yarus.tasks.dataset.corpus.analytics import corpus
from yarus.tasks.dataset.corpus.profile import rests_on
from yarus.tasks.report import corpus_page

pytestmark = pytest.mark.slow("simulation: a log of thousands of questions")

Document = dict[str, Any]


@pytest.fixture(scope="module")
def log(xquad_ru: Path) -> BotLog:
    return bot_log(xquad_ru)


@pytest.fixture(scope="module")
def found(log: BotLog, engine: Engine, at_home_for_module: Path, tmp_path_factory: pytest.TempPathFactory) -> Document:
    folder = tmp_path_factory.mktemp("bot")
    name = load(folder, "bot_log", log.questions, log.chunks)
    return dict(corpus(engine, name))


@pytest.fixture(scope="module")
def topic_of(found: Document) -> dict[str, int]:
    """Question -> its topic; those counted apart are on no map."""
    drawn = found["map"]
    points = zip(drawn["kind"], drawn["id"], drawn["topic"], strict=True)
    return {name: topic for kind, name, topic in points if kind == "question"}


def test_junk_is_counted_apart_by_kind_and_questions_are_not(
    found: Document, log: BotLog, topic_of: dict[str, int]
) -> None:
    planted = Counter(about for about in log.truth.values() if about in JUNK)
    counted = {row["kind"]: row["n"] for row in found["chatter"]}
    for kind, n in planted.items():
        assert 0.95 * n <= counted[kind], kind
    real = [name for name, about in log.truth.items() if about not in JUNK]
    lost = [name for name in real if name not in topic_of]
    social = 3 * 10  # of the sample's own questions: greetings, thanks, a test, one in English; each three times
    assert len(lost) <= social + 0.01 * len(real)
    everything = sum(row["n"] for row in found["chatter"]) + sum(topic["n"] for topic in found["topics"])
    assert everything + found["without_topic"] == found["profile"]["n_questions"] == len(log.questions)


def test_junk_is_never_advised(found: Document) -> None:
    junk = {text for texts in JUNK.values() for text in texts}
    for topic in (*found["next"], *found["topics"]):
        assert not {topic["representative"], *topic["examples_unserved"]} & junk
        assert not {"https", "http", "com", "test", "тест", "настроение"} & set(topic["label"].split(", "))
        assert not [page for page in topic["missing_pages"] if "99000" in page["page"]]


def test_the_topic_whose_pages_are_gone_is_the_first_and_is_named_by_it(found: Document) -> None:
    first = found["next"][0]
    assert "амазон" in first["label"], first
    assert "мазон" in first["representative"] and first["n_missing"] > 0.8 * first["n"]
    assert first["missing_pages"][0]["page"].endswith("pageId=0")


def test_questions_that_nobody_else_asks_are_in_no_topic(
    found: Document, log: BotLog, topic_of: dict[str, int]
) -> None:
    """No topic is made of them, and most are in none; what is asked often mostly is in one."""
    inside: dict[int, Counter[str]] = {}
    for name, topic in topic_of.items():
        inside.setdefault(topic, Counter())[log.truth[name]] += 1
    for topic, about in inside.items():
        assert topic < 0 or about["bag"] <= about.total() / 3, (found["topics"][topic]["label"], about)
    bag, whole = inside[-1]["bag"], Counter(log.truth.values())["bag"]
    assert bag >= whole / 2
    often = sum(about.total() - about["bag"] for topic, about in inside.items() if topic >= 0)
    assert often >= 0.7 * (len(topic_of) - whole)
    assert found["without_topic_or_page"] >= bag / 2


def test_topics_show_how_they_hold_together(found: Document) -> None:
    assert 0.1 < found["cohesion_by_chance"] < 0.7
    for topic in found["topics"]:
        assert found["cohesion_by_chance"] <= topic["cohesion"] <= 1 + 1e-9
        assert topic["representative"] == topic["examples"][0]
        assert 0 < topic["n_distinct"] <= topic["n"]


def test_advice_says_what_it_rests_on_and_does_not_contradict_itself(found: Document) -> None:
    assert found["next"]
    for topic in found["next"]:
        assert topic["gain"] == topic["n_missing"] + topic["n_unanswered"] / 2
        assert 0 < topic["gain"] <= topic["n_missing"] + topic["n_unanswered"] <= topic["n"]
        assert topic["n_downvoted"] <= topic["n"] and topic["examples_unserved"]
    gains = [topic["gain"] for topic in found["next"]]
    assert gains == sorted(gains, reverse=True)


def test_the_report_says_the_same_in_both_languages(found: Document, engine: Engine) -> None:
    with analyses.analysing(engine, "corpus", "bot_log", {}) as corpus_id:
        analyses.keep(engine, corpus_id, found, "completed")
    shown = corpus_page.stored(engine, "bot_log")
    assert shown is not None
    for language in ("ru", "en"):
        said = [topic["rests"][language] for topic in shown["next"]]
        assert said == ["; ".join(rests_on(topic, language)) for topic in found["next"][: corpus_page.NEXT]]
        assert str(found["without_topic"]) in shown["outside"][language]
        assert found["examples_unserved"][0] in shown["outside"][language]  # what people are to read is there to read
    assert [row["n"] for row in shown["apart"]] == [row["n"] for row in found["chatter"]]
    old = {name: part for name, part in found.items() if name != "chatter"}
    with analyses.analysing(engine, "corpus", "bot_log", {}) as corpus_id:
        analyses.keep(engine, corpus_id, old, "completed")
    before = corpus_page.stored(engine, "bot_log")
    assert before is not None and (before["next"], before["topics"], before["apart"]) == ([], [], [])


def test_nothing_is_said_of_what_is_zero() -> None:
    topic = {"n": 12, "n_distinct": 9, "n_missing": 0, "n_unanswered": 5, "n_downvoted": 0, "gain": 2.5}
    assert rests_on(topic, "ru") == [
        "вопросов 12, разных 9",
        "плохой ответ, страница неизвестна у 5",
        "ожидаемая польза 2.5 = 5 × 0.5",
    ]
    assert rests_on(topic | {"n_missing": 3, "gain": 5.5}, "en")[-1] == "expected gain 5.5 = 3 × 1 + 5 × 0.5"

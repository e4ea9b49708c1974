"""Check the corpus analytics of a night: what is stored, and what the command prints."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.command_line import run_here
from tests.support.evaluations import read_rows
from yarus.tasks.dataset.corpus.analytics import analyse_corpus
from yarus.tasks.report.corpus_page import load_newest_analysis

Document = dict[str, Any]
pytestmark = pytest.mark.slow("breadth: the corpus of a night")


def test_topics_contain_every_question_once(night: dict[str, Document], engine: Engine, at_home: Path) -> None:
    analytics = analyse_corpus(engine, "sample")
    n_chatter = sum(row["n"] for row in analytics["non_questions"])
    n_in_topics = sum(topic["n"] for topic in analytics["topics"])
    assert n_in_topics + analytics["n_unclustered"] + n_chatter == analytics["profile"]["n_questions"]
    sizes = [topic["n"] for topic in analytics["topics"]]
    assert sizes == sorted(sizes, reverse=True)
    assert analytics == analyse_corpus(engine, "sample"), "the same twice"
    hits = [row["hit_rate@10"] for row in read_rows(night["tier1"])]
    n_known = sum(topic["n_with_hit_rate"] for topic in analytics["topics"])
    assert 0 < n_known <= sum(hit is not None for hit in hits) + len(read_rows(night["real_users"]))


def test_night_stores_analytics(night: dict[str, Document], engine: Engine, at_home: Path) -> None:
    stored = load_newest_analysis(engine, "sample")
    assert stored is not None
    assert stored["corpus_id"].startswith("corpus-")
    assert {"utilisation", "topics", "content_gaps", "profile", "map"} <= stored.keys()
    assert night["tier1"]["evaluation_id"] in stored["utilisation"]["evaluations"]
    assert load_newest_analysis(engine, "nothing") is None


def test_corpus_command_prints_analytics(night: dict[str, Document], at_home: Path) -> None:
    analytics = run_here("corpus", "--evaluation", night["tier1"]["evaluation_id"], "--map-points", "50", "--json").json
    assert analytics["utilisation"]["evaluations"] == [night["tier1"]["evaluation_id"]]
    assert len(analytics["map"]["x"]) == 50
    output = run_here("corpus")
    assert "Что написать в первую очередь" in output.out
    refusal = run_here("corpus", "--evaluation", night["ux"]["evaluation_id"])
    assert (refusal.code, "tier1, real_users, tier3" in refusal.err) == (2, True)
    assert run_here("corpus", "--source", "sampel").code == 2

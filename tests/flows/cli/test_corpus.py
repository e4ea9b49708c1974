"""Corpus analytics after a night: what is kept, and by the command line."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.command_line import here
from tests.support.evaluations import rows_of
from yarus.tasks.dataset.corpus.analytics import corpus
from yarus.tasks.report.corpus_page import newest_analytics

Document = dict[str, Any]
pytestmark = pytest.mark.slow("breadth: the corpus of a night")


def test_topics_hold_every_question_once(night: dict[str, Document], engine: Engine, at_home: Path) -> None:
    found = corpus(engine, "sample")
    apart = sum(row["n"] for row in found["chatter"])
    inside = sum(topic["n"] for topic in found["topics"])
    assert inside + found["without_topic"] + apart == found["profile"]["n_questions"]
    sizes = [topic["n"] for topic in found["topics"]]
    assert sizes == sorted(sizes, reverse=True)
    assert found == corpus(engine, "sample"), "the same twice"
    hits = [row["hit_rate@10"] for row in rows_of(night["tier1"])]
    known = sum(topic["n_hit_known"] for topic in found["topics"])
    assert 0 < known <= sum(hit is not None for hit in hits) + len(rows_of(night["real_users"]))


def test_the_night_keeps_it(night: dict[str, Document], engine: Engine, at_home: Path) -> None:
    kept = newest_analytics(engine, "sample")
    assert kept is not None
    assert kept["corpus_id"].startswith("corpus-")
    assert {"utilisation", "topics", "next", "profile", "map"} <= kept.keys()
    assert night["tier1"]["evaluation_id"] in kept["utilisation"]["evaluations"]
    assert newest_analytics(engine, "nothing") is None


def test_by_the_command_line(night: dict[str, Document], at_home: Path) -> None:
    found = here("corpus", "--evaluation", night["tier1"]["evaluation_id"], "--points", "50", "--json").json
    assert found["utilisation"]["evaluations"] == [night["tier1"]["evaluation_id"]]
    assert len(found["map"]["x"]) == 50
    told = here("corpus")
    assert "Что написать в первую очередь" in told.out
    wrong = here("corpus", "--evaluation", night["ux"]["evaluation_id"])
    assert (wrong.code, "tier1, real_users, tier3" in wrong.err) == (2, True)
    assert here("corpus", "--source", "sampel").code == 2

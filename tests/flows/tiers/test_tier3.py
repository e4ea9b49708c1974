"""Tier 3 of our own system, on the sample too: its figures, and where answers fail first."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics.pairwise import paired_cosine_distances

from tests.support.command_line import CommandLine
from tests.support.evaluations import evaluate, load, metric_of, question, roles, rows_of, texts, use, value
from tests.support.llm_server import FakeLLMServer
from yarus.db.errors import InputError
from yarus.metrics.facts import facts
from yarus.tasks.models.embedding.embedders import embedder
from yarus.tasks.steps.failures import failure_of

Document = dict[str, Any]
ANSWER = "Сбор 500 рублей, платить в кассе 3."
FEE = [{"kind": fact.kind, "text": fact.text, "start": fact.start, "end": fact.end} for fact in facts(ANSWER)[:1]]


def test_an_id_that_is_not_in_the_corpus_has_no_text_but_its_place(
    judge: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stranger.py").write_text(STRANGER, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    source = load(tmp_path, "strange", [question(i) for i in range(10)])
    summary = evaluate("tier3", source=source, retriever="stranger:retrieve", k=2)
    assert summary["state"] == "completed"
    for row in rows_of(summary):
        assert row["retrieved"] == ["gone", "c1"]
        assert row["context"].startswith("Правило 1 ")
    assert {"note": "unknown ids", "n": 10} in summary["notes"]


STRANGER = """
def retrieve(question, k):
    return [("gone", 0.1), ("c1", 0.2)]
"""


@pytest.fixture(scope="module")
def sample_rows(night: dict[str, Document]) -> list[Document]:
    return rows_of(night["tier3"])


def test_semantic_similarity_is_scikit_learns_cosine(
    night: dict[str, Document], sample_rows: list[Document], at_home: Path
) -> None:
    rows = [row for row in sample_rows if row["semantic_similarity"] is not None]
    model = embedder("lexical")
    left, right_side = (model.encode([row[name] for row in rows]) for name in ("answer", "reference"))
    theirs = 1 - paired_cosine_distances(left.astype(np.float64), right_side.astype(np.float64))
    assert [row["semantic_similarity"] for row in rows] == pytest.approx(theirs.tolist(), abs=1e-6)
    assert value(night["tier3"], "avg_semantic_similarity") == pytest.approx(theirs.mean(), abs=1e-6)
    assert len(rows) == sum(bool(row["answer"] and row["reference"]) for row in sample_rows)


def test_the_matrix_of_answerable_and_answered(night: dict[str, Document], sample_rows: list[Document]) -> None:
    cells = Counter(
        (row["answerable"], row["status"] == "sut_refusal") for row in sample_rows if row["answer"] is not None
    )
    names = {(True, False): "answerable_answered", (True, True): "answerable_refused"}
    names |= {(False, False): "unanswerable_answered", (False, True): "unanswerable_refused"}
    assert {cell: value(night["tier3"], name) for cell, name in names.items()} == {c: cells[c] for c in names}
    assert min(cells[cell] for cell in names) > 0
    refused = sum(n for (_, refusal), n in cells.items() if refusal)
    assert value(night["tier3"], "refusal_rate") == pytest.approx(refused / sum(cells.values()))


def test_a_refusal_is_worth_nothing_or_is_right(sample_rows: list[Document]) -> None:
    refused = [row for row in sample_rows if row["status"] == "sut_refusal"]
    assert {row["faithfulness"] for row in refused} == {None}
    assert {row["e2e_score"] for row in refused if row["answerable"]} == {0}
    assert {row["e2e_score"] for row in refused if row["answerable"] is False} == {None}
    assert {row["failure"] for row in refused if row["answerable"] is False} == {None}


def test_retrieval_is_tier_1s_at_the_depth_that_was_used(night: dict[str, Document]) -> None:
    for name in ("hit_rate@1", "precision@1", "recall@1"):
        assert night["tier3"]["metrics"][name]["value"] == night["tier1"]["metrics"][name]["value"]


def test_failures_are_counted_and_the_nearest_named(night: dict[str, Document], sample_rows: list[Document]) -> None:
    found = night["tier3"]["failures"]
    assert found["counts"] == {name: sum(row["failure"] == name for row in sample_rows) for name in found["counts"]}
    assert sum(found["counts"].values()) == sum(row["failure"] is not None for row in sample_rows)
    assert len(found["fix_first"]) == 5
    for row in sample_rows:
        if row["case_id"] in found["fix_first"]:
            assert set(row["relevant"]) & set(row["retrieved"])
            assert row["e2e_score"] == 0


@pytest.mark.parametrize(
    ("changes", "failure"),
    [
        ({}, None),
        ({"e2e_score": 0.59}, "generation"),
        ({"faithfulness": 0.69}, "generation"),
        ({"faithfulness": None}, None),
        ({"retrieved": ["b"], "e2e_score": 0.2}, "retrieval"),
        ({"retrieved": [], "e2e_score": 0.0, "status": "sut_refusal"}, "retrieval"),
        ({"retrieved": ["b"]}, "label"),
        ({"retrieved": ["b"], "path": "hidden", "status": "sut_refusal", "e2e_score": 0.0}, "retrieval"),
        ({"path": "hidden", "status": "sut_refusal", "e2e_score": 0.0}, "gate"),
        ({"status": "sut_refusal", "e2e_score": 0.0, "faithfulness": None}, "refusal"),
        ({"relevant": [], "answerable": False, "e2e_score": None}, "refusal"),
        ({"relevant": [], "answerable": False, "e2e_score": None, "status": "sut_refusal"}, None),
        ({"relevant": [], "e2e_score": 0.1}, "generation"),
        ({"retrieved": None, "e2e_score": 0.1}, "generation"),
        ({"unsupported_facts": FEE}, "generation"),
        ({"unsupported_facts": FEE, "e2e_score": None, "faithfulness": None}, "generation"),
        ({"unsupported_facts": FEE, "reference": "Нет."}, "generation"),
        ({"unsupported_facts": FEE, "reference": "Сбор 500 рублей."}, None),
        ({"unsupported_facts": FEE, "retrieved": ["b"]}, "label"),
        ({"unsupported_facts": []}, None),
        ({"unsupported_facts": None}, None),
        ({"status": "sut_error", "e2e_score": None}, None),
        ({"status": "parse_error", "e2e_score": None}, None),
        ({"status": "unlabelled", "e2e_score": None, "answerable": None}, None),
    ],
)
def test_where_a_case_fails_first(changes: Document, failure: str | None) -> None:
    good = {"status": "ok", "answerable": True, "relevant": ["a"], "retrieved": ["a"], "path": None}
    good |= {"answer": ANSWER, "reference": None}
    assert failure_of({**good, "e2e_score": 0.9, "faithfulness": 1.0, **changes}) == failure


def test_failures_are_told_in_words(yarus: CommandLine, night: dict[str, Document]) -> None:
    shown = yarus("show", night["tier3"]["evaluation_id"], env={"YARUS_LANGUAGE": "en"}).out
    assert f"retrieval missed {night['tier3']['failures']['counts']['retrieval']}" in shown
    assert night["tier3"]["failures"]["fix_first"][0] in shown


def test_only_our_own_system_has_chunks(at_home: Path) -> None:
    with pytest.raises(InputError, match="leave out --unit"):
        evaluate("tier3", sut="http://127.0.0.1:1", unit="chunk")


def test_our_own_system_answers_from_what_it_retrieved(
    judge: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, roles(judge.url, "generator"))
    source = load(tmp_path, "own", [question(i) for i in range(10)])
    summary = evaluate("tier3", source=source, retriever="fulltext", k=2)
    given = [texts(request) for request in judge.requests if metric_of(request) == "generation"]
    assert len(given) == 10
    assert all(len(text["context"].split("\n\n")) <= 2 for text in given)
    rows = rows_of(summary)
    assert all(row["context"].startswith(f"Правило {row['retrieved'][0][1:]} ") for row in rows if row["retrieved"])
    assert summary["state"] == "completed"


def test_a_batch_in_which_nothing_can_be_asked(at_home: Path, tmp_path: Path) -> None:
    rows = [question(i) | ({"answer": None} if i < 100 else {}) for i in range(103)]
    for row in rows[:100]:
        row.pop("ground_truth_answer", None)
    summary = evaluate("tier3", source=load(tmp_path, "sparse", rows))
    assert summary["statuses"] == {"unlabelled": 100, "ok": 3}

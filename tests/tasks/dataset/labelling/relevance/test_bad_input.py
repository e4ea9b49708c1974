"""LLM labels with invalid input: source labels, judge replies and parameters."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluations import evaluate, load, make_passages, question, read_rows
from tests.support.llm_server import make_completion
from tests.tasks.dataset.labelling.relevance.filled import (
    PAGES,
    label_results,
    load_source,
    reply_with_grade,
    serve_judge,
)
from yarus.db.errors import InputError

pytestmark = pytest.mark.usefixtures("at_home")
NAME = "hit_rate@1"
Document = dict[str, Any]


@pytest.mark.slow("breadth: more of what is judged")
@pytest.mark.parametrize("reply", ['{"reason": "", "score": 4}', '{"reason": "", "score": "maybe"}', "3", "", "{"])
def test_question_is_unmeasured_when_judge_reply_is_invalid(tmp_path: Path, reply: str) -> None:
    """A question with an ungraded passage has no value, and its status states the cause."""

    def reply_broken(number: int, request: Document) -> Any:
        prompt = request["messages"][0]["content"]
        return make_completion(reply) if "вариант 7?" in prompt else reply_with_grade(number, request)

    with serve_judge(reply_broken):
        name = load(
            tmp_path,
            f"filled_broken_{hashlib.sha256(reply.encode()).hexdigest()[:8]}",
            [question(i) for i in range(40)],
            make_passages(12),
        )
        evaluated = evaluate("tier1", source=name, labels="llm", retriever="dense")
    (row,) = (row for row in read_rows(evaluated) if row["question_id"] == "7")
    assert row["status"] == "parse_error" and row[NAME] is None and row["mrr"] is None
    assert evaluated["metrics"][NAME]["n_scored"] == 39
    assert evaluated["state"] == "completed"


@pytest.mark.slow("breadth: more of what is judged")
def test_broken_replies_are_retried(tmp_path: Path) -> None:
    def reply_sometimes_broken(number: int, request: Document) -> Any:
        is_retry = len(request["messages"]) > 1
        return reply_with_grade(number, request) if is_retry or number % 20 else make_completion("{")

    with serve_judge(reply_sometimes_broken):
        result = evaluate("tier1", source=load_source(tmp_path, "filled_sometimes"), labels="llm", retriever="dense")
    assert result["statuses"] == {"ok": 120}


@pytest.mark.slow("breadth: more of what is judged")
@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({"relevant_chunk_ids": []}, id="none at all"),
        pytest.param({"relevant_chunk_ids": {"c0": 0, "c1": 0}}, id="negative alone"),
        pytest.param({"relevant_chunk_ids": ["gone"]}, id="of a chunk that is gone"),
    ],
)
def test_questions_without_usable_labels_are_judged(
    tmp_path: Path, labels: Document, request: pytest.FixtureRequest
) -> None:
    """The judge measures every question; a relevant result that is not retrieved counts as not found."""
    name = "filled_" + request.node.callspec.id.replace(" ", "_")
    with serve_judge():
        load(tmp_path, name, [question(i, confluence_url=None, **labels) for i in range(60)], make_passages(PAGES))
        evaluated = evaluate("tier1", source=name, unit="chunk", labels="llm", retriever="dense")
    assert evaluated["statuses"] == {"ok": 60}
    for row in read_rows(evaluated):
        graded = [result["label"] if result["label"] is not None else result["grade"] >= 2 for result in row["pooled"]]
        assert row["mrr"] == (1 / (graded.index(True) + 1) if any(graded) else 0)
    label_results(evaluated["evaluation_id"], 10)


@pytest.mark.slow("breadth: more of what is judged")
def test_unanswerable_questions_stay_unmeasured(tmp_path: Path) -> None:
    with serve_judge():
        questions = [question(i, relevant_chunk_ids=[], confluence_url=None, answerable=bool(i % 4)) for i in range(40)]
        name = load(tmp_path, "filled_unanswerable", [question(40), *questions], make_passages(PAGES))
        evaluated = evaluate("tier1", source=name, labels="llm", retriever="dense")
    assert evaluated["statuses"] == {"ok": 31, "unlabelled": 10}


@pytest.mark.slow("breadth: more of what is judged")
@pytest.mark.parametrize(
    "setting",
    [
        ("YARUS_RERANKER_MODEL", "Vendor/Big-Model"),
        ("YARUS_RERANKER_SERVICE__REQUEST", '{"model": "Vendor/Big-Model", "query": "$question"}'),
    ],
)
def test_judge_must_not_be_the_reranker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: tuple[str, str]
) -> None:
    with serve_judge() as server:
        load_source(tmp_path, "filled_reranked")
        monkeypatch.setenv(*setting)
        with pytest.raises(InputError, match="also re-ranks"):
            evaluate("tier1", source="filled_reranked", labels="llm", judge_model="big-model")
        assert not server.requests
        assert evaluate("tier1", source="filled_reranked", judge_model="big-model")["state"] == "completed"


@pytest.mark.slow("breadth: more of what is judged")
def test_reranked_pool_changes_comparability_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_home: Path
) -> None:
    """Check that a reranked pool, which contains other results, has another key."""
    (at_home / "reranker_of_filled.py").write_text("def by_length(question, texts): return map(len, texts)")
    with serve_judge():
        load_source(tmp_path, "filled_pool_reranked")
        common: Document = {"source": "filled_pool_reranked", "labels": "llm", "retriever": "dense"}
        results = [evaluate("tier1", **common, **more) for more in ({}, {"reranker": "reranker_of_filled:by_length"})]
    assert [result["system"].get("pool_reranked") for result in results] == [None, "reranker_of_filled:by_length@50"]
    assert len({result["comparability_key"] for result in results}) == 2


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"pool": "fulltext"}, "--labels llm"),
        ({"pool": "fulltexts", "labels": "llm"}, "did you mean 'fulltext'"),
    ],
)
def test_invalid_pools_are_rejected(tmp_path: Path, more: Document, message: str) -> None:
    load_source(tmp_path, "filled_pools")
    with pytest.raises(InputError, match=message):
        evaluate("tier1", source="filled_pools", **more)


def test_labelling_rejects_evaluation_without_filled_labels(tmp_path: Path) -> None:
    evaluated = evaluate("tier1", source=load_source(tmp_path, "filled_not"))
    with pytest.raises(InputError, match="--labels llm"):
        label_results(evaluated["evaluation_id"], 1)


@pytest.mark.slow("breadth: more of what is judged")
def test_translations_are_judged_separately(tmp_path: Path) -> None:
    """Check that translations are not duplicates: the judge grades each one."""
    english = [
        {
            "id": f"e{i}",
            "confluence_url": f"https://en.example/{i}",
            "text": f"Rule {i} (правило {i}): return book {i}.",
        }
        for i in range(PAGES)
    ]
    with serve_judge():
        questions = [question(i, relevant_chunk_ids=[], confluence_url=None) for i in range(40)]
        name = load(tmp_path, "filled_languages", questions, [*make_passages(PAGES), *english])
        evaluated = evaluate("tier1", source=name, unit="chunk", labels="llm", retriever="dense", k=20)
    graded = [[result["grade"] >= 2 for result in row["pooled"]] for row in read_rows(evaluated)]
    assert sum(map(sum, graded)) > len(graded)
    label_results(evaluated["evaluation_id"], 100)

"""Labels to be filled up, and what is wrong with them, with the judge, or with what is asked for."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluations import evaluate, load, passages, question, rows_of
from tests.support.llm_server import says
from tests.tasks.dataset.labelling.relevance.filled import PAGES, grading, judge, label, source
from yarus.db.errors import InputError

pytestmark = pytest.mark.usefixtures("at_home")
NAME = "hit_rate@1"
Document = dict[str, Any]


@pytest.mark.slow("breadth: more of what is judged")
@pytest.mark.parametrize("reply", ['{"reason": "", "score": 4}', '{"reason": "", "score": "maybe"}', "3", "", "{"])
def test_what_the_judge_does_not_say_is_no_grade(tmp_path: Path, reply: str) -> None:
    """A question with a passage that could not be graded has no value, and the reason says why."""

    def broken(number: int, request: Document) -> Any:
        given = request["messages"][0]["content"]
        return says(reply) if "вариант 7?" in given else grading(number, request)

    with judge(broken):
        name = load(
            tmp_path,
            f"filled_broken_{hashlib.sha256(reply.encode()).hexdigest()[:8]}",
            [question(i) for i in range(40)],
            passages(12),
        )
        found = evaluate("tier1", source=name, labels="filled", retriever="dense")
    (row,) = (row for row in rows_of(found) if row["question_id"] == "7")
    assert row["status"] == "parse_error" and row[NAME] is None and row["mrr"] is None
    assert found["metrics"][NAME]["n_scored"] == 39
    assert found["state"] == "completed"


@pytest.mark.slow("breadth: more of what is judged")
def test_one_reply_in_twenty_is_broken_and_asked_for_again(tmp_path: Path) -> None:
    def sometimes(number: int, request: Document) -> Any:
        again = len(request["messages"]) > 1
        return grading(number, request) if again or number % 20 else says("{")

    with judge(sometimes):
        found = evaluate("tier1", source=source(tmp_path, "filled_sometimes"), labels="filled", retriever="dense")
    assert found["statuses"] == {"ok": 120}


@pytest.mark.slow("breadth: more of what is judged")
@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({"relevant_chunk_ids": []}, id="none at all"),
        pytest.param({"relevant_chunk_ids": {"c0": 0, "c1": 0}}, id="negative alone"),
        pytest.param({"relevant_chunk_ids": ["gone"]}, id="of a chunk that is gone"),
    ],
)
def test_labels_that_say_nothing(tmp_path: Path, labels: Document, request: pytest.FixtureRequest) -> None:
    """Every question is measured by the judge; what nobody finds counts as not found."""
    name = "filled_" + request.node.callspec.id.replace(" ", "_")
    with judge():
        load(tmp_path, name, [question(i, confluence_url=None, **labels) for i in range(60)], passages(PAGES))
        found = evaluate("tier1", source=name, unit="chunk", labels="filled", retriever="dense")
    assert found["statuses"] == {"ok": 60}
    for row in rows_of(found):
        graded = [one["label"] if one["label"] is not None else one["grade"] >= 2 for one in row["pooled"]]
        assert row["mrr"] == (1 / (graded.index(True) + 1) if any(graded) else 0)
    label(found["evaluation_id"], 10)


@pytest.mark.slow("breadth: more of what is judged")
def test_what_is_annotated_to_have_no_answer_stays_unmeasured(tmp_path: Path) -> None:
    with judge():
        asked = [question(i, relevant_chunk_ids=[], confluence_url=None, answerable=bool(i % 4)) for i in range(40)]
        name = load(tmp_path, "filled_unanswerable", [question(40), *asked], passages(PAGES))
        found = evaluate("tier1", source=name, labels="filled", retriever="dense")
    assert found["statuses"] == {"ok": 31, "unlabelled": 10}


@pytest.mark.slow("breadth: more of what is judged")
@pytest.mark.parametrize(
    "setting",
    [
        ("YARUS_RERANKER_MODEL", "Vendor/Big-Model"),
        ("YARUS_RERANKER_SERVICE__REQUEST", '{"model": "Vendor/Big-Model", "query": "$question"}'),
    ],
)
def test_the_judge_may_not_judge_what_it_has_ranked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: tuple[str, str]
) -> None:
    with judge() as server:
        source(tmp_path, "filled_reranked")
        monkeypatch.setenv(*setting)
        with pytest.raises(InputError, match="also re-ranks"):
            evaluate("tier1", source="filled_reranked", labels="filled", judge_model="big-model")
        assert not server.requests
        assert evaluate("tier1", source="filled_reranked", judge_model="big-model")["state"] == "completed"


@pytest.mark.slow("breadth: more of what is judged")
def test_a_pool_that_was_ordered_anew_is_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_home: Path
) -> None:
    """The judge has then looked at other results."""
    (at_home / "reranker_of_filled.py").write_text("def by_length(question, texts): return map(len, texts)")
    with judge():
        source(tmp_path, "filled_pool_reranked")
        given: Document = {"source": "filled_pool_reranked", "labels": "filled", "retriever": "dense"}
        found = [evaluate("tier1", **given, **more) for more in ({}, {"reranker": "reranker_of_filled:by_length"})]
    assert [one["system"].get("pool_reranked") for one in found] == [None, "reranker_of_filled:by_length@50"]
    assert len({one["comparability_key"] for one in found}) == 2


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"pool": "fulltext"}, "--labels filled"),
        ({"pool": "fulltexts", "labels": "filled"}, "did you mean 'fulltext'"),
    ],
)
def test_pools_that_are_none(tmp_path: Path, more: Document, message: str) -> None:
    source(tmp_path, "filled_pools")
    with pytest.raises(InputError, match=message):
        evaluate("tier1", source="filled_pools", **more)


def test_nothing_to_label(tmp_path: Path) -> None:
    found = evaluate("tier1", source=source(tmp_path, "filled_not"))
    with pytest.raises(InputError, match="--labels filled"):
        label(found["evaluation_id"], 1)


@pytest.mark.slow("breadth: more of what is judged")
def test_the_same_passage_in_two_languages_is_judged_in_each(tmp_path: Path) -> None:
    """They are no twins: each is shown to the judge by itself."""
    english = [
        {
            "id": f"e{i}",
            "confluence_url": f"https://en.example/{i}",
            "text": f"Rule {i} (правило {i}): return book {i}.",
        }
        for i in range(PAGES)
    ]
    with judge():
        asked = [question(i, relevant_chunk_ids=[], confluence_url=None) for i in range(40)]
        name = load(tmp_path, "filled_languages", asked, [*passages(PAGES), *english])
        found = evaluate("tier1", source=name, unit="chunk", labels="filled", retriever="dense", k=20)
    graded = [[one["grade"] >= 2 for one in row["pooled"]] for row in rows_of(found)]
    assert sum(map(sum, graded)) > len(graded)
    label(found["evaluation_id"], 100)

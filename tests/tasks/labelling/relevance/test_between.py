"""What to label next: the results on which the ranking of two systems depends most, by hand and with people's word."""

from pathlib import Path

import pytest

from db.errors import InputError
from tasks.config.connections import database
from tasks.labelling.relevance.between import between
from tests.support.evaluations import evaluate, load, passages, question
from tests.tasks.labelling.relevance.filled import judge, label, source

pytestmark = pytest.mark.usefixtures("at_home")


def test_the_result_that_moves_most_comes_first(tmp_path: Path) -> None:
    """Of one question, whose relevant passage both find: every other result moves nothing of hit_rate@10."""
    name = load(tmp_path, "between_one", [question(3)], passages(12))
    a, b = (evaluate("tier1", source=name, retriever=of)["evaluation_id"] for of in ("dense", "fulltext"))
    found = between(database(), a, b, "precision@10")
    assert found["value_a"] == found["value_b"] == 0.1
    only = {(one["rank_a"] is None) != (one["rank_b"] is None) for one in found["results"]}
    assert only <= {True} and found["unjudged"] == len(found["results"])
    assert all(one["effect"] == 0.1 and one["grade"] is None for one in found["results"])
    assert between(database(), a, b, "hit_rate@10")["results"] == []


def test_every_effect_is_what_judging_it_otherwise_does(tmp_path: Path) -> None:
    """By the definition: annotated so in the source, the difference moves by it."""
    asked = [question(i, relevant_chunk_ids={f"c{i}": 1}) for i in range(8)]
    name = load(tmp_path, "between_all", asked, passages(25))
    a, b = (evaluate("tier1", source=name, retriever=of) for of in ("dense", "fulltext"))
    found = between(database(), a["evaluation_id"], b["evaluation_id"])
    best = found["results"][0]
    row = int(best["case_id"].partition(":")[2])
    asked[row]["relevant_chunk_ids"] = {f"c{row}": 1, best["result"]: 1}
    other = load(tmp_path, "between_all_again", asked, passages(25))
    again = [
        evaluate("tier1", source=other, retriever=of)["metrics"]["ndcg@10"]["value"] for of in ("dense", "fulltext")
    ]
    before = [of["metrics"]["ndcg@10"]["value"] for of in (a, b)]
    assert [found["value_a"], found["value_b"]] == pytest.approx(before)
    assert abs((again[1] - again[0]) - (before[1] - before[0])) == pytest.approx(best["effect"])
    assert best["effect"] == max(one["effect"] for one in found["results"])


def test_what_people_have_judged_is_not_asked_again(tmp_path: Path) -> None:
    with judge():
        name = source(tmp_path, "between_people", n=40)
        a, b = (
            evaluate("tier1", source=name, labels="filled", retriever=of, pool=other)["evaluation_id"]
            for of, other in (("dense", "fulltext"), ("fulltext", "dense"))
        )
    before = between(database(), a, b)
    assert before["unjudged"] > 0 and all(one["passage"] and one["grade"] is not None for one in before["results"])
    label(a)
    label(b)
    after = between(database(), a, b)
    assert after["unjudged"] < before["unjudged"]


def test_what_does_not_compare(tmp_path: Path) -> None:
    one, other = (evaluate("tier1", source=source(tmp_path, f"between_{name}", n=4)) for name in ("x", "y"))
    ids = [of["evaluation_id"] for of in (one, other)]
    with pytest.raises(InputError, match="one tier and source"):
        between(database(), *ids)
    with pytest.raises(InputError, match="says nothing of rankings"):
        between(database(), ids[0], ids[0], "avg_faithfulness")
    assert between(database(), ids[0], ids[0])["results"] == []
    for tier in ("judge_pipeline",):
        answered = evaluate(tier, source=source(tmp_path, "between_z", n=4))["evaluation_id"]
        with pytest.raises(InputError, match="has no rankings"):
            between(database(), answered, answered)

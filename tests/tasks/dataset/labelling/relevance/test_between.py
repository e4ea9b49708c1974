"""What to label next: the results on which the ranking of two systems depends most, by hand and with people's word."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.evaluations import evaluate, load, passages, question, scores
from tests.tasks.dataset.labelling.relevance.filled import judge, label, source
from yarus.__main__ import cli
from yarus.db.errors import InputError
from yarus.tasks.config.connections import database
from yarus.tasks.dataset.labelling.relevance.between import between

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


@pytest.mark.slow("breadth: more of what is judged")
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


@pytest.mark.slow("breadth: more of what is judged")
def test_each_side_is_as_deep_as_it_was_evaluated(tmp_path: Path) -> None:
    asked = [question(i, relevant_chunk_ids=[f"c{(i * 7) % 25}"]) for i in range(12)]
    name = load(tmp_path, "between_depth", asked, passages(25))
    both = [evaluate("tier1", source=name, retriever="dense", k=k) for k in (10, 25)]
    found = between(database(), *(of["evaluation_id"] for of in both), "mrr")
    values = [of["metrics"]["mrr"]["value"] for of in both]
    assert values[0] != values[1]
    assert [found["value_a"], found["value_b"]] == pytest.approx(values)


def test_what_does_not_compare(tmp_path: Path) -> None:
    one, other = (evaluate("tier1", source=source(tmp_path, f"between_{name}", n=4)) for name in ("x", "y"))
    ids = [of["evaluation_id"] for of in (one, other)]
    with pytest.raises(InputError, match="one tier, source and unit"):
        between(database(), *ids)
    with pytest.raises(InputError, match="says nothing of rankings"):
        between(database(), ids[0], ids[0], "avg_faithfulness")
    assert between(database(), ids[0], ids[0])["results"] == []
    for tier in ("judge_pipeline",):
        answered = evaluate(tier, source=source(tmp_path, "between_z", n=4))["evaluation_id"]
        with pytest.raises(InputError, match="has no rankings"):
            between(database(), answered, answered)


@pytest.mark.slow("breadth: more of what is judged")
def test_a_judge_that_finds_nothing_in_it_has_judged_it(tmp_path: Path) -> None:
    """Beside an evaluation whose labels were not filled, a grade of 0 is a grade."""
    with judge(lambda number, request: scores(0)):
        name = source(tmp_path, "between_zero", n=10)
        one = evaluate("tier1", source=name, labels="filled", retriever="dense", pool="fulltext")["evaluation_id"]
        other = evaluate("tier1", source=name, retriever="fulltext")["evaluation_id"]
    for pair in ((one, other), (other, one)):
        assert {result["grade"] for result in between(database(), *pair)["results"]} == {0}


@pytest.mark.slow("breadth: more of what is judged")
def test_twins_are_known_of_pools_alone(tmp_path: Path) -> None:
    twins = [{**row, "id": f"0{row['id']}"} for row in passages(12)[:3]]
    name = load(tmp_path, "between_twins", [question(i) for i in range(10)], [*passages(12), *twins])
    given = evaluate("tier1", source=name, unit="chunk")["evaluation_id"]
    with pytest.raises(InputError, match="has twins"):
        between(database(), given, given)
    with judge():
        filled = evaluate("tier1", source=name, unit="chunk", labels="filled")
    found = between(database(), filled["evaluation_id"], filled["evaluation_id"])
    assert found["value_a"] == pytest.approx(filled["metrics"]["ndcg@10"]["value"])


def test_the_command_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_LANGUAGE", "en")
    name = load(tmp_path, "between_said", [question(i) for i in range(8)], passages(25))
    ids = [evaluate("tier1", source=name, retriever=of)["evaluation_id"] for of in ("dense", "fulltext")]
    said = CliRunner().invoke(cli, ["label", "--between", *ids], catch_exceptions=False).stdout
    assert "results that nobody has judged" in said and "export-annotation" in said
    words = ["label", "--between", *ids, "--metric", "mrr", "--json"]
    document = json.loads(CliRunner().invoke(cli, words, catch_exceptions=False).stdout)
    assert document["metric"] == "mrr" and document["unjudged"] >= len(document["results"]) > 0


@pytest.mark.parametrize(
    "words",
    [
        ["--between", "a", "b", "--relevance"],
        ["--between", "a", "b", "--evaluation", "c"],
        ["--relevance", "--metric", "mrr"],
        ["--relevance", "--json"],
    ],
)
def test_what_does_not_go_together_is_said(words: list[str]) -> None:
    found = CliRunner().invoke(cli, ["label", *words])
    assert found.exit_code == 2 and "--" in found.stderr

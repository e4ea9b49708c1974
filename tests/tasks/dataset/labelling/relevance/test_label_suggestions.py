"""Label suggestions: results that affect the ranking of two systems most, with and without people's labels."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.evaluations import evaluate, load, make_passages, make_score_completion, question
from tests.support.json_schemas import check_json
from tests.tasks.dataset.labelling.relevance.filled import label_results, load_source, serve_judge
from yarus.__main__ import cli
from yarus.db.errors import InputError
from yarus.tasks.config.connections import database
from yarus.tasks.dataset.labelling.relevance.label_suggestions import suggest_labels

pytestmark = pytest.mark.usefixtures("at_home")


def test_suggestions_start_with_largest_effect(tmp_path: Path) -> None:
    """Both systems find the only relevant passage, so that other results do not affect hit_rate@10."""
    name = load(tmp_path, "between_one", [question(3)], make_passages(12))
    a, b = (evaluate("tier1", source=name, retriever=retriever)["evaluation_id"] for retriever in ("dense", "fulltext"))
    suggestions = suggest_labels(database(), a, b, "precision@10")
    assert suggestions["value_a"] == suggestions["value_b"] == 0.1
    is_found_by_one = {(result["rank_a"] is None) != (result["rank_b"] is None) for result in suggestions["results"]}
    assert is_found_by_one <= {True} and suggestions["unjudged"] == len(suggestions["results"])
    assert all(result["effect"] == 0.1 and result["grade"] is None for result in suggestions["results"])
    assert suggest_labels(database(), a, b, "hit_rate@10")["results"] == []


def test_suggested_effect_equals_effect_of_annotation(tmp_path: Path) -> None:
    """Compare the effect with the change after the source is annotated accordingly."""
    questions = [question(i, relevant_chunk_ids={f"c{i}": 1}) for i in range(8)]
    name = load(tmp_path, "between_all", questions, make_passages(25))
    a, b = (evaluate("tier1", source=name, retriever=retriever) for retriever in ("dense", "fulltext"))
    suggestions = suggest_labels(database(), a["evaluation_id"], b["evaluation_id"])
    top_result = suggestions["results"][0]
    row = int(top_result["case_id"].partition(":")[2])
    questions[row]["relevant_chunk_ids"] = {f"c{row}": 1, top_result["result"]: 1}
    annotated_source = load(tmp_path, "between_all_again", questions, make_passages(25))
    annotated_values = [
        evaluate("tier1", source=annotated_source, retriever=retriever)["metrics"]["ndcg@10"]["value"]
        for retriever in ("dense", "fulltext")
    ]
    values = [evaluated["metrics"]["ndcg@10"]["value"] for evaluated in (a, b)]
    assert [suggestions["value_a"], suggestions["value_b"]] == pytest.approx(values)
    assert abs((annotated_values[1] - annotated_values[0]) - (values[1] - values[0])) == pytest.approx(
        top_result["effect"]
    )
    assert top_result["effect"] == max(result["effect"] for result in suggestions["results"])


@pytest.mark.slow("breadth: more of what is judged")
def test_suggestions_exclude_judged_results(tmp_path: Path) -> None:
    with serve_judge():
        name = load_source(tmp_path, "between_people", n=40)
        a, b = (
            evaluate("tier1", source=name, labels="llm", retriever=retriever, pool=pool)["evaluation_id"]
            for retriever, pool in (("dense", "fulltext"), ("fulltext", "dense"))
        )
    before = suggest_labels(database(), a, b)
    assert before["unjudged"] > 0 and all(
        result["passage"] and result["grade"] is not None for result in before["results"]
    )
    label_results(a)
    label_results(b)
    after = suggest_labels(database(), a, b)
    assert after["unjudged"] < before["unjudged"]


@pytest.mark.slow("breadth: more of what is judged")
def test_suggestions_use_ranking_depth_of_each_evaluation(tmp_path: Path) -> None:
    questions = [question(i, relevant_chunk_ids=[f"c{(i * 7) % 25}"]) for i in range(12)]
    name = load(tmp_path, "between_depth", questions, make_passages(25))
    evaluations = [evaluate("tier1", source=name, retriever="dense", k=k) for k in (10, 25)]
    suggestions = suggest_labels(database(), *(evaluated["evaluation_id"] for evaluated in evaluations), "mrr")
    values = [evaluated["metrics"]["mrr"]["value"] for evaluated in evaluations]
    assert values[0] != values[1]
    assert [suggestions["value_a"], suggestions["value_b"]] == pytest.approx(values)


def test_suggestions_reject_incomparable_evaluations(tmp_path: Path) -> None:
    first, second = (evaluate("tier1", source=load_source(tmp_path, f"between_{name}", n=4)) for name in ("x", "y"))
    ids = [evaluated["evaluation_id"] for evaluated in (first, second)]
    with pytest.raises(InputError, match="one tier, source and unit"):
        suggest_labels(database(), *ids)
    with pytest.raises(InputError, match="says nothing of rankings"):
        suggest_labels(database(), ids[0], ids[0], "avg_faithfulness")
    assert suggest_labels(database(), ids[0], ids[0])["results"] == []
    for tier in ("judge_pipeline",):
        answered = evaluate(tier, source=load_source(tmp_path, "between_z", n=4))["evaluation_id"]
        with pytest.raises(InputError, match="has no rankings"):
            suggest_labels(database(), answered, answered)


@pytest.mark.slow("breadth: more of what is judged")
def test_suggestions_keep_zero_grades(tmp_path: Path) -> None:
    """A grade of 0 counts as a grade, even if the other evaluation has no filled labels."""
    with serve_judge(lambda number, request: make_score_completion(0)):
        name = load_source(tmp_path, "between_zero", n=10)
        first = evaluate("tier1", source=name, labels="llm", retriever="dense", pool="fulltext")["evaluation_id"]
        second = evaluate("tier1", source=name, retriever="fulltext")["evaluation_id"]
    for pair in ((first, second), (second, first)):
        assert {result["grade"] for result in suggest_labels(database(), *pair)["results"]} == {0}


@pytest.mark.slow("breadth: more of what is judged")
def test_suggestions_reject_duplicates_without_pools(tmp_path: Path) -> None:
    duplicates = [{**row, "id": f"0{row['id']}"} for row in make_passages(12)[:3]]
    name = load(tmp_path, "between_twins", [question(i) for i in range(10)], [*make_passages(12), *duplicates])
    unfilled = evaluate("tier1", source=name, unit="chunk")["evaluation_id"]
    with pytest.raises(InputError, match="has twins"):
        suggest_labels(database(), unfilled, unfilled)
    with serve_judge():
        filled = evaluate("tier1", source=name, unit="chunk", labels="llm")
    suggestions = suggest_labels(database(), filled["evaluation_id"], filled["evaluation_id"])
    assert suggestions["value_a"] == pytest.approx(filled["metrics"]["ndcg@10"]["value"])


def test_label_between_command_prints_suggestions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_LANGUAGE", "en")
    name = load(tmp_path, "between_said", [question(i) for i in range(8)], make_passages(25))
    ids = [evaluate("tier1", source=name, retriever=retriever)["evaluation_id"] for retriever in ("dense", "fulltext")]
    printed = CliRunner().invoke(cli, ["judge", "label", "--suggest", *ids], catch_exceptions=False).stdout
    n_unjudged = suggest_labels(database(), *ids)["unjudged"]
    assert f"The difference depends on {n_unjudged} unjudged results." in " ".join(printed.split())
    assert "export-annotation" in printed
    arguments = ["judge", "label", "--suggest", *ids, "--metric", "mrr", "--json"]
    document = check_json("judge label --suggest", CliRunner().invoke(cli, arguments, catch_exceptions=False).stdout)
    assert document["metric"] == "mrr" and document["unjudged"] >= len(document["results"]) > 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["--suggest", "a", "b", "--results"],
        ["--suggest", "a", "b", "--evaluation", "c"],
        ["--results", "--metric", "mrr"],
        ["--results", "--json"],
    ],
)
def test_label_command_rejects_conflicting_options(arguments: list[str]) -> None:
    result = CliRunner().invoke(cli, ["judge", "label", *arguments])
    assert result.exit_code == 2 and "--" in result.stderr

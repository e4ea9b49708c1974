"""Labels that a judge fills up: what it is asked, what its word is worth, and what people make of it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluations import evaluate, passages, rows_of, scores
from tests.tasks.dataset.labelling.relevance.filled import PAGES, grade, grading, judge, label, relevant, source
from yarus.db.errors import InputError
from yarus.flows.before.dry_run import plan
from yarus.flows.terminal.differences.comparison import print_comparison
from yarus.flows.terminal.summary import print_summary
from yarus.tasks.cases.rankings import to_judge
from yarus.tasks.comparison.compare import compare
from yarus.tasks.comparison.gate import FILLED, gate
from yarus.tasks.comparison.gate_rules import read_policy
from yarus.tasks.config.connections import database
from yarus.tasks.config.parameters import Tier1
from yarus.tasks.dataset.labelling import answers
from yarus.tasks.dataset.labelling.relevance_session import RelevanceLabelling, labelling
from yarus.tasks.evaluation.summary import summary

pytestmark = pytest.mark.usefixtures("at_home")
NAME = "hit_rate@1"
PASSAGES = {row["id"]: row["text"] for row in passages(PAGES)}
Document = dict[str, Any]


def asked_about(rows: list[Document]) -> set[tuple[str, str]]:
    """Question and passage of what the labels did not tell."""
    return {(row["question"], text) for row in rows for text in row["passages"] if text is not None}


def test_what_nobody_has_judged_is_graded_once(tmp_path: Path) -> None:
    """Each pair is bought once, whichever retriever found it; labels of the source are believed, not asked about."""
    with judge() as server:
        source(tmp_path, "filled_once")
        first = evaluate("tier1", source="filled_once", labels="filled", retriever="dense")
        asked = len(server.requests)
        rows = rows_of(first)
        pairs = asked_about(rows)
        assert asked == len(pairs) > 0
        again = evaluate("tier1", source="filled_once", labels="filled", retriever="dense")
        assert len(server.requests) == asked
        other = evaluate("tier1", source="filled_once", labels="filled", retriever="fulltext", pool="dense")
        more = asked_about(rows_of(other))
        assert pairs <= more
        assert len(server.requests) == len(more)
    assert first["statuses"] == {"ok": 120}
    assert {"note": "labels filled", "n": asked} in first["notes"] and "incomplete" not in first
    assert first["comparability_key"] == again["comparability_key"] != other["comparability_key"]
    for row in rows:
        labelled = [one["result"] for one in row["pooled"] if one["label"]]
        assert labelled == row["relevant"]
        for one, passage in zip(row["pooled"], row["passages"], strict=True):
            assert one["grade"] == (grade(row["question"], passage) if to_judge(one) else None)
        best = row["pooled"][0]
        assert row[NAME] == float(bool(best["label"]) or (best["grade"] or 0) >= 2)
        assert row["judged@10"] == 1


@pytest.mark.slow("breadth: another effect of filled labels")
def test_two_retrievers_with_one_pool_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with judge():
        source(tmp_path, "filled_pool")
        dense = evaluate("tier1", source="filled_pool", labels="filled", retriever="dense", pool="fulltext")
        words = evaluate("tier1", source="filled_pool", labels="filled", retriever="fulltext", pool="dense")
    assert dense["comparability_key"] == words["comparability_key"]
    assert dense["system"]["pool"] == ["dense", "fulltext"]
    pools = [[{one["result"] for one in row["pooled"]} for row in rows_of(of)] for of in (dense, words)]
    assert pools[0] == pools[1]
    print_comparison(compare(database(), dense["evaluation_id"], words["evaluation_id"]), "en")
    assert "A judge has filled up the labels" in capsys.readouterr().out


@pytest.mark.slow("breadth: another effect of filled labels")
def test_what_it_would_take_is_said_before(tmp_path: Path) -> None:
    """At most: what is labelled, or found by both, is known when it is found; without filling, nothing is asked."""
    with judge() as server:
        name = source(tmp_path, "filled_plan", n=20)
        parameters = Tier1.model_validate(
            {"source": name, "labels": "filled", "pool": "fulltext", "retriever": "dense"}
        )
        planned = asyncio.run(plan("tier1", parameters))
        assert not server.requests
    assert planned.roles["judge"].calls == 20 * 10 * 2
    assert asyncio.run(plan("tier1", Tier1(source=name))).roles == {}


@pytest.mark.slow("breadth: another effect of filled labels")
def test_a_changed_question_is_put_to_the_whole_pool(tmp_path: Path) -> None:
    """Otherwise the pools of two retrievers, under one comparability key, would not be the same."""
    with judge():
        source(tmp_path, "filled_layout", n=20)
        common = {"source": "filled_layout", "labels": "filled", "perturbation": "layout"}
        one = evaluate("tier1", **common, retriever="dense", pool="fulltext")
        other = evaluate("tier1", **common, retriever="fulltext", pool="dense")
    assert one["comparability_key"] == other["comparability_key"]
    pools = [[{one["result"] for one in row["pooled"]} for row in rows_of(of)] for of in (one, other)]
    assert pools[0] == pools[1]


@pytest.mark.slow("breadth: another effect of filled labels")
def test_without_people_it_is_an_opinion(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No grade, and no gate passes or fails by it; thirty questions that people have judged give both."""
    policy = tmp_path / "gate.toml"
    rules = (f'[[rule]]\nmetric = "{name}"\nfloor = 0.01\n' for name in (NAME, f"{NAME}_corrected"))
    policy.write_text("".join(rules), encoding="utf-8")
    with judge():
        source(tmp_path, "filled_opinion")
        found = evaluate("tier1", source="filled_opinion", labels="filled", retriever="dense")
    assert (found["metrics"][NAME]["judge"], found["metrics"][NAME]["grade"]) == ("filled", None)
    assert found["metrics"]["judged@10"]["judge"] is None
    rules = {rule["metric"]: rule for rule in gate(database(), found["evaluation_id"], read_policy(policy))["rules"]}
    assert (rules[NAME]["verdict"], rules[NAME]["reason"]) == ("inconclusive", FILLED)
    assert rules[f"{NAME}_corrected"]["verdict"] == "inconclusive"
    label(found["evaluation_id"], 400)
    rules = {rule["metric"]: rule for rule in gate(database(), found["evaluation_id"], read_policy(policy))["rules"]}
    assert (rules[NAME]["verdict"], rules[f"{NAME}_corrected"]["verdict"]) == ("inconclusive", "pass")
    print_summary(summary(database(), found["evaluation_id"]), "en")
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("drawn questions are complete") == 1 and "differs from people by" in said


@pytest.mark.slow("breadth: another effect of filled labels")
def test_the_corrected_means_are_those_of_people_once_all_is_judged(tmp_path: Path) -> None:
    """Also where people and judge disagree always, or the judge calls everything relevant."""
    for name, script in (("filled_all", grading), ("filled_yes", lambda number, request: scores(3))):
        with judge(script):
            source(tmp_path, name, n=60)
            found = evaluate("tier1", source=name, labels="filled", retriever="fulltext")
        label(found["evaluation_id"])
        shown = summary(database(), found["evaluation_id"])["metrics"]
        rows = rows_of(found)
        true = [any(relevant(row["question"], PASSAGES[name]) for name in row["retrieved"][:1]) for row in rows]
        corrected = shown[f"{NAME}_corrected"]
        assert corrected["value"] == pytest.approx(sum(true) / len(true))
        assert corrected["n_labels"] == 60
        assert corrected["ci_low"] <= corrected["value"] <= corrected["ci_high"]
        assert corrected["labels"]["acted_on"] and corrected["grade"] is not None
        assert shown[NAME]["grade"] is None


@pytest.mark.slow("breadth: another effect of filled labels")
def test_what_was_judged_is_known_in_the_next_evaluation(tmp_path: Path) -> None:
    """By the texts: another retriever's results are asked about only where they are new; both compare corrected."""
    with judge():
        source(tmp_path, "filled_next", n=80)
        first = evaluate("tier1", source="filled_next", labels="filled", retriever="dense", pool="fulltext")
        second = evaluate("tier1", source="filled_next", labels="filled", retriever="fulltext", pool="dense")
    one = label(first["evaluation_id"])
    assert one.next("anna") is None
    other = label(second["evaluation_id"], 0)
    before = other.progress("anna")
    assert before["labelled"] == one.progress("anna")["labelled"] and before["own"] == 0
    label(second["evaluation_id"], annotator="boris")
    name = f"{NAME}_corrected"
    compared = compare(database(), first["evaluation_id"], second["evaluation_id"], only=[name])["metrics"][name]
    true = [relevant(row["question"], PASSAGES[row["retrieved"][0]]) for of in (first, second) for row in rows_of(of)]
    assert compared["difference"] == pytest.approx((sum(true[80:]) - sum(true[:80])) / 80)


@pytest.mark.slow("breadth: another effect of filled labels")
def test_passed_over_and_taken_back(tmp_path: Path) -> None:
    with judge():
        source(tmp_path, "filled_back")
        found = evaluate("tier1", source="filled_back", labels="filled", retriever="dense")
    session = RelevanceLabelling(database(), found["evaluation_id"])
    for _ in range(5):
        first = session.next("anna")
        assert first is not None
        session.save("anna", first["case_id"], float(relevant(first["question"], first["context"])))
    assert f"{NAME}_corrected" in summary(database(), found["evaluation_id"])["metrics"]
    asked = session.next("anna")
    assert asked is not None and asked["answer"] == asked["reference"] == ""
    session.save("anna", asked["case_id"], None)
    after = session.next("anna")
    assert after is not None and after["case_id"].partition("\n")[0] != asked["case_id"].partition("\n")[0]
    back = session.undo("anna")
    assert back is not None and back["case_id"] == asked["case_id"]
    assert session.next("anna") == asked | {"note": ""}
    assert session.progress("anna")["labelled"] == 5
    for _ in range(5):
        assert session.undo("anna") is not None
    assert session.undo("anna") is None
    assert f"{NAME}_corrected" not in summary(database(), found["evaluation_id"])["metrics"]
    for wrong in ("nothing", f"{asked['case_id']}x"):
        with pytest.raises(InputError, match="no result"):
            session.save("anna", wrong, 1.0)
    with pytest.raises(InputError, match="between 0 and 1"):
        session.save("anna", asked["case_id"], 2.0)


@pytest.mark.slow("breadth: another effect of filled labels")
def test_the_log_is_filled_too(tmp_path: Path) -> None:
    """Real users: the page that the bot showed is a label, and other pages are judged as whole."""
    with judge():
        found = evaluate("real_users", source=source(tmp_path, "filled_log"), labels="filled", retriever="dense")
    assert found["metrics"][NAME]["judge"] == "filled"
    assert label(found["evaluation_id"], 400).progress("anna")["estimate"]["n_labels"] >= 30
    assert summary(database(), found["evaluation_id"])["strata"]["confirmed"][f"{NAME}_corrected"]["n_labels"] >= 30


def test_results_are_what_is_labelled_where_labels_are_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last such evaluation is found however many others came after it."""
    monkeypatch.setattr(answers, "LISTED", 0)
    with judge():
        found = evaluate("tier1", source=source(tmp_path, "filled_chosen", n=20), labels="filled")
    for chosen in (labelling(database(), found["evaluation_id"], None), labelling(database(), "last", "relevance")):
        assert (chosen.evaluation_id, chosen.metric) == (found["evaluation_id"], "relevance")

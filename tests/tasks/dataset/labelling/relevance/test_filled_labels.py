"""LLM relevance labels: calls to the judge, their effect, and corrections by people."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluations import evaluate, make_passages, make_score_completion, read_rows
from tests.tasks.dataset.labelling.relevance.filled import (
    PAGES,
    is_relevant,
    judge_grade,
    label_results,
    load_source,
    reply_with_grade,
    serve_judge,
)
from yarus.db.errors import InputError
from yarus.flows.preflight.dry_run import plan_calls
from yarus.flows.terminal.comparisons.comparison import print_comparison
from yarus.flows.terminal.summary import print_summary
from yarus.tasks.cases.rankings import needs_judgement
from yarus.tasks.comparison.compare import compare
from yarus.tasks.comparison.gate import FILLED, gate
from yarus.tasks.comparison.gate_rules import read_gate_rules
from yarus.tasks.config.connections import database
from yarus.tasks.config.parameters import Tier1
from yarus.tasks.dataset.labelling import answers
from yarus.tasks.dataset.labelling.relevance_session import RelevanceLabellingSession, open_session
from yarus.tasks.evaluation.summary import read_summary

pytestmark = pytest.mark.usefixtures("at_home")
NAME = "hit_rate@1"
PASSAGES = {row["id"]: row["text"] for row in make_passages(PAGES)}
Document = dict[str, Any]


def judged_pairs(rows: list[Document]) -> set[tuple[str, str]]:
    """Return (question, passage) of results without a label."""
    return {(row["question"], text) for row in rows for text in row["passages"] if text is not None}


def test_unlabelled_results_are_graded_once(tmp_path: Path) -> None:
    """The judge grades each pair once for all retrievers, and does not grade labelled results."""
    with serve_judge() as server:
        load_source(tmp_path, "filled_once")
        first = evaluate("tier1", source="filled_once", labels="llm", retriever="dense")
        n_requests = len(server.requests)
        rows = read_rows(first)
        pairs = judged_pairs(rows)
        assert n_requests == len(pairs) > 0
        repeated = evaluate("tier1", source="filled_once", labels="llm", retriever="dense")
        assert len(server.requests) == n_requests
        second = evaluate("tier1", source="filled_once", labels="llm", retriever="fulltext", pool="dense")
        second_pairs = judged_pairs(read_rows(second))
        assert pairs <= second_pairs
        assert len(server.requests) == len(second_pairs)
    assert first["statuses"] == {"ok": 120}
    assert {"note": "labels filled", "n": n_requests} in first["notes"] and "incomplete" not in first
    assert first["comparability_key"] == repeated["comparability_key"] != second["comparability_key"]
    for row in rows:
        labelled = [result["result"] for result in row["pooled"] if result["label"]]
        assert labelled == row["relevant"]
        for result, passage in zip(row["pooled"], row["passages"], strict=True):
            assert result["grade"] == (judge_grade(row["question"], passage) if needs_judgement(result) else None)
        best = row["pooled"][0]
        assert row[NAME] == float(bool(best["label"]) or (best["grade"] or 0) >= 2)
        assert row["judged@10"] == 1


@pytest.mark.slow("breadth: another effect of filled labels")
def test_retrievers_with_one_pool_are_comparable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve_judge():
        load_source(tmp_path, "filled_pool")
        dense = evaluate("tier1", source="filled_pool", labels="llm", retriever="dense", pool="fulltext")
        fulltext = evaluate("tier1", source="filled_pool", labels="llm", retriever="fulltext", pool="dense")
    assert dense["comparability_key"] == fulltext["comparability_key"]
    assert dense["system"]["pool"] == ["dense", "fulltext"]
    pools = [[{result["result"] for result in row["pooled"]} for row in read_rows(run)] for run in (dense, fulltext)]
    assert pools[0] == pools[1]
    print_comparison(compare(database(), dense["evaluation_id"], fulltext["evaluation_id"]), "en")
    assert "A judge has added labels" in capsys.readouterr().out


@pytest.mark.slow("breadth: another effect of filled labels")
def test_dry_run_counts_judge_calls(tmp_path: Path) -> None:
    """The plan is an upper bound: labels and overlaps are unknown before retrieval. Without filling, it is zero."""
    with serve_judge() as server:
        name = load_source(tmp_path, "filled_plan", n=20)
        parameters = Tier1.model_validate({"source": name, "labels": "llm", "pool": "fulltext", "retriever": "dense"})
        planned = asyncio.run(plan_calls("tier1", parameters))
        assert not server.requests
    assert planned.roles["judge"].calls == 20 * 10 * 2
    assert asyncio.run(plan_calls("tier1", Tier1(source=name))).roles == {}


@pytest.mark.slow("breadth: another effect of filled labels")
def test_perturbed_question_is_retrieved_by_the_whole_pool(tmp_path: Path) -> None:
    """Otherwise two retrievers' pools with one comparability key would differ."""
    with serve_judge():
        load_source(tmp_path, "filled_layout", n=20)
        common = {"source": "filled_layout", "labels": "llm", "perturbation": "layout"}
        first = evaluate("tier1", **common, retriever="dense", pool="fulltext")
        second = evaluate("tier1", **common, retriever="fulltext", pool="dense")
    assert first["comparability_key"] == second["comparability_key"]
    pools = [[{result["result"] for result in row["pooled"]} for row in read_rows(run)] for run in (first, second)]
    assert pools[0] == pools[1]


@pytest.mark.slow("breadth: another effect of filled labels")
def test_filled_labels_need_people_for_grades_and_gates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Metrics have no grade, and gates are inconclusive, until people have judged thirty questions."""
    policy = tmp_path / "gate.toml"
    rules = (f'[[rule]]\nmetric = "{name}"\nfloor = 0.01\n' for name in (NAME, f"{NAME}_corrected"))
    policy.write_text("".join(rules), encoding="utf-8")
    with serve_judge():
        load_source(tmp_path, "filled_opinion")
        run = evaluate("tier1", source="filled_opinion", labels="llm", retriever="dense")
    assert (run["metrics"][NAME]["judge"], run["metrics"][NAME]["grade"]) == ("filled", None)
    assert run["metrics"]["judged@10"]["judge"] is None
    rules = {rule["metric"]: rule for rule in gate(database(), run["evaluation_id"], read_gate_rules(policy))["rules"]}
    assert (rules[NAME]["verdict"], rules[NAME]["reason"]) == ("inconclusive", FILLED)
    assert rules[f"{NAME}_corrected"]["verdict"] == "inconclusive"
    label_results(run["evaluation_id"], 400)
    rules = {rule["metric"]: rule for rule in gate(database(), run["evaluation_id"], read_gate_rules(policy))["rules"]}
    assert (rules[NAME]["verdict"], rules[f"{NAME}_corrected"]["verdict"]) == ("inconclusive", "pass")
    print_summary(read_summary(database(), run["evaluation_id"]), "en")
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.count("drawn questions are complete") == 1 and "differs from people by" in printed


@pytest.mark.slow("breadth: another effect of filled labels")
def test_corrected_means_equal_people_when_all_is_judged(tmp_path: Path) -> None:
    """This also holds if people and judge always disagree, or the judge calls everything relevant."""
    for name, script in (
        ("filled_all", reply_with_grade),
        ("filled_yes", lambda number, request: make_score_completion(3)),
    ):
        with serve_judge(script):
            load_source(tmp_path, name, n=60)
            run = evaluate("tier1", source=name, labels="llm", retriever="fulltext")
        label_results(run["evaluation_id"])
        metrics = read_summary(database(), run["evaluation_id"])["metrics"]
        rows = read_rows(run)
        is_hit = [any(is_relevant(row["question"], PASSAGES[page]) for page in row["retrieved"][:1]) for row in rows]
        corrected = metrics[f"{NAME}_corrected"]
        assert corrected["value"] == pytest.approx(sum(is_hit) / len(is_hit))
        assert corrected["n_labels"] == 60
        assert corrected["ci_low"] <= corrected["value"] <= corrected["ci_high"]
        assert corrected["labels"]["acted_on"] and corrected["grade"] is not None
        assert metrics[NAME]["grade"] is None


@pytest.mark.slow("breadth: another effect of filled labels")
def test_judgements_are_reused_in_later_evaluations(tmp_path: Path) -> None:
    """Judgements match by text: people judge only new results of another retriever, and both means are corrected."""
    with serve_judge():
        load_source(tmp_path, "filled_next", n=80)
        first = evaluate("tier1", source="filled_next", labels="llm", retriever="dense", pool="fulltext")
        second = evaluate("tier1", source="filled_next", labels="llm", retriever="fulltext", pool="dense")
    first_session = label_results(first["evaluation_id"])
    assert first_session.next("anna") is None
    second_session = label_results(second["evaluation_id"], 0)
    before = second_session.progress("anna")
    assert before["labelled"] == first_session.progress("anna")["labelled"] and before["own"] == 0
    label_results(second["evaluation_id"], annotator="boris")
    name = f"{NAME}_corrected"
    compared = compare(database(), first["evaluation_id"], second["evaluation_id"], only=[name])["metrics"][name]
    is_hit = [
        is_relevant(row["question"], PASSAGES[row["retrieved"][0]]) for run in (first, second) for row in read_rows(run)
    ]
    assert compared["difference"] == pytest.approx((sum(is_hit[80:]) - sum(is_hit[:80])) / 80)


@pytest.mark.slow("breadth: another effect of filled labels")
def test_session_skips_and_undoes_labels(tmp_path: Path) -> None:
    with serve_judge():
        load_source(tmp_path, "filled_back")
        run = evaluate("tier1", source="filled_back", labels="llm", retriever="dense")
    session = RelevanceLabellingSession(database(), run["evaluation_id"])
    for _ in range(5):
        first = session.next("anna")
        assert first is not None
        session.save("anna", first["case_id"], float(is_relevant(first["question"], first["context"])))
    assert f"{NAME}_corrected" in read_summary(database(), run["evaluation_id"])["metrics"]
    result = session.next("anna")
    assert result is not None and result["answer"] == result["reference"] == ""
    session.save("anna", result["case_id"], None)
    after = session.next("anna")
    assert after is not None and after["case_id"].partition("\n")[0] != result["case_id"].partition("\n")[0]
    undone = session.undo("anna")
    assert undone is not None and undone["case_id"] == result["case_id"]
    assert session.next("anna") == result | {"note": ""}
    assert session.progress("anna")["labelled"] == 5
    for _ in range(5):
        assert session.undo("anna") is not None
    assert session.undo("anna") is None
    assert f"{NAME}_corrected" not in read_summary(database(), run["evaluation_id"])["metrics"]
    for invalid_id in ("nothing", f"{result['case_id']}x"):
        with pytest.raises(InputError, match="no result"):
            session.save("anna", invalid_id, 1.0)
    with pytest.raises(InputError, match="between 0 and 1"):
        session.save("anna", result["case_id"], 2.0)


@pytest.mark.slow("breadth: another effect of filled labels")
def test_log_labels_are_filled(tmp_path: Path) -> None:
    """In logs of real users, the page that the bot showed is a label; the judge grades other pages as a whole."""
    with serve_judge():
        run = evaluate("real_users", source=load_source(tmp_path, "filled_log"), labels="llm", retriever="dense")
    assert run["metrics"][NAME]["judge"] == "filled"
    assert label_results(run["evaluation_id"], 400).progress("anna")["estimate"]["n_labels"] >= 30
    assert read_summary(database(), run["evaluation_id"])["strata"]["confirmed"][f"{NAME}_corrected"]["n_labels"] >= 30


def test_labelling_opens_results_when_labels_are_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last such evaluation is found even if many others came after it."""
    monkeypatch.setattr(answers, "MAX_EVALUATIONS", 0)
    with serve_judge():
        run = evaluate("tier1", source=load_source(tmp_path, "filled_chosen", n=20), labels="llm")
    for opened in (open_session(database(), run["evaluation_id"], None), open_session(database(), "last", "relevance")):
        assert (opened.evaluation_id, opened.metric) == (run["evaluation_id"], "relevance")

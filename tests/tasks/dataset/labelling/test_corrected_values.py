"""Effects of labels: corrected means next to judged ones, wherever metrics are shown."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.evaluations import Document, evaluate, read_rows, set_variables
from tests.tasks.dataset.labelling.labelled import (
    RATE,
    SENSITIVITY,
    SPECIFICITY,
    evaluate_labelled,
    is_good,
    label_answers,
    serve_models,
    source_name_of,
)
from yarus.db.errors import InputError
from yarus.flows.terminal.comparisons.gate import print_gate
from yarus.flows.terminal.summary import print_summary
from yarus.tasks.comparison.compare import compare
from yarus.tasks.comparison.gate import gate
from yarus.tasks.comparison.gate_rules import GateRule, GateRules
from yarus.tasks.comparison.trend import trend
from yarus.tasks.config.connections import database
from yarus.tasks.dataset.labelling.plan import plan_labels
from yarus.tasks.evaluation.export import export_file
from yarus.tasks.evaluation.summary import read_summary

NAME = "avg_faithfulness_corrected"


@pytest.fixture
def night(at_home: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Document]:
    with serve_models():
        yield evaluate_labelled(tmp_path, source_name_of(request))


def reevaluate(night: Document) -> Document:
    return evaluate("tier2", source=night["source"])


def test_corrected_mean_follows_judged_mean_in_summary(night: Document, capsys: pytest.CaptureFixture[str]) -> None:
    label_answers(night["evaluation_id"], 120)
    metrics = read_summary(database(), night["evaluation_id"])["metrics"]
    names = list(metrics)
    assert names.index(NAME) == names.index("avg_faithfulness") + 1
    assert [name for name in names if name.endswith("_corrected")] == [NAME]
    corrected = metrics[NAME]
    assert (corrected["n_labels"], corrected["n_scored"], corrected["judge"]) == (120, 120, None)
    assert corrected["ci_low"] < corrected["value"] < corrected["ci_high"]
    # Four standard deviations: the sample depends on the evaluation's id.
    assert corrected["value"] == pytest.approx(RATE, abs=0.15)
    assert metrics["avg_faithfulness"]["judge"] == "missing" and metrics["avg_faithfulness"]["grade"] is None
    assert corrected["grade"] in ("attention", "good")  # from people's labels, with their interval
    label_details = corrected["labels"]
    assert label_details["shares"]["sensitivity"] == pytest.approx(SENSITIVITY, abs=0.1)
    assert label_details["shares"]["specificity"] == pytest.approx(SPECIFICITY, abs=0.2)
    print_summary(read_summary(database(), night["evaluation_id"]), "en")
    printed = " ".join(capsys.readouterr().out.split())
    assert "corrected by labels of 120 answers; on average the judge differs from people by +0" in " ".join(
        printed.split()
    )


@pytest.mark.slow("breadth: another effect of labels")
def test_labels_correct_later_evaluations_of_the_same_judge(
    night: Document, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    label_answers(night["evaluation_id"], 60)
    second = reevaluate(night)
    corrected = second["metrics"][NAME]
    assert (corrected["n_labels"], corrected["labels"]["n_others"], corrected["labels"]["acted_on"]) == (60, 60, False)
    assert corrected["value"] == pytest.approx(RATE, abs=0.2)
    assert corrected["grade"] is None  # these answers have no labels
    target = tmp_path / "metrics.jsonl"
    export_file(database(), second["evaluation_id"], target, metrics=True)
    rows = [json.loads(line) for line in target.read_text().splitlines()]
    assert next(row for row in rows if row["metric"] == NAME)["value"] == corrected["value"]
    set_variables(monkeypatch, {"YARUS_JUDGE__TEMPERATURE": "0.3"})
    assert NAME not in reevaluate(night)["metrics"]


@pytest.mark.slow("breadth: another effect of labels")
def test_own_labels_replace_others_when_there_are_enough(night: Document) -> None:
    label_answers(night["evaluation_id"], 60)
    second = reevaluate(night)["evaluation_id"]

    def labels() -> tuple[int, int, bool]:
        corrected = read_summary(database(), second)["metrics"][NAME]
        details = corrected["labels"]
        # With 30 labels the sample determines whether there is a grade; without use in decisions there is none.
        assert details["acted_on"] == (corrected["grade"] is not None or corrected["ungraded"] == "too few")
        return details["n_labels"], details["n_own"], details["acted_on"]

    session = label_answers(second, 29)
    assert labels() == (60, 29, False)  # the value is still from the others' labels
    assert session.progress("anna")["estimate"]["n_labels"] == 29  # the page counts labels of these answers only
    label_answers(second, 1)
    assert labels() == (30, 30, True)
    label_answers(second, 90)
    assert read_summary(database(), second)["metrics"][NAME]["grade"] is not None


def test_undo_of_last_label_removes_corrected_mean(night: Document) -> None:
    session = label_answers(night["evaluation_id"], 2)
    assert read_summary(database(), night["evaluation_id"])["metrics"][NAME]["n_labels"] == 2
    session.undo("anna")
    corrected = read_summary(database(), night["evaluation_id"])["metrics"][NAME]
    assert (corrected["value"], corrected["reason"], corrected["n_labels"]) == (None, "1 label; two are needed", 1)
    session.undo("anna")
    assert NAME not in read_summary(database(), night["evaluation_id"])["metrics"]


@pytest.mark.slow("breadth: another effect of labels")
def test_gate_is_inconclusive_until_there_are_enough_labels(
    night: Document, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = (GateRule(NAME, "floor", 0.4), GateRule(NAME, "floor", 0.95), GateRule(NAME, "no regression"))
    policy = GateRules("gate.toml", {}, rules)
    second = reevaluate(night)

    def verdicts() -> list[tuple[str, int | None]]:
        gate_result = gate(database(), second["evaluation_id"], policy, baseline=night["evaluation_id"])
        print_gate(gate_result, "en")
        return [(rule["verdict"], rule["n_cases_needed"]) for rule in gate_result["rules"]]

    label_answers(night["evaluation_id"], 100)  # labels of other answers do not show a difference
    assert verdicts() == [("inconclusive", 30), ("inconclusive", 30), ("inconclusive", 30)]
    label_answers(second["evaluation_id"], 12)
    assert verdicts()[0] == ("inconclusive", 18)
    assert "too few labels of people; needs about 18 more labels" in " ".join(capsys.readouterr().out.split())
    label_answers(second["evaluation_id"], 100)
    assert [verdict for verdict, _ in verdicts()][:2] == ["pass", "fail"]
    assert gate(database(), second["evaluation_id"], policy)["rules"][2]["reason"] is None


@pytest.mark.slow("breadth: another effect of labels")
def test_comparison_includes_corrected_mean_on_request(night: Document) -> None:
    second = reevaluate(night)
    ids = night["evaluation_id"], second["evaluation_id"]
    metrics = compare(database(), *ids, only=[NAME])["metrics"]
    assert list(metrics) == ["avg_faithfulness", NAME]
    assert (metrics[NAME]["verdict"], metrics[NAME]["reason"]) == ("inconclusive", "too few labels of people")
    label_answers(ids[0], 60)
    assert compare(database(), *ids, only=[NAME])["metrics"][NAME]["reason"] == "too few labels of people"
    label_answers(ids[1], 60)
    corrected = compare(database(), *ids, only=[NAME])["metrics"][NAME]
    assert corrected["ci_low"] < corrected["difference"] < corrected["ci_high"] and abs(corrected["difference"]) < 0.25
    assert (corrected["n"], corrected["reason"]) == (60, None)
    assert NAME not in compare(database(), *ids)["metrics"]
    with pytest.raises(InputError, match="no metric 'avg_bleu_corrected'"):
        compare(database(), *ids, only=["avg_bleu_corrected"])


@pytest.mark.slow("breadth: another effect of labels")
def test_trend_of_corrected_mean_uses_current_labels(night: Document) -> None:
    second = reevaluate(night)
    label_answers(second["evaluation_id"], 40)
    nights = trend(database(), NAME, source=night["source"])["nights"]
    assert [point["evaluation_id"] for point in nights] == [night["evaluation_id"], second["evaluation_id"]]
    assert {point["n_scored"] for point in nights} == {40}


@pytest.mark.slow("breadth: another effect of labels")
def test_plan_uses_known_judge_quality(night: Document) -> None:
    plan = plan_labels(database(), night["evaluation_id"], "avg_faithfulness", 0.2)
    assert (plan["basis"], plan["n_own"], plan["correlation"], plan["width_now"]) == ("nothing", 0, 0, None)
    assert plan["n_labels_needed"] == plan["n_labels_without_judge"]
    label_answers(night["evaluation_id"], 100)
    plan_with_labels = plan_labels(database(), night["evaluation_id"], "avg_faithfulness", 0.2)
    assert plan_with_labels["basis"] == "labels" and 0.1 < plan_with_labels["correlation"] < 0.9
    assert plan_with_labels["n_labels_needed"] is not None and plan_with_labels["n_labels_without_judge"] is not None
    assert plan_with_labels["n_labels_needed"] <= plan_with_labels["n_labels_without_judge"]
    assert plan_with_labels["n_labels_missing"] == max(0, plan_with_labels["n_labels_needed"] - 100)
    with pytest.raises(ValueError, match="a width lies above 0 and below 1, got 1"):
        plan_labels(database(), night["evaluation_id"], None, 1.5)


def test_labels_differ_from_judge(night: Document) -> None:
    """Check the precondition of the other tests: seven of ten answers are good, and the judge errs."""
    questions = [row["question"] for row in read_rows(night)]
    assert sum(map(is_good, questions)) / len(questions) == pytest.approx(RATE, abs=0.08)
    assert night["metrics"]["avg_faithfulness"]["value"] != pytest.approx(RATE, abs=0.05)

"""Check the production judge as a classifier: scikit-learn's figures, invalid replies, labels of one class."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sklearn import metrics as sk

from tests.support.evaluations import (
    evaluate,
    get_value,
    load,
    make_role_variables,
    question,
    read_rows,
    set_variables,
    texts,
)
from tests.support.llm_server import Action, FakeLLMServer, make_completion

Document = dict[str, Any]
FACTS = "unsupported_fact_rate"
COUNTS = ("true_positives", "true_negatives", "false_positives", "false_negatives")


@pytest.fixture
def gate(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    """Serve a gate that always says yes, unless a test changes it."""
    with FakeLLMServer(script=lambda number, request: make_completion("Да")) as server:
        set_variables(monkeypatch, make_role_variables(server.url, "gate"))
        yield server


def test_figures_match_scikit_learn(night: dict[str, Document]) -> None:
    rows = [row for row in read_rows(night["judge_pipeline"]) if row["decision"] is not None]
    decisions, truth = ([row[name] for row in rows] for name in ("decision", "shown"))
    matrix = sk.confusion_matrix(truth, decisions, labels=[True, False])
    assert [get_value(night["judge_pipeline"], name) for name in COUNTS] == [
        matrix[0, 0], matrix[1, 1], matrix[1, 0], matrix[0, 1]
    ]  # fmt: skip
    sk_figures = {
        "accuracy": sk.accuracy_score(truth, decisions),
        "precision": sk.precision_score(truth, decisions),
        "recall": sk.recall_score(truth, decisions),
        "f1_score": sk.f1_score(truth, decisions),
        "specificity": sk.recall_score(truth, decisions, pos_label=False),
        "mcc": sk.matthews_corrcoef(truth, decisions),
    }
    for name, expected in sk_figures.items():
        assert get_value(night["judge_pipeline"], name) == pytest.approx(expected, abs=1e-12), name


def test_first_word_decides(gate: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replies = ["Да", "yes, show it", "**Нет**, не стоит", "NO", "Возможно", "", "Да/нет", "Ответ: да", "нет", "да."]
    gate.script = lambda _, request: make_completion(replies[int(texts(request)["question"].split()[3].strip(","))])
    monkeypatch.setenv("YARUS_MIN_COVERAGE", "0.5")
    source = load(tmp_path, "first_words", [question(i, ground_truth_show=i < 5) for i in range(10)])
    summary = evaluate("judge_pipeline", source=source)
    rows = {int(row["question_id"]): row for row in read_rows(summary)}
    expected = [True, True, False, False, None, None, None, None, False, True]
    assert [rows[i]["decision"] for i in range(10)] == expected
    assert [get_value(summary, name) for name in COUNTS] == [2, 1, 1, 2]
    assert get_value(summary, "invalid_rate") == pytest.approx(0.4)
    assert summary["metrics"]["accuracy"]["n_scored"] == 6
    assert get_value(summary, "avg_latency_ms") > 0
    assert (rows[4]["status"], rows[4]["judge_raw"][0]["reply"]) == ("parse_error", "Возможно")
    assert len(gate.requests) == 10  # nothing is asked twice


@pytest.mark.parametrize(
    ("show", "reply", "undefined", "defined"),
    [
        (True, "да", {"specificity", "mcc"}, {"accuracy": 1, "precision": 1, "recall": 1, "f1_score": 1}),
        (True, "нет", {"specificity", "mcc", "precision", FACTS}, {"accuracy": 0, "recall": 0, "f1_score": 0}),
        (False, "нет", {"precision", "recall", "f1_score", "mcc", FACTS}, {"accuracy": 1, "specificity": 1}),
        (False, "да", {"recall", "mcc"}, {"accuracy": 0, "precision": 0, "specificity": 0, "f1_score": 0}),
    ],
)
def test_one_class_leaves_ratios_undefined(
    gate: FakeLLMServer, tmp_path: Path, show: bool, reply: str, undefined: set[str], defined: dict[str, float]
) -> None:
    gate.script = lambda number, request: make_completion(reply)
    name = f"one_class_{show}_{'yes' if reply == 'да' else 'no'}".lower()
    source = load(tmp_path, name, [question(i, ground_truth_show=show) for i in range(6)])
    metrics = evaluate("judge_pipeline", source=source)["metrics"]
    assert {name for name, metric in metrics.items() if metric["value"] is None} == undefined
    assert {name: metrics[name]["value"] for name in defined} == defined
    assert all("undefined" in metrics[name]["reason"] for name in undefined)


def test_undecidable_cases_are_left_out(gate: FakeLLMServer, tmp_path: Path) -> None:
    rows = [
        *(question(i, ground_truth_show=True) for i in range(20)),
        question(20, ground_truth_show=None),
        question(21, ground_truth_show=True, answer=None),
        question(22, ground_truth_show=True, confluence_url="https://wiki.example/gone"),
    ]
    summary = evaluate("judge_pipeline", source=load(tmp_path, "left_out", rows))
    assert summary["statuses"] == {"ok": 20, "unlabelled": 1, "not_applicable": 1, "stale_label": 1}
    assert (summary["metrics"]["accuracy"]["n_scored"], summary["metrics"]["accuracy"]["n_total"]) == (20, 23)
    assert summary["state"] == "completed"


def test_silent_gate_is_an_error(gate: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_PRODUCTION_JUDGE__TIMEOUT_S", "0.3")
    gate.script = lambda number, request: (
        Action(b"", after_s=2) if "правило 1," in texts(request)["question"] else make_completion("да")
    )
    summary = evaluate(
        "judge_pipeline", source=load(tmp_path, "silent", [question(i, ground_truth_show=True) for i in range(4)])
    )
    assert summary["statuses"] == {"ok": 3, "sut_error": 1}
    assert [get_value(summary, name) for name in ("accuracy", "false_negatives", "invalid_rate")] == [1, 0, 0]
    assert get_value(summary, "sut_error_rate") == 0.25
    assert summary["state"] == "invalid"


def test_repeats_and_probabilities_give_confidence(gate: FakeLLMServer, tmp_path: Path) -> None:
    """Say yes four times in five to right answers, the even ones, and twice in five to wrong ones."""

    def decide(number: int, request: dict[str, Any]) -> bytes:
        question_number = int(texts(request)["question"].split()[3].strip(","))
        n_asked = counts.setdefault(question_number, 0)
        counts[question_number] += 1
        return make_completion("да" if n_asked < (4 if question_number % 2 == 0 else 2) else "нет")

    counts: dict[int, int] = {}
    gate.script = lambda number, request: decide(number, request)
    source = load(tmp_path, "sure_gate", [question(i, ground_truth_show=i % 2 == 0) for i in range(40)])
    summary = evaluate("judge_pipeline", source=source, repeats=5)
    rows = {int(row["question_id"]): row for row in read_rows(summary)}
    assert len(gate.requests) == 200
    assert {rows[i]["show_score"] for i in range(0, 40, 2)} == {0.8}
    assert {rows[i]["show_score"] for i in range(1, 40, 2)} == {0.4}
    assert len(rows[0]["judge_raw"]) == 5
    risk_curve = summary["showing"]
    assert (risk_curve["n"], risk_curve["wrong_shown"], risk_curve["right_hidden"]) == (40, 1.0, 1.0)
    assert risk_curve["cheapest"]["threshold"] == 0.8 and risk_curve["cheapest"]["risk"] == 0
    assert risk_curve["cheapest"]["threshold_low"] <= 0.8 <= risk_curve["cheapest"]["threshold_high"]
    assert [point["coverage"] for point in risk_curve["curve"]] == [1.0, 0.5, 0.0]

    logprobs = {"content": [{"token": "да", "logprob": math.log(0.7)}]}
    gate.script = lambda number, request: make_completion("да", logprobs=logprobs)
    again = evaluate(
        "judge_pipeline",
        source=load(tmp_path, "probable_gate", [question(i, ground_truth_show=True) for i in range(3)]),
        logprobs=True,
    )
    assert gate.requests[-1]["logprobs"] is True
    assert [row["show_score"] for row in read_rows(again)] == pytest.approx([0.7] * 3)
    assert again["showing"]["cheapest"] is None  # three answers, all of them right


def test_single_decision_gives_no_confidence(gate: FakeLLMServer, tmp_path: Path) -> None:
    gate.script = lambda number, request: make_completion("да")
    summary = evaluate(
        "judge_pipeline", source=load(tmp_path, "one_yes", [question(i, ground_truth_show=True) for i in range(3)])
    )
    assert [(row["decision"], row["show_score"]) for row in read_rows(summary)] == [(True, None)] * 3
    assert "showing" not in summary

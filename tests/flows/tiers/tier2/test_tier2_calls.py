"""Check tier 2's calls to language models: each is bought once, per judge, rubric or resumed evaluation."""

import json
import math
import os
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import (
    JUDGED_METRICS,
    answer_steadily,
    evaluate,
    get_requested_metric,
    get_value,
    load,
    question,
    read_cases,
    read_rows,
    set_variables,
)
from tests.support.llm_server import FakeLLMServer, make_response
from yarus.db import journal
from yarus.db.errors import InputError, ModelUnavailable


def test_journal_has_costs(
    served: FakeLLMServer, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    price = {"input": 2.0, "output": 4.0, "as_of": "2026-01-01"}
    models = [os.environ[f"YARUS_{role}__MODEL"] for role in ("GENERATOR", "JUDGE")]
    monkeypatch.setenv("YARUS_PRICES", json.dumps(dict.fromkeys(models, price)))
    source = load(tmp_path, "paid", [question(i) for i in range(20)])
    first, second = (evaluate("tier2", source=source) for _ in range(2))
    paid, nothing = (journal.find_evaluation(engine, summary["evaluation_id"]) for summary in (first, second))
    rows = read_rows(first)
    for name in ("tokens_in", "tokens_out", "cost_usd"):
        assert float(paid[name]) == pytest.approx(sum(row[name] for row in rows)), name
        assert nothing[name] is None
    assert float(paid["cost_usd"]) == pytest.approx((2 * paid["tokens_in"] + 4 * paid["tokens_out"]) / 1e6)


def test_repeated_evaluation_sends_no_call(served: FakeLLMServer, tmp_path: Path) -> None:
    source = load(tmp_path, "bought_once", [question(i) for i in range(20)])
    first = evaluate("tier2", source=source)
    sent = len(served.requests)
    second = evaluate("tier2", source=source)
    assert (sent, len(served.requests)) == (20 + 3 * 20, sent)
    assert first["metrics"] == second["metrics"]
    assert (
        read_cases(first)
        .drop_columns(["tokens_in", "tokens_out", "calls"])
        .equals(read_cases(second).drop_columns(["tokens_in", "tokens_out", "calls"]))
    )


def test_key_depends_on_judge_not_system(
    served: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = load(tmp_path, "keys", [question(i) for i in range(3)])
    prompt = tmp_path / "faithfulness.txt"
    prompt.write_text('$context $answer {"reason": …, "score": 0..1}', encoding="utf-8")

    def key(**variables: str) -> str:
        with monkeypatch.context() as patch:
            set_variables(patch, variables)
            return str(evaluate("tier2", source=source)["comparability_key"])

    default_key = key()
    assert key(YARUS_SUT_LABEL="v2", YARUS_GENERATOR__MODEL="another") == default_key
    other_keys = [
        key(YARUS_JUDGE__MODEL="another"),
        key(YARUS_JUDGE__TEMPERATURE="0.5"),
        key(YARUS_JUDGE__PROMPT=str(prompt)),
    ]
    assert len({default_key, *other_keys}) == 4


def test_stored_answers_are_judged_without_generating(
    served: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = load(tmp_path, "replayed", [question(i) for i in range(12)])
    first = evaluate("tier2", source=source)
    sent = len(served.requests)
    set_variables(monkeypatch, {"YARUS_JUDGE__MODEL": "judge-2", "YARUS_GENERATOR__MODEL": "another"})
    second = evaluate("tier2", source=source, reuse_answers=first["evaluation_id"])
    asked_metrics = [get_requested_metric(request) for request in served.requests[sent:]]
    assert (len(asked_metrics), "generation" in asked_metrics) == (36, False)
    assert [row["answer"] for row in read_rows(first)] == [row["answer"] for row in read_rows(second)]
    assert second["system"]["sut"] == f"answers of {first['evaluation_id']}"
    assert second["system"]["generator"] == first["system"]["generator"] != "another"
    assert first["comparability_key"] != second["comparability_key"]


def test_resume_refuses_changed_models(
    served: FakeLLMServer, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = load(tmp_path, "as_it_began", [question(i) for i in range(10)])
    served.script = lambda number, request: make_response(401) if number > 25 else answer_steadily(number, request)
    with pytest.raises(ModelUnavailable):
        evaluate("tier2", source=source)
    stopped = journal.find_evaluation(engine, "last")["id"]
    served.script = answer_steadily
    for role in ("JUDGE", "GENERATOR"):
        words = f"started with YARUS_{role}__MODEL=.*another"
        with monkeypatch.context() as patch, pytest.raises(InputError, match=words):
            set_variables(patch, {f"YARUS_{role}__MODEL": "another"})
            evaluate("tier2", resume=stopped)
    resumed, repeated = evaluate("tier2", resume=stopped), evaluate("tier2", source=source)
    assert resumed["evaluation_id"] == stopped != repeated["evaluation_id"]
    assert resumed["metrics"] == repeated["metrics"]


RUBRIC = """name: politeness
question: Насколько ответ вежлив?
1: приветлив
0: груб
"""


def test_custom_rubrics_are_judged(served: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = load(tmp_path, "polite", [question(i) for i in range(6)])
    without_rubric = evaluate("tier2", source=source)
    (tmp_path / "rubrics").mkdir()
    (tmp_path / "rubrics" / "any.txt").write_text(RUBRIC, encoding="utf-8")
    monkeypatch.setenv("YARUS_RUBRICS", str(tmp_path / "rubrics"))
    before = len(served.requests)
    summary = evaluate("tier2", source=source)
    prompts = [request["messages"][0]["content"] for request in served.requests[before:]]
    assert len(prompts) == 6  # the other verdicts are in the store
    assert all("Насколько ответ вежлив?" in text for text in prompts)
    politeness = [row["rubric_politeness"] for row in read_rows(summary)]
    stored = summary["metrics"]["avg_rubric_politeness"]
    assert stored["value"] == pytest.approx(math.fsum(politeness) / 6)
    assert (stored["n_scored"], stored["n_total"], stored["grade"]) == (6, 6, None)
    assert {row["metric"] for row in read_rows(summary)[0]["judge_raw"]} == {*JUDGED_METRICS, "rubric_politeness"}
    assert summary["comparability_key"] != without_rubric["comparability_key"]
    for metric in without_rubric["metrics"]:
        assert get_value(summary, metric) == get_value(without_rubric, metric)


def test_rubric_without_model_is_not_measured(at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "any.txt").write_text(RUBRIC, encoding="utf-8")
    monkeypatch.setenv("YARUS_RUBRICS", str(tmp_path))
    summary = evaluate("tier2", source="sample", limit=20)
    stored = summary["metrics"]["avg_rubric_politeness"]
    assert (stored["value"], stored["n_scored"]) == (None, 0)
    assert "no language model judges" in stored["reason"]
    assert "not_applicable" not in {row["status"] for row in read_rows(summary) if row["answer"] is not None}
    assert get_value(summary, "avg_faithfulness") is not None

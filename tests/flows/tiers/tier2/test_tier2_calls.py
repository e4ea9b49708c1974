"""What tier 2 asks of language models: each call bought once, for a judge, a rubric or a resumed evaluation."""

import json
import math
import os
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import JUDGED, cases_of, evaluate, load, metric_of, question, rows_of, steady, use, value
from tests.support.llm_server import FakeLLMServer, http
from yarus.db import journal
from yarus.db.errors import InputError, ModelUnavailable


def test_the_journal_has_what_was_bought(
    served: FakeLLMServer, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    price = {"input": 2.0, "output": 4.0, "as_of": "2026-01-01"}
    models = [os.environ[f"YARUS_{role}__MODEL"] for role in ("GENERATOR", "JUDGE")]
    monkeypatch.setenv("YARUS_PRICES", json.dumps(dict.fromkeys(models, price)))
    source = load(tmp_path, "paid", [question(i) for i in range(20)])
    first, second = (evaluate("tier2", source=source) for _ in range(2))
    paid, nothing = (journal.find(engine, summary["evaluation_id"]) for summary in (first, second))
    rows = rows_of(first)
    for name in ("tokens_in", "tokens_out", "cost_usd"):
        assert float(paid[name]) == pytest.approx(sum(row[name] for row in rows)), name
        assert nothing[name] is None
    assert float(paid["cost_usd"]) == pytest.approx((2 * paid["tokens_in"] + 4 * paid["tokens_out"]) / 1e6)


def test_an_evaluation_repeated_sends_no_call(served: FakeLLMServer, tmp_path: Path) -> None:
    source = load(tmp_path, "bought_once", [question(i) for i in range(20)])
    first = evaluate("tier2", source=source)
    sent = len(served.requests)
    second = evaluate("tier2", source=source)
    assert (sent, len(served.requests)) == (20 + 3 * 20, sent)
    assert first["metrics"] == second["metrics"]
    assert (
        cases_of(first)
        .drop_columns(["tokens_in", "tokens_out", "calls"])
        .equals(cases_of(second).drop_columns(["tokens_in", "tokens_out", "calls"]))
    )


def test_the_key_goes_by_the_judge_not_by_the_system(
    served: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = load(tmp_path, "keys", [question(i) for i in range(3)])
    prompt = tmp_path / "faithfulness.txt"
    prompt.write_text('$context $answer {"reason": …, "score": 0..1}', encoding="utf-8")

    def key(**variables: str) -> str:
        with monkeypatch.context() as patch:
            use(patch, variables)
            return str(evaluate("tier2", source=source)["comparability_key"])

    plain = key()
    assert key(YARUS_SUT_LABEL="v2", YARUS_GENERATOR__MODEL="another") == plain
    others = [
        key(YARUS_JUDGE__MODEL="another"),
        key(YARUS_JUDGE__TEMPERATURE="0.5"),
        key(YARUS_JUDGE__PROMPT=str(prompt)),
    ]
    assert len({plain, *others}) == 4


def test_stored_answers_are_judged_anew_without_generating(
    served: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = load(tmp_path, "replayed", [question(i) for i in range(12)])
    first = evaluate("tier2", source=source)
    sent = len(served.requests)
    use(monkeypatch, {"YARUS_JUDGE__MODEL": "judge-2", "YARUS_GENERATOR__MODEL": "another"})
    second = evaluate("tier2", source=source, reuse_answers=first["evaluation_id"])
    asked = [metric_of(request) for request in served.requests[sent:]]
    assert (len(asked), "generation" in asked) == (36, False)
    assert [row["answer"] for row in rows_of(first)] == [row["answer"] for row in rows_of(second)]
    assert second["system"]["sut"] == f"answers of {first['evaluation_id']}"
    assert second["system"]["generator"] == first["system"]["generator"] != "another"
    assert first["comparability_key"] != second["comparability_key"]


def test_what_was_stopped_goes_on_only_as_it_began(
    served: FakeLLMServer, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = load(tmp_path, "as_it_began", [question(i) for i in range(10)])
    served.script = lambda number, request: http(401) if number > 25 else steady(number, request)
    with pytest.raises(ModelUnavailable):
        evaluate("tier2", source=source)
    stopped = journal.find(engine, "last")["id"]
    served.script = steady
    for role in ("JUDGE", "GENERATOR"):
        words = f"begun with YARUS_{role}__MODEL=.*another"
        with monkeypatch.context() as patch, pytest.raises(InputError, match=words):
            use(patch, {f"YARUS_{role}__MODEL": "another"})
            evaluate("tier2", resume=stopped)
    resumed, anew = evaluate("tier2", resume=stopped), evaluate("tier2", source=source)
    assert resumed["evaluation_id"] == stopped != anew["evaluation_id"]
    assert resumed["metrics"] == anew["metrics"]


RUBRIC = """name: politeness
question: Насколько ответ вежлив?
1: приветлив
0: груб
"""


def test_rubrics_of_ones_own_are_judged_like_the_others(
    served: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = load(tmp_path, "polite", [question(i) for i in range(6)])
    plain = evaluate("tier2", source=source)
    (tmp_path / "rubrics").mkdir()
    (tmp_path / "rubrics" / "any.txt").write_text(RUBRIC, encoding="utf-8")
    monkeypatch.setenv("YARUS_RUBRICS", str(tmp_path / "rubrics"))
    before = len(served.requests)
    summary = evaluate("tier2", source=source)
    asked = [request["messages"][0]["content"] for request in served.requests[before:]]
    assert len(asked) == 6  # the other verdicts are in the store
    assert all("Насколько ответ вежлив?" in text for text in asked)
    given = [row["rubric_politeness"] for row in rows_of(summary)]
    stored = summary["metrics"]["avg_rubric_politeness"]
    assert stored["value"] == pytest.approx(math.fsum(given) / 6)
    assert (stored["n_scored"], stored["n_total"], stored["grade"]) == (6, 6, None)
    assert {row["metric"] for row in rows_of(summary)[0]["judge_raw"]} == {*JUDGED, "rubric_politeness"}
    assert summary["comparability_key"] != plain["comparability_key"]
    for metric in plain["metrics"]:
        assert value(summary, metric) == value(plain, metric)


def test_a_rubric_without_a_model_is_not_measured_and_spoils_nothing(
    at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "any.txt").write_text(RUBRIC, encoding="utf-8")
    monkeypatch.setenv("YARUS_RUBRICS", str(tmp_path))
    summary = evaluate("tier2", source="sample", limit=20)
    stored = summary["metrics"]["avg_rubric_politeness"]
    assert (stored["value"], stored["n_scored"]) == (None, 0)
    assert "no language model judges" in stored["reason"]
    assert "not_applicable" not in {row["status"] for row in rows_of(summary) if row["answer"] is not None}
    assert value(summary, "avg_faithfulness") is not None

"""Check that system failures count before missing labels, and that unlabelled cases are unmeasurable either way."""

import json
from collections import Counter
from collections.abc import Container
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Document
from tests.support.evaluations import (
    PAGE_URL,
    answer_steadily,
    evaluate,
    get_requested_metric,
    get_value,
    load,
    question,
    read_rows,
    texts,
)
from tests.support.llm_server import JSON_HEADER, FakeLLMServer, make_response
from yarus.tasks.comparison.compare import compare
from yarus.tasks.config.connections import database

BARE: Document = {"origin": None, "score": None, "confluence_url": None, "relevant_chunk_ids": None}
BARE |= {"ground_truth_answer": None, "answerable": None, "answer": "Что-то."}
TOO_LONG = {"error": {"message": "maximum context length is 8 tokens", "code": "context_length_exceeded"}}


def number_of(request: Document) -> int:
    return int(request["question"].split()[3].strip(","))


def make_answer_script(failing: Container[int], refusing: Container[int] = ()) -> Any:
    def script(_: int, request: Document) -> bytes:
        number = number_of(request)
        if number in failing:
            return make_response(500, "Internal Server Error")
        answer = "Ответ не найден" if number in refusing else f"Сдать книгу {number}."
        page = PAGE_URL.format(number % 10)
        parts = {"answer": answer, "urls": [page], "contexts": [f"Правило {number} велит сдать книгу."]}
        return make_response(200, json.dumps(parts, ensure_ascii=False), JSON_HEADER)

    return script


def load_half_labelled(folder: Path, name: str, n: int) -> str:
    """Load questions of which every second has neither label nor reference."""
    return load(folder, name, [question(i, **(BARE if i % 2 else {})) for i in range(n)])


def test_bot_errors_count_regardless_of_labels(judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path) -> None:
    service.script = make_answer_script({0, 1, 3, 5, 7}, refusing={2, 9})
    summary = evaluate("tier3", source=load_half_labelled(tmp_path, "half_labelled_3", 20), sut=service.url)
    error_rate = summary["metrics"]["sut_error_rate"]
    assert (error_rate["value"], error_rate["n_scored"], error_rate["n_total"]) == (0.25, 20, 20)
    assert error_rate["ci_low"] < 0.25 < error_rate["ci_high"]
    assert summary["statuses"] == {"ok": 8, "unlabelled": 6, "sut_error": 5, "sut_refusal": 1}
    rows = {int(row["question_id"]): row for row in read_rows(summary)}
    assert "answered 500" in rows[1]["reason"]
    assert [rows[n]["unmeasurable"] for n in (0, 1, 9)] == [None, "unlabelled", "unlabelled"]
    outcomes = [rows[n]["outcome"] for n in (0, 1, 2, 4, 9, 11)]
    assert outcomes == ["failed", "failed", "refused", "answered", "refused", "answered"]
    # An unlabelled question can be refused, too, but the refusal's value is unknown.
    assert (get_value(summary, "refusal_rate"), summary["metrics"]["refusal_rate"]["n_scored"]) == (2 / 15, 15)
    assert rows[9]["e2e_score"] is None
    # One labelled question of ten failed: the coverage ignores unmeasurable questions.
    assert (summary["coverage"], summary["state"]) == (0.9, "invalid")


def test_bounds_count_only_measurable_failures(judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path) -> None:
    service.script = make_answer_script({0, 1, 3, 5, 7, 18})
    rows = [question(i, **(BARE if i % 2 else {})) for i in range(20)]
    # It can be measured (declining would be right), but not against a reference; and its page is labelled.
    rows[18] |= {"answerable": False, "ground_truth_answer": None}
    summary = evaluate("tier3", source=load(tmp_path, "bounded_3", rows), sut=service.url)
    useful, hits = summary["metrics"]["avg_e2e_score"], summary["metrics"]["hit_rate@1"]
    assert (useful["n_scored"], hits["n_scored"]) == (8, 8)
    assert useful["bound_low"] == pytest.approx(useful["value"] * 8 / 9)  # question 0
    assert hits["bound_low"] == pytest.approx(hits["value"] * 8 / 10)  # questions 0 and 18
    assert summary["coverage"] == 0.8


def test_comparison_counts_all_errors(judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path) -> None:
    source = load_half_labelled(tmp_path, "compared_3", 40)
    ids = []
    for failing in (set(), set(range(1, 21, 2))):  # none of them has a label
        service.script = make_answer_script(failing)
        ids.append(evaluate("tier3", source=source, sut=service.url)["evaluation_id"])
    error_rate = compare(database(), *ids)["metrics"]["sut_error_rate"]
    assert (error_rate["a"], error_rate["b"], error_rate["verdict"]) == (0, 0.25, "regressed")


def test_retriever_errors_count_regardless_of_labels(service: FakeLLMServer, tmp_path: Path) -> None:
    def script(_: int, request: Document) -> bytes:
        number = number_of(request)
        if number in (0, 1, 3):
            return make_response(500, "Internal Server Error")
        return make_response(200, json.dumps({"results": [{"id": f"c{number % 10}", "distance": 0.1}]}), JSON_HEADER)

    service.script = script
    source = load_half_labelled(tmp_path, "half_labelled_1", 20)
    summary = evaluate("tier1", source=source, retriever=service.url, unit="chunk")
    error_rate = summary["metrics"]["sut_error_rate"]
    assert (error_rate["value"], error_rate["n_scored"], error_rate["n_total"]) == (0.15, 20, 20)
    assert summary["statuses"] == {"ok": 9, "unlabelled": 8, "sut_error": 3}
    assert (get_value(summary, "unlabelled_rate"), summary["coverage"]) == (0.5, 0.9)
    hits = summary["metrics"]["hit_rate@1"]
    assert (hits["value"], hits["bound_low"], hits["bound_high"]) == (1, pytest.approx(0.9), 1)


def test_local_generator_errors_count_asked_questions(served: FakeLLMServer, tmp_path: Path) -> None:
    def script(number: int, request: Document) -> Any:
        is_failing = get_requested_metric(request) == "generation" and "правило 4," in texts(request)["question"]
        return make_response(400, json.dumps(TOO_LONG), JSON_HEADER) if is_failing else answer_steadily(number, request)

    served.script = script
    source = load_half_labelled(tmp_path, "asked_of_ours", 20)
    for tier in ("tier2", "tier3"):
        summary = evaluate(tier, source=source)
        rate = summary["metrics"]["sut_error_rate"]
        assert (rate["value"], rate["n_scored"], rate["n_total"]) == (0.1, 10, 20)
        assert Counter(row["outcome"] for row in read_rows(summary)) == {None: 10, "answered": 9, "failed": 1}

"""A failure of the system is counted before the lack of a label; what has no label could not be measured either way."""

import json
from collections import Counter
from collections.abc import Container
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Document
from tests.support.evaluations import PAGE, evaluate, load, metric_of, question, rows_of, steady, texts, value
from tests.support.llm_server import JSON, FakeLLMServer, http
from yarus.tasks.comparison.compare import compare
from yarus.tasks.config.connections import database

BARE: Document = {"origin": None, "score": None, "confluence_url": None, "relevant_chunk_ids": None}
BARE |= {"ground_truth_answer": None, "answerable": None, "answer": "Что-то."}
TOO_LONG = {"error": {"message": "maximum context length is 8 tokens", "code": "context_length_exceeded"}}


def number_of(request: Document) -> int:
    return int(request["question"].split()[3].strip(","))


def answering(failing: Container[int], refusing: Container[int] = ()) -> Any:
    def script(number: int, request: Document) -> bytes:
        which = number_of(request)
        if which in failing:
            return http(500, "Internal Server Error")
        said = "Ответ не найден" if which in refusing else f"Сдать книгу {which}."
        page = PAGE.format(which % 10)
        parts = {"answer": said, "urls": [page], "contexts": [f"Правило {which} велит сдать книгу."]}
        return http(200, json.dumps(parts, ensure_ascii=False), JSON)

    return script


def half_labelled(folder: Path, name: str, n: int) -> str:
    """Every second question is without a label and a reference."""
    return load(folder, name, [question(i, **(BARE if i % 2 else {})) for i in range(n)])


def test_a_bots_errors_are_counted_whatever_is_labelled(
    judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path
) -> None:
    service.script = answering({0, 1, 3, 5, 7}, refusing={2, 9})
    summary = evaluate("tier3", source=half_labelled(tmp_path, "half_labelled_3", 20), sut=service.url)
    found = summary["metrics"]["sut_error_rate"]
    assert (found["value"], found["n_scored"], found["n_total"]) == (0.25, 20, 20)
    assert found["ci_low"] < 0.25 < found["ci_high"]
    assert summary["statuses"] == {"ok": 8, "unlabelled": 6, "sut_error": 5, "sut_refusal": 1}
    rows = {int(row["question_id"]): row for row in rows_of(summary)}
    assert "answered 500" in rows[1]["reason"]
    assert [rows[n]["unmeasurable"] for n in (0, 1, 9)] == [None, "unlabelled", "unlabelled"]
    done = [rows[n]["outcome"] for n in (0, 1, 2, 4, 9, 11)]
    assert done == ["failed", "failed", "refused", "answered", "refused", "answered"]
    # A refusal is one of an unlabelled question too, but nobody knows whether it was worth anything.
    assert (value(summary, "refusal_rate"), summary["metrics"]["refusal_rate"]["n_scored"]) == (2 / 15, 15)
    assert rows[9]["e2e_score"] is None
    # One labelled question of ten failed: the coverage knows nothing of those that could not be measured.
    assert (summary["coverage"], summary["state"]) == (0.9, "invalid")


def test_bounds_count_only_failures_that_could_have_had_a_value(
    judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path
) -> None:
    service.script = answering({0, 1, 3, 5, 7, 18})
    rows = [question(i, **(BARE if i % 2 else {})) for i in range(20)]
    # It can be measured (declining would be right), but against no reference; and its page is labelled.
    rows[18] |= {"answerable": False, "ground_truth_answer": None}
    summary = evaluate("tier3", source=load(tmp_path, "bounded_3", rows), sut=service.url)
    useful, hits = summary["metrics"]["avg_e2e_score"], summary["metrics"]["hit_rate@1"]
    assert (useful["n_scored"], hits["n_scored"]) == (8, 8)
    assert useful["bound_low"] == pytest.approx(useful["value"] * 8 / 9)  # question 0
    assert hits["bound_low"] == pytest.approx(hits["value"] * 8 / 10)  # questions 0 and 18
    assert summary["coverage"] == 0.8


def test_two_bots_are_compared_by_all_their_errors(
    judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path
) -> None:
    source = half_labelled(tmp_path, "compared_3", 40)
    ids = []
    for failing in (set(), set(range(1, 21, 2))):  # without a label every one of them
        service.script = answering(failing)
        ids.append(evaluate("tier3", source=source, sut=service.url)["evaluation_id"])
    found = compare(database(), *ids)["metrics"]["sut_error_rate"]
    assert (found["a"], found["b"], found["verdict"]) == (0, 0.25, "regressed")


def test_a_retrievers_errors_are_counted_whatever_is_labelled(service: FakeLLMServer, tmp_path: Path) -> None:
    def script(number: int, request: Document) -> bytes:
        which = number_of(request)
        if which in (0, 1, 3):
            return http(500, "Internal Server Error")
        return http(200, json.dumps({"results": [{"id": f"c{which % 10}", "distance": 0.1}]}), JSON)

    service.script = script
    source = half_labelled(tmp_path, "half_labelled_1", 20)
    summary = evaluate("tier1", source=source, retriever=service.url, unit="chunk")
    found = summary["metrics"]["sut_error_rate"]
    assert (found["value"], found["n_scored"], found["n_total"]) == (0.15, 20, 20)
    assert summary["statuses"] == {"ok": 9, "unlabelled": 8, "sut_error": 3}
    assert (value(summary, "unlabelled_rate"), summary["coverage"]) == (0.5, 0.9)
    hits = summary["metrics"]["hit_rate@1"]
    assert (hits["value"], hits["bound_low"], hits["bound_high"]) == (1, pytest.approx(0.9), 1)


def test_our_own_generator_is_held_to_what_it_was_asked(served: FakeLLMServer, tmp_path: Path) -> None:
    def script(number: int, request: Document) -> Any:
        fails = metric_of(request) == "generation" and "правило 4," in texts(request)["question"]
        return http(400, json.dumps(TOO_LONG), JSON) if fails else steady(number, request)

    served.script = script
    source = half_labelled(tmp_path, "asked_of_ours", 20)
    for tier in ("tier2", "tier3"):
        summary = evaluate(tier, source=source)
        rate = summary["metrics"]["sut_error_rate"]
        assert (rate["value"], rate["n_scored"], rate["n_total"]) == (0.1, 10, 20)
        assert Counter(row["outcome"] for row in rows_of(summary)) == {None: 10, "answered": 9, "failed": 1}

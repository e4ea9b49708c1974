"""Check tier 2 case by case: refusals, bad log rows, failures and unreadable replies are counted, not scored."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.command_line import CommandLine, Document
from tests.support.evaluations import (
    JUDGED_METRICS,
    answer_steadily,
    evaluate,
    get_requested_metric,
    get_value,
    load,
    make_passages,
    make_role_variables,
    question,
    read_rows,
    texts,
)
from tests.support.llm_server import FakeLLMServer, make_completion, make_response, make_score_completion


def test_refusal_counts_if_it_has_reference(served: FakeLLMServer, at_home: Path, tmp_path: Path) -> None:
    source = load(tmp_path, "declining", [question(i) for i in range(4)] + [question(4, ground_truth_answer=None)])
    declines = {0: "Ответ не найден. Попробуйте иначе.", 4: "Ответ не  найден", 1: "", 2: "Не нашёл ответа"}

    def script(number: int, request: Document) -> bytes | Any:
        if get_requested_metric(request) != "generation":
            return make_score_completion(0.5)
        page_number = int(texts(request)["context"].split()[1])
        return make_completion(declines.get(page_number, "Сдать книгу."))

    served.script = script
    rows = {row["question_id"]: row for row in read_rows(evaluate("tier2", source=source))}
    assert [rows[str(i)]["status"] for i in range(5)] == [*["sut_refusal"] * 3, "ok", "ok"]
    assert [rows[str(i)]["answer_correctness"] for i in range(5)] == [0, 0, 0, 0.5, None]
    assert [rows[str(i)]["faithfulness"] for i in range(5)] == [None, None, None, 0.5, 0.5]
    assert rows["1"]["reason"] == "the answer is empty"
    assert rows["1"]["rouge1_f"] == 0
    assert rows["4"]["wer"] is None


def test_bad_log_rows_are_counted_not_scored(served: FakeLLMServer, tmp_path: Path) -> None:
    chunks = [{"id": "c0", "confluence_url": "https://wiki.example/0", "text": "слово " * 400}, *make_passages(10)[1:]]
    rows = [
        question(1, ground_truth_answer=None),  # no annotated answer
        question(2, relevant_chunk_ids=None, relevant_urls=[make_passages(10)[2]["confluence_url"]]),  # only a page
        question(10, question="Как долго?"),  # its chunk c0 is longer than the limit
        question(3, relevant_chunk_ids=["gone"]),
        question(4, relevant_chunk_ids=None, confluence_url=None),
        question(5, relevant_chunk_ids=None, answerable=False, confluence_url=None, ground_truth_answer=None),
    ]
    summary = evaluate("tier2", source=load(tmp_path, "bad_lines", rows, chunks), context_tokens=100)
    by_id = {row["question_id"]: row for row in read_rows(summary)}
    assert {key: row["status"] for key, row in by_id.items()} == {
        "1": "ok", "2": "ok", "10": "ok", "3": "stale_label", "4": "unlabelled", "5": "not_applicable"
    }  # fmt: skip
    assert [by_id["1"][name] is None for name in (*JUDGED_METRICS, "bleu")] == [False, False, True, True]
    assert by_id["2"]["context"] == make_passages(10)[2]["text"]
    assert (by_id["10"]["truncated"], len(by_id["10"]["context"]), by_id["2"]["truncated"]) == (True, 300, False)
    assert {"note": "contexts cut", "n": 1} in summary["notes"]
    assert summary["metrics"]["avg_faithfulness"]["n_scored"] == 3
    assert summary["metrics"]["avg_answer_correctness"]["n_scored"] == 2
    assert (summary["coverage"], summary["state"]) == (1.0, "completed")


def test_too_long_context_is_system_error(served: FakeLLMServer, tmp_path: Path) -> None:
    too_long = {"error": {"message": "maximum context length is 8 tokens", "code": "context_length_exceeded"}}

    def script(number: int, request: Document) -> Any:
        if get_requested_metric(request) == "generation" and "Правило 3" in texts(request)["context"]:
            return make_response(400, json.dumps(too_long), "content-type: application/json")
        return answer_steadily(number, request)

    served.script = script
    source = load(tmp_path, "too_long", [question(i) for i in range(30)])
    summary = evaluate("tier2", source=source)
    failed = [row for row in read_rows(summary) if row["status"] == "sut_error"]
    assert sorted(row["question_id"] for row in failed) == ["13", "23", "3"]
    assert [row["faithfulness"] for row in failed] == [None, None, None]
    assert get_value(summary, "sut_error_rate") == pytest.approx(0.1)
    assert summary["state"] == "invalid"  # 90 % were measured, 95 % are needed


def test_repeats_and_probabilities_are_measured(served: FakeLLMServer, tmp_path: Path) -> None:
    answers = ("Сдать книгу.", "Сдать книгу.", "Вернуть книгу до мая.")
    logprobs = {"content": [{"token": "a", "logprob": math.log(0.5)}, {"token": "b", "logprob": math.log(0.125)}]}
    indexes: dict[str, int] = {}

    def script(number: int, request: Document) -> Any:
        if get_requested_metric(request) != "generation":
            return make_score_completion(0.5)
        text = texts(request)["question"]
        indexes[text] = indexes.get(text, -1) + 1
        return make_completion(answers[indexes[text]] if "правило 1," in text else answers[0], logprobs=logprobs)

    served.script = script
    source = load(tmp_path, "repeated", [question(i) for i in range(4)])
    summary = evaluate("tier2", source=source, repeats=3, logprobs=True)
    # For question 1 one pair of three is equal, for the other three all are.
    assert get_value(summary, "response_exact_match_rate") == pytest.approx((1 / 3 + 3) / 4)
    assert 0.75 < get_value(summary, "response_semantic_consistency") < 1
    assert get_value(summary, "avg_perplexity") == pytest.approx(4.0)  # exp of the mean of ln 2 and ln 8
    row = next(row for row in read_rows(summary) if row["question_id"] == "1")
    assert sorted(row["answers"]) == sorted(answers)


def test_invalid_probability_is_not_measured(served: FakeLLMServer, tmp_path: Path) -> None:
    def script(number: int, request: Document) -> Any:
        if get_requested_metric(request) != "generation":
            return make_score_completion(0.5)
        first = 0.001 if "правило 1," in texts(request)["question"] else 1e-7  # rounded up from 0
        return make_completion(
            "Сдать.", logprobs={"content": [{"token": "a", "logprob": first}, {"token": "b", "logprob": -2}]}
        )

    served.script = script
    source = load(tmp_path, "improbable", [question(i) for i in range(4)])
    summary = evaluate("tier2", source=source, logprobs=True)
    assert (get_value(summary, "avg_perplexity"), summary["state"]) == (pytest.approx(math.e), "completed")
    assert summary["metrics"]["avg_perplexity"]["n_scored"] == 3


def test_unpaired_surrogate_in_verdict_is_replaced(served: FakeLLMServer, tmp_path: Path) -> None:
    def script(number: int, request: Document) -> Any:
        if get_requested_metric(request) == "generation":
            return answer_steadily(number, request)
        return make_completion('{"reason": "верно \\ud83d", "score": 0.5}')

    served.script = script
    source = load(tmp_path, "half_an_emoji", [question(i) for i in range(4)])
    summary = evaluate("tier2", source=source)
    assert (get_value(summary, "avg_faithfulness"), summary["state"]) == (0.5, "completed")
    assert "faithfulness: верно ?" in read_rows(summary)[0]["judge_reasons"]


def answer_half_broken(number: int, request: Document) -> Any:
    """Judge unreadably on every odd rule."""
    if get_requested_metric(request) == "generation":
        return make_completion(f"Сдать книгу {texts(request)['context'].split()[1]}")
    page_number = int(texts(request)["answer"].split()[-1])
    return make_completion("Пожалуй, 0.9 из 1") if page_number % 2 else make_score_completion(page_number / 10)


def test_unreadable_replies_are_counted(
    yarus: CommandLine, engine: Engine, served: FakeLLMServer, tmp_path: Path, prefect_server: dict[str, str]
) -> None:
    source = load(tmp_path, "half_broken", [question(i) for i in range(40)])
    served.script = answer_half_broken
    variables = make_role_variables(served.url, "generator", "judge") | prefect_server
    ran = yarus("run", "tier2", "--source", source, "--json", env=variables, ok=False)
    assert (ran.code, ran.json["state"]) == (1, "invalid")
    assert "50.0%" in ran.json["error"]
    assert ran.json["statuses"] == {"ok": 20, "parse_error": 20}
    rows = read_rows(ran.json)
    for column in JUDGED_METRICS:
        metric = ran.json["metrics"][f"avg_{column}"]
        assert (metric["n_scored"], metric["n_total"]) == (20, 40)
        assert metric["value"] == pytest.approx((0 + 0.2 + 0.4 + 0.6 + 0.8) / 5)
        assert {row[column] for row in rows if row["status"] == "parse_error"} == {None}
    stored_replies = next(row["judge_raw"] for row in rows if row["status"] == "parse_error")
    assert [(reply["reply"], reply["status"]) for reply in stored_replies] == [("Пожалуй, 0.9 из 1", "parse_error")] * 6

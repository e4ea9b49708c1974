"""Tier 2, case by case: refusals, bad lines of the log, failures and unreadable replies are counted, not scored."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.command_line import CommandLine, Document
from tests.support.evaluations import (
    JUDGED,
    evaluate,
    load,
    metric_of,
    passages,
    question,
    roles,
    rows_of,
    steady,
    texts,
    value,
)
from tests.support.llm_server import FakeLLMServer, http, says, scores


def test_a_refusal_counts_where_it_has_a_reference(served: FakeLLMServer, at_home: Path, tmp_path: Path) -> None:
    source = load(tmp_path, "declining", [question(i) for i in range(4)] + [question(4, ground_truth_answer=None)])
    declines = {0: "Ответ не найден. Попробуйте иначе.", 4: "Ответ не  найден", 1: "", 2: "Не нашёл ответа"}

    def script(number: int, request: Document) -> bytes | Any:
        if metric_of(request) != "generation":
            return scores(0.5)
        which = int(texts(request)["context"].split()[1])
        return says(declines.get(which, "Сдать книгу."))

    served.script = script
    rows = {row["question_id"]: row for row in rows_of(evaluate("tier2", source=source))}
    assert [rows[str(i)]["status"] for i in range(5)] == [*["sut_refusal"] * 3, "ok", "ok"]
    assert [rows[str(i)]["answer_correctness"] for i in range(5)] == [0, 0, 0, 0.5, None]
    assert [rows[str(i)]["faithfulness"] for i in range(5)] == [None, None, None, 0.5, 0.5]
    assert rows["1"]["reason"] == "the answer is empty"
    assert rows["1"]["rouge1_f"] == 0
    assert rows["4"]["wer"] is None


def test_bad_lines_of_the_log_are_counted_not_scored(served: FakeLLMServer, tmp_path: Path) -> None:
    long = [{"id": "c0", "confluence_url": "https://wiki.example/0", "text": "слово " * 400}, *passages(10)[1:]]
    rows = [
        question(1, ground_truth_answer=None),  # no annotated answer
        question(2, relevant_chunk_ids=None, relevant_urls=[passages(10)[2]["confluence_url"]]),  # only a page
        question(10, question="Как долго?"),  # its chunk c0 is longer than the limit
        question(3, relevant_chunk_ids=["gone"]),
        question(4, relevant_chunk_ids=None, confluence_url=None),
        question(5, relevant_chunk_ids=None, answerable=False, confluence_url=None, ground_truth_answer=None),
    ]
    summary = evaluate("tier2", source=load(tmp_path, "bad_lines", rows, long), context_tokens=100)
    found = {row["question_id"]: row for row in rows_of(summary)}
    assert {key: row["status"] for key, row in found.items()} == {
        "1": "ok", "2": "ok", "10": "ok", "3": "stale_label", "4": "unlabelled", "5": "not_applicable"
    }  # fmt: skip
    assert [found["1"][name] is None for name in (*JUDGED, "bleu")] == [False, False, True, True]
    assert found["2"]["context"] == passages(10)[2]["text"]
    assert (found["10"]["truncated"], len(found["10"]["context"]), found["2"]["truncated"]) == (True, 300, False)
    assert {"note": "contexts cut", "n": 1} in summary["notes"]
    assert summary["metrics"]["avg_faithfulness"]["n_scored"] == 3
    assert summary["metrics"]["avg_answer_correctness"]["n_scored"] == 2
    assert (summary["coverage"], summary["state"]) == (1.0, "completed")


def test_a_context_that_the_model_cannot_take_is_its_failure(served: FakeLLMServer, tmp_path: Path) -> None:
    too_long = {"error": {"message": "maximum context length is 8 tokens", "code": "context_length_exceeded"}}

    def script(number: int, request: Document) -> Any:
        if metric_of(request) == "generation" and "Правило 3" in texts(request)["context"]:
            return http(400, json.dumps(too_long), "content-type: application/json")
        return steady(number, request)

    served.script = script
    source = load(tmp_path, "too_long", [question(i) for i in range(30)])
    summary = evaluate("tier2", source=source)
    failed = [row for row in rows_of(summary) if row["status"] == "sut_error"]
    assert sorted(row["question_id"] for row in failed) == ["13", "23", "3"]
    assert [row["faithfulness"] for row in failed] == [None, None, None]
    assert value(summary, "sut_error_rate") == pytest.approx(0.1)
    assert summary["state"] == "invalid"  # 90 % were measured, 95 % are needed


def test_repeats_and_probabilities_are_measured(served: FakeLLMServer, tmp_path: Path) -> None:
    answers = ("Сдать книгу.", "Сдать книгу.", "Вернуть книгу до мая.")
    logprobs = {"content": [{"token": "a", "logprob": math.log(0.5)}, {"token": "b", "logprob": math.log(0.125)}]}
    given: dict[str, int] = {}

    def script(number: int, request: Document) -> Any:
        if metric_of(request) != "generation":
            return scores(0.5)
        asked = texts(request)["question"]
        given[asked] = given.get(asked, -1) + 1
        return says(answers[given[asked]] if "правило 1," in asked else answers[0], logprobs=logprobs)

    served.script = script
    source = load(tmp_path, "repeated", [question(i) for i in range(4)])
    summary = evaluate("tier2", source=source, repeats=3, logprobs=True)
    # Of question 1 one pair of three is equal, of the other three all are.
    assert value(summary, "response_exact_match_rate") == pytest.approx((1 / 3 + 3) / 4)
    assert 0.75 < value(summary, "response_semantic_consistency") < 1
    assert value(summary, "avg_perplexity") == pytest.approx(4.0)  # exp of the mean of ln 2 and ln 8
    row = next(row for row in rows_of(summary) if row["question_id"] == "1")
    assert sorted(row["answers"]) == sorted(answers)


def test_what_is_no_probability_leaves_its_case_unmeasured(served: FakeLLMServer, tmp_path: Path) -> None:
    def script(number: int, request: Document) -> Any:
        if metric_of(request) != "generation":
            return scores(0.5)
        first = 0.001 if "правило 1," in texts(request)["question"] else 1e-7  # rounded up from 0
        return says("Сдать.", logprobs={"content": [{"token": "a", "logprob": first}, {"token": "b", "logprob": -2}]})

    served.script = script
    source = load(tmp_path, "improbable", [question(i) for i in range(4)])
    summary = evaluate("tier2", source=source, logprobs=True)
    assert (value(summary, "avg_perplexity"), summary["state"]) == (pytest.approx(math.e), "completed")
    assert summary["metrics"]["avg_perplexity"]["n_scored"] == 3


def test_half_an_emoji_in_a_verdict_harms_nobody(served: FakeLLMServer, tmp_path: Path) -> None:
    def script(number: int, request: Document) -> Any:
        if metric_of(request) == "generation":
            return steady(number, request)
        return says('{"reason": "верно \\ud83d", "score": 0.5}')

    served.script = script
    source = load(tmp_path, "half_an_emoji", [question(i) for i in range(4)])
    summary = evaluate("tier2", source=source)
    assert (value(summary, "avg_faithfulness"), summary["state"]) == (0.5, "completed")
    assert "faithfulness: верно ?" in rows_of(summary)[0]["judge_reasons"]


def broken(number: int, request: Document) -> Any:
    """A judge that cannot be read on every odd rule."""
    if metric_of(request) == "generation":
        return says(f"Сдать книгу {texts(request)['context'].split()[1]}")
    which = int(texts(request)["answer"].split()[-1])
    return says("Пожалуй, 0.9 из 1") if which % 2 else scores(which / 10)


def test_half_the_replies_broken(
    yarus: CommandLine, engine: Engine, served: FakeLLMServer, tmp_path: Path, prefect_server: dict[str, str]
) -> None:
    source = load(tmp_path, "half_broken", [question(i) for i in range(40)])
    served.script = broken
    variables = roles(served.url, "generator", "judge") | prefect_server
    ran = yarus("run", "tier2", "--source", source, "--json", env=variables, ok=False)
    assert (ran.code, ran.json["state"]) == (1, "invalid")
    assert "50.0%" in ran.json["error"]
    assert ran.json["statuses"] == {"ok": 20, "parse_error": 20}
    rows = rows_of(ran.json)
    for column in JUDGED:
        metric = ran.json["metrics"][f"avg_{column}"]
        assert (metric["n_scored"], metric["n_total"]) == (20, 40)
        assert metric["value"] == pytest.approx((0 + 0.2 + 0.4 + 0.6 + 0.8) / 5)
        assert {row[column] for row in rows if row["status"] == "parse_error"} == {None}
    kept = next(row["judge_raw"] for row in rows if row["status"] == "parse_error")
    assert [(reply["reply"], reply["status"]) for reply in kept] == [("Пожалуй, 0.9 из 1", "parse_error")] * 6

"""Check tier 3 of a service over HTTP: requests and replies, failures, hidden answers, refusals, stored answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Document
from tests.support.evaluations import PAGE_URL, evaluate, get_value, load, question, read_rows, set_variables
from tests.support.llm_clients import open_system
from tests.support.llm_server import JSON_HEADER, Action, FakeLLMServer, make_response, make_score_completion
from yarus.db.errors import InputError
from yarus.tasks.systems.sut import validate_answer


def reply_with(**parts: Any) -> bytes:
    return make_response(200, json.dumps(parts, ensure_ascii=False), JSON_HEADER)


def reply_correctly(request: Document) -> bytes:
    """Reply with the right page and answer to a question of `tests.support.evaluations.question`."""
    number = request["question"].split()[3].strip(",")
    page = PAGE_URL.format(int(number) % 10)
    return reply_with(answer=f"Сдать книгу {number}.", urls=[page], contexts=[f"Правило {number} велит сдать книгу."])


def test_unpaired_surrogate_is_replaced(judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path) -> None:
    url = PAGE_URL.format(1) + "&title=\ud83d"
    service.script = lambda number, request: make_response(
        200, json.dumps({"answer": "Сдать \ud83d.", "urls": [url]}), JSON_HEADER
    )
    source = load(tmp_path, "half_an_emoji_3", [question(i) for i in range(3)])
    summary = evaluate("tier3", source=source, sut=f"{service.url}/ask")
    assert summary["state"] == "completed"
    assert {row["answer"] for row in read_rows(summary)} == {"Сдать ?."}


def test_service_is_called_as_configured(
    judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def script(_: int, request: Document) -> bytes:
        number = request["messages"][0]["text"].split()[3].strip(",")
        return reply_with(
            result={"text": f"Сдать книгу {number}."},
            sources=[
                {"url": f"{PAGE_URL.format(number)}#part", "text": "сдать книгу"},
                {"url": PAGE_URL.format(77), "text": ""},
            ],
            path="cache",
            latency_ms=250,
        )

    service.script = script
    set_variables(
        monkeypatch,
        {
            "YARUS_SUT_SERVICE__REQUEST": '{"messages": [{"text": "$question"}], "lang": "ru"}',
            "YARUS_SUT_SERVICE__ANSWER": "result.text",
            "YARUS_SUT_SERVICE__URLS": "sources[].url",
            "YARUS_SUT_SERVICE__CONTEXTS": "sources[].text",
            "YARUS_SUT_SERVICE__HEADERS": '{"authorization": "Bearer s3cret"}',
        },
    )
    source = load(tmp_path, "served", [question(i) for i in range(8)])
    summary = evaluate("tier3", source=source, sut=f"{service.url}/ask")
    rows = read_rows(summary)
    assert summary["state"] == "completed"
    assert (summary["system"]["unit"], get_value(summary, "hit_rate@1"), get_value(summary, "mrr")) == ("page", 1, 1)
    assert rows[3]["retrieved"] == [PAGE_URL.format(3), PAGE_URL.format(77)]
    assert (rows[3]["answer"], rows[3]["path"], rows[3]["latency_ms"]) == ("Сдать книгу 3.", "cache", 250)
    assert (get_value(summary, "latency_ms_p50"), get_value(summary, "retrieval_latency_ms_p50")) == (250, None)
    assert all("authorization: Bearer s3cret" in head for head in service.headers)
    assert "s3cret" not in json.dumps(summary)


def test_failing_service_is_never_scored(
    judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies: dict[int, bytes | Action] = {
        0: make_response(200, "<html><body>Технические работы</body></html>", "content-type: text/html"),
        1: make_response(500, "Internal Server Error"),
        2: Action(b"", after_s=3),
        3: reply_with(text="shape changed"),
        4: reply_with(answer=["a", "list"], urls=[], contexts=[]),
        5: reply_with(answer="Сдать.", urls="https://one", contexts=[]),
        6: Action(b"", then="close"),
        7: reply_with(answer="Сдать книгу.", urls=[], contexts=[]),
        8: reply_with(answer="Сдать книгу."),
    }

    def script(_: int, request: Document) -> bytes | Action:
        number = int(request["question"].split()[3].strip(","))
        return replies.get(number) or reply_correctly(request)

    service.script = script
    set_variables(monkeypatch, {"YARUS_SUT_SERVICE__TIMEOUT_S": "0.7"})
    source = load(tmp_path, "failing", [question(i) for i in range(20)])
    summary = evaluate("tier3", source=source, sut=service.url)
    rows = {int(row["question_id"]): row for row in read_rows(summary)}
    reasons = {0: "no JSON: <html>", 1: "answered 500", 2: "Timeout", 3: "'answer' is None", 4: "'answer' is ['a'"}
    reasons |= {5: "'urls' is 'https://one'", 6: "disconnected"}
    for number, words in reasons.items():
        assert (rows[number]["status"], rows[number]["answer"]) == ("sut_error", None)
        assert words in rows[number]["reason"]
        assert [rows[number][name] for name in ("e2e_score", "bleu", "mrr", "latency_ms", "retrieved")] == [None] * 5
    # An empty ranking scores 0; a system that does not report its ranking is not measured.
    assert [rows[number]["mrr"] for number in (7, 8, 9)] == [0, None, 1]
    assert [rows[number]["faithfulness"] is None for number in (7, 8, 9)] == [True, True, False]
    assert get_value(summary, "sut_error_rate") == pytest.approx(7 / 20)
    assert summary["metrics"]["avg_e2e_score"]["n_scored"] == 13
    assert (summary["state"], summary["coverage"]) == ("invalid", 13 / 20)


def test_hidden_empty_and_declined_answers_are_refusals(
    judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path
) -> None:
    replies = {
        0: reply_with(path="hidden", urls=[PAGE_URL.format(0)], contexts=[]),
        1: reply_with(answer="", urls=[PAGE_URL.format(1)], contexts=[]),
        2: reply_with(answer="К сожалению, ОТВЕТ НЕ НАЙДЕН. Позвоните нам.", urls=[PAGE_URL.format(2)], contexts=[]),
        3: reply_with(answer="Ответ не найден", urls=[], contexts=[]),
    }
    service.script = lambda number, request: (
        replies.get(int(request["question"].split()[3].strip(","))) or reply_correctly(request)
    )
    nothing = {"answerable": False, "ground_truth_answer": None, "relevant_chunk_ids": None, "confluence_url": None}
    source = load(tmp_path, "refusing", [question(i, **(nothing if i == 3 else {})) for i in range(6)])
    summary = evaluate("tier3", source=source, sut=service.url)
    rows = read_rows(summary)
    assert [row["status"] for row in rows] == [*["sut_refusal"] * 4, "ok", "ok"]
    assert [row["e2e_score"] for row in rows[:4]] == [0, 0, 0, None]
    assert [row["failure"] for row in rows[:4]] == ["gate", "refusal", "refusal", None]
    assert summary["failures"]["counts"]["gate"] == 1
    assert [get_value(summary, f"{name}_refused") for name in ("answerable", "unanswerable")] == [3, 1]
    assert (get_value(summary, "refusal_rate"), summary["coverage"]) == (pytest.approx(4 / 6), 1.0)


def test_unusable_service_settings_are_refused() -> None:
    with pytest.raises(InputError, match="YARUS_SUT_SERVICE"):
        open_system("http://127.0.0.1:1", request="{question}")
    with pytest.raises(InputError, match="YARUS_SUT_SERVICE"):
        open_system("http://127.0.0.1:1", urls="results[")


@pytest.mark.parametrize("latency", [-1, True, "fast", float("nan"), float("inf")])
def test_invalid_latency_is_an_error(latency: Any) -> None:
    with pytest.raises(ValueError, match="latency_ms"):
        validate_answer({"answer": "да", "latency_ms": latency}, 1.0)


def test_stored_answers_are_scored_by_another_judge(
    judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.script = lambda number, request: reply_correctly(request) if number % 5 else make_response(500)
    source = load(tmp_path, "replay", [question(i) for i in range(20)])
    monkeypatch.setenv("YARUS_SUT_LABEL", "v1")
    first = evaluate("tier3", source=source, sut=service.url)
    n_requests = len(service.requests)
    monkeypatch.setenv("YARUS_SUT_LABEL", "v2")
    same = evaluate("tier3", source=source, reuse_answers=first["evaluation_id"])
    judge.script = lambda number, request: make_score_completion(1.0)
    set_variables(monkeypatch, {"YARUS_JUDGE__MODEL": "another"})
    rejudged = evaluate("tier3", source=source, reuse_answers=same["evaluation_id"])
    assert len(service.requests) == n_requests == 20
    assert same["metrics"] == first["metrics"]
    assert (same["comparability_key"], same["sut_label"]) == (first["comparability_key"], "v1")
    assert rejudged["system"]["sut"] == f"answers of {first['evaluation_id']}"
    assert (get_value(rejudged, "avg_e2e_score"), get_value(rejudged, "mrr")) == (1.0, get_value(first, "mrr"))
    assert get_value(rejudged, "sut_error_rate") == pytest.approx(0.2)
    assert rejudged["comparability_key"] != first["comparability_key"]
    with pytest.raises(InputError, match="its tier is 'tier3', not 'tier2'"):
        evaluate("tier2", source=source, reuse_answers=first["evaluation_id"])
    with pytest.raises(InputError, match="its source is 'replay', not 'sample'"):
        evaluate("tier3", reuse_answers=first["evaluation_id"])

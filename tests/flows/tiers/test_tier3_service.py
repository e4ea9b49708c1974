"""Tier 3 of a service over HTTP: how it is asked and read, what fails, hides or refuses, and its stored answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Document
from tests.support.evaluations import PAGE, evaluate, load, question, rows_of, use, value
from tests.support.llm_clients import system_at
from tests.support.llm_server import JSON, Do, FakeLLMServer, http, scores
from yarus.db.errors import InputError
from yarus.tasks.systems.sut import checked


def replies(**parts: Any) -> bytes:
    return http(200, json.dumps(parts, ensure_ascii=False), JSON)


def right(request: Document) -> bytes:
    """The right page and answer, from a question of `tests.support.evaluations.question`."""
    which = request["question"].split()[3].strip(",")
    page = PAGE.format(int(which) % 10)
    return replies(answer=f"Сдать книгу {which}.", urls=[page], contexts=[f"Правило {which} велит сдать книгу."])


def test_half_an_emoji_in_a_reply_harms_nobody(judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path) -> None:
    url = PAGE.format(1) + "&title=\ud83d"
    service.script = lambda number, request: http(200, json.dumps({"answer": "Сдать \ud83d.", "urls": [url]}), JSON)
    source = load(tmp_path, "half_an_emoji_3", [question(i) for i in range(3)])
    summary = evaluate("tier3", source=source, sut=f"{service.url}/ask")
    assert summary["state"] == "completed"
    assert {row["answer"] for row in rows_of(summary)} == {"Сдать ?."}


def test_a_service_is_asked_and_read_as_the_settings_say(
    judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def script(number: int, request: Document) -> bytes:
        which = request["messages"][0]["text"].split()[3].strip(",")
        return replies(
            result={"text": f"Сдать книгу {which}."},
            sources=[
                {"url": f"{PAGE.format(which)}#part", "text": "сдать книгу"},
                {"url": PAGE.format(77), "text": ""},
            ],
            path="cache",
            latency_ms=250,
        )

    service.script = script
    use(
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
    rows = rows_of(summary)
    assert summary["state"] == "completed"
    assert (summary["system"]["unit"], value(summary, "hit_rate@1"), value(summary, "mrr")) == ("page", 1, 1)
    assert rows[3]["retrieved"] == [PAGE.format(3), PAGE.format(77)]
    assert (rows[3]["answer"], rows[3]["path"], rows[3]["latency_ms"]) == ("Сдать книгу 3.", "cache", 250)
    assert (value(summary, "latency_ms_p50"), value(summary, "retrieval_latency_ms_p50")) == (250, None)
    assert all("authorization: Bearer s3cret" in head for head in service.headers)
    assert "s3cret" not in json.dumps(summary)


def test_a_service_that_fails_in_every_way_is_never_scored(
    judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways: dict[int, bytes | Do] = {
        0: http(200, "<html><body>Технические работы</body></html>", "content-type: text/html"),
        1: http(500, "Internal Server Error"),
        2: Do(b"", after_s=3),
        3: replies(text="shape changed"),
        4: replies(answer=["a", "list"], urls=[], contexts=[]),
        5: replies(answer="Сдать.", urls="https://one", contexts=[]),
        6: Do(b"", then="close"),
        7: replies(answer="Сдать книгу.", urls=[], contexts=[]),
        8: replies(answer="Сдать книгу."),
    }

    def script(number: int, request: Document) -> bytes | Do:
        which = int(request["question"].split()[3].strip(","))
        return ways.get(which) or right(request)

    service.script = script
    use(monkeypatch, {"YARUS_SUT_SERVICE__TIMEOUT_S": "0.7"})
    source = load(tmp_path, "failing", [question(i) for i in range(20)])
    summary = evaluate("tier3", source=source, sut=service.url)
    rows = {int(row["question_id"]): row for row in rows_of(summary)}
    reasons = {0: "no JSON: <html>", 1: "answered 500", 2: "Timeout", 3: "'answer' is None", 4: "'answer' is ['a'"}
    reasons |= {5: "'urls' is 'https://one'", 6: "disconnected"}
    for number, words in reasons.items():
        assert (rows[number]["status"], rows[number]["answer"]) == ("sut_error", None)
        assert words in rows[number]["reason"]
        assert [rows[number][name] for name in ("e2e_score", "bleu", "mrr", "latency_ms", "retrieved")] == [None] * 5
    # An empty ranking is worth 0; a system that does not say what it retrieved is not measured there.
    assert [rows[number]["mrr"] for number in (7, 8, 9)] == [0, None, 1]
    assert [rows[number]["faithfulness"] is None for number in (7, 8, 9)] == [True, True, False]
    assert value(summary, "sut_error_rate") == pytest.approx(7 / 20)
    assert summary["metrics"]["avg_e2e_score"]["n_scored"] == 13
    assert (summary["state"], summary["coverage"]) == ("invalid", 13 / 20)


def test_hidden_empty_and_declined_answers_are_refusals(
    judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path
) -> None:
    ways = {
        0: replies(path="hidden", urls=[PAGE.format(0)], contexts=[]),
        1: replies(answer="", urls=[PAGE.format(1)], contexts=[]),
        2: replies(answer="К сожалению, ОТВЕТ НЕ НАЙДЕН. Позвоните нам.", urls=[PAGE.format(2)], contexts=[]),
        3: replies(answer="Ответ не найден", urls=[], contexts=[]),
    }
    service.script = lambda number, request: ways.get(int(request["question"].split()[3].strip(","))) or right(request)
    nothing = {"answerable": False, "ground_truth_answer": None, "relevant_chunk_ids": None, "confluence_url": None}
    source = load(tmp_path, "refusing", [question(i, **(nothing if i == 3 else {})) for i in range(6)])
    summary = evaluate("tier3", source=source, sut=service.url)
    rows = rows_of(summary)
    assert [row["status"] for row in rows] == [*["sut_refusal"] * 4, "ok", "ok"]
    assert [row["e2e_score"] for row in rows[:4]] == [0, 0, 0, None]
    assert [row["failure"] for row in rows[:4]] == ["gate", "refusal", "refusal", None]
    assert summary["failures"]["counts"]["gate"] == 1
    assert [value(summary, f"{name}_refused") for name in ("answerable", "unanswerable")] == [3, 1]
    assert (value(summary, "refusal_rate"), summary["coverage"]) == (pytest.approx(4 / 6), 1.0)


def test_settings_of_a_service_that_cannot_work_are_named() -> None:
    with pytest.raises(InputError, match="YARUS_SUT_SERVICE"):
        system_at("http://127.0.0.1:1", request="{question}")
    with pytest.raises(InputError, match="YARUS_SUT_SERVICE"):
        system_at("http://127.0.0.1:1", urls="results[")


@pytest.mark.parametrize("latency", [-1, True, "fast", float("nan"), float("inf")])
def test_a_latency_that_is_none_is_an_error(latency: Any) -> None:
    with pytest.raises(ValueError, match="latency_ms"):
        checked({"answer": "да", "latency_ms": latency}, 1.0)


def test_stored_answers_are_scored_by_another_judge(
    judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.script = lambda number, request: right(request) if number % 5 else http(500)
    source = load(tmp_path, "replay", [question(i) for i in range(20)])
    monkeypatch.setenv("YARUS_SUT_LABEL", "v1")
    first = evaluate("tier3", source=source, sut=service.url)
    asked = len(service.requests)
    monkeypatch.setenv("YARUS_SUT_LABEL", "v2")
    same = evaluate("tier3", source=source, reuse_answers=first["evaluation_id"])
    judge.script = lambda number, request: scores(1.0)
    use(monkeypatch, {"YARUS_JUDGE__MODEL": "another"})
    other = evaluate("tier3", source=source, reuse_answers=same["evaluation_id"])
    assert len(service.requests) == asked == 20
    assert same["metrics"] == first["metrics"]
    assert (same["comparability_key"], same["sut_label"]) == (first["comparability_key"], "v1")
    assert other["system"]["sut"] == f"answers of {first['evaluation_id']}"
    assert (value(other, "avg_e2e_score"), value(other, "mrr")) == (1.0, value(first, "mrr"))
    assert value(other, "sut_error_rate") == pytest.approx(0.2)
    assert other["comparability_key"] != first["comparability_key"]
    with pytest.raises(InputError, match="its tier is 'tier3', not 'tier2'"):
        evaluate("tier2", source=source, reuse_answers=first["evaluation_id"])
    with pytest.raises(InputError, match="its source is 'replay', not 'sample'"):
        evaluate("tier3", reuse_answers=first["evaluation_id"])

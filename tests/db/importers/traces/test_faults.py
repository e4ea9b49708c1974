"""Traces that are incomplete, contradict themselves, or are none: nothing is lost without a word."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.support.traces.files import langfuse, otlp, read_rows, request, span_id, turn, write
from yarus.db.errors import InputError
from yarus.db.importers import reader
from yarus.db.loading.staging import Rejected, Row

SAID = turn(0)
MISSING = "have spans whose parent is missing"
CLOCKS = "have times of clocks that differ"


def of(tmp_path: Path, spans: list[Any]) -> tuple[list[Row], list[str]]:
    _, questions, _, problems = read_rows(write(tmp_path / "a.jsonl", [request(spans)]))
    return questions, problems


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_spans_and_the_files_that_they_are_in_do_not_matter(seed: int, tmp_path: Path) -> None:
    spans = [span for i in range(12) for span in otlp(turn(i))]
    spans += [span for i in (3, 4) for span in otlp(turn(i))[1:]]  # sent twice
    orphans = otlp(turn(20))[1:]
    expected = read_rows(write(tmp_path / "whole.jsonl", [request(spans + orphans)]))
    shuffled = spans + orphans
    random.Random(seed).shuffle(shuffled)
    cut = random.Random(seed).randrange(len(shuffled))
    files = [
        write(tmp_path / "one.jsonl", [request(shuffled[:cut])]),
        write(tmp_path / "two.jsonl", [request([one]) for one in shuffled[cut:]]),
    ]
    assert read_rows(*files) == expected
    assert any(MISSING in problem for problem in expected[3])
    assert any(problem.startswith("4 spans were there twice") for problem in expected[3])


def test_without_its_root_a_trace_is_what_the_retriever_was_asked_and_the_model_answered(tmp_path: Path) -> None:
    (row,), problems = of(tmp_path, otlp(SAID)[1:])
    assert (row.values["question"], row.values["answer"]) == (SAID["question"], SAID["answer"])
    assert row.values["recorded"]["contexts"] == SAID["passages"]
    assert [problem.split(":")[0] for problem in problems if MISSING in problem] == [f"1 traces {MISSING}"]


def test_steps_whose_parent_is_missing_go_with_the_request_under_way(tmp_path: Path) -> None:
    spans = otlp(SAID)
    spans[1]["parentSpanId"] = "00000000000000aa"
    (row,), problems = of(tmp_path, spans)
    assert row.values["recorded"]["contexts"] == SAID["passages"]
    assert len(problems) == 1


def test_two_roots_are_two_questions(tmp_path: Path) -> None:
    other = turn(7, trace_id=SAID["trace_id"], start_ns=SAID["start_ns"] + 10**10)
    spans = otlp(SAID) + [
        {**one, "spanId": one["spanId"][::-1], "parentSpanId": one["parentSpanId"][::-1]} for one in otlp(other)
    ]
    rows, problems = of(tmp_path, spans)
    assert {row.values["question"]: row.values["answer"] for row in rows} == {
        one["question"]: one["answer"] for one in (SAID, other)
    }
    assert {row.values["id"] for row in rows} == {
        f"{SAID['trace_id']}:{span_id(SAID, 'rag')}",
        f"{SAID['trace_id']}:{span_id(other, 'rag')[::-1]}",
    }
    assert [row.values["recorded"]["contexts"] for row in rows] in (
        [SAID["passages"], other["passages"]],
        [other["passages"], SAID["passages"]],
    )
    assert len(problems) == 1
    assert "several roots" in problems[0]


def test_kinds_that_nobody_knows_stand_for_nothing_in_particular(tmp_path: Path) -> None:
    spans = otlp(SAID, plain=True)
    spans[0]["attributes"]["openinference.span.kind"] = "ORCHESTRATOR_V2"
    spans.append({**spans[1], "spanId": "ab" * 8, "attributes": {"openinference.span.kind": "VIBE", "x": 1}})
    spans.append(
        {
            **spans[2],
            "spanId": "cd" * 8,
            "attributes": {"openinference.span.kind": "EVALUATOR", "input.value": "Хорошо?", "output.value": "да"},
        }
    )
    (row,), problems = of(tmp_path, spans)
    assert (row.values["question"], row.values["answer"], problems) == (SAID["question"], SAID["answer"], [])


@pytest.mark.parametrize(
    "clock",
    [
        pytest.param({0: ("endTimeUnixNano", -(10**9))}, id="a request that ends before it begins"),
        pytest.param({2: ("endTimeUnixNano", 3 * 10**10)}, id="a model that ends long after its request"),
        pytest.param({1: ("startTimeUnixNano", -(10**12))}, id="a retriever on a host whose clock is behind"),
        pytest.param({2: ("endTimeUnixNano", -(10**12))}, id="a model that ends before it begins"),
        pytest.param({0: ("endTimeUnixNano", 2 * 86_400 * 10**9)}, id="a request of two days"),
    ],
)
def test_times_that_cannot_be_are_no_latency(clock: dict[int, tuple[str, int]], tmp_path: Path) -> None:
    spans = otlp(SAID)
    for number, (name, shift) in clock.items():
        spans[number][name] = str(SAID["start_ns"] + shift)
    (row,), problems = of(tmp_path, spans)
    assert {"latency_ms", "first_token_ms"}.isdisjoint(row.values["recorded"])
    assert row.values["recorded"]["tokens_in"] == SAID["tokens_in"]
    assert [problem for problem in problems if CLOCKS in problem]


def test_without_times_there_is_no_latency_and_no_negative_one(tmp_path: Path) -> None:
    spans = [{k: v for k, v in span.items() if "Time" not in k and k != "events"} for span in otlp(SAID)]
    (row,), problems = of(tmp_path, spans)
    assert row.values["created_at"] is None
    assert "latency_ms" not in row.values["recorded"]
    assert problems == [f"1 traces do not tell their times: no latency ({SAID['trace_id']} first)"]


def test_a_failed_request_is_a_question_without_an_answer_and_with_its_reason(tmp_path: Path) -> None:
    spans = otlp(SAID)
    spans[0]["attributes"] = [one for one in spans[0]["attributes"] if one["key"] != "output.value"]
    spans[0]["status"] = {"code": "STATUS_CODE_ERROR", "message": "RateLimitError: 429"}
    (row,), _ = of(tmp_path, [spans[0], spans[1]])
    assert (row.values["answer"], row.values["recorded"]["error"]) == (None, "RateLimitError: 429")


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({"status_code": "ERROR", "status_message": "429"}, "429"),
        ({"status": {"status_code": "ERROR", "description": "429"}}, "429"),
        ({"status": {"code": 2}}, "the span ended in an error"),
        ({"status": "ERROR"}, "the span ended in an error"),
    ],
)
def test_an_error_is_one_however_it_is_written(status: dict[str, Any], reason: str, tmp_path: Path) -> None:
    (root, *_) = otlp(SAID, plain=True)
    del root["attributes"]["output.value"]
    del root["status"]
    (row,), _ = of(tmp_path, [root | status])
    assert row.values["recorded"]["error"] == reason


def test_odd_values_harm_nobody(tmp_path: Path) -> None:
    odd = otlp(SAID)
    odd[2]["attributes"] = [one for one in odd[2]["attributes"] if "token_count" not in one["key"]]
    odd[2]["attributes"] += [
        {"key": "llm.token_count.prompt", "value": {"intValue": "9" * 5_000}},
        {"key": "llm.token_count.completion", "value": {"doubleValue": "NaN"}},
        {"key": "llm.token_count", "value": {"stringValue": "many"}},
        {"key": "x", "value": {"arrayValue": {}}},
        {"key": "x.y", "value": {"kvlistValue": {"values": [{"key": "z", "value": {"bytesValue": "AA=="}}]}}},
        {"value": {}},
        7,
    ]
    odd[1]["startTimeUnixNano"] = "9" * 5_000
    odd[1]["events"] = "none"
    (row,), _ = of(tmp_path, odd)
    assert (row.values["answer"], row.values["recorded"]["contexts"]) == (SAID["answer"], SAID["passages"])
    assert {"tokens_in", "tokens_out"}.isdisjoint(row.values["recorded"])


def test_a_trace_without_a_question_is_counted_with_its_reason(tmp_path: Path) -> None:
    silent = [{**one, "traceId": "ab" * 16, "attributes": []} for one in otlp(SAID)]
    asked = [{**one, "traceId": "cd" * 16} for one in otlp(SAID)[1:2]]
    stream = reader.read_traces([write(tmp_path / "a.jsonl", [request(otlp(SAID) + silent + asked)])])
    list(stream.chunks)
    rows = list(stream.questions)
    skipped = {one.place: one.reason for one in rows if isinstance(one, Rejected)}
    assert len(rows) == 3
    assert skipped == {
        f"trace {'ab' * 16}": "no span has a question in words (input.value, gen_ai.input.messages, …); is content "
        "recorded?",
        f"trace {'cd' * 16}": "no span has an answer; is content recorded?",
    }


def test_part_of_the_tokens_is_not_their_sum(tmp_path: Path) -> None:
    spans = otlp(SAID, plain=True)
    rewrite = {"openinference.span.kind": "LLM", "input.value": "Перепиши", "output.value": "Правило 0"}
    spans.append({**spans[2], "spanId": "ef" * 8, "attributes": rewrite})
    (row,), problems = of(tmp_path, spans)
    assert {"tokens_in", "tokens_out", "cost_usd"}.isdisjoint(row.values["recorded"])
    assert len(problems) == 3
    assert all("do not tell" in problem for problem in problems)
    inner = {**spans[2], "spanId": "ef" * 8, "parentSpanId": spans[2]["spanId"]}
    (row,), problems = of(tmp_path, [*spans[:3], inner])  # a client within a client counts once
    assert (row.values["recorded"]["tokens_in"], problems) == (SAID["tokens_in"], [])


def test_passages_without_texts_are_named_and_those_of_one_id_with_two_texts_told(tmp_path: Path) -> None:
    nameless = turn(1, passages=[{"id": "c7", "text": "", "url": "https://wiki.example/7"}])
    other = turn(2, passages=[{"id": "c0", "text": "Другой текст.", "url": None}])
    documents = [request(otlp(said)) for said in (SAID, nameless, other)]
    chunks, questions, _, problems = read_rows(write(tmp_path / "a.jsonl", documents))
    by_id = {row.values["id"]: row.values["recorded"]["contexts"] for row in questions}
    assert by_id[nameless["trace_id"]] == [{"id": "c7", "text": None, "url": "https://wiki.example/7"}]
    assert by_id[other["trace_id"]][0]["text"] == "Другой текст."
    assert sorted(row.values["id"] for row in chunks) == ["c0", "c1"]
    assert [problem.split(" (")[0] for problem in problems] == ["1 passages have the id of one with another text"]


@pytest.mark.slow("breadth: a hundred thousand spans")
def test_a_trace_that_goes_in_a_circle_or_very_deep_ends(tmp_path: Path) -> None:
    circle = otlp(SAID)
    circle[0]["parentSpanId"] = circle[2]["spanId"]
    (row,), _ = of(tmp_path, circle)
    assert (row.values["question"], row.values["answer"]) == (SAID["question"], SAID["answer"])
    deep = otlp(SAID)
    names = [f"{n:016x}" for n in range(1, 20_000)]
    deep += [
        {"traceId": SAID["trace_id"], "spanId": name, "parentSpanId": above, "name": "step"}
        for name, above in zip(names, [deep[0]["spanId"], *names], strict=False)
    ]
    (row,), problems = of(tmp_path, deep)
    assert (row.values["answer"], problems) == (SAID["answer"], [])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"", "no traces: expected OTLP as JSON", id="empty"),
        pytest.param(b"hello\n", "no traces: expected OTLP as JSON", id="no JSON"),
        pytest.param(b"{}\n", "no traces: .*an object with nothing in it", id="an empty object"),
        pytest.param(b'{"resourceLogs": []}\n', "no traces: .*'resourceLogs'", id="logs"),
        pytest.param(b'["a text"]\n', "str is no trace", id="a text"),
        pytest.param(b"\x28\xb5\x2f\xfd\x00", "zstd -d", id="zstd"),
        pytest.param(b"\x1f\x8b\x08\x00\x00", "damaged gzip|Compressed", id="no whole gzip"),
        pytest.param('{"вопрос": 1}'.encode("cp1251"), "not UTF-8", id="another encoding"),
        pytest.param(b'{"resourceSpans": ' + b"[" * 100_000, "nested too deeply|not valid JSON", id="nested"),
        pytest.param(b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "x"}]}]}]}', "without ids", id="no ids"),
    ],
)
def test_what_is_no_trace_is_refused_in_words(content: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_rows(file)


def test_a_file_that_is_cut_off_is_not_loaded(tmp_path: Path) -> None:
    documents = [request(otlp(turn(i))) for i in range(3)]
    lines, whole = "\n".join(map(json.dumps, documents)), json.dumps(documents, indent=2)
    packed = gzip.compress(lines.encode())
    for content in (lines[:-200].encode(), whole[:-200].encode(), lines[:300].encode(), packed[:-20]):
        (tmp_path / "a.json").write_bytes(content)
        with pytest.raises(InputError, match=r"[Tt]runcated|damaged gzip"):
            read_rows(tmp_path / "a.json")
    with pytest.raises(InputError, match="No such file"):
        read_rows(tmp_path / "none.json")


def test_other_objects_among_traces_are_counted(tmp_path: Path) -> None:
    score = {"id": "s", "traceId": SAID["trace_id"], "name": "x", "value": 1, "timestamp": "2026-01-01"}
    documents = [langfuse(SAID), score, {"resourceMetrics": []}, 7, langfuse(turn(1), id="")]
    _, questions, _, problems = read_rows(write(tmp_path / "a.jsonl", documents))
    assert len(questions) == 1
    assert [problem.split(":")[0] for problem in problems] == ["4 objects are no traces, not loaded"]

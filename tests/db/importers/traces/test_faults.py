"""Test incomplete, contradictory and invalid traces: every loss is reported."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.support.traces.files import (
    make_export_request,
    make_langfuse_trace,
    make_otlp_spans,
    make_span_id,
    make_turn,
    read_rows,
    write_json_lines,
)
from yarus.db.errors import InputError
from yarus.db.importers import reader
from yarus.db.loading.staging import IncomingRow, Rejected

TURN = make_turn(0)
MISSING_PARENT = "have spans whose parent is missing"
DIFFERENT_CLOCKS = "have times of clocks that differ"


def read_spans(tmp_path: Path, spans: list[Any]) -> tuple[list[IncomingRow], list[str]]:
    _, questions, _, problems = read_rows(write_json_lines(tmp_path / "a.jsonl", [make_export_request(spans)]))
    return questions, problems


@pytest.mark.parametrize("seed", range(5))
def test_order_and_files_of_spans_do_not_matter(seed: int, tmp_path: Path) -> None:
    spans = [span for i in range(12) for span in make_otlp_spans(make_turn(i))]
    spans += [span for i in (3, 4) for span in make_otlp_spans(make_turn(i))[1:]]  # sent twice
    orphans = make_otlp_spans(make_turn(20))[1:]
    expected = read_rows(write_json_lines(tmp_path / "whole.jsonl", [make_export_request(spans + orphans)]))
    shuffled = spans + orphans
    random.Random(seed).shuffle(shuffled)
    cut = random.Random(seed).randrange(len(shuffled))
    files = [
        write_json_lines(tmp_path / "one.jsonl", [make_export_request(shuffled[:cut])]),
        write_json_lines(tmp_path / "two.jsonl", [make_export_request([span]) for span in shuffled[cut:]]),
    ]
    assert read_rows(*files) == expected
    assert any(MISSING_PARENT in problem for problem in expected[3])
    assert any(problem.startswith("4 spans were there twice") for problem in expected[3])


def test_trace_without_root_uses_texts_of_its_steps(tmp_path: Path) -> None:
    (row,), problems = read_spans(tmp_path, make_otlp_spans(TURN)[1:])
    assert (row.values["question"], row.values["answer"]) == (TURN["question"], TURN["answer"])
    assert row.values["recorded"]["contexts"] == TURN["passages"]
    assert [note.split(":")[0] for note in problems if MISSING_PARENT in note] == [f"1 traces {MISSING_PARENT}"]


def test_orphan_steps_join_the_running_request(tmp_path: Path) -> None:
    spans = make_otlp_spans(TURN)
    spans[1]["parentSpanId"] = "00000000000000aa"
    (row,), problems = read_spans(tmp_path, spans)
    assert row.values["recorded"]["contexts"] == TURN["passages"]
    assert len(problems) == 1


def test_two_roots_become_two_questions(tmp_path: Path) -> None:
    second_turn = make_turn(7, trace_id=TURN["trace_id"], start_ns=TURN["start_ns"] + 10**10)
    spans = make_otlp_spans(TURN) + [
        {**span, "spanId": span["spanId"][::-1], "parentSpanId": span["parentSpanId"][::-1]}
        for span in make_otlp_spans(second_turn)
    ]
    rows, problems = read_spans(tmp_path, spans)
    assert {row.values["question"]: row.values["answer"] for row in rows} == {
        expected_turn["question"]: expected_turn["answer"] for expected_turn in (TURN, second_turn)
    }
    assert {row.values["id"] for row in rows} == {
        f"{TURN['trace_id']}:{make_span_id(TURN, 'rag')}",
        f"{TURN['trace_id']}:{make_span_id(second_turn, 'rag')[::-1]}",
    }
    assert [row.values["recorded"]["contexts"] for row in rows] in (
        [TURN["passages"], second_turn["passages"]],
        [second_turn["passages"], TURN["passages"]],
    )
    assert len(problems) == 1
    assert "several roots" in problems[0]


def test_unknown_span_kinds_are_neutral(tmp_path: Path) -> None:
    spans = make_otlp_spans(TURN, plain=True)
    spans[0]["attributes"]["openinference.span.kind"] = "ORCHESTRATOR_V2"
    spans.append({**spans[1], "spanId": "ab" * 8, "attributes": {"openinference.span.kind": "VIBE", "x": 1}})
    spans.append(
        {
            **spans[2],
            "spanId": "cd" * 8,
            "attributes": {"openinference.span.kind": "EVALUATOR", "input.value": "Хорошо?", "output.value": "да"},
        }
    )
    (row,), problems = read_spans(tmp_path, spans)
    assert (row.values["question"], row.values["answer"], problems) == (TURN["question"], TURN["answer"], [])


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
def test_impossible_times_give_no_latency(clock: dict[int, tuple[str, int]], tmp_path: Path) -> None:
    spans = make_otlp_spans(TURN)
    for number, (name, shift) in clock.items():
        spans[number][name] = str(TURN["start_ns"] + shift)
    (row,), problems = read_spans(tmp_path, spans)
    assert {"latency_ms", "first_token_ms"}.isdisjoint(row.values["recorded"])
    assert row.values["recorded"]["tokens_in"] == TURN["tokens_in"]
    assert [problem for problem in problems if DIFFERENT_CLOCKS in problem]


def test_missing_times_give_no_latency(tmp_path: Path) -> None:
    spans = [
        {name: value for name, value in span.items() if "Time" not in name and name != "events"}
        for span in make_otlp_spans(TURN)
    ]
    (row,), problems = read_spans(tmp_path, spans)
    assert row.values["created_at"] is None
    assert "latency_ms" not in row.values["recorded"]
    assert problems == [f"1 traces do not tell their times: no latency ({TURN['trace_id']} first)"]


def test_failed_request_has_error_and_no_answer(tmp_path: Path) -> None:
    spans = make_otlp_spans(TURN)
    spans[0]["attributes"] = [attribute for attribute in spans[0]["attributes"] if attribute["key"] != "output.value"]
    spans[0]["status"] = {"code": "STATUS_CODE_ERROR", "message": "RateLimitError: 429"}
    (row,), _ = read_spans(tmp_path, [spans[0], spans[1]])
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
def test_error_status_is_read_in_every_form(status: dict[str, Any], reason: str, tmp_path: Path) -> None:
    (root, *_) = make_otlp_spans(TURN, plain=True)
    del root["attributes"]["output.value"]
    del root["status"]
    (row,), _ = read_spans(tmp_path, [root | status])
    assert row.values["recorded"]["error"] == reason


def test_odd_values_do_not_harm_their_trace(tmp_path: Path) -> None:
    spans = make_otlp_spans(TURN)
    spans[2]["attributes"] = [item for item in spans[2]["attributes"] if "token_count" not in item["key"]]
    spans[2]["attributes"] += [
        {"key": "llm.token_count.prompt", "value": {"intValue": "9" * 5_000}},
        {"key": "llm.token_count.completion", "value": {"doubleValue": "NaN"}},
        {"key": "llm.token_count", "value": {"stringValue": "many"}},
        {"key": "x", "value": {"arrayValue": {}}},
        {"key": "x.y", "value": {"kvlistValue": {"values": [{"key": "z", "value": {"bytesValue": "AA=="}}]}}},
        {"value": {}},
        7,
    ]
    spans[1]["startTimeUnixNano"] = "9" * 5_000
    spans[1]["events"] = "none"
    (row,), _ = read_spans(tmp_path, spans)
    assert (row.values["answer"], row.values["recorded"]["contexts"]) == (TURN["answer"], TURN["passages"])
    assert {"tokens_in", "tokens_out"}.isdisjoint(row.values["recorded"])


def test_trace_without_question_is_rejected_with_reason(tmp_path: Path) -> None:
    silent = [{**span, "traceId": "ab" * 16, "attributes": []} for span in make_otlp_spans(TURN)]
    retriever = [{**span, "traceId": "cd" * 16} for span in make_otlp_spans(TURN)[1:2]]
    stream = reader.read_traces(
        [write_json_lines(tmp_path / "a.jsonl", [make_export_request(make_otlp_spans(TURN) + silent + retriever)])]
    )
    list(stream.chunks)
    rows = list(stream.questions)
    skipped = {row.place: row.reason for row in rows if isinstance(row, Rejected)}
    assert len(rows) == 3
    assert skipped == {
        f"trace {'ab' * 16}": "no span has a question in words (input.value, gen_ai.input.messages, …); is content "
        "recorded?",
        f"trace {'cd' * 16}": "no span has an answer; is content recorded?",
    }


def test_tokens_are_unknown_if_a_call_lacks_them(tmp_path: Path) -> None:
    spans = make_otlp_spans(TURN, plain=True)
    attributes = {"openinference.span.kind": "LLM", "input.value": "Перепиши", "output.value": "Правило 0"}
    spans.append({**spans[2], "spanId": "ef" * 8, "attributes": attributes})
    (row,), problems = read_spans(tmp_path, spans)
    assert {"tokens_in", "tokens_out", "cost_usd"}.isdisjoint(row.values["recorded"])
    assert len(problems) == 3
    assert all("do not tell" in problem for problem in problems)
    nested_span = {**spans[2], "spanId": "ef" * 8, "parentSpanId": spans[2]["spanId"]}
    (row,), problems = read_spans(tmp_path, [*spans[:3], nested_span])  # a client within a client counts once
    assert (row.values["recorded"]["tokens_in"], problems) == (TURN["tokens_in"], [])


def test_passages_without_text_and_conflicting_ids_are_kept(tmp_path: Path) -> None:
    first_turn = make_turn(1, passages=[{"id": "c7", "text": "", "url": "https://wiki.example/7"}])
    second_turn = make_turn(2, passages=[{"id": "c0", "text": "Другой текст.", "url": None}])
    documents = [make_export_request(make_otlp_spans(turn)) for turn in (TURN, first_turn, second_turn)]
    chunks, questions, _, problems = read_rows(write_json_lines(tmp_path / "a.jsonl", documents))
    by_id = {row.values["id"]: row.values["recorded"]["contexts"] for row in questions}
    assert by_id[first_turn["trace_id"]] == [{"id": "c7", "text": None, "url": "https://wiki.example/7"}]
    assert by_id[second_turn["trace_id"]][0]["text"] == "Другой текст."
    assert sorted(row.values["id"] for row in chunks) == ["c0", "c1"]
    assert [problem.split(" (")[0] for problem in problems] == ["1 passages have the id of one with another text"]


@pytest.mark.slow("breadth: a hundred thousand spans")
def test_cyclic_and_very_deep_traces_terminate(tmp_path: Path) -> None:
    cyclic_spans = make_otlp_spans(TURN)
    cyclic_spans[0]["parentSpanId"] = cyclic_spans[2]["spanId"]
    (row,), _ = read_spans(tmp_path, cyclic_spans)
    assert (row.values["question"], row.values["answer"]) == (TURN["question"], TURN["answer"])
    deep_spans = make_otlp_spans(TURN)
    span_ids = [f"{n:016x}" for n in range(1, 20_000)]
    deep_spans += [
        {"traceId": TURN["trace_id"], "spanId": name, "parentSpanId": parent_id, "name": "step"}
        for name, parent_id in zip(span_ids, [deep_spans[0]["spanId"], *span_ids], strict=False)
    ]
    (row,), problems = read_spans(tmp_path, deep_spans)
    assert (row.values["answer"], problems) == (TURN["answer"], [])


@pytest.mark.parametrize(
    ("content", "message"),
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
def test_read_rejects_files_without_traces(content: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_rows(file)


def test_truncated_trace_file_is_rejected(tmp_path: Path) -> None:
    documents = [make_export_request(make_otlp_spans(make_turn(i))) for i in range(3)]
    lines, single_document = "\n".join(map(json.dumps, documents)), json.dumps(documents, indent=2)
    packed_lines = gzip.compress(lines.encode())
    for content in (lines[:-200].encode(), single_document[:-200].encode(), lines[:300].encode(), packed_lines[:-20]):
        (tmp_path / "a.json").write_bytes(content)
        with pytest.raises(InputError, match=r"[Tt]runcated|damaged gzip"):
            read_rows(tmp_path / "a.json")
    with pytest.raises(InputError, match="No such file"):
        read_rows(tmp_path / "none.json")


def test_objects_that_are_not_traces_are_counted(tmp_path: Path) -> None:
    score = {"id": "s", "traceId": TURN["trace_id"], "name": "x", "value": 1, "timestamp": "2026-01-01"}
    documents = [make_langfuse_trace(TURN), score, {"resourceMetrics": []}, 7, make_langfuse_trace(make_turn(1), id="")]
    _, questions, _, problems = read_rows(write_json_lines(tmp_path / "a.jsonl", documents))
    assert len(questions) == 1
    assert [problem.split(":")[0] for problem in problems] == ["4 objects are no traces, not loaded"]

"""Test that one request is read the same from every trace format."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.traces.files import (
    START_NS,
    format_iso_time,
    make_export_request,
    make_langfuse_trace,
    make_otlp_spans,
    make_otlp_value,
    make_sdk_spans,
    make_span_id,
    make_steps,
    make_turn,
    read_rows,
    write_json_lines,
)
from yarus.db.importers import reader

TURNS = [make_turn(i) for i in range(4)]
AS_OTLP = [make_export_request(make_otlp_spans(turn)) for turn in TURNS]


@pytest.fixture
def expected_rows(tmp_path: Path) -> Any:
    return read_rows(write_json_lines(tmp_path / "plain.jsonl", AS_OTLP))


def test_otlp_file_gives_questions_with_their_records(expected_rows: Any) -> None:
    chunks, questions, dialogs, problems = expected_rows
    turn = TURNS[1]
    values = next(row.values for row in questions if row.values["id"] == turn["trace_id"])
    assert (values["question"], values["answer"], values["user_id"]) == (turn["question"], turn["answer"], turn["user"])
    assert values["created_at"].isoformat() == format_iso_time(turn["start_ns"])
    assert values["recorded"] == {
        "contexts": turn["passages"],
        "latency_ms": 1501.0,
        "first_token_ms": 900.0,
        "tokens_in": 301,
        "tokens_out": 21,
        "cost_usd": 0.002,
        "trace_id": turn["trace_id"],
        "span_id": make_span_id(turn, "rag"),
    }
    assert {row.values["id"]: row.values["text"] for row in chunks} == {
        passage["id"]: passage["text"] for turn in TURNS for passage in turn["passages"]
    }
    assert {values["question_id"]: values["dialog_id"] for _, values in dialogs} == {
        turn["trace_id"]: turn["session"] for turn in TURNS
    }
    assert (len(questions), values["score"], problems) == (4, None, [])


def test_id_attribute_and_sdk_forms_give_same_rows(expected_rows: Any, tmp_path: Path) -> None:
    spans = [span for turn in TURNS for span in make_otlp_spans(turn)]
    nested = [
        {**span, "attributes": nest_attributes(span["attributes"])} for turn in TURNS for span in make_sdk_spans(turn)
    ]
    for number, documents in enumerate(
        (
            [make_export_request(make_otlp_spans(turn, ids="base64")) for turn in TURNS],
            [make_export_request(make_otlp_spans(turn, plain=True)) for turn in TURNS],
            [make_export_request([span]) for span in spans],
            spans,
            [span for turn in TURNS for span in make_sdk_spans(turn)],
            [{"data": nested}],
        )
    ):
        assert read_rows(write_json_lines(tmp_path / f"{number}.jsonl", documents)) == expected_rows, number


def nest_attributes(attributes: dict[str, Any]) -> dict[str, Any]:
    """Nest attributes as Phoenix's API does; documents and messages are lists."""
    root: dict[str, Any] = {}
    for name, value in attributes.items():
        target: Any = root
        *path, last_part = name.split(".")
        for part in path:
            target = target.setdefault(part, {})
        target[last_part] = value

    def as_lists(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        fields = {key: as_lists(child) for key, child in value.items()}
        return list(fields.values()) if fields and all(key.isdigit() for key in fields) else fields

    nested: dict[str, Any] = as_lists(root)
    return nested


def test_document_list_and_gzip_forms_give_same_rows(expected_rows: Any, tmp_path: Path) -> None:
    merged_document = {"resourceSpans": [resource for document in AS_OTLP for resource in document["resourceSpans"]]}
    for name, text in {
        "pretty.json": json.dumps(merged_document, indent=2),
        "line.json": json.dumps(merged_document),
        "list.json": json.dumps(AS_OTLP, indent=1),
        "marked.json": "\ufeff" + json.dumps(merged_document, indent=2),
        "blank.jsonl": "\n\n" + "\n\n".join(map(json.dumps, AS_OTLP)) + "\n\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert read_rows(tmp_path / name) == expected_rows, name
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        assert read_rows(tmp_path / f"{name}.gz") == expected_rows, name


def test_langfuse_traces_give_same_rows_without_span_id(expected_rows: Any, tmp_path: Path) -> None:
    chunks, rows, dialogs, _ = expected_rows
    for row in rows:
        row.values["recorded"].pop("span_id")
    documents = [make_langfuse_trace(turn) for turn in TURNS]
    wrapped_documents = [
        {"trace": {name: value for name, value in document.items() if name != "observations"}, **document}
        for document in documents
    ]
    for number, form in enumerate((documents, [documents], [{"data": documents, "meta": {}}], wrapped_documents)):
        assert read_rows(write_json_lines(tmp_path / f"{number}.jsonl", form)) == (chunks, rows, dialogs, []), number


def test_langfuse_observations_of_storage_export_are_read(tmp_path: Path) -> None:
    rows = []
    for turn in TURNS[:2]:
        retriever, model = make_langfuse_trace(turn)["observations"]
        root = make_span_id(turn, "rag")
        trace_fields = {"trace_id": turn["trace_id"], "user_id": turn["user"], "session_id": turn["session"]}
        rows.append(
            trace_fields
            | {
                "id": root,
                "type": "SPAN",
                "name": "rag",
                "parent_observation_id": "",
                "start_time": format_iso_time(turn["start_ns"]).replace("T", " ").removesuffix("+00:00"),
                "end_time": format_iso_time(turn["start_ns"] + turn["latency_ns"])
                .replace("T", " ")
                .removesuffix("+00:00"),
                "input": json.dumps({"question": turn["question"]}),
                "output": json.dumps(turn["answer"]),
            }
        )
        rows += [
            trace_fields
            | {
                "id": observation["id"],
                "type": observation["type"],
                "name": observation["name"],
                "parent_observation_id": root,
                "start_time": observation["startTime"],
                "end_time": observation["endTime"],
                "completion_start_time": observation.get("completionStartTime"),
                "input": json.dumps(observation["input"]),
                "output": json.dumps(observation["output"]),
                "usage_details": observation.get("usageDetails"),
                "cost_details": observation.get("costDetails"),
            }
            for observation in (retriever, model)
        ]
    expected_rows = read_rows(write_json_lines(tmp_path / "otlp.jsonl", AS_OTLP[:2]))
    assert read_rows(write_json_lines(tmp_path / "observations.jsonl", rows)) == expected_rows


@pytest.mark.parametrize(
    ("scores", "stored"),
    [
        ([{"name": "user-feedback", "value": 1, "dataType": "BOOLEAN"}], 5),
        ([{"name": "thumbs", "value": 0}], 1),
        ([{"name": "user_feedback", "value": -1}], 1),
        ([{"name": "User Feedback", "stringValue": "Thumbs_Up"}], 5),
        ([{"name": "user-feedback", "value": 4}], None),  # of five stars, or of ten
        ([{"name": "user_rating", "value": 1}], None),
        ([{"name": "thumbs_down", "value": 1}], 1),
        ([{"name": "user-feedback", "value": 0.5}], None),
        ([{"name": "user-feedback", "value": 1}, {"name": "user-feedback", "value": 0}], None),
        ([{"name": "hallucination", "value": 0}, {"name": "correctness", "value": 1}], None),  # no user's
        ([], None),
    ],
)
def test_only_clear_user_votes_become_scores(scores: list[Any], stored: int | None, tmp_path: Path) -> None:
    _, (row,), _, _ = read_rows(write_json_lines(tmp_path / "a.jsonl", [make_langfuse_trace(TURNS[0], scores=scores)]))
    assert row.values["score"] == stored


def test_gen_ai_attributes_are_read(tmp_path: Path) -> None:
    turn = TURNS[0]
    input_messages = [
        {"role": "system", "parts": [{"type": "text", "content": "Отвечай кратко."}]},
        {"role": "user", "parts": [{"type": "text", "content": "Здравствуйте"}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "Спрашивайте."}]},
        {"role": "user", "parts": [{"type": "text", "content": turn["question"]}]},
    ]
    reply = [{"role": "assistant", "parts": [{"type": "text", "content": turn["answer"]}], "finish_reason": "stop"}]
    documents = [
        {"id": passage["id"], "score": 0.9, "content": passage["text"], "url": passage["url"]}
        for passage in turn["passages"]
    ]
    start, end = turn["start_ns"], turn["start_ns"] + turn["latency_ns"]

    def span(name: str, parent: str | None, begin: int, finish: int, **attributes: Any) -> dict[str, Any]:
        return {
            "traceId": turn["trace_id"],
            "spanId": make_span_id(turn, name),
            "parentSpanId": make_span_id(turn, parent) if parent else "",
            "name": name,
            "startTimeUnixNano": begin,
            "endTimeUnixNano": finish,
            "attributes": [
                {"key": f"gen_ai.{name}", "value": make_otlp_value(value)} for name, value in attributes.items()
            ],
        }

    spans = [
        span("POST /ask", None, start, end, **{"conversation.id": "s0"}),
        span(
            "invoke_agent",
            "POST /ask",
            start,
            end,
            **{
                "operation.name": "invoke_agent",
                "input.messages": json.dumps(input_messages),
                "output.messages": json.dumps(reply),
                "usage.input_tokens": 9_999,
            },
        ),
        span(
            "retrieval",
            "invoke_agent",
            start,
            start + 1,
            **{"operation.name": "retrieval", "retrieval.documents": json.dumps(documents)},
        ),
        span(
            "chat",
            "invoke_agent",
            start + 10**8,
            end,
            **{
                "operation.name": "chat",
                "input.messages": json.dumps(input_messages),
                "output.messages": json.dumps(reply),
                "usage.input_tokens": turn["tokens_in"],
                "usage.output_tokens": turn["tokens_out"],
                "response.time_to_first_chunk": 0.8,
            },
        ),
    ]
    _, (row,), ((_, label),), problems = read_rows(write_json_lines(tmp_path / "a.jsonl", [make_export_request(spans)]))
    assert (row.values["question"], row.values["answer"]) == (turn["question"], turn["answer"])
    recorded = row.values["recorded"]
    assert recorded["contexts"] == turn["passages"]
    assert recorded["history"] == [
        {"role": "user", "content": "Здравствуйте"},
        {"role": "assistant", "content": "Спрашивайте."},
    ]
    assert (recorded["latency_ms"], recorded["first_token_ms"]) == (1500.0, 900.0)
    assert (recorded["tokens_in"], recorded["tokens_out"], "cost_usd" in recorded) == (300, 20, False)
    assert (recorded["span_id"], label["dialog_id"], problems) == (make_span_id(turn, "POST /ask"), "s0", [])


def test_contexts_are_those_of_the_reranker(tmp_path: Path) -> None:
    turn = TURNS[0]
    spans = make_otlp_spans(turn, plain=True)
    first, second = turn["passages"]
    attributes = {
        "openinference.span.kind": "RERANKER",
        "reranker.output_documents.0.document.id": second["id"],
        "reranker.output_documents.0.document.content": second["text"],
        "reranker.output_documents.0.document.metadata": json.dumps({"source": second["url"]}),
    }
    spans.append({**spans[1], "spanId": make_span_id(turn, "reranker"), "name": "reranker", "attributes": attributes})
    chunks, (row,), _, _ = read_rows(write_json_lines(tmp_path / "a.jsonl", [make_export_request(spans)]))
    assert row.values["recorded"]["contexts"] == [second]
    assert [chunk.values["id"] for chunk in chunks] == [second["id"]]
    assert first["id"] != second["id"]


def test_times_in_any_unit_give_same_rows(expected_rows: Any, tmp_path: Path) -> None:
    for number, format_time in enumerate((format_iso_time, int, lambda time: time // 1_000, lambda time: time / 1e6)):
        spans = []
        for turn in TURNS:
            for span, step in zip(make_otlp_spans(turn), make_steps(turn), strict=True):
                span |= {"startTimeUnixNano": format_time(step["start"]), "endTimeUnixNano": format_time(step["end"])}
                spans.append(span)
        assert (
            read_rows(write_json_lines(tmp_path / f"{number}.jsonl", [make_export_request(spans)])) == expected_rows
        ), number
    assert START_NS > 10**17


def test_read_traces_returns_a_stream(tmp_path: Path) -> None:
    stream = reader.read_traces([write_json_lines(tmp_path / "a.jsonl", AS_OTLP)])
    assert stream.new_chunks_only
    assert not isinstance(stream.questions, list)

"""Traces in every supported format: a request with retriever and model. Imported by full name.

`make_turn` describes the request; the other functions format it.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from yarus.db.importers import reader
from yarus.db.loading.staging import IncomingRow

Document = dict[str, Any]
NS = 10**9
START_NS = 1_772_000_000 * NS


def make_turn(i: int, **more: Any) -> Document:
    """Return a question about page i, the retrieved passages, the answer, and times and costs."""
    passages = [
        {"id": f"c{n}", "text": f"Правило {n} велит сдать книгу {n} до мая.", "url": f"https://wiki.example/{n}"}
        for n in (i % 10, (i + 1) % 10)
    ]
    return {
        "trace_id": hashlib.md5(f"trace {i}".encode()).hexdigest(),  # noqa: S324 - ids of 16 bytes
        "question": f"Что велит правило {i}?",
        "answer": f"Правило {i} велит сдать книгу {i} до мая.",
        "passages": passages,
        "start_ns": START_NS + i * 60 * NS,
        "latency_ns": 1_500_000_000 + i * 1_000_000,
        "first_token_ns": 900_000_000,
        "tokens_in": 300 + i,
        "tokens_out": 20 + i,
        "cost_usd": 0.001 * (i + 1),
        "user": f"u{i % 3}",
        "session": f"s{i % 4}",
    } | more


def make_span_id(turn: Document, name: str) -> str:
    return hashlib.md5(f"{turn['trace_id']} {name}".encode()).hexdigest()[:16]  # noqa: S324


def make_steps(turn: Document) -> list[Document]:
    """Return the three steps of a request: name, kind, parent, times, and attributes of OpenInference."""
    start, end = turn["start_ns"], turn["start_ns"] + turn["latency_ns"]
    documents = {
        f"retrieval.documents.{rank}.document.{name}": value
        for rank, part in enumerate(turn["passages"])
        for name, value in {
            "id": part["id"],
            "content": part["text"],
            "score": 1 / (rank + 1),
            "metadata": json.dumps({"url": part["url"]}),
        }.items()
    }
    prompt = "Ответь по тексту.\n" + "\n".join(part["text"] for part in turn["passages"]) + "\n" + turn["question"]
    return [
        {
            "name": "rag",
            "kind": "CHAIN",
            "parent": None,
            "start": start,
            "end": end,
            "attributes": {
                "input.value": json.dumps({"question": turn["question"]}, ensure_ascii=False),
                "input.mime_type": "application/json",
                "output.value": turn["answer"],
                "session.id": turn["session"],
                "user.id": turn["user"],
            },
        },
        {
            "name": "retriever",
            "kind": "RETRIEVER",
            "parent": "rag",
            "start": start + 1_000_000,
            "end": start + 200_000_000,
            "attributes": {"input.value": turn["question"], **documents},
        },
        {
            "name": "ChatOpenAI",
            "kind": "LLM",
            "parent": "rag",
            "start": start + 210_000_000,
            "end": end - 1_000_000,
            "first": start + turn["first_token_ns"],
            "attributes": {
                "llm.input_messages.0.message.role": "user",
                "llm.input_messages.0.message.content": prompt,
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.content": turn["answer"],
                "llm.token_count.prompt": turn["tokens_in"],
                "llm.token_count.completion": turn["tokens_out"],
                "llm.cost.total": turn["cost_usd"],
            },
        },
    ]


def make_otlp_spans(turn: Document, *, ids: str = "hex", plain: bool = False) -> list[Document]:
    """Return the spans of a request as OTLP's JSON.

    Args:
        turn: returned by `make_turn`.
        ids: `hex`, or `base64` as plain protobuf libraries write them.
        plain: attributes as a map instead of keys and typed values.
    """
    coded = (lambda text: base64.b64encode(bytes.fromhex(text)).decode()) if ids == "base64" else str
    spans = []
    for step in make_steps(turn):
        attributes = {"openinference.span.kind": step["kind"], **step["attributes"]}
        span = {
            "traceId": coded(turn["trace_id"]),
            "spanId": coded(make_span_id(turn, step["name"])),
            "parentSpanId": coded(make_span_id(turn, step["parent"])) if step["parent"] else "",
            "name": step["name"],
            "kind": 1,
            "startTimeUnixNano": str(step["start"]),
            "endTimeUnixNano": str(step["end"]),
            "attributes": attributes
            if plain
            else [{"key": key, "value": make_otlp_value(value)} for key, value in attributes.items()],
            "status": {"code": 1},
        }
        if "first" in step:
            span["events"] = [{"timeUnixNano": str(step["first"]), "name": "First Token Stream Event"}]
        spans.append(span)
    return spans


def make_otlp_value(value: Any) -> Document:
    """Return a value as OTLP writes it: 64-bit integers as text."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def make_export_request(spans: Iterable[Document]) -> Document:
    """Return spans as one request to export traces."""
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "bot"}}]}
    return {
        "resourceSpans": [
            {"resource": resource, "scopeSpans": [{"scope": {"name": "openinference"}, "spans": list(spans)}]}
        ]
    }


def make_sdk_spans(turn: Document) -> list[Document]:
    """Return the spans of a request as Python's SDK prints them, with attributes as a map."""
    return [
        {
            "name": step["name"],
            "context": {
                "trace_id": f"0x{turn['trace_id']}",
                "span_id": f"0x{make_span_id(turn, step['name'])}",
                "trace_state": "[]",
            },
            "kind": "SpanKind.INTERNAL",
            "parent_id": f"0x{make_span_id(turn, step['parent'])}" if step["parent"] else None,
            "start_time": format_iso_time(step["start"]),
            "end_time": format_iso_time(step["end"]),
            "status": {"status_code": "OK"},
            "attributes": {"openinference.span.kind": step["kind"], **step["attributes"]},
            "events": [{"name": "First Token Stream Event", "timestamp": format_iso_time(step["first"])}]
            if "first" in step
            else [],
        }
        for step in make_steps(turn)
    ]


def make_langfuse_trace(turn: Document, **more: Any) -> Document:
    """Return a trace with its observations, as Langfuse's pages and API give it."""
    start, end = turn["start_ns"], turn["start_ns"] + turn["latency_ns"]
    documents = [
        {"page_content": passage["text"], "id": passage["id"], "metadata": {"url": passage["url"]}}
        for passage in turn["passages"]
    ]
    return {
        "id": turn["trace_id"],
        "timestamp": format_iso_time(start),
        "name": "rag",
        "userId": turn["user"],
        "sessionId": turn["session"],
        "input": {"question": turn["question"]},
        "output": {"answer": turn["answer"]},
        "latency": turn["latency_ns"] / NS,
        "scores": [],
        "observations": [
            {
                "id": make_span_id(turn, "retriever"),
                "type": "RETRIEVER",
                "name": "retriever",
                "parentObservationId": None,
                "startTime": format_iso_time(start),
                "endTime": format_iso_time(start + 200_000_000),
                "input": turn["question"],
                "output": documents,
                "level": "DEFAULT",
            },
            {
                "id": make_span_id(turn, "model"),
                "type": "GENERATION",
                "name": "ChatOpenAI",
                "parentObservationId": None,
                "startTime": format_iso_time(start + 210_000_000),
                "endTime": format_iso_time(end),
                "completionStartTime": format_iso_time(start + turn["first_token_ns"]),
                "input": [{"role": "user", "content": turn["question"]}],
                "output": {"role": "assistant", "content": turn["answer"]},
                "usageDetails": {
                    "input": turn["tokens_in"],
                    "output": turn["tokens_out"],
                    "total": turn["tokens_in"] + turn["tokens_out"],
                },
                "costDetails": {"total": turn["cost_usd"]},
                "level": "DEFAULT",
            },
        ],
    } | more


def row(turn: Document) -> Document:
    """Return the same request as a row of a table of questions."""
    return {
        "id": turn["trace_id"],
        "question": turn["question"],
        "answer": turn["answer"],
        "user_id": turn["user"],
        "created_at": format_iso_time(turn["start_ns"]),
        "dialog_id": turn["session"],
        "contexts": turn["passages"],
        "latency_ms": turn["latency_ns"] / 1e6,
        "first_token_ms": turn["first_token_ns"] / 1e6,
        "tokens_in": turn["tokens_in"],
        "tokens_out": turn["tokens_out"],
        "cost_usd": turn["cost_usd"],
        "trace_id": turn["trace_id"],
        "span_id": make_span_id(turn, "rag"),
    }


def format_iso_time(ns: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=ns // 1_000)).isoformat()


def write_json_lines(path: Path, documents: Sequence[Any]) -> Path:
    """Write one JSON document per line."""
    path.write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in documents), encoding="utf-8")
    return path


def read_rows(*paths: Path) -> tuple[list[IncomingRow], list[IncomingRow], list[tuple[str, Document]], list[str]]:
    """Return what the importer reads: chunks by id, questions and dialogs in their order, problems."""
    stream = reader.read_traces(paths)
    chunks = sorted(cast("list[IncomingRow]", list(stream.chunks)), key=lambda row: str(row.values["id"]))
    questions = cast("list[IncomingRow]", list(stream.questions))
    dialogs = [(row.place, row.values) for row in cast("list[IncomingRow]", list(stream.annotations))]
    return chunks, questions, dialogs, stream.problems
